/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of the configuration: read at the start, and before each reload.  The store answers on
 * a lane, so a reload is two steps: read the secrets, then load the file and fill them in.  While the
 * store does not answer, a reload uses the secrets that were read before. */
#include "gateway_impl.h"

#include "audit/known.h"
#include "base/log.h"
#include "session/config_secrets.h"
#include "store/change_poller.h"

static void secrets_release(struct gateway_secrets *s)
{
    if (s->mem)
        arena_free(s->mem);
    *s = (struct gateway_secrets){0};
}

static bool secrets_fill(struct gateway *g, struct gateway_secrets *s, struct store *store,
                         struct error *err)
{
    secrets_release(s);
    s->mem = arena_new_hidden(SIZE_MAX / 4);
    return config_secrets_read(store, g->master_file, s->mem, &s->list, &s->n, err);
}

bool gateway_resolve(struct gateway *g, struct error *err)
{
    struct config *c = g->front.config;

    if (!secrets_fill(g, &g->secrets, storage_write_store(g->storage), err))
        return false;
    config_resolve(c, g->secrets.list, g->secrets.n);
    known_publish(known_of_config(c, NULL));
    return true;
}

static bool run_read(struct read_job *job, struct store *store)
{
    struct gateway *g = container_of(job, struct gateway, secrets_read);

    return secrets_fill(g, &g->fresh_secrets, store, &job->err);
}

static void read_and_reload(struct gateway *g);

static void on_read(struct read_job *job)
{
    struct gateway *g = container_of(job, struct gateway, secrets_read);

    g->reloading = false;
    if (job->ok) {
        secrets_release(&g->secrets);
        g->secrets = g->fresh_secrets;
        g->fresh_secrets = (struct gateway_secrets){0};
    } else {
        log_warn("the secrets cannot be read; the reload uses those read before",
                 LZ("why", job->err.text));
    }
    if (g->front.draining)
        return;
    gateway_reload(g);
    if (g->reload_again)
        read_and_reload(g);
}

static void read_and_reload(struct gateway *g)
{
    g->reload_again = false;
    g->secrets_read = (struct read_job){.run = run_read, .done = on_read};
    g->reloading = lane_query(g->sv.lanes, &g->secrets_read);
    if (g->reloading)
        return;
    log_warn("the secrets cannot be read now; the reload uses those read before");
    gateway_reload(g);
}

void gateway_reload_soon(struct gateway *g)
{
    if (g->reloading)
        g->reload_again = true;
    else
        read_and_reload(g);
}

void gateway_on_change(void *arg, const struct change_row *row)
{
    if (row->kind == CHANGE_SECRET)
        gateway_reload_soon(arg);
}

void gateway_on_secret_changed(void *arg)
{
    struct gateway *g = arg;

    if (g->poller)
        change_poller_nudge(g->poller); /* every node learns of it in the same way */
    else
        gateway_reload_soon(g);
}

void gateway_secrets_free(struct gateway *g)
{
    secrets_release(&g->secrets);
    secrets_release(&g->fresh_secrets);
}
