/* SPDX-License-Identifier: Apache-2.0 */
#include "call/request_state.h"

#include "crypto/base64.h"
#include "crypto/hash.h"
#include "json/write.h"

#define PREFIX "hf1."
#define MAC_BYTES 18
#define MAC_TEXT 24 /* in base64url, without padding */

static void mac_of(const struct hmac_key *key, const struct state_binding *to, struct str state,
                   char ret[MAC_TEXT + 1])
{
    static const struct str gap = {"\0", 1};
    const struct str parts[] = {to->tenant, gap, to->owner, gap, to->server, gap,
                                to->method, gap, to->name,  gap, state};
    uint8_t mac[SHA256_BYTES];

    hmac_sha256(key, parts, countof(parts), mac);
    base64url_encode(mac, MAC_BYTES, ret);
}

struct str request_state_bind(const struct hmac_key *key, const struct state_binding *to,
                              struct str state, struct arena *mem)
{
    struct buf raw;
    char mac[MAC_TEXT + 1];

    mac_of(key, to, state, mac);
    buf_init(&raw, 128u * 1024 * 1024);
    js_quote(&raw, state); /* the state may hold any character, NUL too */
    struct str rest = arena_dup(mem, str_n(raw.p + 1, raw.n - 1));
    buf_reset(&raw);
    buf_addz(&raw, "\"" PREFIX);
    buf_add(&raw, mac, MAC_TEXT);
    buf_addc(&raw, '.');
    buf_addstr(&raw, rest);
    struct str copy = arena_dup(mem, buf_str(&raw));
    buf_release(&raw);
    return copy;
}

bool request_state_open(const struct hmac_key *key, const struct state_binding *to,
                        struct str bound, struct str *ret)
{
    const size_t head = sizeof(PREFIX) - 1 + MAC_TEXT + 1;
    char mac[MAC_TEXT + 1];

    if (bound.n < head || !str_starts(bound, STR(PREFIX)) || bound.p[head - 1] != '.')
        return false;
    *ret = str_n(bound.p + head, bound.n - head);
    mac_of(key, to, *ret, mac);
    return crypto_equal(mac, bound.p + sizeof(PREFIX) - 1, MAC_TEXT);
}
