/* SPDX-License-Identifier: Apache-2.0 */
/* Links to built-in servers: a small legacy MCP server around a table of tools.  Answers come from
 * the loop, at the end of the turn or when a waiting tool is done. */
#include "upstream/builtin.h"

#include "json/write.h"
#include "upstream/upstream_impl.h"

#include <stdlib.h>

#define UNKNOWN_SHOWN 64 /* bytes of a parameter's name shown in a refusal */
#define MAX_RESULT (32u * 1024 * 1024)

struct registered {
    const struct builtin *server;
    void *arg;
};
static struct registered *registered;
static size_t n_registered;

struct builtin_link { /* link.wire */
    const struct builtin *server;
    void *arg;
    void *state;
    struct list answers;
};

/* Lives from the request to the delivery of its answer. */
struct answer {
    struct list node;
    struct loop_task task;
    struct link *link; /* NULL: the answer is not wanted any more */
    struct pending *pending;
    struct arena *mem;
    struct mcp_message message;
    struct principal who;
    struct builtin_call call;
    struct buf text;
};

/* NULL: there is none. */
static struct registered *find(struct str name)
{
    for (size_t i = 0; i < n_registered; i++)
        if (str_eq(str_of(registered[i].server->name), name))
            return &registered[i];
    return NULL;
}

static struct registered *entry_of(const struct builtin *b)
{
    for (size_t i = 0; i < n_registered; i++)
        if (registered[i].server == b)
            return &registered[i];
    return NULL;
}

void builtin_register(const struct builtin *b, void *arg)
{
    struct registered *r = entry_of(b);

    if (!r) {
        registered = xrealloc(registered, (n_registered + 1) * sizeof(*registered));
        r = &registered[n_registered++];
    }
    *r = (struct registered){b, arg};
}

void builtin_unregister(const struct builtin *b)
{
    struct registered *r = entry_of(b);

    if (r)
        *r = registered[--n_registered]; /* names are unique, but for those of a mock */
}

const struct builtin *builtin_find(struct str name)
{
    const struct registered *r = find(name);

    return r ? r->server : NULL;
}

const struct builtin_tool *builtin_tool(const struct builtin *b, struct str name)
{
    const struct builtin_tool *t = b->tools;

    while (t->name && !str_eq(str_of(t->name), name))
        t++;
    return t->name ? t : NULL;
}

static void *arg_of(const struct builtin *b)
{
    const struct registered *r = entry_of(b);

    return r ? r->arg : NULL;
}

bool builtin_hides(const struct builtin *b, const struct principal *who, struct str tool)
{
    return b->hides && b->hides(arg_of(b), who, tool);
}

void builtin_describe(const struct builtin *b, const struct principal *who, struct buf *out)
{
    struct buf text, quoted;

    if (!b->describe)
        return;
    buf_init(&text, MAX_RESULT);
    buf_init(&quoted, MAX_RESULT);
    b->describe(arg_of(b), who, &text);
    js_quote(&quoted, buf_str(&text));
    buf_add(out, quoted.p + 1, quoted.n - 2);
    buf_release(&text);
    buf_release(&quoted);
}

void builtin_text(struct builtin_call *call, struct str text, bool is_error)
{
    struct js_writer w;
    js_begin(&w, call->result);
    js_object(&w);
    js_key(&w, STR("content"));
    js_array(&w);
    js_object(&w);
    js_kv_string(&w, "type", STR("text"));
    js_kv_string(&w, "text", text);
    js_object_end(&w);
    js_array_end(&w);
    js_kv_bool(&w, "isError", is_error);
    js_object_end(&w);
}

static void answer_free(struct answer *a)
{
    list_remove(&a->node);
    buf_release(&a->text);
    arena_free(a->mem);
    free(a);
}

