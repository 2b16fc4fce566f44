/* SPDX-License-Identifier: Apache-2.0 */
/* The index of undelivered results, and the way of a result into and out of the store.
 *
 * A result is taken in two steps: its row is read on the lookup lane and unsealed, then deleted on
 * the write lane.  Only the take that deleted the row gets the result.  Meanwhile the entry is
 * hidden, so the same request beside it is executed.  Entries are found by session, then by the
 * digest of the request, which is computed only for sessions that have entries.
 *
 * The sealed bytes are bound to tenant, owner, session and digest.  A row moved to another place in
 * the database cannot be unsealed. */
#include "call/undelivered.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/log_quiet.h"
#include "base/map.h"
#include "base/metric.h"
#include "crypto/hash.h"
#include "crypto/seal.h"
#include "session/session_metrics.h"

#include <assert.h>
#include <stdlib.h>

/* Room for a sealed result, its plain text, and its parsed form. */
#define MAX_TAKEN ((size_t)64 * 1024 * 1024)

struct undelivered {
    struct loop *loop;
    struct lanes *lanes;
    struct seal_key *key;
    int64_t writer, last_number;
    struct map holders; /* by session id */
    int64_t life_ms;
    struct list order; /* stored results, in the order in which they were stored */
    size_t n, bytes;
    struct metric *results;
};

/* The results of one session. */
struct holder {
    struct list results; /* struct undelivered_result */
    unsigned n;
    struct str session_id;
    char bytes[];
};

enum result_state { RESULT_EXPECTED, RESULT_STORED, RESULT_TAKEN };

struct undelivered_result {
    struct undelivered *home;
    struct holder *holder; /* NULL: hidden */
    struct list in_holder, in_order;
    enum result_state state;
    bool is_delivered;   /* its client got it in another way while it was being stored */
    struct list waiters; /* struct undelivered_take, while EXPECTED */
    struct principal who;
    struct str session_id;
    struct undelivered_row row; /* without sealed bytes once stored */
    uint8_t *sealed;
    struct store_op op;
    struct write_job job;
    char bytes[]; /* of who and session_id */
};

static void count(struct undelivered *u, const char *what)
{
    struct str label = str_of(what);
    metric_add(metric_cell(u->results, &label, 1), 1);
}

/* A server's name has no NUL; a tool's may, so its length goes before it. */
void undelivered_digest(const struct undelivered_ask *ask, uint8_t ret[32])
{
    if (ask->digest) {
        memcpy(ret, ask->digest, 32);
        return;
    }
    uint64_t length = ask->tool.n;
    const struct str parts[] = {ask->method,
                                STR("\0"),
                                ask->server,
                                STR("\0"),
                                str_n((const char *)&length, sizeof(length)),
                                ask->tool,
                                ask->arguments};
    sha256_parts(parts, countof(parts), ret);
}

static struct str put_text(char **to, struct str s)
{
    memcpy(*to, s.p, s.n);
    struct str copy = str_n(*to, s.n);
    *to += s.n;
    return copy;
}

static struct undelivered_result *undelivered_result_new(struct undelivered *u,
                                                         const struct principal *who,
                                                         struct str session_id,
                                                         const uint8_t digest[32])
{
    struct undelivered_result *k =
        xcalloc(1, sizeof(*k) + who->tenant.n + who->owner.n + session_id.n);
    char *to = k->bytes;

    k->home = u;
    k->who = (struct principal){.tenant = put_text(&to, who->tenant),
                                .owner = put_text(&to, who->owner),
                                .role = who->role};
    k->session_id = put_text(&to, session_id);
    memcpy(k->row.digest, digest, sizeof(k->row.digest));
    list_init(&k->in_holder);
    list_init(&k->in_order);
    list_init(&k->waiters);
    return k;
}

static struct holder *holder_make(struct undelivered *u, struct str session_id)
{
    struct holder *h = map_get(&u->holders, session_id);

    if (h)
        return h;
    h = xcalloc(1, sizeof(*h) + session_id.n);
    memcpy(h->bytes, session_id.p, session_id.n);
    h->session_id = str_n(h->bytes, session_id.n);
    list_init(&h->results);
    map_put(&u->holders, h->session_id, h);
    return h;
}

/* Makes the entry visible: requests find it from now on. */
static void show(struct undelivered_result *k)
{
    k->holder = holder_make(k->home, k->session_id);
    k->holder->n++;
    k->home->n++;
    list_push(&k->holder->results, &k->in_holder);
    if (k->state != RESULT_STORED)
        return;
    k->home->bytes += (size_t)k->row.sealed_len;
    list_push(&k->home->order, &k->in_order);
}

