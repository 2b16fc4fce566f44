/* SPDX-License-Identifier: Apache-2.0 */
/* The reads of an erasure, on the query lane: which bodies are the person's. */
#include "erasure/impl.h"

#include "base/clock.h"
#include "base/fault.h"
#include "holds/store/verbs.h"
#include "json/read.h"

#define PAGE_SEGMENTS 16
#define COUNT_SEGMENTS 64
/* A batch of the write lane has at most 512 ops. */
#define PAGE_OPS 200

struct person {
    struct erasure_owner *owners;
    size_t n_owners;
    struct held_row *held;
    size_t n_held;
    struct folded_row *folded;
    size_t n_folded;
};

static bool read_person(struct erasures *e, struct store *store, struct person *p,
                        struct error *err)
{
    return store_erasure_owners(store, e->job.user_id, e->mem, &p->owners, &p->n_owners, err) &&
           store_held(store, e->mem, &p->held, &p->n_held, err) &&
           store_folded(store, e->mem, &p->folded, &p->n_folded, err);
}

static bool is_owner(const struct person *p, struct str owner)
{
    for (size_t i = 0; owner.p && i < p->n_owners; i++)
        if (str_eq(p->owners[i].owner, owner))
            return true;
    return false;
}

static bool is_held(const struct erasures *e, const struct person *p, struct str session,
                    struct str owner)
{
    for (size_t i = 0; i < p->n_held; i++) {
        const struct held_row *h = &p->held[i];
        struct str name = h->kind == HELD_SESSION ? session : owner;
        if (name.p && str_eq(h->tenant, e->job.tenant) && str_eq(h->name, name))
            return true;
    }
    return false;
}

static int64_t folded_upto(const struct person *p, int64_t writer)
{
    for (size_t i = 0; i < p->n_folded; i++)
        if (p->folded[i].writer == writer)
            return p->folded[i].last_id;
    return 0;
}

/* A hold that was made meanwhile stops the erasure until its release. */
static bool is_stopped(const struct erasures *e, const struct person *p, struct error *err)
{
    struct str user = arena_printf(e->mem, "user:%.*s", STR_ARG(e->job.user_id));

    for (size_t i = 0; i < p->n_held; i++)
        if (p->held[i].kind == HELD_OWNER && str_eq(p->held[i].tenant, e->job.tenant) &&
            str_eq(p->held[i].name, user))
            return !error_set(err, ERR_CONFLICT, "the user is held");
    return false;
}

static bool has_open_call(struct erasures *e, const struct person *p, struct store *store,
                          bool *ret, struct error *err)
{
    struct event_filter filter = {.kind = -1, .open = true, .tenant = e->job.tenant};
    struct event_row *rows = NULL;

    for (size_t n = STORE_PAGE_MAX; n == STORE_PAGE_MAX;) {
        if (!store_events_page(store, &filter, STORE_PAGE_MAX, e->mem, &rows, &n, err))
            return false;
        for (size_t i = 0; i < n; i++)
            if (is_owner(p, rows[i].owner) && !is_held(e, p, rows[i].session_id, rows[i].owner)) {
                *ret = true;
                return true;
            }
        filter.after = n ? rows[n - 1].id : 0;
    }
    return true;
}

static void take_bodies(struct erasures *e, const struct person *p,
                        const struct segment_row *segment)
{
    struct erasure_page *page = &e->page;
    struct event_row *events = segment_events(segment, e->mem);
    enum fate *fates = arena_zalloc(e->mem, (segment->n + 1) * sizeof(*fates));
    int64_t writer = segment->id >> EVENT_WRITER_SHIFT, folded = folded_upto(p, writer);
    bool any = false;

    if (!segment_is_sound(segment, events)) {
        page->damaged++;
        return;
    }
    for (size_t i = 0; i < segment->n; i++) {
        const struct event_row *x = &events[i];
        if (!x->body.p || !str_eq(x->tenant, e->job.tenant) || !is_owner(p, x->owner) ||
            is_held(e, p, x->session_id, x->owner))
            continue;
        page->is_found = true;
        if (x->id > folded)
            continue; /* the next walk comes to it */
        fates[i] = FATE_LOSES_BODY;
        page->move.bodies++;
        page->move.body_bytes += (int64_t)x->body.n;
        any = true;
    }
    if (any)
        removal_segment(&page->removal, segment, events, fates);
}