/* Drops the receiver of the answer.  A tool that still runs ends in answer_free(). */
static void answer_detach(struct answer *a)
{
    list_remove(&a->node);
    if (a->pending)
        a->pending->wire = NULL;
    a->pending = NULL;
    a->link = NULL;
}

static void deliver(struct loop_task *task)
{
    struct answer *a = container_of(task, struct answer, task);
    struct link *l = a->link;

    if (l) {
        answer_detach(a);
        link_receive(l, NULL, buf_str(&a->text));
    }
    answer_free(a);
}

static struct buf *answer_begin(struct answer *a, const char *member)
{
    buf_reset(&a->text);
    buf_addf(&a->text, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":", STR_ARG(a->message.id), member);
    return &a->text;
}

static void answer_initialize(struct answer *a, const struct builtin_link *b)
{
    struct buf *out = answer_begin(a, "result");
    struct str asked = mcp_param_text(&a->message, STR("protocolVersion"), a->mem);

    buf_addf(out,
             "{\"protocolVersion\":\"%.*s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":"
             "{\"name\":\"holdfast-%s\",\"version\":\"%s\"},\"instructions\":",
             STR_ARG(mcp_version_negotiate(asked)->name), b->server->name, HOLDFAST_VERSION);
    js_quote(out, str_of(b->server->instructions));
    buf_addz(out, "}}");
}

static void answer_list(struct answer *a, const struct builtin_link *b)
{
    struct buf *out = answer_begin(a, "result");

    buf_addz(out, "{\"tools\":[");
    for (const struct builtin_tool *t = b->server->tools; t->name; t++)
        buf_addf(out, "%s%s", t == b->server->tools ? "" : ",", t->definition);
    buf_addz(out, "]}}");
}

/* Copies the caller: the request may be abandoned before the tool is done. */
static void take_caller(struct answer *a, const struct outgoing *out)
{
    if (out->who)
        a->who = principal_dup(out->who, a->mem);
    a->call.who = &a->who;
    a->call.session_id = arena_dup(a->mem, out->session_id);
    a->call.session_owner = arena_dup(a->mem, out->session_owner);
    a->call.handle = arena_dup(a->mem, out->handle);
    a->call.person = arena_dup(a->mem, out->person);
    a->call.named = out->session_named;
    a->call.carrier = arena_dup(a->mem, out->carrier);
    a->call.carrier_key = arena_dup(a->mem, out->carrier_key);
    a->call.client = arena_dup(a->mem, out->client);
}

/* If the schema of a tool is closed, this check enforces it for every tool: a misspelt parameter is
 * refused by name instead of being ignored. */
static bool takes_arguments(struct answer *a, const struct builtin_tool *t)
{
    const struct js_doc *args = a->call.doc;
    struct js_doc doc;
    struct buf text;

    if (!a->call.arguments ||
        !js_parse(str_of(t->definition), &js_limits_upstream, a->mem, &doc, NULL))
        return true;
    const struct js_node *schema = js_get(&doc, js_root(&doc), STR("inputSchema"));
    const struct js_node *known = js_get(&doc, schema, STR("properties"));
    const struct js_node *key = js_first(args, a->call.arguments);
    if (!js_type_is(js_get(&doc, schema, STR("additionalProperties")), JS_FALSE))
        return true;
    while (key && js_get(&doc, known, js_text(args, key, a->mem)))
        key = js_next(args, a->call.arguments, js_value_of(key));
    if (!key)
        return true;
    struct str name = str_cut(js_text(args, key, a->mem), UNKNOWN_SHOWN);
    buf_init(&text, MAX_RESULT);
    buf_addf(&text, "Unknown parameter: %.*s. %s takes", STR_ARG(name), t->name);
    for (const struct js_node *k = js_first(&doc, known); k;
         k = js_next(&doc, known, js_value_of(k)))
        buf_addf(&text, "%s %.*s", k == js_first(&doc, known) ? "" : ",",
                 STR_ARG(js_text(&doc, k, a->mem)));
    buf_addz(&text, ".");
    builtin_text(&a->call, buf_str(&text), true);
    buf_release(&text);
    return false;
}

