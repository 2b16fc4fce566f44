/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as sentences for an agent that will send the call again: the place as the agent would
 * write it, the requirement, and for an unknown name the nearest known one. */
#include "schema/schema_impl.h"

#include <stdarg.h>
#include <stdio.h>

#define NAME_SHOWN 64
#define KEY_MAX 256 /* bytes of a key in a pointer */

static bool is_plain_name(struct str key)
{
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
              c == '$' || (i && c >= '0' && c <= '9')))
            return false;
    }
    return key.n > 0;
}

/* "parameters.filter.names[3]", or with an empty root for a name inside quotes. */
static struct str place_name(struct check *c, const struct place *at, struct str root)
{
    struct str up;

    if (!at)
        return root;
    up = place_name(c, at->up, root);
    if (!at->key.p)
        return arena_printf(c->mem, "%.*s[%u]", STR_ARG(up), (unsigned)at->index);
    if (!is_plain_name(at->key))
        return arena_printf(c->mem, "%.*s[\"%.*s\"]", STR_ARG(up),
                            STR_ARG(str_cut(at->key, NAME_SHOWN)));
    return arena_printf(c->mem, "%.*s%s%.*s", STR_ARG(up), up.n ? "." : "",
                        STR_ARG(str_cut(at->key, NAME_SHOWN)));
}

static struct str pointer_to(struct check *c, const struct place *at)
{
    struct str up, key;
    struct buf out;

    if (!at)
        return STR("");
    up = pointer_to(c, at->up);
    if (!at->key.p)
        return arena_printf(c->mem, "%.*s/%u", STR_ARG(up), (unsigned)at->index);
    key = str_cut(at->key, KEY_MAX);
    buf_init(&out, 2 * KEY_MAX);
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~' || key.p[i] == '/')
            buf_addz(&out, key.p[i] == '~' ? "~0" : "~1");
        else
            buf_addc(&out, key.p[i]);
    }
    up = arena_printf(c->mem, "%.*s/%.*s", STR_ARG(up), STR_ARG(buf_str(&out)));
    buf_release(&out);
    return up;
}

/* NULL when the finding is not reported.  After SCHEMA_FINDINGS_MAX findings none is reported: the
 * answer is certain, and the check goes on quietly, so it may end early. */
static struct schema_finding *new_finding(struct check *c, const struct place *at,
                                          const char *keyword)
{
    struct schema_finding *f;

    if (c->quiet || c->stopped)
        return NULL;
    if (c->report->n == SCHEMA_FINDINGS_MAX) {
        c->report->more = true;
        c->quiet++;
        return NULL;
    }
    f = &c->report->findings[c->report->n++];
    *f = (struct schema_finding){.path = pointer_to(c, at), .keyword = keyword};
    return f;
}

enum schema_answer report(struct check *c, const struct place *at, const char *keyword,
                          const char *fmt, ...)
{
    struct schema_finding *f = new_finding(c, at, keyword);
    char text[1024];
    va_list args;

    if (!f)
        return SCHEMA_INVALID;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    f->sentence =
        arena_printf(c->mem, "%.*s %s", STR_ARG(place_name(c, at, STR("parameters"))), text);
    return SCHEMA_INVALID;
}

enum schema_answer report_missing(struct check *c, const struct place *at, const char *keyword,
                                  struct str name, struct str because)
{
    struct schema_finding *f = new_finding(c, at, keyword);
    struct place missing = {at, name, 0};
    struct str shown;

    if (!f)
        return SCHEMA_INVALID;
    shown = place_name(c, &missing, STR(""));
    f->name = name;
    if (because.p)
        f->sentence =
            arena_printf(c->mem, "missing required parameter '%.*s', needed when '%.*s' is given",
                         STR_ARG(shown), STR_ARG(str_cut(because, NAME_SHOWN)));
    else
        f->sentence = arena_printf(c->mem, "missing required parameter '%.*s'", STR_ARG(shown));
    return SCHEMA_INVALID;
}

/* The nearest known name, if it is near enough to be meant; else absent. */
static struct str nearest(struct str name, const struct object_rules *known)
{
    unsigned limit = name.n < 4 ? 2 : name.n < 8 ? 3 : 4;
    struct str best = STR_NONE;

    for (unsigned i = 0; known && name.n <= NAME_SHOWN && i < known->n_properties && i < 256; i++) {
        struct str other = known->properties[i].name;
        unsigned distance;

        if (other.n > NAME_SHOWN)
            continue;
        distance = str_ieq(name, other) ? 0 : str_distance(name, other, limit);
        if (distance < limit) {
            limit = distance;
            best = other;
        }
    }
    return best;
}

enum schema_answer report_unknown(struct check *c, const struct place *at, const char *keyword,
                                  struct str name, const struct object_rules *known)
{
    struct schema_finding *f = new_finding(c, at, keyword);
    struct place unknown = {at, name, 0};
    struct str shown, meant;

    if (!f)
        return SCHEMA_INVALID;
    shown = place_name(c, &unknown, STR(""));
    meant = nearest(name, known);
    f->name = name;
    f->sentence = meant.p ? arena_printf(c->mem, "unknown parameter '%.*s'; did you mean '%.*s'?",
                                         STR_ARG(shown), STR_ARG(meant))
                          : arena_printf(c->mem, "unknown parameter '%.*s'", STR_ARG(shown));
    return SCHEMA_INVALID;
}

static bool is_missing(const struct schema_finding *f)
{
    return f->path.n == 0 && f->name.p && strcmp(f->keyword, "required") == 0;
}

static void write_received(const struct js_doc *doc, const struct js_node *instance,
                           struct buf *out)
{
    bool first = true;
    unsigned n = 0;

    buf_addz(out, "\nReceived parameters: ");
    if (js_type_is(instance, JS_OBJECT))
        for (const struct js_node *key = js_first(doc, instance); key && n < 64;
             key = js_next(doc, instance, js_value_of(key)), n++) {
            struct str raw = js_raw(doc, key);
            buf_addz(out, first ? "" : ", ");
            buf_addstr(out, str_cut(str_n(raw.p + 1, raw.n - 2), NAME_SHOWN));
            first = false;
        }
    buf_addz(out, first ? "none" : "");
}

void schema_report_write(const struct schema_report *r, const struct js_doc *doc,
                         const struct js_node *instance, struct buf *out)
{
    bool missing = false, lines = false;

    for (unsigned i = 0; i < r->n; i++)
        if (is_missing(&r->findings[i])) {
            buf_addz(out, missing ? ", " : "Missing required parameters: ");
            buf_addstr(out, str_cut(r->findings[i].name, NAME_SHOWN));
            missing = true;
        }
    if (missing)
        write_received(doc, instance, out);
    for (unsigned i = 0; i < r->n; i++)
        if (!is_missing(&r->findings[i])) {
            buf_addz(out, missing || lines ? "\n" : "");
            buf_addstr(out, r->findings[i].sentence);
            lines = true;
        }
    if (r->more)
        buf_addz(out, "\nThere is more; correct these first.");
}
