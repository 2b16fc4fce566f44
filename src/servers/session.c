/* SPDX-License-Identifier: Apache-2.0 */
/* The context document that the clients of a session share.  One
 * document per session, the same that REST shows under /sessions/{id}/context.  Every client of the
 * session, by any carrier and protocol version, reads and changes it here.
 *
 * A change names the etag of the version it was made from, so that no client overwrites a version
 * it has not seen.  A refusal explains this and says what to call next.  The registry does the
 * work; both tools wait for it. */
#include "servers/session.h"

#include "json/write.h"
#include "session/registry.h"

#define SESSION_PROPERTY                                                                           \
    "\"session_id\":{\"type\":\"string\",\"description\":\"A session handle (ses_...); the "       \
    "session of this call when omitted.\"}"
#define OUTPUT_SCHEMA                                                                              \
    "\"outputSchema\":{\"type\":\"object\",\"properties\":{\"context\":{\"type\":\"object\"},"     \
    "\"etag\":{\"type\":\"string\"},\"session_id\":{\"type\":\"string\"}},\"required\":["          \
    "\"context\",\"etag\",\"session_id\"]}"

/* A call of one of the tools, while the registry processes it. */
struct context_call {
    struct builtin_call *call;
    struct registry_call registry;
    bool names_etag;
};

/* On stdio a message must be one line, but the document is stored as received.  So the white space
 * between tokens is left out. */
static void add_compact(struct buf *out, struct str json)
{
    bool in_string = false;

    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        if (in_string && c == '\\') {
            buf_addc(out, c);
            c = json.p[++i];
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
            continue;
        }
        buf_addc(out, c);
    }
}

struct str session_compact_json(struct str json, struct arena *mem)
{
    struct buf out;

    buf_init(&out, 4 * CONTEXT_BYTES_MAX);
    add_compact(&out, json);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

static void write_structured(const struct registry_call *r, struct buf *out)
{
    buf_addz(out, "{\"context\":");
    add_compact(out, r->context ? r->context->document : STR("{}"));
    buf_addf(out, ",\"etag\":\"%lld\",\"session_id\":",
             (long long)(r->context ? r->context->version : 0));
    js_quote(out, r->row->handle);
    buf_addc(out, '}');
}

/* The document, as structured content and as text for clients that read only text. */
static void write_context(const struct registry_call *r, struct buf *out)
{
    struct buf structured;

    buf_init(&structured, 4 * CONTEXT_BYTES_MAX);
    write_structured(r, &structured);
    buf_addz(out, "{\"content\":[{\"type\":\"text\",\"text\":");
    js_quote(out, buf_str(&structured));
    buf_addz(out, "}],\"structuredContent\":");
    buf_addstr(out, buf_str(&structured));
    buf_addz(out, ",\"isError\":false}");
    buf_release(&structured);
}

static const char *stale_text(const struct context_call *c)
{
    return c->names_etag
               ? "The context has changed since that etag. Call context_get, make your change to "
                 "what it returns, and call context_update with the new etag."
               : "This session has a context already. Call context_get, and call context_update "
                 "again with the etag it returns.";
}

static const char *refusal(const struct context_call *c)
{
    static const char *const texts[] = {
        [REGISTRY_MISSING] = ("Session not found or expired. Call again without session_id to use "
                              "the session of this call."),
        [REGISTRY_NOT_ACTIVE] = "The session is over; its context can be read and not changed.",
        [REGISTRY_TOO_LARGE] = ("A context holds at most 1 MiB of JSON, and 10,000 members in an "
                                "object. Leave out what is not needed and call again."),
    };
    enum registry_result result = c->registry.result;

    if (result == REGISTRY_STALE)
        return stale_text(c);
    if (result < countof(texts) && texts[result])
        return texts[result];
    return c->registry.err.code != ERR_NONE ? c->registry.err.text
                                            : "The context could not be read; call again.";
}

static void on_registry(struct registry_call *r)
{
    struct context_call *c = container_of(r, struct context_call, registry);

    if (r->result == REGISTRY_OK)
        write_context(r, c->call->result);
    else
        builtin_text(c->call, str_of(refusal(c)), true);
    builtin_finish(c->call);
}

static struct context_call *begin(struct builtin_call *call)
{
    struct context_call *c = arena_new_of(call->mem, struct context_call);