bool erasure_walk(struct erasures *e, struct store *store, struct error *err)
{
    const struct segment_page ask = {
        .from = e->job.next_id, .upto = INT64_MAX, .with_bodies = true, .only_bodies = true};
    struct erasure_page *page = &e->page;
    struct retention_state *state = NULL;
    struct segment_row *segments = NULL;
    struct person p = {0};
    size_t n = 0;

    fault_hold("erasure.walk", e->job.user_id);
    if (!store_retention_state(store, e->mem, &state, err) || !read_person(e, store, &p, err) ||
        is_stopped(e, &p, err))
        return false;
    *page = (struct erasure_page){.move = {.id = e->job.id, .from = e->job.next_id}};
    removal_init(&page->removal, e->mem, state ? state->version : 0);
    if ((!e->job.next_id && !has_open_call(e, &p, store, &page->is_open, err)) ||
        !store_segments(store, &ask, PAGE_SEGMENTS, e->mem, &segments, &n, err))
        return false;
    page->is_end = n == 0;
    page->move.to = e->job.next_id;
    for (size_t i = 0; i < n && page->removal.n + page->removal.n_tallies < PAGE_OPS; i++) {
        take_bodies(e, &p, &segments[i]);
        page->move.to = segments[i].id + 1;
    }
    removal_end(&page->removal);
    return true;
}

/* The name of the user, if it is long enough that finding it means something. */
static struct str name_of(struct erasures *e)
{
    struct js_doc doc;
    struct js_fault fault;

    if (!e->job.names.p || !js_parse(e->job.names, &js_limits_request, e->mem, &doc, &fault))
        return STR("");
    const struct js_node *first = js_first(&doc, js_root(&doc));
    struct str name = first ? js_text(&doc, first, e->mem) : STR("");
    return name.n >= 3 ? name : STR("");
}

static bool has_name(const struct event_row *x, struct str name)
{
    const struct str texts[] = {x->client, x->error, x->method, x->tool, x->server, x->carrier};

    for (size_t i = 0; i < countof(texts); i++)
        if (texts[i].p && erasure_names(texts[i], name))
            return true;
    return false;
}

bool erasure_count_sealed(struct erasures *e, struct store *store, struct error *err)
{
    const struct segment_page ask = {.from = e->sealed_next, .upto = INT64_MAX};
    struct segment_row *segments = NULL;
    struct str name = name_of(e);
    size_t n = 0;

    if (name.n && !store_segments(store, &ask, COUNT_SEGMENTS, e->mem, &segments, &n, err))
        return false;
    e->is_counted = n == 0;
    for (size_t i = 0; i < n; i++) {
        struct event_row *events = segment_events(&segments[i], e->mem);
        for (size_t k = 0; k < segments[i].n; k++)
            e->sealed += str_eq(events[k].tenant, e->job.tenant) && has_name(&events[k], name);
        e->sealed_next = segments[i].id + 1;
    }
    return true;
}

bool erasure_find_sessions(struct erasures *e, struct store *store, struct error *err)
{
    struct person p = {0};
    struct session_filter filter = {.statuses = 1u << SESSION_ACTIVE | 1u << SESSION_IDLE,
                                    .now_ms = clock_life_ms()};

    e->n_sessions = 0;
    if (!read_person(e, store, &p, err))
        return false;
    e->sessions = arena_zalloc(e->mem, ERASURE_SESSIONS * sizeof(*e->sessions));
    for (size_t i = 0; i < p.n_owners && e->n_sessions < ERASURE_SESSIONS; i++) {
        const struct principal who = {.tenant = e->job.tenant, .owner = p.owners[i].owner};
        struct session_row *rows = NULL;
        size_t n = 0;
        if (!store_sessions_page(store, &who, &filter, STORE_PAGE_MAX, e->mem, &rows, &n, err))
            return false;
        for (size_t k = 0; k < n && e->n_sessions < ERASURE_SESSIONS; k++)
            if (!is_held(e, &p, rows[k].id, rows[k].owner))
                e->sessions[e->n_sessions++] = rows[k];
    }
    return true;
}
