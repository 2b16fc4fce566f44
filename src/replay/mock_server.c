/* SPDX-License-Identifier: Apache-2.0 */
/* A call without a recorded answer gets a JSON-RPC error and no result with isError: what is missing
 * is missing in the test, and a client has to fail there instead of going on with it. */
#include "replay/mock_server.h"

#include "base/log.h"
#include "json/write.h"

#include <stdlib.h>

#define NAMES_SHOWN 20
#define ARGUMENTS_SHOWN 5  /* recorded arguments in an error … */
#define ARGUMENT_SHOWN 200 /* … and the bytes of each */

/* Errors. */

static void write_error(struct builtin_call *call, struct str message)
{
    struct js_writer w;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    js_kv_int(&w, "code", -32602);
    js_kv_string(&w, "message", message);
    js_object_end(&w);
    builtin_error(call, buf_str(&out));
    buf_release(&out);
}

static void add_cut(struct buf *out, struct str text, size_t most)
{
    struct str part = str_cut(text, most);

    buf_addstr(out, part);
    if (part.n < text.n)
        buf_addz(out, "…");
}

static void say_no_tool(const struct mock_server *s, struct str tool, struct buf *out)
{
    buf_addz(out, "the recording has no call of ");
    add_cut(out, tool, ARGUMENT_SHOWN);
    buf_addf(out, "; of %.*s it has calls of", STR_ARG(s->name));
    for (size_t i = 0; i < s->n_tools && i < NAMES_SHOWN; i++) {
        buf_addz(out, i ? ", " : " ");
        add_cut(out, str_of(s->builtin.tools[i].name), ARGUMENT_SHOWN);
    }
    if (s->n_tools > NAMES_SHOWN)
        buf_addf(out, " and %zu more", s->n_tools - NAMES_SHOWN);
}

static void say_arguments(const struct mock *m, const struct mock_tool *t, struct buf *out)
{
    size_t shown = 0;

    for (size_t i = 0; i < t->n && shown < ARGUMENTS_SHOWN; i++) {
        const struct mock_call *c = &m->calls[t->calls[i]];
        if (c->key == SIZE_MAX || m->keys[c->key]->calls[0] != t->calls[i])
            continue;
        buf_addz(out, shown++ ? ", " : "; recorded arguments: ");
        add_cut(out, c->arguments.p ? c->arguments : STR("{}"), ARGUMENT_SHOWN);
    }
}

static void say_no_call(const struct mock *m, const struct mock_tool *t, struct buf *out)
{
    buf_addz(out, "the recording has no answer for this call of ");
    add_cut(out, t->name, ARGUMENT_SHOWN);
    buf_addf(out, ": %lld on record, ", (long long)t->recorded);
    buf_addz(out, t->n ? "none with these arguments and none that was not used yet"
                       : "none with an answer");
    if (t->lack.p) {
        buf_addz(out, "; ");
        add_cut(out, t->lack, 2 * ARGUMENT_SHOWN);
    }
    say_arguments(m, t, out);
}

/* Answering. */

static void tell(struct mock_server *s, struct str tool, enum mock_rule rule,
                 const struct mock_call *call, struct str why)
{
    const struct mock_answered a = {
        .server = s->name, .tool = tool, .rule = rule, .call = call, .why = why};

    if (s->set->on_answered)
        s->set->on_answered(s->set->arg, &a);
}

static void refuse(struct mock_server *s, struct builtin_call *call, const struct mock_tool *t)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 4);
    if (t)
        say_no_call(s->set->mock, t, &text);
    else
        say_no_tool(s, call->tool, &text);
    write_error(call, buf_str(&text));
    tell(s, call->tool, MOCK_UNKNOWN, NULL, buf_str(&text));
    buf_release(&text);
}

static void run(struct builtin_call *call)
{
    struct mock_server *s = call->arg;
    const struct mock *m = s->set->mock;
    const struct mock_tool *t = mock_tool(m, s->name, call->tool);
    struct str arguments = call->arguments ? js_raw(call->doc, call->arguments) : STR_NONE;
    enum mock_rule rule = MOCK_UNKNOWN;

    if (!*call->state)
        *call->state = mock_cursor_new(m);
    const struct mock_call *c = t ? mock_match(m, *call->state, t, arguments, &rule) : NULL;
    if (!c) {
        refuse(s, call, t);
        return;
    }
    if (c->is_error)
        builtin_error(call, c->answer);
    else
        buf_addstr(call->result, c->answer);
    tell(s, call->tool, rule, c, STR_NONE);
}

/* The servers. */

static struct mock_server *server_named(struct mock_servers *s, struct str name)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->list[i].name, name))
            return &s->list[i];
    struct mock_server *fresh = &s->list[s->n++];
    fresh->name = arena_dup(s->mem, name);
    fresh->set = s;
    return fresh;
}

static void add_tool(struct mock_servers *s, struct mock_server *server, struct builtin_tool *tools,
                     const struct mock_tool *t)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 4);
    if (t->definition.p)
        buf_addstr(&text, t->definition);
    else
        mock_write_definition(s->mock, t, &text);
    tools[server->n_tools++] = (struct builtin_tool){
        .name = arena_dup(s->mem, t->name).p,
        .definition = arena_dup(s->mem, buf_str(&text)).p,
        .run = run,
    };
    server->calls += t->recorded;
    buf_release(&text);
}

static void finish(struct mock_servers *s, struct mock_server *server)
{
    size_t n = 0;

    for (size_t i = 0; i < s->mock->n_tools; i++)
        n += str_eq(s->mock->tools[i].server, server->name);
    struct builtin_tool *tools =
        arena_zalloc(s->mem, (n + 1) * sizeof(*tools)); /* ends with a zeroed one */
    for (size_t i = 0; i < s->mock->n_tools; i++)
        if (str_eq(s->mock->tools[i].server, server->name))
            add_tool(s, server, tools, &s->mock->tools[i]);
    server->builtin = (struct builtin){
        .name = server->name.p,
        .instructions = "A recording answers in the place of this server.",
        .tools = tools,
        .free_state = mock_cursor_free,
        .run_unknown = run,
        .checks_arguments = true,
    };
}

struct mock_servers *mock_servers_new(const struct mock *m)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct mock_servers *s = arena_new_of(mem, struct mock_servers);

    s->mem = mem;
    s->mock = m;
    s->list = arena_zalloc(mem, (m->n_servers + 1) * sizeof(*s->list));
    for (size_t i = 0; i < m->n_tools; i++)
        (void)server_named(s, m->tools[i].server);
    for (size_t i = 0; i < s->n; i++)
        finish(s, &s->list[i]);
    return s;
}

void mock_servers_register(struct mock_servers *s)
{
    for (size_t i = 0; i < s->n; i++)
        builtin_register(&s->list[i].builtin, &s->list[i]);
}

void mock_servers_free(struct mock_servers *s)
{
    if (s)
        arena_free(s->mem);
}
