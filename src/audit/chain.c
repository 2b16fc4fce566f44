/* SPDX-License-Identifier: Apache-2.0 */
/* The write lane's hook: just before a transaction it gives every event an id, a position in the
 * tenant's chain, and a seal.
 *
 * Invariants: numbers that assign() takes are provisional until commit().  The ids of one writer
 * have no gaps, and the seqs of one (tenant, writer) have no gaps, so a missing event is noticed.
 * After a failed commit the content of the store is unknown, so the next assign() rereads the
 * heads.  An event that is submitted again keeps its number if the store has it, and gets a new
 * number if not.
 *
 * Once the lanes run, everything here belongs to the write lane; other threads may call only
 * chain_count() and chain_publish_to(). */
#include "audit/chain.h"

#include "audit/chain_key.h"
#include "audit/checkpoint.h"
#include "audit/event_id.h"
#include "audit/publish.h"
#include "base/map.h"
#include "crypto/hash.h"
#include "json/write.h"
#include "store/claim.h"
#include "store/record.h"

#include <stdatomic.h>
#include <stdlib.h>

/* The end of one (tenant, writer) chain. */
struct head {
    struct list link;          /* in chain.heads */
    struct head *next_touched; /* in chain.touched */
    int64_t writer, seq, id;   /* as of the last commit */
    int64_t new_seq, new_id;   /* as of this transaction, when touched */
    int64_t anchored,
        anchoring; /* seqs: covered by a committed anchor; named by the anchor being written */
    bool touched;
    uint8_t mac[SHA256_BYTES], new_mac[SHA256_BYTES];
    struct str tenant;
    struct str key; /* writer and tenant, for the map */
    char bytes[];
};

struct chain {
    struct hmac_key *hmac;
    bool borrows_key;
    int64_t writer;
    struct map by_key;
    struct list heads;
    struct head *last; /* cache: the next event most often has the same head; NULL: empty */
    struct head *touched;
    _Atomic int64_t count;
    int64_t new_count;
    bool stale;      /* the store's heads may differ from ours */
    bool was_behind; /* see chain_was_behind() */
    bool anchoring;  /* this transaction holds an anchor */
    struct buf scratch;
    struct arena *records;      /* records of the events in this transaction */
    const struct store_op *ops; /* of this transaction */
    size_t n_ops;
    _Atomic(struct publish_point *) publish; /* NULL: no subscribers */
    /* The events up to this count need not be published any more.  Equals `count`, except after a
     * commit of unknown fate. */
    int64_t published;
};

static struct chain *chain_new(struct hmac_key *hmac)
{
    struct chain *c = xcalloc(1, sizeof(*c));
    c->hmac = hmac;
    c->stale = true;
    map_init(&c->by_key);
    list_init(&c->heads);
    buf_init(&c->scratch, SIZE_MAX / 4);  /* the sizes of rows bound it */
    c->records = arena_new(SIZE_MAX / 4); /* bounded by the rows too */
    return c;
}

bool chain_open(struct str key_file, bool create, int64_t writer, struct chain **ret,
                struct error *err)
{
    uint8_t key[CHAIN_KEY_BYTES];
    if (!chain_key_load(key_file, create, key, err))
        return false;
    struct chain *c = chain_new(hmac_key_new(key, sizeof(key)));
    crypto_wipe(key, sizeof(key));
    c->writer = writer;
    *ret = c;
    return true;
}

struct chain *chain_like(const struct chain *c)
{
    struct chain *like = chain_new(c->hmac);
    like->borrows_key = true;
    return like;
}

void chain_free(struct chain *c)
{
    if (!c)
        return;
    for (struct list *node; (node = list_pop(&c->heads));)
        free(list_entry(node, struct head, link));
    map_release(&c->by_key);
    if (!c->borrows_key)
        hmac_key_free(c->hmac);
    buf_release(&c->scratch);
    arena_free(c->records);
    free(c);
}

int64_t chain_count(const struct chain *c)
{
    return atomic_load_explicit(&((struct chain *)c)->count, memory_order_relaxed);
}

static void add_int(struct buf *out, int64_t value)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
    buf_add(out, bytes, sizeof(bytes));
}

/* Computes the seal of an event from its record and the `previous` seal.  Change the label when the
 * sealed content changes. */
static void seal(struct chain *c, const uint8_t previous[SHA256_BYTES], int64_t id,
                 struct str record, uint8_t ret[SHA256_BYTES])
{
    struct buf *head = &c->scratch;
    buf_reset(head);
    buf_addz(head, "holdfast event 2");
    buf_add(head, previous, SHA256_BYTES);
    add_int(head, id);
    const struct str parts[] = {buf_str(head), record};
    hmac_sha256(c->hmac, parts, countof(parts), ret);
}

