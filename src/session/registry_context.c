/* SPDX-License-Identifier: Apache-2.0 */
/* The context document of a session: read by its id, replaced under the version that was read.  A
 * change reads, merges and replaces.  Without an expected version it is retried when another change
 * came first, so concurrent changes of different members are both applied. */
#include "session/registry_impl.h"

#include "base/clock.h"
#include "base/random.h"
#include "json/merge.h"
#include "json/read.h"

/* Of concurrent changes, one succeeds in each round.  TRIES_BYTES bounds the memory of all retries
 * of a call, because it is freed only at its end. */
#define TRIES_MAX 64
#define TRIES_BYTES (16u * 1024 * 1024)

/* Reads the session and its document in one job. */
static bool run_both(struct read_job *job, struct store *store)
{
    struct registry_call *c = container_of(job, struct registry_call, read);
    bool ok = registry_read_row(c, store, &job->err);
    if (!ok || !c->read_row || !c->read_row->context_id.p)
        return ok;
    return store_context_get(store, c->who, c->read_row->context_id, c->mem, &c->context_row,
                             &job->err);
}

static void on_both(struct read_job *job)
{
    struct registry_call *c = container_of(job, struct registry_call, read);

    if (!job->ok) {
        c->err = job->err;
        registry_finish(c, REGISTRY_FAILED);
    } else if (!c->read_row) {
        registry_finish(c, REGISTRY_MISSING);
    } else {
        c->row = c->read_row;
        c->context = c->context_row;
        c->next(c);
    }
}

static void find_both(struct registry_call *c)
{
    c->read_row = NULL;
    c->context_row = NULL;
    c->read = (struct read_job){.run = run_both, .done = on_both};
    if (!lane_lookup(c->home->config.lanes, &c->read))
        registry_fail(c, "too many lookups are waiting; try again shortly");
}

static void got(struct registry_call *c)
{
    registry_finish(c, REGISTRY_OK);
}

void registry_context(struct registry *r, struct registry_call *c)
{
    c->home = r;
    c->next = got;
    find_both(c);
}

static void put_done(struct registry_call *c);

static void put(struct registry_call *c, struct str document, int64_t version)
{
    int64_t now = clock_life_ms();

    random_uuid7(c->uuid);
    c->new_context = (struct context_row){
        .id = c->context_row ? c->context_row->id : str_of(c->uuid),
        .tenant = c->who->tenant,
        .session_id = c->row->id,
        .document = document,
        .version = version,
        .created_ms = c->context_row ? c->context_row->created_ms : now,
        .updated_ms = now,
    };
    c->ops[0] =
        (struct store_op){.kind = OP_CONTEXT_PUT, .who = c->who, .context = &c->new_context};
    registry_write(c, 1, put_done);
}

static void change_found(struct registry_call *c);

/* The caller gave no version, so a stale version is retried and not reported. */
static bool may_try_again(struct registry_call *c)
{
    size_t bytes = c->new_context.document.n + (c->context_row ? c->context_row->document.n : 0);

    if (++c->tries < TRIES_MAX && c->tries * bytes < TRIES_BYTES)
        return true;
    error_set(&c->err, ERR_UNAVAILABLE,
              "too many change this context at once; try again in a moment");
    c->result = REGISTRY_FAILED;
    return false;
}

static void put_done(struct registry_call *c)
{
    registry_touch(c, c->row, false);
    if (c->result == REGISTRY_STALE && c->any_version && may_try_again(c)) {
        c->next = change_found;
        find_both(c);
        return;
    }
    c->new_context.version = (c->context_row ? c->context_row->version : 0) + 1;
    c->context = &c->new_context;
    c->done(c);
}

static bool is_live(const struct registry_call *c)
{
    return session_row_is_live(c->row, clock_life_ms());
}

static int64_t version_there(const struct registry_call *c)
{
    return c->context_row ? c->context_row->version : 0;
}

/* Each change respects the limits of a request, but the merged document may not.  A document that
 * cannot be parsed could never be changed again. */
static bool is_readable(struct str document)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    bool ok = js_parse(document, &js_limits_request, mem, &doc, NULL);

    arena_free(mem);
    return ok;
}

/* The changed document; absent: it exceeds the limits. */
static struct str changed(struct registry_call *c)
{
    struct str before = c->context_row ? c->context_row->document : STR("{}");
    struct str after = STR_NONE;
    struct buf out;

    if (c->how == CONTEXT_REPLACE)
        return c->text;
    buf_init(&out, CONTEXT_BYTES_MAX);
    if (json_merge(before, c->text, c->how == CONTEXT_APPEND ? MERGE_APPEND : MERGE_PATCH, c->mem,
                   &out) &&
        is_readable(buf_str(&out)))
        after = arena_dup(c->mem, buf_str(&out));
    buf_release(&out);
    return after;
}

static void change_found(struct registry_call *c)
{
    if (!is_live(c)) {
        registry_finish(c, REGISTRY_NOT_ACTIVE);
        return;
    }
    if (c->version >= 0 && c->version != version_there(c)) {
        registry_finish(c, REGISTRY_STALE);
        return;
    }
    struct str document = changed(c);
    if (document.p)
        put(c, document, version_there(c));
    else
        registry_finish(c, REGISTRY_TOO_LARGE);
}

void registry_context_change(struct registry *r, struct registry_call *c, enum context_change how,
                             struct str text, int64_t version)
{
    c->home = r;
    c->how = how;
    c->text = text;
    c->version = version;
    c->tries = 0;
    c->any_version = version < 0;
    c->next = change_found;
    find_both(c);
}
