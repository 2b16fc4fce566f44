/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the events in id order and names the first event that was tampered with.
 *
 * A changed field breaks the event's seal.  A deleted event leaves a gap in its writer's ids.
 * Swapped events break their seals, which cover the ids.  A cut tail leaves no such trace, so
 * anchors tell how far each chain went: the anchors among the events, and their copies in the
 * second sink, which also reveal anchors that were cut off.  Events after the last anchor can be
 * cut off unnoticed.
 *
 * Retention leaves gaps, each with a checkpoint (checkpoint.h) that has the seals on both sides.  Ids
 * count the events of a writer, and seqs those of its chains: at the end the last seqs of all chains
 * must add up to the last id, so no event is missing that no checkpoint counts.
 *
 * Events may come from a tampered database: nothing in them is trusted, and the code that prints
 * the error must escape their text. */
#include "audit/chain.h"

#include "audit/checkpoint.h"
#include "audit/event_id.h"
#include "base/clock.h"
#include "base/map.h"
#include "crypto/hash.h"
#include "json/read.h"

#include <inttypes.h>
#include <stdlib.h>

#define ADVICE "keep the database as evidence and compare it with a backup"

/* One (tenant, writer) chain: its last event seen, and its last event according to anchors. */
struct seen {
    struct list link;
    int64_t writer, seq, id;
    uint8_t mac[SHA256_BYTES];
    int64_t anchor_seq; /* of the last anchor among its events; an anchor covers itself */
    int64_t want_seq, want_id;
    uint8_t want_mac[SHA256_BYTES];
    int64_t wanted_at_ms; /* time of the anchor that names want_seq */
    struct str key, tenant;
    char bytes[];
};

struct seen_writer {
    struct list link;
    int64_t writer, last_id;
    int64_t removed_id; /* the last one that a checkpoint names: events before it are proven */
};

struct seen_anchor {
    int64_t id;
    uint8_t mac[SHA256_BYTES];
};

struct chain_verifier {
    struct chain *chain;
    struct map by_key;
    struct list chains;
    struct map by_writer;
    struct list writers;
    struct seen_writer *current;
    struct seen_anchor *anchors; /* in id order */
    size_t n_anchors, cap_anchors;
    struct buf key;
    struct checkpoints *checkpoints;
    struct store *store; /* NULL: there are no checkpoints */
    struct chain_report report;
};

/* An anchor's statement about one chain. */
struct claim {
    struct str tenant;
    int64_t writer, seq, id;
    uint8_t mac[SHA256_BYTES];
};

struct chain_verifier *chain_verifier_new(struct chain *c)
{
    struct chain_verifier *v = xcalloc(1, sizeof(*v));
    v->chain = c;
    map_init(&v->by_key);
    map_init(&v->by_writer);
    list_init(&v->chains);
    list_init(&v->writers);
    buf_init(&v->key, SIZE_MAX / 4);
    v->checkpoints = checkpoints_new();
    return v;
}

void chain_verifier_store(struct chain_verifier *v, struct store *store)
{
    v->store = store;
}

const struct removed_row *chain_verified_removed(const struct chain_verifier *v, size_t *ret_n)
{
    return checkpoints_all(v->checkpoints, ret_n);
}

void chain_verifier_free(struct chain_verifier *v)
{
    if (!v)
        return;
    for (struct list *node; (node = list_pop(&v->chains));)
        free(list_entry(node, struct seen, link));
    for (struct list *node; (node = list_pop(&v->writers));)
        free(list_entry(node, struct seen_writer, link));
    map_release(&v->by_key);
    map_release(&v->by_writer);
    buf_release(&v->key);
    checkpoints_free(v->checkpoints);
    free(v->anchors);
    free(v);
}

struct chain_report chain_verified(const struct chain_verifier *v)
{
    return v->report;
}