static void hide(struct undelivered_result *k)
{
    struct holder *h = k->holder;

    if (!h)
        return;
    if (k->state == RESULT_STORED)
        k->home->bytes -= (size_t)k->row.sealed_len;
    list_remove(&k->in_holder);
    list_remove(&k->in_order);
    k->holder = NULL;
    k->home->n--;
    if (--h->n)
        return;
    map_remove(&k->home->holders, h->session_id);
    free(h);
}

static void undelivered_result_free(struct undelivered_result *k)
{
    hide(k);
    free(k->sealed);
    free(k);
}

/* Drops expired entries; the reaper deletes their rows. */
static void forget_ended(struct undelivered *u)
{
    int64_t now_ms = clock_life_ms();

    for (struct list *it; (it = list_first(&u->order));) {
        struct undelivered_result *k = list_entry(it, struct undelivered_result, in_order);
        if (k->row.expires_ms > now_ms)
            return;
        undelivered_result_free(k);
    }
}

static int64_t lifetime_ms(const struct undelivered *u)
{
    return fault_hits("undelivered.short_life") ? 0 : u->life_ms;
}

void undelivered_set_life(struct undelivered *u, int64_t ms)
{
    u->life_ms = ms;
}

struct undelivered_result *undelivered_expect(struct undelivered *u,
                                              const struct undelivered_ask *ask)
{
    const struct holder *h;
    struct undelivered_result *k;
    uint8_t digest[32];

    forget_ended(u);
    h = map_get(&u->holders, ask->session_id);
    if (u->n >= UNDELIVERED_IN_ALL || u->bytes >= UNDELIVERED_BYTES_IN_ALL ||
        (h && h->n >= UNDELIVERED_PER_SESSION)) {
        count(u, "refused");
        return NULL;
    }
    undelivered_digest(ask, digest);
    k = undelivered_result_new(u, ask->who, ask->session_id, digest);
    show(k);
    return k;
}

static void bound_to(const struct undelivered_result *k, struct str ret[4])
{
    ret[0] = k->who.tenant;
    ret[1] = k->who.owner;
    ret[2] = k->session_id;
    ret[3] = str_n((const char *)k->row.digest, sizeof(k->row.digest));
}

bool undelivered_result_seal(struct undelivered_result *k, int64_t exec, struct str result,
                             int64_t until_ms)
{
    struct undelivered *u = k->home;
    struct str bound[4];
    size_t n = result.n + SEAL_OVERHEAD;

    if (result.n > UNDELIVERED_MAX) {
        count(u, "refused");
        return false;
    }
    bound_to(k, bound);
    k->sealed = xmalloc(n);
    seal(u->key, bound, countof(bound), result, k->sealed);
    k->row.id = u->writer << EVENT_WRITER_SHIFT | ++u->last_number;
    k->row.session_id = k->session_id;
    k->row.exec = exec;
    k->row.created_ms = clock_life_ms();
    k->row.expires_ms = until_ms ? until_ms : k->row.created_ms + lifetime_ms(u);
    k->row.sealed = str_n((const char *)k->sealed, n);
    k->row.sealed_len = (int64_t)n;
    return true;
}

bool undelivered_result_is_sealed(const struct undelivered_result *k)
{
    return k->sealed != NULL;
}

struct store_op undelivered_result_op(const struct undelivered_result *k)
{
    return (struct store_op){.kind = OP_UNDELIVERED_PUT, .who = &k->who, .undelivered = &k->row};
}

int64_t undelivered_result_id(const struct undelivered_result *k)
{
    return k->row.id;
}

/* Takes, from the beginning to the end. */

static void on_later(struct loop_task *task)
{
    struct undelivered_take *t = container_of(task, struct undelivered_take, later);
    t->done(t);
}

static void finish_later(struct undelivered_take *t)
{
    t->later.fn = on_later;
    loop_defer(t->home->loop, &t->later);
}

/* The result could not be taken now, but is still stored. */
static void put_back(struct undelivered_take *t)
{
    t->entry->state = RESULT_STORED;
    show(t->entry);
    t->entry = NULL;
}

static void let_go(struct undelivered_take *t)
{
    undelivered_result_free(t->entry);
    t->entry = NULL;
}

static void store_failed(struct undelivered_take *t, const struct error *err)
{
    log_warn("an undelivered result could not be returned; it stays stored", LZ("why", err->text));
    t->ok =
        error_set(&t->err, ERR_UNAVAILABLE, "the store cannot work right now; try again shortly");
    put_back(t);
}

