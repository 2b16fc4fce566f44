/* SPDX-License-Identifier: Apache-2.0 */
/* /audit/verify: proves that the chains of all tenants are whole.  The query lane reads and checks
 * page by page, and other queries run between two pages.  One verification runs at a time.  It
 * covers every tenant, so only the local admin is told counts and the event that is wrong. */
#include "api/job.h"

#include "audit/audit.h"
#include "audit/chain.h"
#include "audit/checkpoint.h"
#include "audit/event_query.h"
#include "base/clock.h"
#include "front/front.h"
#include "retention/store/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (64u * 1024)
#define CHECKPOINTS_SHOWN 100

struct verify_job {
    struct api_job j;
    struct read_job read;
    struct chain *chain;
    struct chain_verifier *verifier;
    const char *anchor_file; /* NULL: none is kept */
    struct str anchors;      /* the file, mapped before the first page; absent: it has no lines */
    bool is_begun, is_whole; /* is_whole: the last page was checked */
    int64_t after;
    unsigned limit;
};

static bool is_running; /* loop thread only */

/* Anchors are read before the events: an anchor is written after the events that it covers, so no
 * anchor covers an event that the walk does not reach. */
static bool map_anchors(struct verify_job *v, struct error *err)
{
    int fd = v->anchor_file ? open(v->anchor_file, O_RDONLY | O_CLOEXEC) : -1;
    struct stat st = {0};

    if (fd < 0)
        return !v->anchor_file || errno == ENOENT ||
               error_sys(err, ERR_INTERNAL, errno, "the anchor file cannot be read");
    bool ok = fstat(fd, &st) == 0;
    if (ok && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = p != MAP_FAILED;
        if (ok)
            v->anchors = str_n(p, (size_t)st.st_size);
    }
    int saved = errno;
    close(fd);
    return ok || error_sys(err, ERR_INTERNAL, saved, "the anchor file cannot be read");
}

static bool check_page(struct verify_job *v, struct store *store, struct arena *mem,
                       struct error *err)
{
    int64_t scanned = 0;
    struct event_filter filter = {
        .kind = -1, .with_bodies = true, .after = v->after, .ret_scanned = &scanned};
    struct event_row *rows = NULL;
    size_t n = 0;

    if (!store_events_page(store, &filter, v->limit, mem, &rows, &n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!chain_verify_event(v->verifier, &rows[i], err))
            return false;
    v->is_whole = !scanned && n < v->limit;
    v->after = scanned ? scanned : n ? rows[n - 1].id : v->after;
    return !v->is_whole || chain_verify_end(v->verifier, v->anchors, err);
}

static bool run_page(struct read_job *job, struct store *store)
{
    struct verify_job *v = container_of(job, struct verify_job, read);
    struct arena *mem = arena_new(SIZE_MAX / 4);
    bool ok = v->is_begun || map_anchors(v, &job->err);

    v->is_begun = true;
    chain_verifier_store(v->verifier, store);
    ok = ok && check_page(v, store, mem, &job->err);
    if (!ok && job->err.code == ERR_TIMEOUT && v->limit > 1) { /* the machine is busy */
        v->limit /= 2;
        ok = true;
    }
    arena_free(mem);
    return ok;
}

static void release(struct verify_job *v)
{
    if (v->anchors.p)
        munmap((void *)v->anchors.p, v->anchors.n);
    chain_verifier_free(v->verifier);
    chain_free(v->chain);
    is_running = false;
}

static void refuse(struct verify_job *v, const struct error *err)
{
    release(v);
    api_job_refuse(&v->j, err);
}

static void write_removed(struct verify_job *v, struct js_writer *w)
{
    size_t n = 0;
    const struct removed_row *rows = chain_verified_removed(v->verifier, &n);

    js_kv_int(w, "removed", (int64_t)chain_verified(v->verifier).removed);
    js_key(w, STR("checkpoints"));
    js_array(w);
    for (size_t i = 0; i < n && i < CHECKPOINTS_SHOWN; i++)
        checkpoint_write(w, &rows[i]);
    js_array_end(w);
}

static void reply(struct verify_job *v, const struct error *broken)
{
    struct chain_report r = chain_verified(v->verifier);
    struct js_writer w;

    js_begin(&w, &v->j.out);
    js_object(&w);
    js_kv_bool(&w, "ok", !broken);
    js_kv_time(&w, "last_anchor", r.last_anchor_ms);
    if (api_is_local(v->j.call)) {
        js_kv_int(&w, "events", (int64_t)r.events);
        js_kv_int(&w, "writers", (int64_t)r.writers);
        js_kv_int(&w, "anchors", (int64_t)r.anchors);
        js_kv_int(&w, "bodies_deleted", (int64_t)r.bodies_deleted);
        js_kv_int(&w, "unproven", (int64_t)r.unproven);
        write_removed(v, &w);
        if (broken)
            js_kv_string(&w, "reason", str_of(broken->text));
    }
    js_object_end(&w);
    release(v);
    api_job_end(&v->j, 200, STR_NONE);
}

static void on_page(struct read_job *job)
{
    struct verify_job *v = container_of(job, struct verify_job, read);
    const struct api_call *c = v->j.call;
    struct error err;

    if (!job->ok && job->err.code == ERR_CHAIN_BROKEN) {
        reply(v, &job->err);
    } else if (!job->ok) {
        refuse(v, &job->err);
    } else if (v->is_whole) {
        reply(v, NULL);
    } else if (c->sv->front->draining || http_request_aborted(c->http) ||
               !lane_query(c->sv->lanes, &v->read)) {
        error_set(&err, ERR_UNAVAILABLE, "the verification was stopped; begin it again");
        refuse(v, &err);
    }
}

void api_verify_audit(struct api_call *c)
{
    if (is_running || !c->sv->audit) {
        api_refuse(c, ERR_CONFLICT, "a verification is running; wait until it ends");
        return;
    }
    struct verify_job *v = api_job_new(sizeof(*v), MAX_BYTES, c);
    is_running = true;
    v->chain = audit_chain_to_verify(c->sv->audit, &v->anchor_file);
    v->verifier = chain_verifier_new(v->chain);
    v->limit = EVENTS_PAGE_MAX;
    v->read = (struct read_job){.run = run_page, .done = on_page};
    if (lane_query(c->sv->lanes, &v->read))
        return;
    release(v);
    api_job_busy(&v->j);
}
