/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of documents in the answer of /readyz: the state of each by name; with
 * `auth: required`, only the number of folders in each state. */
#include "docs/api/table.h"

#include "base/clock.h"
#include "docs/docs.h"
#include "json/write.h"

struct ready_report {
    struct js_writer *w;
    int64_t in_state[DOCS_UNAVAILABLE + 1];
};

static void write_folder(void *arg, const struct docs_folder_state *s)
{
    static const char *const reasons[] = {
        [DOCS_LOST] = "the folder that Holdfast opened is no longer at its path; put it back, or "
                      "correct the path in the configuration",
        [DOCS_UNAVAILABLE] = "the folder could not be opened; see the log, then reload",
    };
    struct ready_report *t = arg;
    char at[CLOCK_TEXT];

    js_key(t->w, s->name);
    js_object(t->w);
    js_kv_string(t->w, "state", str_of(docs_state_name(s->state)));
    if (s->state != DOCS_SERVED)
        js_kv_string(t->w, "reason", str_of(reasons[s->state]));
    if (s->replaced_ms) {
        clock_format(s->replaced_ms, at);
        js_kv_string(t->w, "replaced_at", str_of(at));
    }
    js_object_end(t->w);
}

static void count_folder(void *arg, const struct docs_folder_state *s)
{
    ((struct ready_report *)arg)->in_state[s->state]++;
}

/* A lost folder does not make the node unready: servers and other folders still work, and a load
 * balancer would remove every node that shares the disk at once. */
void docs_write_ready(struct api_services *sv, struct js_writer *w)
{
    bool by_name = !sv->front->config->auth_required;
    struct ready_report t = {.w = w};

    if (!sv->docs || !sv->front->config->n_folders)
        return;
    js_key(w, STR("folders"));
    js_object(w);
    docs_each_state(sv->docs, sv->front->config, by_name ? write_folder : count_folder, &t);
    for (int s = 0; !by_name && s <= DOCS_UNAVAILABLE; s++)
        js_kv_int(w, docs_state_name(s), t.in_state[s]);
    js_object_end(w);
}
