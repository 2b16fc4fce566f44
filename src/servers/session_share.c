/* SPDX-License-Identifier: Apache-2.0 */
/* The tools `share` and `join`: a person asks one client for a code and pastes it into another, which
 * then goes on in the same session.  session/sharing.h does the work. */
#include "servers/session.h"

#include "base/clock.h"
#include "config/config.h"
#include "json/write.h"
#include "session/registry.h"
#include "session/sharing.h"

#include <stdio.h>

#define TEXT_MAX (4u << 20)

struct share_call {
    struct builtin_call *call;
    const char *missing; /* what the caller is told if the session is not found */
    struct sharing_call sharing;
    struct registry_call registry;
};

static struct share_call *begin(struct builtin_call *call, const char *missing,
                                void (*done)(struct sharing_call *s))
{
    struct share_call *c = arena_new_of(call->mem, struct share_call);

    c->call = call;
    c->missing = missing;
    c->sharing.who = call->who;
    c->sharing.mem = call->mem;
    c->sharing.name = call->session_id;
    c->sharing.by_id = true;
    c->sharing.client = call->client;
    c->sharing.done = done;
    return c;
}

static struct share_call *share_of(struct sharing_call *s)
{
    return container_of(s, struct share_call, sharing);
}

/* Absent if the argument is missing or null.  False: it is no text, and the refusal is written; it is not
 * taken for a missing one, because the defaults may permit more than the caller meant. */
static bool read_text(struct builtin_call *call, const char *name, struct str *ret)
{
    const struct js_node *value = js_get(call->doc, call->arguments, str_of(name));

    *ret = js_text(call->doc, value, call->mem);
    if (!value || js_type_is(value, JS_STRING) || js_type_is(value, JS_NULL))
        return true;
    builtin_text(call, arena_printf(call->mem, "\"%s\" must be a string.", name), true);
    return false;
}