static struct seen *seen_of(struct chain_verifier *v, int64_t writer, struct str tenant)
{
    buf_reset(&v->key);
    buf_add(&v->key, &writer, sizeof(writer));
    buf_addstr(&v->key, tenant);
    struct seen *s = map_get(&v->by_key, buf_str(&v->key));
    if (s)
        return s;
    s = xcalloc(1, sizeof(*s) + v->key.n);
    memcpy(s->bytes, v->key.p, v->key.n);
    s->key = str_n(s->bytes, v->key.n);
    s->tenant = str_n(s->bytes + sizeof(writer), v->key.n - sizeof(writer));
    s->writer = writer;
    list_push(&v->chains, &s->link);
    map_put(&v->by_key, s->key, s);
    return s;
}

static struct seen_writer *find_writer(const struct chain_verifier *v, int64_t writer)
{
    return map_get(&v->by_writer, str_n((const char *)&writer, sizeof(writer)));
}

static struct seen_writer *enter_writer(struct chain_verifier *v, int64_t writer)
{
    struct seen_writer *w = xcalloc(1, sizeof(*w));
    w->writer = writer;
    w->last_id = event_id_make(writer, 0);
    w->removed_id = checkpoints_last(v->checkpoints, writer);
    list_push(&v->writers, &w->link);
    map_put(&v->by_writer, str_n((const char *)&w->writer, sizeof(w->writer)), w);
    v->report.writers++;
    return w;
}

/* "event 3.17 (2026-11-15T09:02:03.456Z, tools/call echo): …" */
static bool bad_event(struct error *err, const struct event_row *e, const char *what)
{
    char id[EVENT_ID_TEXT], time[CLOCK_TEXT];
    clock_format(e->at_ms, time);
    struct str method = e->method.n > 40 ? str_n(e->method.p, 40) : e->method;
    struct str tool = e->tool.n > 80 ? str_n(e->tool.p, 80) : e->tool;
    return error_set(err, ERR_CHAIN_BROKEN, "event %s (%s%s%.*s%s%.*s): %s; " ADVICE,
                     event_id_format(e->id, id), time, method.n ? ", " : "", STR_ARG(method),
                     tool.n ? " " : "", STR_ARG(tool), what);
}

static bool missing_event(struct error *err, int64_t id, const char *known_by, int64_t at_ms)
{
    char text[EVENT_ID_TEXT], time[CLOCK_TEXT];
    clock_format(at_ms, time);
    return error_set(err, ERR_CHAIN_BROKEN, "event %s is missing (%s %s); " ADVICE,
                     event_id_format(id, text), known_by, time);
}

static bool read_checkpoints(struct chain_verifier *v, struct error *err)
{
    struct removed_row *rows = NULL;
    size_t n = 0;

    if (!v->store)
        return true;
    struct arena *mem = arena_new(SIZE_MAX / 4);
    bool ok = store_removed(v->store, 0, mem, &rows, &n, err) &&
              checkpoints_set(v->checkpoints, v->chain, rows, n, err);
    arena_free(mem);
    list_each(&v->writers, node)
    {
        struct seen_writer *w = list_entry(node, struct seen_writer, link);
        w->removed_id = checkpoints_last(v->checkpoints, w->writer);
    }
    return ok;
}

/* Whether retention may have removed the events between the two ids. */
static bool is_explained(const struct chain_verifier *v, int64_t first, int64_t last)
{
    int64_t writer = event_id_writer(first);

    return checkpoints_reach(v->checkpoints, writer, first) &&
           checkpoints_reach(v->checkpoints, writer, last);
}

static bool check_gap(struct chain_verifier *v, const struct event_row *e, struct error *err)
{
    int64_t first = v->current->last_id + 1;

    if (e->id == first || is_explained(v, first, e->id - 1))
        return true;
    if (!read_checkpoints(v, err))
        return false;
    return is_explained(v, first, e->id - 1) ||
           missing_event(err, first, "the next stored event was written at", e->at_ms);
}

