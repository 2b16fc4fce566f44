/* SPDX-License-Identifier: Apache-2.0 */
/* The toolsets of a profile as one caller sees them: lists of them and of their tools, and whether
 * one may be enabled.  Answers are JSON. */
#include "profile/toolsets.h"

#include "identity/scopes.h"
#include "json/write.h"

#define KEY_SHOWN 64
#define ANSWER_MAX (8u << 20)
#define NAMES_MAX (2u << 20) /* bytes of names in an answer; further tools are not named */

#define SESSION_ID                                                                                 \
    "\"session_id\":{\"type\":\"string\",\"description\":\"A session handle (ses_...), for "       \
    "clients "                                                                                     \
    "that name their session by it; the session of this call when omitted.\"}"
#define NAME                                                                                       \
    "\"name\":{\"type\":\"string\",\"description\":\"The toolset's key, as list_toolsets gives "   \
    "it.\"}"

const char enable_definition[] =
    "{\"name\":\"enable_toolset\",\"description\":\"Makes the tools of a toolset available in this "
    "session.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" NAME "," SESSION_ID
    "},\"required\":[\"name\"]},\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":false,"
    "\"idempotentHint\":true}}";
const char disable_definition[] =
    "{\"name\":\"disable_toolset\",\"description\":\"Takes the tools of a toolset away from this "
    "session; they can be enabled "
    "again.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" NAME "," SESSION_ID
    "},\"required\":[\"name\"]},\"annotations\":{\"readOnlyHint\":false,"
    "\"destructiveHint\":true,\"idempotentHint\":true}}";
const char list_toolsets_definition[] =
    "{\"name\":\"list_toolsets\",\"description\":\"Lists the toolsets that there are, and which of "
    "them "
    "are enabled in this "
    "session.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" SESSION_ID
    "}},\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true}}";
const char describe_definition[] =
    "{\"name\":\"describe_toolset\",\"description\":\"Says what a toolset is for and which tools "
    "it "
    "has.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" NAME "," SESSION_ID
    "},\"required\":[\"name\"]},\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true}}";
const char list_tools_definition[] =
    "{\"name\":\"list_tools\",\"description\":\"Lists the names of the tools that can be called "
    "now, by "
    "toolset.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" SESSION_ID
    "}},\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true}}";

/* Visibility. */

struct reaching {
    const struct profile_view *v;
    const struct toolset_config *toolset;
    bool found;
};

static void reach_server(void *arg, struct upstream *up)
{
    struct reaching *r = arg;

    for (size_t i = 0; i < r->toolset->n_tools && !r->found; i++)
        r->found = scope_reaches(r->toolset->tools[i], upstream_name(up)) &&
                   profile_sees_server(r->v, upstream_name(up));
}

/* A toolset that the policy withholds stays visible: enabling it is refused with the policy as the
 * reason.  A toolset without anything for this caller is not visible. */
bool toolset_is_seen(const struct profile_view *v, size_t at)
{
    struct str key = v->profile->toolset_keys[at];
    struct reaching r = {.v = v, .toolset = v->profile->toolsets[at]};
    bool withheld = !v->profile->proxy_permits && v->profile->n_clients == 0 &&
                    (!profile_allows(v->profile, key) || profile_denies(v->profile, key));

    upstreams_each(v->upstreams, reach_server, &r);
    return r.found && (withheld || (v->permitted >> at & 1));
}

/* The tools of a toolset that this caller sees, as "server__tool". */

struct listing {
    const struct profile_view *v;
    uint64_t toolsets;
    struct js_writer *w; /* NULL: only counts */
    size_t n;
    bool more; /* there was no room for all names */
};

