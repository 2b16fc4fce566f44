/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses outside that Holdfast itself sends to, such as a collector of traces.  Each is read like
 * the entry of a server with a url, so its headers take variables and secrets in the same way. */
#include "config/config_impl.h"
#include "config/sinks.h"

/* Values are filled per session only for servers. */
static bool check_placeholders(const struct js_binding *b, const struct js_node *v,
                               const struct server_config *s, struct error *err)
{
    return !server_takes_context(s) ||
           js_bind_fault(b, v, err,
                         "${context:…} belongs to servers; no session exists here, so write "
                         "${secret:NAME} or a variable");
}

/* Other machines could read the headers on the way. */
static void note_clear_text(struct reading *r, const struct server_config *s)
{
    for (size_t i = 0; i < s->n_headers; i++)
        if (credential_is_named(s->headers[i].name) && str_starts(s->url, STR("http://")) &&
            !value_url_is_on_loopback(s->url))
            note_add(r,
                     "the header %.*s of \"%.*s\" is sent without TLS; use https:// if others can "
                     "listen",
                     STR_ARG(s->headers[i].name), STR_ARG(s->name));
}

bool outward_read(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                  struct str name, struct server_config *s, struct error *err)
{
    struct reading *r = reading_of(b);

    *s = (struct server_config){.name = name, .kind = SERVER_HTTP, .is_outward = true};
    r->server = name;
    r->is_outward = true;
    r->secrets = NULL;
    r->n_secrets = 0;
    js_bind_defaults(f->fields, s, b->mem);
    bool ok = js_bind(b, v, f->fields, s, err) && check_placeholders(b, v, s, err);
    r->server = STR_NONE;
    r->is_outward = false;
    s->secrets = r->secrets;
    s->n_secrets = r->n_secrets;
    if (!ok)
        return false;
    if (s->url.p)
        note_clear_text(r, s);
    definition_compute(s);
    return true;
}

bool option_read_otlp(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err)
{
    struct server_draft draft;

    if (!outward_read(b, f, v, STR("otlp"), &draft.server, err))
        return false;
    struct server_config *s = arena_new_of(b->mem, struct server_config);
    *s = draft.server;
    *(struct server_config **)place = s;
    return true;
}

void config_each_target(struct config *c, void (*fn)(void *arg, struct server_config *s), void *arg)
{
    for (size_t i = 0; i < c->n_servers; i++)
        fn(arg, &c->servers[i]);
    if (c->otlp)
        fn(arg, c->otlp);
    for (size_t i = 0; i < c->n_sinks; i++)
        fn(arg, &c->sinks[i].target);
}
