/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/selection.h"

#include "audit/event_json.h"
#include "base/buf.h"
#include "base/utf8.h"

static const struct str names[SELECTION_LISTS] = {
    [SELECT_SESSION] = {"session", 7},
    [SELECT_SERVER] = {"server", 6},
    [SELECT_TOOL] = {"tool", 4},
    [SELECT_OUTCOME] = {"outcome", 7},
};
/* As in event_row.outcome. */
static const char *const outcomes[] = {"ok",         "tool_error", "error",         "timeout",
                                       "cancelled",  "refused",    "upstream_lost", "indeterminate",
                                       "redelivered"};

static bool is_outcome(struct str text)
{
    for (size_t i = 0; i < countof(outcomes); i++)
        if (str_eq(text, str_of(outcomes[i])))
            return true;
    return false;
}

static bool refuse_type(struct str item, struct arena *mem, struct error *err)
{
    struct str known = STR("");

    for (int i = 0; event_kind_name(i); i++)
        known = arena_printf(mem, "%.*s%s%s", STR_ARG(known), i ? ", " : "", event_kind_name(i));
    return error_set(err, ERR_BAD_INPUT, "there is no type of events \"%.*s\"; types are %.*s",
                     STR_ARG(str_cut(item, 64)), STR_ARG(known));
}

static bool refuse_outcome(struct str item, struct arena *mem, struct error *err)
{
    struct str known = STR("");

    for (size_t i = 0; i < countof(outcomes); i++)
        known = arena_printf(mem, "%.*s%s%s", STR_ARG(known), i ? ", " : "", outcomes[i]);
    return error_set(err, ERR_BAD_INPUT, "there is no outcome \"%.*s\"; outcomes are %.*s",
                     STR_ARG(str_cut(item, 64)), STR_ARG(known));
}

/* The list that is being read. */
struct reading {
    struct str name;
    struct str items[SELECTION_ITEMS_MAX];
    size_t n;
    struct arena *mem;
};

static bool add_item(struct reading *r, struct str item, struct error *err)
{
    item = str_trim(item);
    if (item.n == 0 || item.n > SELECTION_NAME_MAX || !utf8_is_valid(item))
        return error_set(err, ERR_BAD_INPUT,
                         "an item of %.*s has 1 to %d bytes of UTF-8; separate items by one comma",
                         STR_ARG(r->name), SELECTION_NAME_MAX);
    if (r->n == SELECTION_ITEMS_MAX)
        return error_set(err, ERR_BAD_INPUT, "%.*s takes at most %d items; send fewer",
                         STR_ARG(r->name), SELECTION_ITEMS_MAX);
    r->items[r->n++] = arena_dup(r->mem, item);
    return true;
}

static bool add_text(struct reading *r, struct str text, struct error *err)
{
    while (text.p)
        if (!add_item(r, str_split(&text, ','), err))
            return false;
    return true;
}

static bool set_kinds(struct selection *s, const struct reading *r, struct error *err)
{
    unsigned kinds = 0;

    for (size_t i = 0; i < r->n; i++) {
        int kind;
        if (!event_kind_parse(r->items[i], &kind))
            return refuse_type(r->items[i], r->mem, err);
        kinds |= 1u << kind;
    }
    s->kinds = kinds;
    return true;
}

/* SELECTION_LISTS: none has this name. */
static size_t list_named(struct str name)
{
    size_t list = 0;

    while (list < SELECTION_LISTS && !str_eq(name, names[list]))
        list++;
    return list;
}

static bool is_filter(struct str name, struct error *err)
{
    if (str_eq(name, STR("types")) || list_named(name) < SELECTION_LISTS)
        return true;
    return error_set(err, ERR_BAD_INPUT,
                     "there is no filter \"%.*s\"; filters are types, session, server, tool "
                     "and outcome",
                     STR_ARG(str_cut(name, 64)));
}

static bool set_list(struct selection *s, const struct reading *r, struct error *err)
{
    size_t list = list_named(r->name);

    if (list == SELECTION_LISTS)
        return set_kinds(s, r, err);
    for (size_t i = 0; list == SELECT_OUTCOME && i < r->n; i++)
        if (!is_outcome(r->items[i]))
            return refuse_outcome(r->items[i], r->mem, err);
    struct str *items = arena_alloc(r->mem, (r->n + 1) * sizeof(*items));
    memcpy(items, r->items, r->n * sizeof(*items));
    s->lists[list] = (struct selection_list){items, r->n};
    return true;
}

