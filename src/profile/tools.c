/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the tools that profiles provide themselves, and the reading of their arguments. */
#include "profile/tools.h"

#include "profile/find.h"
#include "profile/run.h"
#include "profile/toolsets.h"

#define MODE(mode) (1u << (mode))
#define NAME_SHOWN 64

static const char *const find_takes[] = {"description",          "limit", "page", "depth",
                                         "confidence_threshold", NULL};
static const char *const run_takes[] = {"tool", "parameters", "dry_run", NULL};

static const struct profile_tool tools[] = {
    {.id = PROFILE_FIND,
     .name = "find",
     .modes = MODE(PROFILE_SEARCH),
     .definition = find_definition,
     .takes = find_takes},
    {.id = PROFILE_RUN,
     .name = "run",
     .modes = MODE(PROFILE_SEARCH),
     .definition = run_definition,
     .is_passed_on = true,
     .takes = run_takes},
    {.id = PROFILE_ENABLE,
     .name = "enable_toolset",
     .modes = MODE(PROFILE_DYNAMIC),
     .definition = enable_definition,
     .has_session = true},
    {.id = PROFILE_DISABLE,
     .name = "disable_toolset",
     .modes = MODE(PROFILE_DYNAMIC),
     .definition = disable_definition,
     .has_session = true},
    {.id = PROFILE_LIST_TOOLSETS,
     .name = "list_toolsets",
     .modes = MODE(PROFILE_DYNAMIC),
     .definition = list_toolsets_definition,
     .has_session = true,
     .only_looks = true},
    {.id = PROFILE_DESCRIBE,
     .name = "describe_toolset",
     .modes = MODE(PROFILE_DYNAMIC),
     .definition = describe_definition,
     .has_session = true,
     .only_looks = true},
    {.id = PROFILE_LIST_TOOLS,
     .name = "list_tools",
     .modes = MODE(PROFILE_STATIC) | MODE(PROFILE_DYNAMIC),
     .definition = list_tools_definition,
     .has_session = true,
     .only_looks = true},
};

static bool is_of(const struct profile_tool *t, const struct profile_config *p)
{
    return t->modes & MODE((unsigned)p->mode);
}

const struct profile_tool *profile_tool_find(const struct profile_config *p, struct str name)
{
    for (size_t i = 0; i < countof(tools); i++)
        if (is_of(&tools[i], p) && str_eq(str_of(tools[i].name), name))
            return &tools[i];
    return NULL;
}

const struct profile_tool *profile_tool_next(const struct profile_config *p,
                                             const struct profile_tool *before)
{
    for (const struct profile_tool *t = before ? before + 1 : tools; t < tools + countof(tools);
         t++)
        if (is_of(t, p))
            return t;
    return NULL;
}

const struct js_node *profile_argument(const struct profile_arguments *a, const char *name)
{
    const struct js_node *v = js_get(a->doc, a->object, str_of(name));
    return js_type_is(v, JS_NULL) ? NULL : v;
}

static bool takes(const struct profile_tool *t, const struct js_doc *doc, const struct js_node *key)
{
    for (const char *const *name = t->takes; *name; name++)
        if (js_is(doc, key, str_of(*name)))
            return true;
    return false;
}

static struct str refuse_name(const struct profile_tool *t, struct str name, struct arena *mem)
{
    struct buf text;

    buf_init(&text, 4096);
    buf_addf(&text, "%s has no \"%.*s\"; it takes ", t->name,
             (int)(name.n < NAME_SHOWN ? name.n : NAME_SHOWN), name.p);
    for (const char *const *take = t->takes; *take; take++)
        buf_addf(&text, "%s%s", take == t->takes ? "" : take[1] ? ", " : " and ", *take);
    buf_addz(&text, t->is_passed_on ? ". What the tool itself takes goes into parameters." : ".");
    struct str result = arena_dup(mem, buf_str(&text));
    buf_release(&text);
    return result;
}

struct str profile_wrong_argument(const struct profile_tool *t, const struct profile_arguments *a,
                                  struct arena *mem)
{
    if (!t->takes || !js_type_is(a->object, JS_OBJECT))
        return STR_NONE;
    for (const struct js_node *key = js_first(a->doc, a->object); key;
         key = js_next(a->doc, a->object, js_value_of(key)))
        if (!takes(t, a->doc, key))
            return refuse_name(t, js_text(a->doc, key, mem), mem);
    return STR_NONE;
}

void profile_answer_release(struct profile_answer *a)
{
    buf_release(&a->text);
    buf_release(&a->structured);
}
