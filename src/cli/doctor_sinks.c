/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks of the running Holdfast: whether each delivers. */
#include "cli/doctor.h"

#include "base/clock.h"

static const char *advice_for(struct str type)
{
    return str_eq(type, STR("file"))
               ? "correct what it says; Holdfast tries again by itself, and no event is lost"
               : "look at the receiver and its address; Holdfast tries again by itself, and no "
                 "event is lost";
}

static void say_failing(struct doctor *d, const struct js_doc *doc, const struct js_node *sink)
{
    struct str type = source_text(doc, sink, "receiver", d->mem);
    int64_t lag_ms = 0;

    (void)!js_to_i64(doc, js_get(doc, sink, STR("lag_ms")), &lag_ms);
    doctor_say(d, DOCTOR_WARNING, advice_for(type),
               "the %.*s sink %.*s does not take events, the oldest waits for %lld s: %.*s",
               STR_ARG(type), STR_ARG(source_text(doc, sink, "name", d->mem)),
               (long long)(lag_ms / 1000), STR_ARG(source_text(doc, sink, "reason", d->mem)));
}

static void say_sink(struct doctor *d, const struct js_doc *doc, const struct js_node *sink)
{
    struct str name = source_text(doc, sink, "name", d->mem),
               state = source_text(doc, sink, "state", d->mem),
               last = source_text(doc, sink, "last_delivery_at", d->mem);

    if (str_eq(state, STR("failing")))
        say_failing(d, doc, sink);
    else if (str_eq(state, STR("standby")))
        doctor_say(d, DOCTOR_OK, NULL, "another node sends to the sink %.*s", STR_ARG(name));
    else if (last.n)
        doctor_say(d, DOCTOR_OK, NULL, "the sink %.*s took events last at %.*s", STR_ARG(name),
                   STR_ARG(last));
    else
        doctor_say(d, DOCTOR_OK, NULL, "the sink %.*s had nothing to take since the start",
                   STR_ARG(name));
}

void doctor_sinks(struct doctor *d)
{
    struct error err;
    struct str json;
    struct js_doc doc;

    if (!d->config || !d->config->n_sinks)
        return;
    if (!d->source.control || d->source.local) {
        doctor_say(d, DOCTOR_OK, NULL,
                   "sinks send while Holdfast runs; their positions are stored");
        return;
    }
    if (!control_get(d->source.control, STR("/api/v1/sinks"), d->mem, &json, &err) ||
        !source_parse(json, d->mem, &doc, &err)) {
        doctor_say(d, DOCTOR_WARNING, "see the log", "the sinks cannot be read: %s", err.text);
        return;
    }
    const struct js_node *list = js_get(&doc, js_root(&doc), STR("sinks"));
    for (const struct js_node *s = js_first(&doc, list); s; s = js_next(&doc, list, s))
        say_sink(d, &doc, s);
}