static void list_part(struct listing *l, const struct plan_part *part)
{
    const struct catalog_list *list = part->catalog ? &part->catalog->lists[CATALOG_TOOLS] : NULL;

    for (size_t i = 0; list && i < list->n; i++) {
        struct str name = list->items[i].name;
        if (!profile_sees_tool(l->v, l->toolsets, part->up, name))
            continue;
        l->n++;
        l->more = l->w && l->w->out->n > NAMES_MAX;
        if (l->more)
            return;
        if (l->w)
            js_string(l->w, arena_printf(l->v->mem, "%.*s" ROUTE_SEPARATOR "%.*s",
                                         STR_ARG(upstream_name(part->up)), STR_ARG(name)));
    }
}

size_t toolset_count_tools(const struct profile_view *v, uint64_t toolsets)
{
    struct listing l = {.v = v, .toolsets = toolsets};

    for (size_t i = 0; i < profile_view_parts(v); i++)
        list_part(&l, &v->plan->parts[i]);
    return l.n;
}

/* Writes an array of the tools' names; false: there was no room for all. */
static bool name_tools(const struct profile_view *v, uint64_t toolsets, struct js_writer *w)
{
    struct listing l = {.v = v, .toolsets = toolsets, .w = w};

    js_array(w);
    for (size_t i = 0; i < profile_view_parts(v) && !l.more; i++)
        list_part(&l, &v->plan->parts[i]);
    js_array_end(w);
    return !l.more;
}

/* Writes an array of the toolset's servers that have no catalog now; returns how many. */
static size_t list_unavailable(const struct profile_view *v, size_t at, struct js_writer *w)
{
    struct reaching r = {.v = v, .toolset = v->profile->toolsets[at]};
    size_t n = 0;

    for (size_t i = 0; i < profile_view_parts(v); i++) {
        r.found = false;
        if (!v->plan->parts[i].catalog)
            reach_server(&r, v->plan->parts[i].up);
        if (!r.found)
            continue;
        if (w && n == 0) {
            js_key(w, STR("unavailable"));
            js_array(w);
        }
        if (w)
            js_string(w, upstream_name(v->plan->parts[i].up));
        n++;
    }
    if (w && n)
        js_array_end(w);
    return n;
}

size_t toolset_count_unavailable(const struct profile_view *v, size_t at)
{
    return list_unavailable(v, at, NULL);
}

/* Answers. */

static void begin_json(struct profile_answer *a, struct js_writer *w)
{
    *a = (struct profile_answer){.is_json = true};
    buf_init(&a->text, ANSWER_MAX);
    js_begin(w, &a->text);
}

void toolset_message(const struct profile_view *v, const struct toolset_message *m,
                     struct profile_answer *ret)
{
    struct js_writer w;

    begin_json(ret, &w);
    ret->is_error = !m->ok;
    js_object(&w);
    js_kv_bool(&w, "success", m->ok);
    js_kv_string(&w, "message", m->text);
    if (m->session_id.p)
        js_kv_string(&w, "session_id", m->session_id);
    if (m->is_enabled)
        list_unavailable(v, m->at, &w);
    js_object_end(&w);
}

static struct str refuse_unknown(const struct profile_view *v, struct str key)
{
    struct str names = STR_NONE;

    for (size_t i = 0; i < v->profile->n_toolset_keys; i++)
        if (toolset_is_seen(v, i))
            names = names.p ? arena_printf(v->mem, "%.*s, %.*s", STR_ARG(names),
                                           STR_ARG(v->profile->toolset_keys[i]))
                            : v->profile->toolset_keys[i];
    return arena_printf(v->mem, "Toolset '%.*s' not found. Available toolsets: %.*s",
                        STR_ARG(str_cut(key, KEY_SHOWN)), STR_ARG(names.p ? names : STR("none")));
}

int toolset_named(const struct profile_view *v, const struct profile_arguments *a,
                  struct str *ret_refusal)
{
    struct str key = js_text(a->doc, js_get(a->doc, a->object, STR("name")), v->mem);
    int at;

    if (!key.n) {
        *ret_refusal = STR("\"name\" must be the key of a toolset; list_toolsets has them.");
        return -1;
    }
    at = profile_toolset(v->profile, key);
    if (at >= 0 && toolset_is_seen(v, (size_t)at))
        return at;
    *ret_refusal = refuse_unknown(v, key);
    return -1;
}

