/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the catalogs, and finds the server of a name or a uri. */
#include "profile/plan.h"

#include "base/log.h"

struct choice {
    struct plan *plan;
    plan_wants_fn *wants;
    void *arg;
};

static void add_part(void *arg, struct upstream *u)
{
    struct choice *c = arg;
    struct plan *p = c->plan;

    if (!c->wants(c->arg, u))
        return;
    upstream_ref(u);
    p->parts[p->n++] = (struct plan_part){.plan = p, .up = u};
}

static void count_part(void *arg, struct upstream *u unused_arg)
{
    ++*(size_t *)arg;
}

void plan_init(struct plan *p, struct loop *loop, struct upstreams *set, struct arena *mem,
               plan_wants_fn *wants, void *arg)
{
    struct choice choice = {.plan = p, .wants = wants, .arg = arg};
    size_t n = 0;

    upstreams_each(set, count_part, &n);
    *p = (struct plan){.loop = loop, .mem = mem};
    p->parts = arena_alloc(mem, (n ? n : 1) * sizeof(*p->parts));
    upstreams_each(set, add_part, &choice);
}

/* Uses the last known catalog.  If there is none, the server is left out; a fresh list is announced
 * as changed when the server answers. */
static void do_without(struct plan_part *part)
{
    struct catalog *known = upstream_known(part->up);

    if (known)
        part->catalog = catalog_ref(known);
    else if (part->plan->need == PLAN_FRESH)
        upstream_left_out(part->up);
}

static void on_catalog(struct catalog_want *w, struct catalog *c, const struct error *err)
{
    struct plan_part *part = container_of(w, struct plan_part, want);
    struct plan *p = part->plan;

    part->waiting = false;
    p->waiting--;
    if (!err) {
        part->catalog = catalog_ref(c);
    } else {
        do_without(part);
        log_debug("left out of a list", LS("server", upstream_name(part->up)),
                  LZ("why", err->text));
    }
    if (!p->waiting) {
        loop_timer_stop(p->patience);
        p->ready(p);
    }
}

static void on_patience(void *arg)
{
    struct plan *p = arg;
    for (size_t i = 0; i < p->n; i++)
        if (p->parts[i].waiting) {
            catalog_want_cancel(&p->parts[i].want);
            p->parts[i].waiting = false;
            do_without(&p->parts[i]);
            log_info("a server is slow to answer and is left out of a list for now",
                     LS("server", upstream_name(p->parts[i].up)));
        }
    p->waiting = 0;
    p->ready(p);
}

/* Asks one server; returns how long to wait for it, in ms. */
static int64_t ask_part(struct plan_part *part)
{
    struct plan *p = part->plan;
    struct catalog *c = NULL;
    struct error err;
    int64_t patience;

    part->want.done = on_catalog;
    if (!upstream_catalog(part->up, p->need == PLAN_FRESH, &part->want, &c, &err)) {
        do_without(part);
        return 0;
    }
    if (c) {
        part->catalog = catalog_ref(c);
        return 0;
    }
    patience = p->need == PLAN_KNOWN ? 0 : upstream_patience_ms(part->up);
    if (patience == 0) {
        catalog_want_cancel(&part->want);
        do_without(part);
        return 0;
    }
    part->waiting = true;
    p->waiting++;
    return patience;
}

bool plan_gather(struct plan *p, enum plan_need need, void (*ready)(struct plan *p))
{
    int64_t longest = 0;

    p->ready = ready;
    p->need = need;
    for (size_t i = 0; i < p->n; i++) {
        int64_t patience = ask_part(&p->parts[i]);
        if (patience > longest)
            longest = patience;
    }
    if (!p->waiting)
        return true;
    log_info("a list waits for servers to answer", LI("servers", p->waiting), LI("ms", longest));
    p->patience = loop_timer_new(p->loop, on_patience, p);
    loop_timer_start(p->patience, longest, 0);
    return false;
}

void plan_release(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->parts[i].waiting)
            catalog_want_cancel(&p->parts[i].want);
        catalog_unref(p->parts[i].catalog);
        upstream_unref(p->parts[i].up);
    }
    p->n = 0;
    loop_timer_free(p->patience);
    p->patience = NULL;
}

bool route_split(struct str full, struct str *ret_server, struct str *ret_name)
{
    const char *at = full.n ? memmem(full.p, full.n, ROUTE_SEPARATOR, 2) : NULL;
    size_t n = at ? (size_t)(at - full.p) : 0;

    if (n == 0 || n + 2 == full.n)
        return false;
    *ret_server = str_n(full.p, n);
    *ret_name = str_n(at + 2, full.n - n - 2);
    return true;
}

static bool makes(const struct catalog *c, struct str uri)
{
    const struct catalog_list *templates = &c->lists[CATALOG_TEMPLATES];
    for (size_t i = 0; i < templates->n; i++)
        if (catalog_template_matches(templates->items[i].name, uri))
            return true;
    return false;
}

struct plan_part *plan_find_uri(struct plan *p, struct str uri)
{
    struct plan_part *only = NULL;
    unsigned offering = 0;

    for (size_t i = 0; i < p->n; i++)
        if (p->parts[i].catalog && catalog_find(p->parts[i].catalog, CATALOG_RESOURCES, uri))
            return &p->parts[i];
    for (size_t i = 0; i < p->n; i++)
        if (p->parts[i].catalog && makes(p->parts[i].catalog, uri))
            return &p->parts[i];
    for (size_t i = 0; i < p->n; i++)
        if (p->parts[i].catalog && catalog_offers(p->parts[i].catalog, "resources")) {
            only = &p->parts[i];
            offering++;
        }
    return offering == 1 ? only : NULL;
}
