/* SPDX-License-Identifier: Apache-2.0 */
/* What the newest requests on record show: which clients called, how they named their sessions
 * (carriers), and which `_meta` keys they sent. */
#include "cli/doctor.h"

#include "base/clock.h"

#include <stdio.h>

#define KINDS_MAX 32 /* different values that are counted */

struct tally {
    struct str names[KINDS_MAX];
    unsigned counts[KINDS_MAX];
    size_t n;
};

static void tally_add(struct tally *t, struct str name)
{
    size_t i = 0;

    while (i < t->n && !str_eq(t->names[i], name))
        i++;
    if (i == KINDS_MAX || !name.n)
        return;
    t->n += i == t->n;
    t->names[i] = name;
    t->counts[i]++;
}

static struct str tally_text(const struct tally *t, struct arena *mem)
{
    struct str text = STR("");

    for (size_t i = 0; i < t->n; i++)
        text = arena_printf(mem, "%.*s%s%.*s (%u)", STR_ARG(text), i ? ", " : "",
                            STR_ARG(str_cut(t->names[i], 80)), t->counts[i]);
    return text;
}

/* The parameters of a request; they are redacted, and keys are not secret. */
static void add_meta(struct str body, struct arena *mem, struct tally *keys)
{
    const struct js_node *meta;
    struct js_doc doc;

    if (!body.n || !js_parse(body, &js_limits_upstream, mem, &doc, NULL))
        return;
    meta = js_get(&doc, js_root(&doc), STR("_meta"));
    if (!js_type_is(meta, JS_OBJECT))
        return;
    for (const struct js_node *k = js_first(&doc, meta); k; k = js_next(&doc, meta, js_value_of(k)))
        tally_add(keys, js_text(&doc, k, mem));
}

/* Sessions are listed by a running Holdfast only. */
static bool get(struct doctor *d, struct str path, const char *list_name, struct js_doc *doc,
                const struct js_node **ret)
{
    struct error err;
    struct str json;

    if (!d->source.control || d->source.local)
        return false;
    if (!control_get(d->source.control, path, d->mem, &json, &err) ||
        !source_parse(json, d->mem, doc, &err)) {
        doctor_say(d, DOCTOR_WARNING, "see `holdfast db status`", "the record cannot be read: %s",
                   err.text);
        return false;
    }
    *ret = js_get(doc, js_root(doc), str_of(list_name));
    return js_type_is(*ret, JS_ARRAY);
}

/* Sessions by how the client named them; the words are those of the configuration. */
static void say_sessions(struct doctor *d)
{
    const struct js_node *list;
    struct tally origins = {0};
    struct js_doc doc;

    if (!get(d, STR("/api/v1/sessions?limit=100"), "sessions", &doc, &list))
        return;
    for (const struct js_node *s = js_first(&doc, list); s; s = js_next(&doc, list, s))
        tally_add(&origins, source_text(&doc, s, "origin", d->mem));
    if (origins.n)
        doctor_say(d, DOCTOR_OK, NULL, "live sessions by carrier: %.*s",
                   STR_ARG(tally_text(&origins, d->mem)));
    else
        doctor_say(d, DOCTOR_OK, NULL, "no live session yet");
}

void doctor_sessions(struct doctor *d)
{
    struct tally carriers = {0}, keys = {0};
    const struct js_node *list;
    struct js_doc doc;
    unsigned n = 0;

    say_sessions(d);
    if (!get(d, STR("/api/v1/audit/events?limit=200&order=newest&bodies=1"), "events", &doc, &list))
        return;
    for (const struct js_node *e = js_first(&doc, list); e; e = js_next(&doc, list, e)) {
        struct str kind = source_text(&doc, e, "kind", d->mem);
        if (!str_eq(kind, STR("intent")) && !str_eq(kind, STR("note")))
            continue;
        struct str carrier = source_text(&doc, e, "carrier", d->mem);
        n++;
        tally_add(&carriers, carrier.n ? carrier : STR("none"));
        add_meta(source_text(&doc, e, "body", d->mem), d->mem, &keys);
    }
    if (!n)
        return;
    doctor_say(d, DOCTOR_OK, NULL, "carriers of the newest %u requests on record: %.*s", n,
               STR_ARG(tally_text(&carriers, d->mem)));
    doctor_say(d, DOCTOR_OK, NULL,
               keys.n ? "`_meta` keys that they sent: %.*s" : "they sent no `_meta` keys%.*s",
               STR_ARG(tally_text(&keys, d->mem)));
}

/* Which clients reached us: the sessions say it. */
void doctor_clients_seen(struct doctor *d)
{
    const struct js_node *list;
    struct tally names = {0};
    struct js_doc doc;

    if (!get(d, STR("/api/v1/sessions?limit=100"), "sessions", &doc, &list))
        return;
    for (const struct js_node *s = js_first(&doc, list); s; s = js_next(&doc, list, s)) {
        struct str name = source_text(&doc, s, "client_name", d->mem),
                   version = source_text(&doc, s, "client_version", d->mem);
        if (name.n)
            tally_add(&names, arena_printf(d->mem, "%.*s%s%.*s", STR_ARG(str_cut(name, 60)),
                                           version.n ? " " : "", STR_ARG(str_cut(version, 30))));
    }
    if (names.n)
        doctor_say(d, DOCTOR_OK, NULL, "these reached Holdfast (live sessions): %.*s",
                   STR_ARG(tally_text(&names, d->mem)));
    else
        doctor_say(d, DOCTOR_OK, NULL, "no client has a live session");
}