/* Whether to change. */

static const char *policy_refusal(const struct profile_view *v, struct str key)
{
    if (profile_denies(v->profile, key))
        return "is denied by policy.";
    return profile_allows(v->profile, key) ? NULL : "is not allowed by policy.";
}

enum toolset_verdict toolset_may_enable(const struct profile_view *v, size_t at, bool is_storing,
                                        struct str *ret_text)
{
    struct str key = v->profile->toolset_keys[at];
    const char *refusal = policy_refusal(v, key);
    bool is_on = v->toolsets >> at & 1;

    if (refusal) {
        *ret_text = arena_printf(v->mem, "Toolset '%.*s' %s", STR_ARG(key), refusal);
        return TOOLSET_REFUSED;
    }
    if (is_on && !is_storing) {
        *ret_text = arena_printf(v->mem, "Toolset '%.*s' is already enabled.", STR_ARG(key));
        return TOOLSET_SAME;
    }
    if (!is_on && v->profile->max_active &&
        __builtin_popcountll(v->toolsets) >= v->profile->max_active) {
        *ret_text = arena_printf(v->mem, "Activation exceeds maxActiveToolsets (%lld).",
                                 (long long)v->profile->max_active);
        return TOOLSET_REFUSED;
    }
    return TOOLSET_CHANGES;
}

/* Lists. */

static void write_toolset(const struct profile_view *v, size_t at, bool with_tools,
                          struct js_writer *w)
{
    const struct toolset_config *t = v->profile->toolsets[at];

    js_object(w);
    js_kv_string(w, "key", t->key);
    js_kv_bool(w, "active", v->toolsets >> at & 1);
    js_key(w, STR("definition"));
    js_object(w);
    js_kv_string(w, "name", t->name.p ? t->name : t->key);
    js_kv_string(w, "description", t->description);
    js_object_end(w);
    if (with_tools) {
        js_key(w, STR("tools"));
        if (!name_tools(v, UINT64_C(1) << at, w))
            js_kv_bool(w, "more", true);
        list_unavailable(v, at, w);
    }
    js_object_end(w);
}

void toolset_list(const struct profile_view *v, struct profile_answer *ret)
{
    struct js_writer w;

    begin_json(ret, &w);
    js_object(&w);
    js_key(&w, STR("toolsets"));
    js_array(&w);
    for (size_t i = 0; i < v->profile->n_toolset_keys; i++)
        if (toolset_is_seen(v, i))
            write_toolset(v, i, false, &w);
    js_array_end(&w);
    js_object_end(&w);
}

void toolset_describe(const struct profile_view *v, size_t at, struct profile_answer *ret)
{
    struct js_writer w;

    begin_json(ret, &w);
    write_toolset(v, at, true, &w);
}

/* Writes the tools of each toolset in effect, by its key; false: there was no room for all. */
static bool name_by_toolset(const struct profile_view *v, struct js_writer *w)
{
    bool all = true;

    js_object(w);
    for (size_t i = 0; i < v->profile->n_toolset_keys; i++)
        if ((v->toolsets >> i & 1) && toolset_is_seen(v, i)) {
            js_key(w, v->profile->toolset_keys[i]);
            all = name_tools(v, UINT64_C(1) << i, w) && all;
        }
    js_object_end(w);
    return all;
}

void toolset_list_tools(const struct profile_view *v, struct profile_answer *ret)
{
    struct js_writer w;
    bool all;

    begin_json(ret, &w);
    js_object(&w);
    js_key(&w, STR("tools"));
    all = name_tools(v, v->toolsets, &w);
    js_key(&w, STR("toolsetToTools"));
    all = name_by_toolset(v, &w) && all;
    if (!all)
        js_kv_bool(&w, "more", true);
    js_object_end(&w);
}