static void on_deleted(struct write_job *job)
{
    struct undelivered_take *t = container_of(job, struct undelivered_take, write);

    if (!job->ok) {
        store_failed(t, &job->err);
    } else {
        t->found = t->op.verdict == VERDICT_OK;
        if (t->found)
            count(t->home, "handed_out");
        let_go(t);
    }
    t->done(t);
}

static bool open_row(struct undelivered_take *t)
{
    struct str bound[4], sealed = t->row->sealed;

    if (sealed.n < SEAL_OVERHEAD)
        return false;
    uint8_t *plain = arena_alloc(t->mem, sealed.n - SEAL_OVERHEAD + 1);
    bound_to(t->entry, bound);
    if (!unseal(t->home->key, bound, countof(bound), sealed, plain))
        return false;
    t->result = str_n((const char *)plain, sealed.n - SEAL_OVERHEAD);
    t->at_ms = t->row->created_ms;
    t->until_ms = t->row->expires_ms;
    t->exec = t->row->exec;
    return true;
}

static void on_read(struct read_job *job)
{
    struct undelivered_take *t = container_of(job, struct undelivered_take, read);
    struct undelivered *u = t->home;
    struct error full;

    if (!job->ok) {
        store_failed(t, &job->err);
    } else if (!t->row) {
        let_go(t);
    } else if (!open_row(t)) {
        session_metric_crypt_failed(CRYPT_OPEN);
        log_warn("an undelivered result cannot be decrypted; the call is made again");
        let_go(t);
    } else if (t->was_cancelled) {
        put_back(t);
    } else {
        t->op = (struct store_op){
            .kind = OP_UNDELIVERED_TAKE, .who = t->who, .undelivered = &t->entry->row};
        t->write = (struct write_job){.ops = &t->op, .n = 1, .done = on_deleted};
        if (lane_write(u->lanes, &t->write))
            return;
        error_set(&full, ERR_UNAVAILABLE, "too much is waiting for the store");
        store_failed(t, &full);
    }
    t->done(t);
}

static bool read_row(struct read_job *job, struct store *store)
{
    struct undelivered_take *t = container_of(job, struct undelivered_take, read);
    return store_undelivered_get(store, t->who, t->entry->row.id, t->mem, &t->row, &job->err);
}

static void begin_take(struct undelivered_take *t, struct undelivered_result *k)
{
    struct error full;

    hide(k);
    k->state = RESULT_TAKEN;
    t->entry = k;
    t->mem = arena_new(MAX_TAKEN);
    t->read = (struct read_job){.run = read_row, .done = on_read};
    if (lane_lookup(t->home->lanes, &t->read))
        return;
    error_set(&full, ERR_UNAVAILABLE, "too much is waiting for the store");
    store_failed(t, &full);
    finish_later(t);
}

static struct undelivered_result *find(const struct undelivered *u,
                                       const struct undelivered_ask *ask)
{
    struct holder *h = map_get(&u->holders, ask->session_id);
    uint8_t digest[32];

    if (!h)
        return NULL;
    undelivered_digest(ask, digest);
    list_each(&h->results, it)
    {
        struct undelivered_result *k = list_entry(it, struct undelivered_result, in_holder);
        if (memcmp(k->row.digest, digest, sizeof(digest)) == 0 && !k->is_delivered &&
            principal_owns(ask->who, k->who.tenant, k->who.owner))
            return k;
    }
    return NULL;
}

bool undelivered_find(struct undelivered *u, const struct undelivered_ask *ask,
                      struct undelivered_take *t)
{
    struct undelivered_result *k;

    if (!u->n)
        return false;
    forget_ended(u);
    k = find(u, ask);
    if (!k)
        return false;
    t->home = u;
    t->who = ask->who;
    t->ok = true;
    list_init(&t->waiting);
    if (k->state == RESULT_EXPECTED)
        list_push(&k->waiters, &t->waiting);
    else
        begin_take(t, k);
    return true;
}

void undelivered_take_cancel(struct undelivered_take *t)
{
    t->was_cancelled = true;
    if (list_empty(&t->waiting))
        return; /* under way: on_read() checks was_cancelled */
    list_remove(&t->waiting);
    finish_later(t);
}

void undelivered_take_release(struct undelivered_take *t)
{
    arena_free(t->mem);
    t->mem = NULL;
}

/* Deletes a row that is not wanted any more.  The deletion is not awaited; the reaper would delete
 * the row anyway. */
static void on_dropped(struct write_job *job)
{
    undelivered_result_free(container_of(job, struct undelivered_result, job));
}

static void drop(struct undelivered_result *k)
{
    hide(k);
    k->op = (struct store_op){.kind = OP_UNDELIVERED_TAKE, .who = &k->who, .undelivered = &k->row};
    k->job = (struct write_job){.ops = &k->op, .n = 1, .done = on_dropped};
    if (!lane_write(k->home->lanes, &k->job))
        undelivered_result_free(k);
}