static void answer_call(struct answer *a, struct builtin_link *b, const struct outgoing *out)
{
    const struct mcp_message *m = &a->message;
    struct str name = mcp_param_text(m, STR("name"), a->mem);
    const struct builtin_tool *t = builtin_tool(b->server, name);

    if (!t && !b->server->run_unknown) {
        buf_addz(answer_begin(a, "error"), "{\"code\":-32602,\"message\":\"Unknown tool; call "
                                           "tools/list to see the tools of this server\"}}");
        return;
    }
    a->call.tool = name;
    a->call.doc = &m->doc;
    a->call.arguments = mcp_param(m, STR("arguments"));
    a->call.state = &b->state;
    a->call.mem = a->mem;
    a->call.arg = b->arg;
    a->call.result = answer_begin(a, "result");
    take_caller(a, out);
    if (!t)
        b->server->run_unknown(&a->call);
    else if (b->server->checks_arguments || takes_arguments(a, t))
        t->run(&a->call);
    if (!a->call.waits)
        buf_addc(&a->text, '}');
}

void builtin_error(struct builtin_call *call, struct str error)
{
    struct answer *a = container_of(call, struct answer, call);

    buf_addstr(answer_begin(a, "error"), error);
}

void builtin_finish(struct builtin_call *call)
{
    struct answer *a = container_of(call, struct answer, call);

    buf_addc(&a->text, '}');
    deliver(&a->task);
}

static void builtin_open(struct link *l)
{
    struct builtin_link *b = xcalloc(1, sizeof(*b));
    const struct registered *r = find(l->up->config->name);

    if (r) {
        b->server = r->server;
        b->arg = r->arg;
    }
    list_init(&b->answers);
    l->wire = b;
    link_up_later(l);
}

static void answer_start(struct answer *a, struct builtin_link *b, const struct outgoing *out)
{
    if (str_eq(a->message.method, STR("initialize")))
        answer_initialize(a, b);
    else if (str_eq(a->message.method, STR("tools/list")))
        answer_list(a, b);
    else
        answer_call(a, b, out);
    if (!a->call.waits) {
        a->task.fn = deliver;
        loop_defer(a->link->up->set->loop, &a->task);
    }
}

static bool builtin_send(struct link *l, struct pending *p, const struct outgoing *out,
                         struct error *err)
{
    struct builtin_link *b = l->wire;
    struct answer *a;

    if (!b->server)
        return error_set(err, ERR_UNREACHABLE, "there is no built-in server of this name");
    if (!p)
        return true;
    a = xcalloc(1, sizeof(*a));
    a->mem = arena_new(MAX_RESULT);
    buf_init(&a->text, MAX_RESULT);
    list_init(&a->node);
    /* The text belongs to the caller; a tool that waits needs a copy. */
    if (!mcp_parse_upstream(arena_dup(a->mem, out->text), a->mem, &a->message, err)) {
        answer_free(a);
        return false;
    }
    a->link = l;
    a->pending = p;
    p->wire = a;
    p->left = true;
    list_push(&b->answers, &a->node);
    answer_start(a, b, out);
    return true;
}

static void builtin_abandon(struct link *l unused_arg, struct pending *p)
{
    if (p->wire)
        answer_detach(p->wire);
}

static void builtin_close(struct link *l)
{
    struct builtin_link *b = l->wire;
    list_each(&b->answers, n) answer_detach(list_entry(n, struct answer, node));
    if (b->state && b->server->free_state)
        b->server->free_state(b->state);
    free(b);
    l->wire = NULL;
}

const struct upstream_ops upstream_builtin = {
    .name = "builtin",
    .has_process = false,
    .open = builtin_open,
    .send = builtin_send,
    .abandon = builtin_abandon,
    .close = builtin_close,
};
