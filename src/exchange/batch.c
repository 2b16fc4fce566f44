/* SPDX-License-Identifier: Apache-2.0 */
/* A batch is an exchange that waits for others.  Its own steps find the caller and the transport.
 * Then each item becomes an exchange with its own memory, audit row and outcome.  The outlet of an
 * item writes into the batch's reply.
 *
 *   POST [a, b, c] ── the batch ──┬── a ──> replies[0]
 *                                 ├── b ──> replies[1]      all there: [0, 1, 2] as one array
 *                                 └── c ──> replies[2]
 *
 * When an item sends a message before its result, the whole answer becomes an event stream.
 * Replies that are ready go out at once, one event each, and the others as they come.  The bytes of
 * the items belong to the batch, which outlives them. */
#include "exchange/batch.h"

#define MAX_HELD (32u * 1024 * 1024)

struct batch_item {
    struct batch *batch;
    struct exchange *x; /* NULL before it starts and after it ends */
    struct arena *mem;
    struct buf reply; /* empty: not ready, not wanted, or already sent */
};

struct batch {
    struct exchange *x;
    size_t n, left;
    size_t held; /* bytes of replies that wait for the others */
    struct batch_item *items;
};

static enum step_result refuse(struct exchange *x, const char *text)
{
    return exchange_refuse(x, 400, -32600, "%s", text);
}

/* Refuses items that their own exchange could not recognise as wrong. */
static const char *refusal_of(const struct js_doc *d, const struct js_node *item)
{
    const struct js_node *meta = js_get(d, js_get(d, item, STR("params")), STR("_meta"));

    if (js_is(d, js_get(d, item, STR("method")), STR("initialize")))
        return "initialize must not be part of a batch; send it alone";
    if (js_get(d, meta, STR(MCP_KEY_VERSION)))
        return "requests of 2026-07-28 must not be part of a batch; send each alone";
    return NULL;
}

static bool version_has_batches(const struct exchange *x)
{
    struct str header = http_header_get(x->head, STR("mcp-protocol-version"));
    const struct mcp_version *v = header.p ? mcp_version_find(header) : NULL;

    return x->transport && x->transport->version->batches && (!header.p || (v && v->batches));
}

static void flush(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        struct batch_item *item = &b->items[i];
        if (item->reply.n)
            (void)b->x->outlet->send(b->x, buf_str(&item->reply), OUTLET_MUST);
        buf_release(&item->reply);
    }
    b->held = 0;
}

static void item_begin(struct exchange *x)
{
    ((struct batch_item *)x->outlet_data)->x = x;
}

static bool item_send(struct exchange *x, struct str json, enum outlet_weight weight)
{
    struct batch *b = ((struct batch_item *)x->outlet_data)->batch;
    bool was_streaming = b->x->streaming;
    bool sent = b->x->outlet->send(b->x, json, weight);

    if (b->x->streaming && !was_streaming)
        flush(b);
    return sent;
}

/* The first reply is held at any size. */
static void hold(struct batch *b, struct exchange *x)
{
    if (b->held && b->held + x->out.n > MAX_HELD) {
        buf_release(&x->out);
        exchange_refuse(
            x, 200, -32000,
            "the answers of this batch are too large together, so this one is left out; "
            "its call is in the audit; send smaller batches");
    }
    b->held += x->out.n;
}

static void item_finish(struct exchange *x)
{
    struct batch_item *item = x->outlet_data;
    struct batch *b = item->batch;
    struct arena *mem = item->mem;

    if (x->msg.kind == MCP_REQUEST) {
        hold(b, x);
        item->reply = x->out;
    } else {
        buf_release(&x->out);
    }
    item->x = NULL;
    item->mem = NULL;
    arena_free(mem); /* frees x too */
    b->left--;
    if (b->left == 0)
        exchange_resume(b->x);
    else if (b->x->streaming)
        flush(b);
}

static const struct outlet outlet_batch = {
    .name = "batch",
    .begin = item_begin,
    .send = item_send,
    .finish = item_finish,
};

bool batch_is_item(const struct exchange *x)
{
    return x->outlet == &outlet_batch;
}

static void start_item(struct batch *b, size_t i, struct str body)
{
    struct exchange *x = b->x;
    struct batch_item *item = &b->items[i];

    item->mem = arena_new(64u * 1024 * 1024);
    struct arrival a = {
        .outlet = &outlet_batch,
        .outlet_data = item,
        .head = x->head,
        .mem = item->mem,
        .verb = STR("POST"),
        .body = body,
        .server = x->server,
        .profile = x->profile_name,
        .by_proxy = x->by_proxy,
        .endpoint = x->endpoint,
        .path_key = x->path_key,
        .who = &x->caller.who,
        .transport = x->transport,
    };
    exchange_start(x->sv, &a);
}

static enum step_result start_all(struct exchange *x)
{
    struct js_doc doc;
    size_t n = 0;

    if (!version_has_batches(x))
        return refuse(x, "a batch needs a session negotiated at protocol version 2025-03-26; send "
                         "one message in each request");
    if (!js_parse(x->body, &js_limits_request, x->mem, &doc, NULL))
        return refuse(x, "the batch is not acceptable JSON");
    const struct js_node *root = js_root(&doc);
    for (const struct js_node *v = js_first(&doc, root); v; v = js_next(&doc, root, v), n++) {
        const char *why = refusal_of(&doc, v);
        if (why)
            return refuse(x, why);
    }
    if (n < 1 || n > BATCH_MAX_ITEMS)
        return exchange_refuse(x, 400, -32600, "a batch has 1 to %d messages; send it in parts",
                               BATCH_MAX_ITEMS);
    struct batch *b = x->batch = arena_new_of(x->mem, struct batch);
    b->x = x;
    b->n = b->left = n;
    b->items = arena_zalloc(x->mem, n * sizeof(*b->items));
    n = 0;
    for (const struct js_node *v = js_first(&doc, root); v; v = js_next(&doc, root, v), n++) {
        b->items[n].batch = b;
        start_item(b, n, js_raw(&doc, v));
    }
    return STEP_WAIT;
}

/* On a stream, the replies not sent yet become its last event, which may be empty. */
static enum step_result gather(struct exchange *x)
{
    struct batch *b = x->batch;
    size_t n = 0;

    exchange_accept(x);
    for (size_t i = 0; i < b->n; i++) {
        struct buf *reply = &b->items[i].reply;
        if (reply->n) {
            if (!x->streaming)
                buf_addc(&x->out, n ? ',' : '[');
            buf_addstr(&x->out, buf_str(reply));
            n++;
        }
        buf_release(reply);
    }
    if (n) {
        x->status = 200;
        if (!x->streaming)
            buf_addc(&x->out, ']');
    }
    return STEP_REPLY;
}

enum step_result exchange_answer_batch(struct exchange *x)
{
    return x->batch && x->batch->left == 0 ? gather(x) : x->batch ? STEP_WAIT : start_all(x);
}

void batch_on_disconnect(struct batch *b)
{
    b->left++; /* the last item that ends must not end the batch meanwhile */
    for (size_t i = 0; i < b->n; i++)
        if (b->items[i].x)
            exchange_on_disconnect(b->items[i].x);
    b->left--;
    if (b->left == 0)
        exchange_resume(b->x); /* frees b too */
}