static struct str record_of(struct arena *mem, const struct event_row *e)
{
    char *bytes = arena_alloc(mem, record_room(e));
    return str_n(bytes, record_write(e, bytes));
}

void chain_mac(struct chain *c, const uint8_t previous[SHA256_BYTES], const struct event_row *e,
               uint8_t ret[SHA256_BYTES])
{
    seal(c, previous, e->id, record_of(c->records, e), ret);
    arena_reset(c->records);
}

static struct head *head_new(struct chain *c, int64_t writer, struct str key, size_t tenant_at)
{
    struct head *h = xcalloc(1, sizeof(*h) + key.n);
    memcpy(h->bytes, key.p, key.n);
    h->key = str_n(h->bytes, key.n);
    h->tenant = str_n(h->bytes + tenant_at, key.n - tenant_at);
    h->writer = writer;
    list_push(&c->heads, &h->link);
    map_put(&c->by_key, h->key, h);
    return h;
}

static struct head *head_of(struct chain *c, int64_t writer, struct str tenant)
{
    struct head *h = c->last;
    if (h && h->writer == writer && str_eq(h->tenant, tenant))
        return h;
    buf_reset(&c->scratch);
    add_int(&c->scratch, writer);
    buf_addstr(&c->scratch, tenant);
    h = map_get(&c->by_key, buf_str(&c->scratch));
    return c->last = h ? h : head_new(c, writer, buf_str(&c->scratch), 8);
}

static bool load_heads(struct chain *c, struct store *store, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct chain_head *rows;
    size_t n;
    if (!store_chain_heads(store, mem, &rows, &n, err)) {
        arena_free(mem);
        return false;
    }
    list_each(&c->heads, node)
    {
        struct head *h = list_entry(node, struct head, link);
        h->seq = h->id = 0;
        memset(h->mac, 0, sizeof(h->mac));
    }
    int64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct head *h = head_of(c, rows[i].writer, rows[i].tenant);
        h->seq = rows[i].seq;
        h->id = rows[i].last_id;
        memcpy(h->mac, rows[i].mac, sizeof(h->mac));
        if (h->writer == c->writer && event_id_count(h->id) > count)
            count = event_id_count(h->id);
    }
    atomic_store_explicit(&c->count, count, memory_order_relaxed);
    c->stale = false;
    arena_free(mem);
    return true;
}

/* Ids of one writer grow, and its anchors are the events of the system tenant.  So a head with a
 * greater id than the last of these was not anchored: the writer was killed. */
static bool is_behind(struct chain *c)
{
    list_each(&c->heads, node)
    {
        const struct head *h = list_entry(node, struct head, link), *system;
        if (h->seq == 0 || str_eq(h->tenant, STR(CHAIN_SYSTEM_TENANT)))
            continue;
        buf_reset(&c->scratch);
        add_int(&c->scratch, h->writer);
        buf_addz(&c->scratch, CHAIN_SYSTEM_TENANT);
        system = map_get(&c->by_key, buf_str(&c->scratch));
        if (!system || system->id < h->id)
            return true;
    }
    return false;
}

bool chain_load(struct chain *c, struct store *store, struct error *err)
{
    if (!load_heads(c, store, err))
        return error_wrap(err, "reading the ends of the audit chain");
    c->was_behind = is_behind(c);
    c->published = chain_count(c);
    return true;
}

bool chain_was_behind(const struct chain *c)
{
    return c->was_behind;
}

static bool wrong_key(struct error *err)
{
    return error_set(err, ERR_CONFIG,
                     "the audit key is not the one that sealed this database; restore audit.key "
                     "from a backup, or move the whole data directory away to start anew");
}

/* Where retention removed the first event, a checkpoint tells as well whose key it is. */
static bool check_key_of_checkpoint(struct chain *c, struct store *store, int64_t writer,
                                    struct arena *mem, struct error *err)
{
    struct removed_row *rows = NULL;
    size_t n = 0;

    return store_removed(store, writer, mem, &rows, &n, err) &&
           (n == 0 || checkpoint_is_sealed(c, &rows[0]) || wrong_key(err));
}