bool selection_set(struct selection *s, struct str name, struct str value, struct arena *mem,
                   struct error *err)
{
    struct reading r = {.name = name, .n = 0, .mem = mem};

    return is_filter(name, err) && add_text(&r, value.p ? value : STR(""), err) &&
           set_list(s, &r, err);
}

static bool read_value(struct reading *r, const struct js_doc *doc, const struct js_node *v,
                       struct error *err)
{
    if (js_type_is(v, JS_STRING))
        return add_text(r, js_text(doc, v, r->mem), err);
    if (!js_type_is(v, JS_ARRAY) || !js_first(doc, v))
        return error_set(err, ERR_BAD_INPUT,
                         "%.*s is a text such as \"a,b\", or an array of at least one text",
                         STR_ARG(str_cut(r->name, 64)));
    for (const struct js_node *e = js_first(doc, v); e; e = js_next(doc, v, e)) {
        if (!js_type_is(e, JS_STRING))
            return error_set(err, ERR_BAD_INPUT, "the items of %.*s are texts",
                             STR_ARG(str_cut(r->name, 64)));
        if (!add_item(r, js_text(doc, e, r->mem), err))
            return false;
    }
    return true;
}

bool selection_set_json(struct selection *s, struct str name, const struct js_doc *doc,
                        const struct js_node *v, struct arena *mem, struct error *err)
{
    struct reading r = {.name = name, .n = 0, .mem = mem};

    return is_filter(name, err) && read_value(&r, doc, v, err) && set_list(s, &r, err);
}

bool selection_from_json(const struct js_doc *doc, const struct js_node *v, struct arena *mem,
                         struct selection *ret, struct error *err)
{
    struct selection s = {.kinds = 0};

    if (v && !js_type_is(v, JS_OBJECT))
        return error_set(err, ERR_BAD_INPUT,
                         "a filter is an object such as {\"types\":[\"outcome\"]}");
    for (const struct js_node *key = v ? js_first(doc, v) : NULL; key;
         key = js_next(doc, v, js_value_of(key))) {
        if (!selection_set_json(&s, js_text(doc, key, mem), doc, js_value_of(key), mem, err))
            return false;
    }
    *ret = s;
    return true;
}

static bool has(const struct selection_list *list, struct str text)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->items[i], text))
            return true;
    return list->n == 0;
}

/* Whether `item` is "server__tool" of this event. */
static bool is_full_name(struct str item, const struct event_row *e)
{
    return e->server.p && item.n == e->server.n + 2 + e->tool.n && str_starts(item, e->server) &&
           memcmp(item.p + e->server.n, "__", 2) == 0 &&
           memcmp(item.p + e->server.n + 2, e->tool.p, e->tool.n) == 0;
}

static bool has_tool(const struct selection_list *list, const struct event_row *e)
{
    for (size_t i = 0; e->tool.p && i < list->n; i++)
        if (str_eq(list->items[i], e->tool) || is_full_name(list->items[i], e))
            return true;
    return list->n == 0;
}

bool selection_matches(const struct selection *s, const struct event_row *e)
{
    return (!s->kinds || (s->kinds & 1u << e->kind)) &&
           has(&s->lists[SELECT_SESSION], e->session_id) &&
           has(&s->lists[SELECT_SERVER], e->server) && has_tool(&s->lists[SELECT_TOOL], e) &&
           has(&s->lists[SELECT_OUTCOME], e->outcome);
}

struct selection selection_dup(const struct selection *s, struct arena *mem)
{
    struct selection copy = {.kinds = s->kinds};

    for (size_t i = 0; i < SELECTION_LISTS; i++) {
        const struct selection_list *from = &s->lists[i];
        struct str *items = from->n ? arena_alloc(mem, from->n * sizeof(*items)) : NULL;
        for (size_t k = 0; k < from->n; k++)
            items[k] = arena_dup(mem, from->items[k]);
        copy.lists[i] = (struct selection_list){items, from->n};
    }
    return copy;
}

void selection_narrow(const struct selection *s, struct event_filter *filter)
{
    const struct selection_list *l = s->lists;

    if (l[SELECT_SESSION].n == 1)
        filter->session_id = l[SELECT_SESSION].items[0];
    if (l[SELECT_SERVER].n == 1)
        filter->server = l[SELECT_SERVER].items[0];
    if (l[SELECT_OUTCOME].n == 1)
        filter->outcome = l[SELECT_OUTCOME].items[0];
    if (s->kinds && (s->kinds & (s->kinds - 1)) == 0)
        filter->kind = __builtin_ctz(s->kinds);
}
