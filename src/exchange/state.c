/* SPDX-License-Identifier: Apache-2.0 */
/* requestState of a server that asks for input (2026-07-28): opaque to Holdfast, but bound to its
 * owner.
 *
 *   towards the client:  "hf1.<MAC>.<the server's own>"
 *   back:                checked and cut; the server gets its own bytes
 *
 * The MAC covers tenant, owner, server, method, name and the state.  So another caller, tool or
 * server cannot use the state.  The key survives restarts. */
#include "exchange/exchange.h"

#include "crypto/base64.h"
#include "crypto/hash.h"
#include "json/write.h"

#include <openssl/crypto.h>

#define PREFIX "hf1."
#define MAC_BYTES 18
#define MAC_TEXT 24 /* in base64url, without padding */

static void mac_of(const struct exchange *x, struct str server, struct str name, struct str state,
                   char ret[MAC_TEXT])
{
    static const struct str gap = {"\0", 1};
    struct str parts[] = {x->caller.who.tenant,
                          gap,
                          x->caller.who.owner,
                          gap,
                          server,
                          gap,
                          x->method->name,
                          gap,
                          name,
                          gap,
                          state};
    uint8_t mac[SHA256_BYTES];

    hmac_sha256(x->sv->state_key, parts, countof(parts), mac);
    base64url_encode(mac, MAC_BYTES, ret);
}

struct str exchange_bind_state(struct exchange *x, struct str server, struct str name,
                               struct str state)
{
    struct buf raw;
    char mac[MAC_TEXT + 1];

    mac_of(x, server, name, state, mac);
    buf_init(&raw, 128u * 1024 * 1024);
    js_quote(&raw, state); /* the state may hold any character, NUL too */
    struct str rest = arena_dup(x->mem, str_n(raw.p + 1, raw.n - 1));
    buf_reset(&raw);
    buf_addz(&raw, "\"" PREFIX);
    buf_add(&raw, mac, MAC_TEXT);
    buf_addc(&raw, '.');
    buf_addstr(&raw, rest);
    struct str kept = arena_dup(x->mem, buf_str(&raw));
    buf_release(&raw);
    return kept;
}

static bool unbind(struct exchange *x, struct str bound, struct str *ret)
{
    const size_t head = sizeof(PREFIX) - 1 + MAC_TEXT + 1;
    char mac[MAC_TEXT + 1];

    if (bound.n < head || !str_starts(bound, STR(PREFIX)) || bound.p[head - 1] != '.')
        return false;
    *ret = str_n(bound.p + head, bound.n - head);
    mac_of(x, upstream_name(x->up), x->tool, *ret, mac);
    return CRYPTO_memcmp(mac, bound.p + sizeof(PREFIX) - 1, MAC_TEXT) == 0;
}

enum step_result exchange_check_state(struct exchange *x)
{
    const struct js_node *node = mcp_param(&x->msg, STR("requestState"));

    if (!node || mcp_era(x->era)->asks_by_requests || mcp_era(x->catalog->era)->asks_by_requests)
        return STEP_NEXT;
    if (!js_type_is(node, JS_STRING) ||
        !unbind(x, js_text(&x->msg.doc, node, x->mem), &x->state_text))
        return exchange_refuse(x, 200, -32602,
                               "params.requestState is not what this server gave this caller for "
                               "this request; send the request again without it");
    x->state_node = node;
    return STEP_NEXT;
}
