/* SPDX-License-Identifier: Apache-2.0 */
/* Removes look-alike names from a list.  The tool that was there first keeps its name, at any
 * position in the list; the others are left out.
 *
 * Four ranks claim their names in turn: present tools; tools that were gone and return; for a
 * session's own list also tools that only other sessions see; and last the new tools.  Once the
 * server is known, a new tool is judged more strictly.  Its name may not look like another even
 * loosely.  If it is not plain ASCII, it may not look like that of a gone tool either: that would
 * be the same name in other letters.  In plain ASCII a server may rename its tools. */
#include "upstream/pins_impl.h"

#include "base/log.h"
#include "base/unicode.h"
#include "upstream/pins_lookalike.h"

#define UTF8_LONGEST 4 /* bytes of a character */

static bool refuse(struct looking *l, struct str name, const char *why, struct str like)
{
    struct watched_server *s = l->server;
    struct refused_name *r;

    /* Still longer than any name that can be called, so the cut name matches no other. */
    name = str_cut(name, LOOKALIKE_MAX + UTF8_LONGEST);
    r = map_get(&s->refused, name);
    bool is_known = r && !r->unrecorded;

    upstream_guard(l->up);
    if (is_known || (!r && s->refuses_rest))
        return false;
    if (!r && s->refused.n == PINS_MAX_REFUSED) {
        s->refuses_rest = true;
        pins_limit(l, pins_find(l, FOUND_REFUSED_REST, name));
        log_warn("a server has more left-out names than the log lists", LS("server", s->name),
                 LI("told", PINS_MAX_REFUSED));
        return false;
    }
    if (!r) {
        r = xcalloc(1, sizeof(*r) + name.n + 1);
        memcpy(r->text, name.p, name.n);
        r->name = str_n(r->text, name.n);
        map_put(&s->refused, r->name, r);
    }
    r->unrecorded = false;
    struct finding *one = pins_find(l, FOUND_REFUSED, name);
    one->why = why;
    one->like = like.p ? arena_dup(l->found->mem, like) : STR_NONE;
    pins_limit(l, one);
    if (one->is_recorded)
        log_warn("left out a tool: its name is not distinct", LS("server", s->name),
                 LS("tool", name), LZ("why", why), LS("like", like));
    return false;
}

/* The name that has this fold already; absent when there is none: then `name` takes it. */
static struct str take(struct looking *l, struct map *folds, struct str fold, struct str name)
{
    const struct str *other = map_get(folds, fold);

    if (other)
        return *other;
    struct str *mine = arena_new_of(l->mem, struct str);
    *mine = name;
    map_put(folds, arena_dup(l->mem, fold), mine);
    return STR_NONE;
}

static struct str take_loosely(struct looking *l, struct str name)
{
    struct buf fold;

    buf_init(&fold, LOOKALIKE_FOLD_MAX);
    lookalike_fold_loosely(name, &fold);
    struct str other = take(l, &l->loose, buf_str(&fold), name);
    buf_release(&fold);
    return other;
}

/* A listed tool that was approved keeps its name, even if a newer version of Holdfast knows more
 * names that look alike. */
static bool keeps_its_name(const struct looking *l, struct str name)
{
    const struct watched_tool *t = map_get(&l->server->tools, name);
    return t && !t->gone && !digest_is_none(t->approved);
}

/* Claims the fold of the name; false: another name has it, and the name is refused. */
static bool claim(struct looking *l, struct str name)
{
    const char *why = NULL;
    struct buf fold;

    buf_init(&fold, LOOKALIKE_FOLD_MAX);
    bool ok = lookalike_fold(name, &fold, &why);
    struct str other = ok ? take(l, &l->folds, buf_str(&fold), name) : STR_NONE;
    buf_release(&fold);
    if ((ok && (!other.p || str_eq(other, name))) || keeps_its_name(l, name))
        return true;
    if (!ok)
        return refuse(l, name, why, STR_NONE);
    return refuse(l, name, "looks like that of another tool", other);
}

/* Claims the fold of a remembered tool, without refusing any name. */
static void claim_past(struct looking *l, struct map *folds, struct str name)
{
    const char *why = NULL;
    struct buf fold;

    buf_init(&fold, LOOKALIKE_FOLD_MAX);
    if (lookalike_fold(name, &fold, &why))
        (void)take(l, folds, buf_str(&fold), name);
    buf_release(&fold);
}

static bool is_new(const struct looking *l, struct str name)
{
    return !map_get(&l->server->tools, name);
}

static bool looks_like_past(struct looking *l, struct str name, struct str *ret_other)
{
    const char *why = NULL;
    struct buf fold;

    buf_init(&fold, LOOKALIKE_FOLD_MAX);
    const struct str *other =
        lookalike_fold(name, &fold, &why) ? map_get(&l->past, buf_str(&fold)) : NULL;
    buf_release(&fold);
    if (other)
        *ret_other = *other;
    return other != NULL;
}

static bool stays(void *arg, const struct catalog_item *item)
{
    struct looking *l = arg;
    struct str name = item->name, other = STR_NONE;

    if (item->has_two_names)
        return refuse(l, name, "is one of two that its definition has", STR_NONE);
    if (!claim(l, name))
        return false;
    if (!l->is_first && is_new(l, name)) {
        if (!unicode_is_ascii(name) && looks_like_past(l, name, &other))
            return refuse(l, name, "looks like that of a tool there was", other);
        other = take_loosely(l, name);
        if (other.p && !is_new(l, other))
            return refuse(l, name, "looks like that of another tool", other);
    }
    free(map_remove(&l->server->refused, name));
    return true;
}

/* Claims names of the list that are remembered, gone or not. */
static void claim_known(struct looking *l, bool gone)
{
    const struct catalog_list *list = &l->catalog->lists[CATALOG_TOOLS];

    for (size_t i = 0; i < list->n; i++) {
        const struct watched_tool *t = map_get(&l->server->tools, list->items[i].name);
        if (!t || t->gone != gone || list->items[i].has_two_names)
            continue;
        if (claim(l, t->name) && l->any_new)
            (void)take_loosely(l, t->name);
    }
}

/* Claims names of remembered tools that are not in this list. */
static void claim_rest(struct looking *l)
{
    struct str key;
    void *value;

    for (size_t at = 0; map_next(&l->server->tools, &at, &key, &value);) {
        const struct watched_tool *t = value;
        if (catalog_tool(l->catalog, t->name))
            continue;
        claim_past(l, &l->past, t->name);
        if (!l->is_whole && !t->gone)
            claim_past(l, &l->folds, t->name);
    }
}

void pins_sort_names(struct looking *l)
{
    const struct catalog_list *list = &l->catalog->lists[CATALOG_TOOLS];

    for (size_t i = 0; i < list->n && !l->is_first && !l->any_new; i++)
        l->any_new = is_new(l, list->items[i].name);
    claim_known(l, false);
    claim_known(l, true);
    if (l->any_new)
        claim_rest(l);
    catalog_filter(l->catalog, CATALOG_TOOLS, stays, l);
}