    c->call = call;
    c->registry.who = call->who;
    c->registry.mem = call->mem;
    c->registry.name = call->session_id;
    c->registry.by_id = true;
    c->registry.reach = REACH_USE; /* the session of the call, which may be shared */
    c->registry.done = on_registry;
    call->waits = true;
    return c;
}

static struct registry *registry_of(const struct builtin_call *call)
{
    return ((const struct session_server *)call->arg)->registry;
}

static void run_get(struct builtin_call *call)
{
    registry_context(registry_of(call), &begin(call)->registry);
}

/* "3", or quoted as in an ETag header.  False: not an etag of ours. */
static bool etag_version(struct str etag, int64_t *ret)
{
    uint64_t version;

    if (etag.n >= 2 && etag.p[0] == '"' && etag.p[etag.n - 1] == '"')
        etag = str_n(etag.p + 1, etag.n - 2);
    if (!str_to_u64(etag, INT64_MAX, &version))
        return false;
    *ret = (int64_t)version;
    return true;
}

/* The requested change; NULL: the arguments are wrong, and `*ret_why` says what is needed. */
static const struct js_node *change_of(const struct builtin_call *call, enum context_change *ret,
                                       const char **ret_why)
{
    const struct js_node *whole = js_get(call->doc, call->arguments, STR("context"));
    const struct js_node *patch = js_get(call->doc, call->arguments, STR("patch"));
    const struct js_node *change = whole ? whole : patch;

    *ret = whole ? CONTEXT_REPLACE : CONTEXT_MERGE;
    *ret_why =
        "context_update needs either \"context\", the whole new document, or \"patch\", what "
        "changes in it; each is a JSON object.";
    if (!whole == !patch || !js_type_is(change, JS_OBJECT))
        return NULL;
    *ret_why =
        "A context holds at most 1 MiB of JSON. Leave out what is not needed and call again.";
    return js_raw(call->doc, change).n <= CONTEXT_BYTES_MAX ? change : NULL;
}

static void run_update(struct builtin_call *call)
{
    const struct js_node *etag = js_get(call->doc, call->arguments, STR("etag"));
    enum context_change how;
    const char *why;
    const struct js_node *change = change_of(call, &how, &why);
    int64_t version = 0;

    if (!change) {
        builtin_text(call, str_of(why), true);
        return;
    }
    if (etag && !etag_version(js_text(call->doc, etag, call->mem), &version)) {
        builtin_text(call,
                     STR("That etag is not one of this context. Call context_get, and call "
                         "context_update with the etag it returns."),
                     true);
        return;
    }
    struct context_call *c = begin(call);
    c->names_etag = etag != NULL;
    registry_context_change(registry_of(call), &c->registry, how, js_raw(call->doc, change),
                            version);
}

static const struct builtin_tool tools[] = {
    {
        .name = "context_get",
        .definition =
            "{\"name\":\"context_get\",\"description\":\"Returns the context document of this "
            "session: a JSON object that every client sharing the session sees, with the etag "
            "that context_update asks for. It is empty, with etag 0, until somebody writes it.\","
            "\"inputSchema\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":"
            "{" SESSION_PROPERTY "}}," OUTPUT_SCHEMA ",\"annotations\":{\"readOnlyHint\":true}}",
        .run = run_get,
    },
    {
        .name = "context_update",
        .definition =
            "{\"name\":\"context_update\",\"description\":\"Changes the context document of this "
            "session and returns it. Give either context, the whole new document, or patch, a JSON "
            "merge patch (members that are null are removed). Give the etag that context_get "
            "returned; the change is refused when somebody else was faster. At most 1 MiB.\","
            "\"inputSchema\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
            "\"context\":{\"type\":\"object\","
            "\"description\":\"The whole new document.\"},\"patch\":{\"type\":\"object\","
            "\"description\":\"What changes (JSON merge patch).\"},\"etag\":{\"type\":\"string\","
            "\"description\":\"From context_get; may be left out while there is no "
            "document.\"}," SESSION_PROPERTY "}}," OUTPUT_SCHEMA
            ",\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":false,"
            "\"idempotentHint\":false}}",
        .run = run_update,
    },
    {
        .name = "share",
        .definition =
            "{\"name\":\"share\",\"description\":\"Makes a one-use code with which another client "
            "or person goes on in this session, with its context and the state of its servers. "
            "Call "
            "it when the user wants to continue elsewhere (for instance: give me a code for "
            "Cursor), and show the code exactly as returned. In the other client, join takes "
            "it.\",\"inputSchema\":{\"type\":\"object\",\"additionalProperties\":false,"
            "\"properties\":{\"may\":{\"type\":\"string\",\"enum\":[\"read\",\"use\","
            "\"hand_over\"],\"description\":\"use (default): call tools in the session. read: only "
            "see it. hand_over: the other becomes its owner.\"},\"expires\":{\"type\":\"string\","
            "\"description\":\"How long the code can be used, such as 30m; 10m when omitted, at "
            "most "
            "24h.\"}," SESSION_PROPERTY "}},\"outputSchema\":{\"type\":"
            "\"object\",\"properties\":{\"code\":{\"type\":\"string\"},\"share_id\":{\"type\":"
            "\"string\"},\"may\":{\"type\":\"string\"},\"expires_at\":{\"type\":\"string\"},"
            "\"session_id\":{\"type\":\"string\"}},\"required\":[\"code\",\"session_id\"]},"
            "\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":false,"
            "\"idempotentHint\":false}}",
        .run = session_share_run,
    },
    {
        .name = "join",
        .definition =
            "{\"name\":\"join\",\"description\":\"Goes on in a session that was begun elsewhere. "
            "Call it when the user gives a code that begins with hf-share-. From then on every "
            "call "
            "of this client goes to that session; the result says what is in it.\","
            "\"inputSchema\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":"
            "{\"code\":{\"type\":\"string\",\"description\":\"The code, hf-share-...\"},"
            "\"session\":{\"type\":\"string\",\"description\":\"Instead of a code: the session_id "
            "of "
            "a session that is shared with the user by name.\"},\"former_owner\":{\"type\":"
            "\"string\",\"enum\":[\"nothing\",\"read\",\"use\"],\"description\":\"When the code "
            "hands the session over: what its former owner may still do (default: nothing).\"}}},"
            "\"outputSchema\":{\"type\":"
            "\"object\",\"properties\":{\"session_id\":{\"type\":\"string\"},\"may\":{\"type\":"
            "\"string\"},\"begun_by\":{\"type\":\"string\"},\"servers\":{\"type\":\"array\","
            "\"items\":{\"type\":\"string\"}},\"context\":{\"type\":\"object\"}},\"required\":["
            "\"session_id\",\"may\",\"servers\"]},\"annotations\":{\"readOnlyHint\":false,"
            "\"destructiveHint\":false,\"idempotentHint\":false}}",
        .run = session_join_run,
    },
    {
        .name = "fork",
        .definition =
            "{\"name\":\"fork\",\"description\":\"Copies what this session remembers (context, "
            "toolsets, documents read) into a new session, to try something without changing this "
            "one. The state of servers is not copied.\",\"inputSchema\":{\"type\":\"object\","
            "\"additionalProperties\":false,\"properties\":{" SESSION_PROPERTY "}},"
            "\"outputSchema\":{\"type\":\"object\",\"properties\":{\"session_id\":{\"type\":"
            "\"string\"},\"forked_from\":{\"type\":\"string\"}},\"required\":[\"session_id\","
            "\"forked_from\"]},\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":false,"
            "\"idempotentHint\":false}}",
        .run = session_fork_run,
    },
    {.name = NULL},
};

const struct builtin server_session = {
    .name = "session",
    .instructions =
        "The context document of the session: context_get reads it, context_update "
        "changes it. Every client that shares the session sees the same document. share "
        "makes a code for another client or person, and join goes on with such a "
        "code.",
    .tools = tools,
    .has_secrets = true, /* codes */
};