/* The first event of a writer has no predecessor, so its seal can be checked alone. */
bool chain_check_key(struct chain *c, struct store *store, struct error *err)
{
    int64_t newest = 0;
    list_each(&c->heads, node)
    {
        const struct head *h = list_entry(node, struct head, link);
        if (h->seq > 0 && h->writer > newest)
            newest = h->writer;
    }
    if (newest == 0)
        return true;
    static const uint8_t nothing[SHA256_BYTES];
    uint8_t mac[SHA256_BYTES];
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_filter filter = {
        .after = event_id_make(newest, 0), .before = event_id_make(newest, 2), .kind = -1};
    struct event_row *rows = NULL;
    size_t n = 0;
    bool ok = store_events_page(store, &filter, 1, mem, &rows, &n, err);
    if (ok && n == 1) {
        chain_mac(c, nothing, &rows[0], mac);
        ok = crypto_equal(mac, rows[0].mac, sizeof(mac)) || wrong_key(err);
    } else if (ok) {
        ok = check_key_of_checkpoint(c, store, newest, mem, err);
    }
    arena_free(mem);
    return ok;
}

bool chain_claim(struct chain *c, struct store *store, bool read_only, struct str where,
                 struct error *err)
{
    static const struct str name = {"audit-key", 9};
    uint8_t own[SHA256_BYTES];
    struct arena *mem = arena_new(1 << 20);
    struct claim *claimed = NULL;
    bool is_ours = false;
    chain_derive(c, "the claim on a shared store", own);
    bool ok = (read_only || claim_make(store, name, own, where, CLAIM_FOR_EVER, &is_ours, err)) &&
              (is_ours || claim_get(store, name, mem, &claimed, err));
    if (ok && claimed && !crypto_equal(own, claimed->value, sizeof(own)))
        ok =
            error_set(err, ERR_CONFIG,
                      "the database is sealed with another audit key than this node's; copy "
                      "audit.key from %.*s, or name that file with HOLDFAST_AUDIT_KEY_FILE",
                      STR_ARG(claimed->where.p ? claimed->where
                                               : STR("the data directory of a node that uses it")));
    arena_free(mem);
    return ok;
}

/* Discards this transaction's numbers. */
static void forget(struct chain *c)
{
    for (struct head *h = c->touched; h; h = h->next_touched)
        h->touched = false;
    c->touched = NULL;
    c->anchoring = false;
    c->new_count = chain_count(c);
}

static struct head *touch(struct chain *c, struct str tenant)
{
    struct head *h = head_of(c, c->writer, tenant);
    if (!h->touched) {
        h->touched = true;
        h->next_touched = c->touched;
        c->touched = h;
        h->new_seq = h->seq;
        h->new_id = h->id;
        memcpy(h->new_mac, h->mac, sizeof(h->mac));
    }
    return h;
}

/* For an event that was numbered before: finds out whether its earlier commit, of unknown fate,
 * succeeded. */
static bool find_committed(struct chain *c, struct store *store, const struct event_row *e,
                           bool *ret_committed, struct error *err)
{
    *ret_committed = false;
    if (e->seq > head_of(c, c->writer, e->tenant)->seq)
        return true;
    struct arena *mem = arena_new(1 << 20);
    struct event_filter filter = {.after = e->id - 1, .before = e->id + 1, .kind = -1};
    struct event_row *rows;
    size_t n;
    bool ok = store_events_page(store, &filter, 1, mem, &rows, &n, err);
    if (ok)
        *ret_committed =
            n == 1 && rows[0].id == e->id && crypto_equal(rows[0].mac, e->mac, sizeof(e->mac));
    arena_free(mem);
    return ok;
}

static bool number_event(struct chain *c, struct store *store, struct event_row *e,
                         struct error *err)
{
    bool committed = false;
    if (e->id != 0 && !find_committed(c, store, e, &committed, err))
        return false;
    if (committed) {
        e->record = record_of(c->records, e);
        return true;
    }
    struct head *h = touch(c, e->tenant);
    e->id = h->new_id = event_id_make(c->writer, ++c->new_count);
    e->seq = ++h->new_seq;
    if (e->kind == EVENT_INTENT || e->kind == EVENT_NOTE || e->kind == EVENT_RECORD ||
        e->kind == EVENT_IMPORT)
        e->exec = e->id;
    if (e->kind == EVENT_ANCHOR)
        c->anchoring = true;
    e->record = record_of(c->records, e);
    seal(c, h->new_mac, e->id, e->record, e->mac);
    memcpy(h->new_mac, e->mac, sizeof(e->mac));
    return true;
}

void chain_publish_to(struct chain *c, struct publish_point *p)
{
    atomic_store(&c->publish, p);
}

/* After a commit of unknown fate: publishes the events that the store has.  If the store cannot be
 * read now, the next transaction tries again, and publishes nothing out of order before. */