/* Goes on behind the checkpoints up to the seq `until`. */
static bool skip_removed(struct chain_verifier *v, struct seen *s, int64_t until, struct error *err)
{
    const struct removed_row *r;

    while (s->seq < until &&
           (r = checkpoints_at(v->checkpoints, s->writer, s->tenant, s->seq + 1))) {
        if (r->last_seq > until) /* stored after all, as read before the removal */
            return true;
        if (r->first_seq == s->seq + 1 && !crypto_equal(r->before, s->mac, sizeof(s->mac)))
            return error_set(
                err, ERR_CHAIN_BROKEN,
                "a checkpoint of tenant %.*s does not continue the chain at seq %" PRId64
                "; " ADVICE,
                STR_ARG(s->tenant), s->seq + 1);
        s->seq = r->last_seq;
        s->id = r->last_id;
        s->anchor_seq = r->last_seq;
        memcpy(s->mac, r->after, sizeof(s->mac));
    }
    return true;
}

/* The event was read before retention removed it; *ret_gone is false when it is there still. */
static bool look_again(struct chain_verifier *v, const struct event_row *e, bool *ret_gone,
                       struct error *err)
{
    struct event_filter filter = {.kind = -1, .after = e->id - 1, .before = e->id + 1};
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct event_row *rows = NULL;
    size_t n = 0;
    bool ok = store_events_page(v->store, &filter, 1, mem, &rows, &n, err);

    *ret_gone = n == 0;
    arena_free(mem);
    return ok;
}

/* Goes on in the event's chain to the event before it.  *ret_gone: the event itself was removed since
 * it was read. */
static bool come_to(struct chain_verifier *v, struct seen *s, const struct event_row *e,
                    bool *ret_gone, struct error *err)
{
    for (int i = 0; e->seq != s->seq + 1 && i < 2; i++)
        if ((i == 1 && !read_checkpoints(v, err)) || !skip_removed(v, s, e->seq - 1, err))
            return false;
    if (e->seq == s->seq + 1 || !checkpoints_at(v->checkpoints, s->writer, s->tenant, e->seq))
        return true;
    if (!look_again(v, e, ret_gone, err))
        return false;
    return *ret_gone ||
           bad_event(err, e, "it is stored, but a checkpoint says that it was removed");
}

static bool check_place(struct chain_verifier *v, const struct event_row *e, struct error *err)
{
    int64_t writer = event_id_writer(e->id);
    if (e->id <= 0 || writer == 0 || event_id_count(e->id) == 0)
        return bad_event(err, e, "no writer gives such an id");
    if (v->current && e->id <= v->current->last_id)
        return bad_event(err, e, "it is out of order");
    if (!v->current || v->current->writer != writer)
        v->current = enter_writer(v, writer);
    return check_gap(v, e, err);
}

static bool is_zero(const uint8_t digest[SHA256_BYTES])
{
    static const uint8_t zero[SHA256_BYTES];
    return memcmp(digest, zero, SHA256_BYTES) == 0;
}

static bool check_body(struct chain_verifier *v, const struct event_row *e, struct error *err)
{
    uint8_t digest[SHA256_BYTES];
    if (!e->body.p) {
        v->report.bodies_deleted += !is_zero(e->stored_sha);
        return true;
    }
    sha256(e->body, digest);
    return memcmp(digest, e->stored_sha, sizeof(digest)) == 0 ||
           bad_event(err, e, "its body differs from the digest in its seal");
}

static bool read_claim(const struct js_doc *doc, const struct js_node *node, struct arena *mem,
                       struct claim *ret)
{
    struct str id = js_text(doc, js_get(doc, node, STR("id")), mem);
    struct str mac = js_text(doc, js_get(doc, node, STR("mac")), mem);
    ret->tenant = js_text(doc, js_get(doc, node, STR("tenant")), mem);
    if (!ret->tenant.p || !id.p || !mac.p || !event_id_parse(id, &ret->id))
        return false;
    ret->writer = event_id_writer(ret->id);
    return js_to_i64(doc, js_get(doc, node, STR("seq")), &ret->seq) &&
           hex_decode(mac, ret->mac, sizeof(ret->mac));
}