/* A text for the model, and the same as values. */
static void write_result(struct builtin_call *call, struct str text, struct str structured)
{
    struct buf *out = call->result;

    buf_addz(out, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(out, text);
    buf_addz(out, "}],\"structuredContent\":");
    buf_addstr(out, structured);
    buf_addz(out, ",\"isError\":false}");
}

static void refuse(struct share_call *c, const struct error *err)
{
    bool is_missing = err->code == ERR_SESSION_NOT_FOUND && c->missing;

    builtin_text(c->call, str_of(is_missing ? c->missing : err->text), true);
    builtin_finish(c->call);
}

/* share */

static struct str when(int64_t ms, struct arena *mem)
{
    char text[CLOCK_TEXT];

    clock_format(ms, text);
    return arena_dup(mem, str_of(text));
}

static void on_shared(struct sharing_call *s)
{
    static const char *const deeds[] = {
        [SHARE_READ] = "see this session",
        [SHARE_USE] = "go on in this session",
        [SHARE_HAND_OVER] = "take this session over",
    };
    struct share_call *c = share_of(s);
    struct arena *mem = c->call->mem;
    struct js_writer w;
    struct buf out;

    if (!s->ok) {
        refuse(c, &s->err);
        return;
    }
    buf_init(&out, TEXT_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "code", str_of(s->new_code));
    js_kv_string(&w, "share_id", s->share.id);
    js_kv_string(&w, "may", str_of(share_may_names[s->share.may]));
    js_kv_string(&w, "expires_at", when(s->share.expires_ms, mem));
    js_kv_string(&w, "session_id", c->call->handle);
    js_object_end(&w);
    write_result(c->call,
                 arena_printf(mem,
                              "%s\n\nThis code lets one other client or person %s. It works once, "
                              "until %.*s. Show it to the user as it is: in the other client, they "
                              "say \"join with\" and this code.",
                              s->new_code, deeds[s->share.may],
                              STR_ARG(when(s->share.expires_ms, mem))),
                 buf_str(&out));
    buf_release(&out);
    builtin_finish(c->call);
}

static bool read_may(struct str text, int *ret)
{
    *ret = SHARE_USE;
    for (int i = 0; text.p && share_may_names[i]; i++)
        if (str_eq(text, str_of(share_may_names[i]))) {
            *ret = i;
            return true;
        }
    return !text.p;
}

void session_share_run(struct builtin_call *call)
{
    const struct session_server *server = call->arg;
    struct share_wish wish = {0};
    struct str may, expires, named;

    if (!read_text(call, "may", &may) || !read_text(call, "expires", &expires) ||
        !read_text(call, "session_id", &named))
        return;
    if (!read_may(may, &wish.may)) {
        builtin_text(call, STR("\"may\" is read, use or hand_over."), true);
        return;
    }
    if (expires.p && (!clock_parse_duration(expires, &wish.expires_ms) || wish.expires_ms <= 0 ||
                      wish.expires_ms > SHARE_CODE_MS_MAX)) {
        builtin_text(call, STR("\"expires\" is a duration such as 30m or 2h, at most 24h."), true);
        return;
    }
    struct share_call *c = begin(
        call, "Only the owner of a session can share it, and this one is not yours or is over.",
        on_shared);
    c->sharing.wish = wish;
    call->waits = true;
    sharing_create(server->sharing, &c->sharing);
}

/* fork */

static void on_forked(struct sharing_call *s)
{
    struct share_call *c = share_of(s);
    struct js_writer w;
    struct buf out;

    if (!s->ok) {
        refuse(c, &s->err);
        return;
    }
    buf_init(&out, TEXT_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "session_id", s->session->handle);
    js_kv_string(&w, "forked_from", c->call->handle);
    js_object_end(&w);
    write_result(c->call,
                 arena_printf(c->call->mem,
                              "Session %.*s is a copy: it has the context, the toolsets and the "
                              "lines of documents read of this one. Servers begin anew in it. To "
                              "work in it, pass its session_id, or share it with share and join "
                              "it.",
                              STR_ARG(s->session->handle)),
                 buf_str(&out));
    buf_release(&out);
    builtin_finish(c->call);
}

void session_fork_run(struct builtin_call *call)
{
    const struct session_server *server = call->arg;
    const struct config *config = *server->config;
    struct str named;

    if (!read_text(call, "session_id", &named))
        return;
    struct share_call *c = begin(
        call, "This session is not yours and not shared with you any more, or is over.", on_forked);
    c->sharing.life_ms = config_default_ttl_ms(config, call->who->tenant);
    c->sharing.max_counted = config_max_sessions(config, call->who->tenant);
    call->waits = true;
    sharing_fork(server->sharing, &c->sharing);
}

/* join */

static void add_list(struct buf *out, const struct sharing_call *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        buf_addf(out, "%s%.*s", i ? ", " : "", STR_ARG(s->links[i].server));
}

static struct str joined_text(const struct share_call *c)
{
    const struct sharing_call *s = &c->sharing;
    const struct session_row *row = s->session;
    struct buf out;

    buf_init(&out, TEXT_MAX);
    if (s->share.may == SHARE_READ)
        buf_addf(&out, "You may now read session %.*s, but not call tools in it.",
                 STR_ARG(row->handle));
    else
        buf_addf(
            &out,
            "You now go on in session %.*s%s. Every call of this client goes to it; tools that "
            "ask for a session_id get this one.",
            STR_ARG(row->handle),
            s->share.may == SHARE_HAND_OVER ? ", which is yours from now on" : "");
    if (row->client_name.n)
        buf_addf(&out, "\nIt was begun by %.*s.", STR_ARG(row->client_name));
    if (s->n_links) {
        buf_addz(&out, "\nServers it has used, whose state goes on: ");
        add_list(&out, s);
        buf_addc(&out, '.');
    }
    if (c->registry.context)
        buf_addz(&out, "\nIts context document is in this result; context_update changes it.");
    struct str text = arena_dup(c->call->mem, buf_str(&out));
    buf_release(&out);
    return text;
}

static void on_context(struct registry_call *r)
{
    struct share_call *c = container_of(r, struct share_call, registry);
    const struct sharing_call *s = &c->sharing;
    struct js_writer w;
    struct buf out;

    buf_init(&out, TEXT_MAX);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_string(&w, "session_id", s->session->handle);
    js_kv_string(&w, "may", str_of(share_may_names[s->share.may]));
    js_kv_string(&w, "begun_by", s->session->client_name);
    js_key(&w, STR("servers"));
    js_array(&w);
    for (size_t i = 0; i < s->n_links; i++)
        js_string(&w, s->links[i].server);
    js_array_end(&w);
    if (r->result == REGISTRY_OK && r->context)
        js_kv_raw(&w, "context", session_compact_json(r->context->document, c->call->mem));
    js_object_end(&w);
    write_result(c->call, joined_text(c), buf_str(&out));
    buf_release(&out);
    builtin_finish(c->call);
}

static void on_joined(struct sharing_call *s)
{
    struct share_call *c = share_of(s);
    const struct session_server *server = c->call->arg;

    if (!s->ok) {
        refuse(c, &s->err);
        return;
    }
    c->registry = (struct registry_call){
        .who = c->call->who,
        .mem = c->call->mem,
        .name = s->share.session_id,
        .by_id = true,
        .reach = REACH_READ,
        .done = on_context,
    };
    registry_context(server->registry, &c->registry);
}

void session_join_run(struct builtin_call *call)
{
    const struct session_server *server = call->arg;
    struct str code, session, former;

    if (!read_text(call, "code", &code) || !read_text(call, "session", &session) ||
        !read_text(call, "former_owner", &former))
        return;
    if (!code.n == !session.n) {
        builtin_text(call,
                     STR("join needs \"code\", a code that begins with " SHARE_CODE_PREFIX
                         ", or \"session\", the session_id of a session that is shared with you."),
                     true);
        return;
    }
    struct share_call *c = begin(call, NULL, on_joined);
    while (former.p && share_former_names[c->sharing.former] &&
           !str_eq(former, str_of(share_former_names[c->sharing.former])))
        c->sharing.former++;
    if (!share_former_names[c->sharing.former]) {
        builtin_text(call, STR("\"former_owner\" is nothing, read or use."), true);
        return;
    }
    c->sharing.code = code.n ? code : STR_NONE;
    c->sharing.name = session;
    c->sharing.by_id = false;
    c->sharing.carrier = call->carrier;
    c->sharing.carrier_key = call->carrier_key;
    call->waits = true;
    sharing_join(server->sharing, &c->sharing);
}