static void publish_unknown(struct chain *c, struct store *store)
{
    struct publish_point *p = atomic_load(&c->publish);
    int64_t until = chain_count(c);
    if (p && c->published < until)
        until = event_id_count(publish_stored(p, store, event_id_make(c->writer, c->published),
                                              event_id_make(c->writer, until)));
    c->published = until;
}

/* The events of this transaction have the ids after `before`. */
static void publish_batch(struct chain *c, int64_t before)
{
    struct publish_point *p = atomic_load(&c->publish);
    if (c->published != before)
        return;
    if (p)
        publish_committed(p, c->ops, c->n_ops, event_id_make(c->writer, before));
    c->published = c->new_count;
}

static void on_rollback(void *arg)
{
    struct chain *c = arg;
    forget(c);
    c->stale = true;
}

static bool on_assign(void *arg, struct store *store, struct store_op *ops, size_t n,
                      struct error *err)
{
    struct chain *c = arg;
    if (c->stale && !load_heads(c, store, err))
        return false;
    if (unlikely(c->published != chain_count(c)))
        publish_unknown(c, store);
    forget(c);
    arena_reset(c->records);
    c->ops = ops;
    c->n_ops = n;
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind == OP_EVENT_APPEND && !number_event(c, store, ops[i].event, err)) {
            on_rollback(c);
            return false;
        }
    }
    return true;
}

static void on_commit(void *arg)
{
    struct chain *c = arg;
    for (struct head *h = c->touched; h; h = h->next_touched) {
        h->seq = h->new_seq;
        h->id = h->new_id;
        memcpy(h->mac, h->new_mac, sizeof(h->mac));
    }
    if (c->anchoring)
        list_each(&c->heads, node)
        {
            struct head *h = list_entry(node, struct head, link);
            if (h->anchoring > h->anchored)
                h->anchored = h->anchoring;
        }
    int64_t before = chain_count(c);
    atomic_store_explicit(&c->count, c->new_count, memory_order_relaxed);
    publish_batch(c, before);
    forget(c);
}

struct write_hook chain_hook(struct chain *c)
{
    return (struct write_hook){
        .arg = c, .assign = on_assign, .commit = on_commit, .rollback = on_rollback};
}

static void write_head(struct js_writer *w, const struct head *h)
{
    char id[EVENT_ID_TEXT], mac[2 * SHA256_BYTES + 1];
    hex_encode(h->mac, sizeof(h->mac), mac);
    js_object(w);
    js_kv_string(w, "tenant", h->tenant);
    js_kv_int(w, "writer", h->writer);
    js_kv_int(w, "seq", h->seq);
    js_kv_string(w, "id", str_of(event_id_format(h->id, id)));
    js_kv_string(w, "mac", str_of(mac));
    js_object_end(w);
}

size_t chain_anchor_body(struct chain *c, struct buf *out, bool *ret_left)
{
    struct js_writer w;
    size_t n = 0;
    *ret_left = false;
    js_begin(&w, out);
    js_object(&w);
    js_key(&w, STR("heads"));
    js_array(&w);
    list_each(&c->heads, node)
    {
        struct head *h = list_entry(node, struct head, link);
        h->anchoring = 0;
        if (h->seq == 0 || h->seq == h->anchored)
            continue;
        if (n == CHAIN_ANCHOR_HEADS) {
            *ret_left = true;
            continue;
        }
        h->anchoring = h->seq;
        write_head(&w, h);
        n++;
    }
    js_array_end(&w);
    js_object_end(&w);
    return n;
}

void chain_anchor_line(const struct event_row *anchor, struct buf *out)
{
    struct js_writer w;
    char id[EVENT_ID_TEXT], mac[2 * SHA256_BYTES + 1];
    hex_encode(anchor->mac, sizeof(anchor->mac), mac);
    js_begin(&w, out);
    js_object(&w);
    js_kv_string(&w, "id", str_of(event_id_format(anchor->id, id)));
    js_kv_string(&w, "tenant", anchor->tenant);
    js_kv_int(&w, "seq", anchor->seq);
    js_kv_int(&w, "at_ms", anchor->at_ms);
    js_kv_string(&w, "mac", str_of(mac));
    js_kv_raw(&w, "anchor", anchor->body);
    js_object_end(&w);
    buf_addc(out, '\n');
}

void chain_derive(struct chain *c, const char *purpose, uint8_t ret[32])
{
    struct str parts[] = {STR("holdfast key for "), str_of(purpose)};
    hmac_sha256(c->hmac, parts, countof(parts), ret);
}
