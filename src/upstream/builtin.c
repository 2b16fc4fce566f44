/* SPDX-License-Identifier: Apache-2.0 */
/* Links to built-in servers: a small legacy MCP server around a table of tools.  Answers come from
 * the loop at the end of the turn, like everybody's. */
#include "upstream/builtin.h"

#include "json/write.h"
#include "upstream/upstream_impl.h"

#include <stdlib.h>

#define MAX_BUILTINS 8
#define MAX_RESULT (16u * 1024 * 1024)

static const struct builtin *registered[MAX_BUILTINS];

struct builtin_link { /* link.wire */
    const struct builtin *server;
    void *state;
    struct list answers;
};

struct answer {
    struct list node;
    struct loop_task task;
    struct link *link; /* NULL: the link has ended */
    struct buf text;
};

void builtin_register(const struct builtin *b)
{
    for (size_t i = 0; i < MAX_BUILTINS; i++) {
        if (registered[i] == b)
            return;
        if (!registered[i]) {
            registered[i] = b;
            return;
        }
    }
    die("more than %d built-in servers", MAX_BUILTINS);
}

const struct builtin *builtin_find(struct str name)
{
    for (size_t i = 0; i < MAX_BUILTINS && registered[i]; i++)
        if (str_eq(str_of(registered[i]->name), name))
            return registered[i];
    return NULL;
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

static void deliver(struct loop_task *task)
{
    struct answer *a = container_of(task, struct answer, task);
    list_remove(&a->node);
    if (a->link)
        link_receive(a->link, NULL, buf_str(&a->text));
    buf_release(&a->text);
    free(a);
}

static struct buf *answer_begin(struct link *l, struct str id, const char *member)
{
    struct answer *a = xcalloc(1, sizeof(*a));
    struct builtin_link *b = l->wire;

    a->link = l;
    a->task.fn = deliver;
    list_init(&a->node);
    list_push(&b->answers, &a->node);
    buf_init(&a->text, MAX_RESULT);
    buf_addf(&a->text, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":", STR_ARG(id), member);
    loop_defer(l->up->set->loop, &a->task);
    return &a->text;
}

static void answer_initialize(struct link *l, const struct mcp_message *m, struct arena *mem)
{
    const struct builtin_link *b = l->wire;
    struct buf *out = answer_begin(l, m->id, "result");
    struct str asked = mcp_param_text(m, STR("protocolVersion"), mem);

    buf_addf(out,
             "{\"protocolVersion\":\"%.*s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":"
             "{\"name\":\"holdfast-%s\",\"version\":\"%s\"},\"instructions\":",
             STR_ARG(mcp_version_negotiate(asked)->name), b->server->name, HOLDFAST_VERSION);
    js_quote(out, str_of(b->server->instructions));
    buf_addz(out, "}}");
}

static void answer_list(struct link *l, const struct mcp_message *m)
{
    const struct builtin_link *b = l->wire;
    struct buf *out = answer_begin(l, m->id, "result");

    buf_addz(out, "{\"tools\":[");
    for (const struct builtin_tool *t = b->server->tools; t->name; t++)
        buf_addf(out, "%s%s", t == b->server->tools ? "" : ",", t->definition);
    buf_addz(out, "]}}");
}

static void answer_call(struct link *l, const struct mcp_message *m, struct arena *mem)
{
    struct builtin_link *b = l->wire;
    struct str name = mcp_param_text(m, STR("name"), mem);

    for (const struct builtin_tool *t = b->server->tools; t->name; t++) {
        if (!str_eq(str_of(t->name), name))
            continue;
        struct buf *out = answer_begin(l, m->id, "result");
        struct builtin_call call = {
            .doc = &m->doc,
            .arguments = mcp_param(m, STR("arguments")),
            .state = &b->state,
            .mem = mem,
            .result = out,
        };
        t->run(&call);
        buf_addc(out, '}');
        return;
    }
    buf_addz(answer_begin(l, m->id, "error"), "{\"code\":-32602,\"message\":\"Unknown tool; call "
                                              "tools/list to see the tools of this server\"}}");
}

static void builtin_open(struct link *l)
{
    struct builtin_link *b = xcalloc(1, sizeof(*b));
    b->server = builtin_find(l->up->config->name);
    list_init(&b->answers);
    l->wire = b;
    link_up_later(l);
}

static bool builtin_send(struct link *l, struct pending *p, const struct outgoing *out,
                         struct error *err)
{
    struct builtin_link *b = l->wire;
    struct mcp_message m;

    if (!b->server)
        return error_set(err, ERR_UNREACHABLE, "there is no built-in server of this name");
    if (!p)
        return true;
    struct arena *mem = arena_new(MAX_RESULT);
    bool parsed = mcp_parse_upstream(out->text, mem, &m, err);
    if (parsed) {
        p->left = true;
        if (str_eq(m.method, STR("initialize")))
            answer_initialize(l, &m, mem);
        else if (str_eq(m.method, STR("tools/list")))
            answer_list(l, &m);
        else
            answer_call(l, &m, mem);
    }
    arena_free(mem);
    return parsed;
}

static void builtin_abandon(struct link *l unused_arg, struct pending *p unused_arg)
{
}

static void builtin_close(struct link *l)
{
    struct builtin_link *b = l->wire;
    list_each(&b->answers, n)
    {
        list_remove(n);
        list_entry(n, struct answer, node)->link = NULL;
    }
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