static void believe(struct chain_verifier *v, const struct claim *claim, int64_t at_ms)
{
    struct seen *s = seen_of(v, claim->writer, claim->tenant);
    if (claim->seq <= s->want_seq)
        return;
    s->want_seq = claim->seq;
    s->want_id = claim->id;
    memcpy(s->want_mac, claim->mac, sizeof(claim->mac));
    s->wanted_at_ms = at_ms;
}

static bool believe_heads(struct chain_verifier *v, const struct js_doc *doc,
                          const struct js_node *anchor, struct arena *mem, int64_t at_ms)
{
    const struct js_node *heads = js_get(doc, anchor, STR("heads"));
    if (!js_type_is(heads, JS_ARRAY))
        return false;
    for (const struct js_node *node = js_first(doc, heads); node;
         node = js_next(doc, heads, node)) {
        struct claim claim;
        if (!read_claim(doc, node, mem, &claim))
            return false;
        believe(v, &claim, at_ms);
    }
    return true;
}

/* The seal has been checked, so Holdfast wrote the anchor's body. */
static bool read_anchor(struct chain_verifier *v, const struct event_row *e, struct error *err)
{
    if (v->n_anchors == v->cap_anchors) {
        v->cap_anchors = v->cap_anchors ? 2 * v->cap_anchors : 64;
        v->anchors = xrealloc(v->anchors, v->cap_anchors * sizeof(*v->anchors));
    }
    struct seen_anchor *a = &v->anchors[v->n_anchors++];
    a->id = e->id;
    memcpy(a->mac, e->mac, sizeof(a->mac));
    v->report.anchors++;
    v->report.last_anchor_ms = e->at_ms;
    if (!e->body.p)
        return true;
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    bool ok = js_parse(e->body, &js_limits_upstream, mem, &doc, NULL) &&
              believe_heads(v, &doc, js_root(&doc), mem, e->at_ms);
    arena_free(mem);
    return ok || bad_event(err, e, "it is an anchor that cannot be read");
}

bool chain_verify_event(struct chain_verifier *v, const struct event_row *e, struct error *err)
{
    if (!check_place(v, e, err))
        return false;
    struct seen *s = seen_of(v, event_id_writer(e->id), e->tenant);
    uint8_t mac[SHA256_BYTES];
    bool is_gone = false;
    if (!come_to(v, s, e, &is_gone, err))
        return false;
    if (is_gone) {
        v->current->last_id = e->id;
        return true;
    }
    chain_mac(v->chain, s->mac, e, mac);
    if (e->seq != s->seq + 1 || !crypto_equal(mac, e->mac, sizeof(mac)))
        return bad_event(err, e, "content differs from its seal");
    if (!check_body(v, e, err) || (e->kind == EVENT_ANCHOR && !read_anchor(v, e, err)))
        return false;
    s->seq = e->seq;
    s->id = e->id;
    if (e->kind == EVENT_ANCHOR || e->id < v->current->removed_id)
        s->anchor_seq = e->seq;
    memcpy(s->mac, mac, sizeof(mac));
    v->current->last_id = e->id;
    v->report.events++;
    return true;
}