void undelivered_result_end(struct undelivered_result *k, bool is_stored)
{
    struct list *first = NULL;

    free(k->sealed);
    k->sealed = NULL;
    k->row.sealed = STR_NONE;
    if (is_stored && !k->is_delivered)
        first = list_pop(&k->waiters);
    for (struct list *it; (it = list_pop(&k->waiters));)
        finish_later(list_entry(it, struct undelivered_take, waiting));
    if (!is_stored) {
        undelivered_result_free(k);
        return;
    }
    count(k->home, "kept");
    hide(k);
    k->state = RESULT_STORED;
    if (k->is_delivered)
        drop(k);
    else if (first)
        begin_take(list_entry(first, struct undelivered_take, waiting), k);
    else
        show(k);
}

static void on_stored(struct write_job *job)
{
    struct undelivered_result *k = container_of(job, struct undelivered_result, job);

    static struct log_quiet quiet;
    if (!job->ok)
        log_warn_quietly(&quiet, "a result could not be kept for its client",
                         LZ("why", job->err.text));
    undelivered_result_end(k, job->ok && k->op.verdict == VERDICT_OK);
}

void undelivered_result_write(struct undelivered_result *k)
{
    assert(undelivered_result_is_sealed(k));
    k->op = undelivered_result_op(k);
    k->job = (struct write_job){.ops = &k->op, .n = 1, .done = on_stored};
    if (!lane_write(k->home->lanes, &k->job))
        undelivered_result_end(k, false);
}

/* A linear search: only a resumed stream knows an id, and both are few. */
void undelivered_drop(struct undelivered *u, int64_t id)
{
    size_t at = 0;
    struct str key;
    void *value;

    while (map_next(&u->holders, &at, &key, &value)) {
        struct holder *h = value;
        list_each(&h->results, it)
        {
            struct undelivered_result *k = list_entry(it, struct undelivered_result, in_holder);
            if (k->row.id != id)
                continue;
            k->is_delivered = true;
            if (k->state == RESULT_STORED)
                drop(k);
            return;
        }
    }
}

size_t undelivered_count(const struct undelivered *u)
{
    return u->n;
}

/* Loads the results of earlier processes.  Ids grow with time, so they are in the order of their
 * expiry. */
static bool load(struct undelivered *u, struct store *store, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct undelivered_row *rows;
    size_t n = STORE_PAGE_MAX;
    int64_t after = 0;
    bool ok = true;

    while (ok && n == STORE_PAGE_MAX && u->n < UNDELIVERED_IN_ALL) {
        ok = store_undelivered_page(store, after, STORE_PAGE_MAX, mem, &rows, &n, err);
        for (size_t i = 0; ok && i < n; i++) {
            struct principal who = {.tenant = rows[i].tenant, .owner = rows[i].owner};
            struct undelivered_result *k =
                undelivered_result_new(u, &who, rows[i].session_id, rows[i].digest);
            k->state = RESULT_STORED;
            k->row = rows[i];
            k->row.tenant = k->who.tenant;
            k->row.owner = k->who.owner;
            k->row.session_id = k->session_id;
            show(k);
            after = rows[i].id;
        }
    }
    arena_free(mem);
    return ok;
}

bool undelivered_open(const struct undelivered_config *config, struct undelivered **ret,
                      struct error *err)
{
    struct undelivered *u = xcalloc(1, sizeof(*u));

    u->loop = config->loop;
    u->key = seal_key_new(config->key);
    u->writer = config->writer;
    u->life_ms = UNDELIVERED_LIFE_MS;
    map_init(&u->holders);
    list_init(&u->order);
    u->results =
        metric_register(METRIC_COUNTER, "holdfast_undelivered_results_total",
                        "Results whose client was gone: kept, handed_out or refused.", "what", 4);
    if (!load(u, config->store, err)) {
        undelivered_free(u);
        return error_wrap(err, "reading undelivered results");
    }
    *ret = u;
    return true;
}

void undelivered_use(struct undelivered *u, struct lanes *lanes)
{
    u->lanes = lanes;
}

void undelivered_free(struct undelivered *u)
{
    struct str key;
    void *holder;

    if (!u)
        return;
    for (size_t at = 0; map_next(&u->holders, &at, &key, &holder); at = 0) {
        struct list *first = list_first(&((struct holder *)holder)->results);
        undelivered_result_free(list_entry(first, struct undelivered_result, in_holder));
    }
    map_release(&u->holders);
    seal_key_free(u->key);
    free(u);
}
