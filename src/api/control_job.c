/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of a request over the control socket. */
#include "api/control_job.h"

#include <stdlib.h>

static void on_abort(struct http_request *r)
{
    ((struct control_job *)r->user)->aborted = true;
}

void *control_job_new(size_t size, size_t max_bytes, struct api_services *sv,
                      struct http_request *r)
{
    struct control_job *j = xcalloc(1, size);

    j->sv = sv;
    j->http = r;
    j->mem = arena_new(max_bytes);
    arena_wipe_later(j->mem);
    buf_init_secret(&j->out, max_bytes); /* keys and passwords pass through both */
    r->user = j;
    r->on_abort = on_abort;
    return j;
}

void control_job_end(struct control_job *j, const struct error *err)
{
    if (j->aborted)
        http_request_done(j->http);
    else if (err)
        plain_refuse(j->http, error_info(err->code)->http_status, STR_NONE, err->text);
    else
        http_reply(j->http, 200, "application/json", STR_NONE, buf_str(&j->out));
    buf_release(&j->out);
    arena_free(j->mem);
    free(j);
}

void control_job_busy(struct control_job *j)
{
    struct error err;
    error_set(&err, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
    control_job_end(j, &err);
}

struct str control_query(const struct http_request *r, struct str name, struct arena *mem)
{
    unsigned count = 0;
    struct str query = r->head->query.p ? r->head->query : STR("");
    struct str value = http_query_get(query, name, &count);

    if (count != 1)
        return STR_NONE;
    char *text = arena_alloc(mem, value.n + 1);
    int n = http_percent_decode(value, text, false);
    return n > 0 ? str_n(text, (size_t)n) : STR_NONE;
}