static const struct seen_anchor *find_anchor(const struct chain_verifier *v, int64_t id)
{
    size_t low = 0, high = v->n_anchors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->anchors[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->n_anchors && v->anchors[low].id == id ? &v->anchors[low] : NULL;
}

/* Checks one line of the second sink.  A line torn by a crash is ignored.  The anchor that the line
 * copies must be unchanged in the database, unless its writer's tail is missing; the claims then
 * reveal the cut. */
static bool check_line(struct chain_verifier *v, struct str line, struct arena *mem,
                       struct error *err)
{
    struct js_doc doc;
    struct claim own;
    int64_t at_ms;
    if (!js_parse(line, &js_limits_upstream, mem, &doc, NULL) ||
        !read_claim(&doc, js_root(&doc), mem, &own) ||
        !js_to_i64(&doc, js_get(&doc, js_root(&doc), STR("at_ms")), &at_ms) ||
        !believe_heads(v, &doc, js_get(&doc, js_root(&doc), STR("anchor")), mem, at_ms))
        return true;
    believe(v, &own, at_ms);
    const struct seen_writer *w = find_writer(v, own.writer);
    if (!w || w->last_id < own.id)
        return true;
    const struct seen_anchor *kept = find_anchor(v, own.id);
    char id[EVENT_ID_TEXT];
    if (kept ? crypto_equal(kept->mac, own.mac, sizeof(own.mac))
             : checkpoints_at(v->checkpoints, own.writer, own.tenant, own.seq) != NULL)
        return true;
    return error_set(err, ERR_CHAIN_BROKEN,
                     "event %s is not the anchor that the anchor file copied: the database was "
                     "replaced; " ADVICE,
                     event_id_format(own.id, id));
}

static bool check_lines(struct chain_verifier *v, struct str lines, struct error *err)
{
    while (lines.n > 0) {
        struct str line = str_split(&lines, '\n');
        struct arena *mem = arena_new(SIZE_MAX / 4);
        bool ok = check_line(v, line, mem, err);
        arena_free(mem);
        if (!ok)
            return false;
    }
    return true;
}

/* Retention removed the last events of some chains, or all of them. */
static bool skip_last(struct chain_verifier *v, struct error *err)
{
    size_t n = 0;
    const struct removed_row *rows = checkpoints_all(v->checkpoints, &n);

    for (size_t i = 0; i < n; i++) {
        struct seen *s = seen_of(v, rows[i].writer, rows[i].tenant);
        struct seen_writer *w = find_writer(v, rows[i].writer);
        if (!w)
            w = enter_writer(v, rows[i].writer);
        if (!skip_removed(v, s, INT64_MAX, err))
            return false;
        if (s->id > w->last_id)
            w->last_id = s->id;
        v->report.removed += (size_t)(rows[i].last_seq - rows[i].first_seq + 1);
    }
    return true;
}

/* Every event has a place in the chain of one tenant. */
static bool count_all(struct chain_verifier *v, struct error *err)
{
    list_each(&v->writers, node)
    {
        const struct seen_writer *w = list_entry(node, struct seen_writer, link);
        int64_t left = event_id_count(w->last_id);
        if (!w->removed_id) /* no gap was met */
            continue;
        list_each(&v->chains, each)
        {
            const struct seen *s = list_entry(each, struct seen, link);
            left -= s->writer == w->writer ? s->seq : 0;
        }
        if (left != 0)
            return error_set(err, ERR_CHAIN_BROKEN,
                             "%" PRId64 " events of writer %" PRId64
                             " are missing, and no checkpoint tells of their removal; " ADVICE,
                             left, w->writer);
    }
    return true;
}

bool chain_verify_end(struct chain_verifier *v, struct str anchor_lines, struct error *err)
{
    if (!read_checkpoints(v, err) || !skip_last(v, err) || !check_lines(v, anchor_lines, err) ||
        !count_all(v, err))
        return false;
    int64_t missing = INT64_MAX, known_ms = 0;
    list_each(&v->chains, node)
    {
        const struct seen *s = list_entry(node, struct seen, link);
        const struct seen_writer *w = find_writer(v, s->writer);
        int64_t last = w ? w->last_id : event_id_make(s->writer, 0);
        if (last < s->want_id && last + 1 < missing) {
            missing = last + 1;
            known_ms = s->wanted_at_ms;
        }
    }
    if (missing != INT64_MAX)
        return missing_event(err, missing, "the end was cut off after it had been anchored at",
                             known_ms);
    list_each(&v->chains, node)
    {
        const struct seen *s = list_entry(node, struct seen, link);
        char id[EVENT_ID_TEXT];
        if (s->want_seq > s->seq || (s->want_seq == s->seq && s->seq > 0 &&
                                     !crypto_equal(s->want_mac, s->mac, sizeof(s->mac))))
            return error_set(err, ERR_CHAIN_BROKEN,
                             "event %s is not the one that was anchored; " ADVICE,
                             event_id_format(s->want_id, id));
        int64_t proven = s->want_seq > s->anchor_seq ? s->want_seq : s->anchor_seq;
        v->report.unproven += (size_t)(s->seq - proven);
    }
    return true;
}
