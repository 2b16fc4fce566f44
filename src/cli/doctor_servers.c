/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the configuration, of the servers as the daemon sees them, and of the sessions. */
#include "cli/doctor.h"

#include "cli/inventory.h"

#include <stdio.h>

void doctor_config(struct doctor *d)
{
    struct config_finding *found = NULL;

    if (!d->config) {
        doctor_say(d, DOCTOR_FAILURE, "correct the file, then run `holdfast config check`", "%s",
                   d->config_err.text);
        return;
    }
    size_t n = config_check_machine(d->config, true, d->mem, &found);
    for (size_t i = 0; i < n; i++)
        doctor_say(d, found[i].is_error ? DOCTOR_FAILURE : DOCTOR_WARNING,
                   "correct the configuration; `holdfast config check` shows the same", "%.*s",
                   STR_ARG(found[i].text));
    if (d->config->warning.p)
        doctor_say(d, DOCTOR_WARNING, NULL, "%.*s", STR_ARG(d->config->warning));
    for (size_t i = 0; i < d->config->n_notes; i++)
        doctor_say(d, DOCTOR_WARNING, NULL, "%.*s", STR_ARG(d->config->notes[i]));
    if (!d->config->file.p)
        doctor_say(d, DOCTOR_OK, NULL, "no configuration file: the built-in defaults are used");
    else if (!n)
        doctor_say(d, DOCTOR_OK, NULL, "%.*s is fine: %zu server%s", STR_ARG(d->config->file),
                   d->config->n_servers, d->config->n_servers == 1 ? "" : "s");
}

/* Servers. */

static void say_healthy(struct doctor *d, struct str name, const struct js_doc *doc,
                        const struct js_node *server)
{
    struct str version = source_text(doc, server, "protocol_version", d->mem);
    struct str era = source_text(doc, server, "era", d->mem);
    int64_t tools = 0, took = 0;
    char speaks[96] = "", time[48] = "";

    if (!js_to_i64(doc, js_get(doc, server, STR("tools")), &tools))
        tools = 0;
    if (version.n || era.n)
        snprintf(speaks, sizeof(speaks), ", speaks %.*s%s%.*s%s", STR_ARG(version),
                 version.n && era.n ? " (" : "", STR_ARG(era), version.n && era.n ? ")" : "");
    if (js_to_i64(doc, js_get(doc, server, STR("probe_ms")), &took))
        snprintf(time, sizeof(time), ", handshake and lists took %lld ms", (long long)took);
    doctor_say(d, DOCTOR_OK, NULL, "%.*s is healthy: %lld tool%s%s%s", STR_ARG(name),
               (long long)tools, tools == 1 ? "" : "s", speaks, time);
}

bool doctor_is_healthy(struct doctor *d, struct str server)
{
    struct error ignored;
    struct js_doc doc;
    struct str json, path = arena_printf(d->mem, "/api/v1/servers/%.*s",
                                         STR_ARG(source_encoded(server, d->mem)));

    return d->source.control && !d->source.local &&
           control_get(d->source.control, path, d->mem, &json, &ignored) &&
           source_parse(json, d->mem, &doc, &ignored) &&
           str_eq(source_text(&doc, js_root(&doc), "state", d->mem), STR("healthy"));
}

static bool say_server(void *arg, struct str name, const struct js_doc *doc,
                       const struct js_node *server, struct error *err unused_arg)
{
    struct doctor *d = arg;
    struct str state = source_text(doc, server, "state", d->mem);
    struct str why = source_text(doc, server, "last_error", d->mem);
    struct str fix = arena_printf(
        d->mem, "see `holdfast servers logs %.*s`; after a repair: `holdfast servers restart %.*s`",
        STR_ARG(name), STR_ARG(name));

    if (str_eq(state, STR("healthy")))
        say_healthy(d, name, doc, server);
    else if (str_eq(state, STR("unknown")))
        doctor_say(d, DOCTOR_OK, NULL, "%.*s: %.*s", STR_ARG(name),
                   STR_ARG(source_text(doc, server, "reason", d->mem)));
    else if (!str_eq(state, STR("not running")))
        doctor_say(d, str_eq(state, STR("down")) ? DOCTOR_FAILURE : DOCTOR_WARNING, fix.p,
                   "%.*s is %.*s: %.*s%s%.*s", STR_ARG(name), STR_ARG(state),
                   STR_ARG(source_text(doc, server, "reason", d->mem)),
                   why.n ? "; last error: " : "", STR_ARG(why));
    return true;
}

void doctor_servers(struct doctor *d)
{
    struct inventory from = {d->cli, &d->source};
    struct error err;

    if (!d->source.control)
        return;
    if (d->source.local) {
        doctor_say(d, DOCTOR_WARNING, "start it: `holdfast start`, or `holdfast up`",
                   "no Holdfast runs on this data directory");
        return;
    }
    if (!inventory_each_server(&from, say_server, d, &err))
        doctor_say(d, DOCTOR_FAILURE, "see the log of Holdfast", "the servers cannot be listed: %s",
                   err.text);
}
