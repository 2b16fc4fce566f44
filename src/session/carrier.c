/* SPDX-License-Identifier: Apache-2.0 */
/* Reads session names.  A value may be any string.  Numbers and objects are named by their JSON
 * text, long values by their digest, so that keys stay small. */
#include "session/carrier.h"

#include "crypto/hash.h"

#define MAX_NAME 200

struct str carrier_name(struct str value, struct arena *mem)
{
    uint8_t digest[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];

    if (value.n <= MAX_NAME)
        return arena_dup(mem, value);
    sha256(value, digest);
    hex_encode(digest, sizeof(digest), hex);
    return arena_printf(mem, "sha256:%s", hex);
}

static struct str name_of(const struct mcp_message *m, const struct js_node *v, struct arena *mem)
{
    if (!v || v->type == JS_NULL)
        return STR_NONE;
    struct str text = v->type == JS_STRING ? js_text(&m->doc, v, mem) : js_raw(&m->doc, v);
    return text.n ? carrier_name(text, mem) : STR_NONE;
}

struct carrier carrier_in_meta(const struct config *c, const struct mcp_message *m,
                               struct arena *mem)
{
    for (size_t i = 0; m->meta && i < c->n_meta_carriers; i++) {
        const struct meta_carrier *mc = &c->meta_carriers[i];
        const struct js_node *v = m->meta;
        for (size_t k = 0; v && k < mc->n; k++)
            v = js_get(&m->doc, v, mc->path[k]);
        struct str name = name_of(m, v, mem);
        if (name.p)
            return (struct carrier){c->client_ids ? STR(CARRIER_CLIENT_ID) : mc->label, name};
    }
    return (struct carrier){STR_NONE, STR_NONE};
}

struct str carrier_former_label(const struct config *c, size_t i)
{
    if (i == 0)
        return STR(CARRIER_MESSAGES);
    return i <= c->n_meta_carriers ? c->meta_carriers[i - 1].label : STR_NONE;
}

struct carrier carrier_in_headers(const struct config *c, const struct http_head *head,
                                  struct arena *mem)
{
    for (size_t i = 0; i < c->n_header_carriers; i++) {
        struct str value = http_header_get(head, c->header_carriers[i]);
        if (value.n)
            return (struct carrier){
                arena_printf(mem, "header:%.*s", STR_ARG(c->header_carriers[i])),
                carrier_name(value, mem)};
    }
    struct str client = http_header_get(head, STR("mcp-client-id"));
    if (client.n)
        return (struct carrier){STR("client-id"), carrier_name(client, mem)};
    return (struct carrier){STR_NONE, STR_NONE};
}

bool carrier_transport_id(const struct http_head *head, struct arena *mem, struct str *ret)
{
    struct str header = http_header_get(head, STR("mcp-session-id"));
    unsigned in_query = 0;
    struct str query =
        head->query.p ? http_query_get(head->query, STR("session_id"), &in_query) : STR_NONE;

    if (in_query > 1 || http_header_count(head, STR("mcp-session-id")) > 1)
        return false;
    if (query.n) {
        char *text = arena_alloc(mem, query.n);
        int n = http_percent_decode(query, text, false);
        if (n < 0)
            return false;
        query = str_n(text, (size_t)n);
    }
    if (header.n && query.n && !str_eq(header, query))
        return false;
    *ret = header.n ? header : query.n ? query : STR_NONE;
    return true;
}
