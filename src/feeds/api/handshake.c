/* SPDX-License-Identifier: Apache-2.0 */
/* The opening handshake of a WebSocket (RFC 6455, 4.2).  Host and Origin are checked before, as for
 * every request.  No extension and no subprotocol is accepted. */
#include "feeds/api/impl.h"

#include "crypto/base64.h"
#include "crypto/hash.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_BYTES 16

bool websocket_is_asked(const struct http_head *head)
{
    struct str upgrade = http_header_get(head, STR("upgrade"));

    return upgrade.p && http_list_has(upgrade, STR("websocket"));
}

static const char *fault(const struct http_head *head, struct arena *mem)
{
    struct str connection = http_header_get(head, STR("connection"));
    struct str key = http_header_get(head, STR("sec-websocket-key"));

    if (!str_eq(head->method, STR("GET")) || head->minor != 1)
        return "a WebSocket begins with GET and HTTP/1.1";
    if (!connection.p || !http_list_has(connection, STR("upgrade")))
        return "send Connection: Upgrade with Upgrade: websocket";
    if (!str_eq(http_header_get(head, STR("sec-websocket-version")), STR("13")) ||
        http_header_count(head, STR("sec-websocket-version")) != 1)
        return "only version 13 of WebSocket is served";
    if (http_header_count(head, STR("sec-websocket-key")) != 1 || key.n != 24 ||
        base64_decode(key, mem).n != KEY_BYTES)
        return "send one Sec-WebSocket-Key: 16 bytes as base64";
    return NULL;
}

bool websocket_accept(struct api_call *c, struct str *ret_lines)
{
    const struct http_head *head = c->http->head;
    const char *why = fault(head, c->mem);
    uint8_t digest[SHA1_BYTES];
    char accept[4 * (SHA1_BYTES / 3 + 1) + 1];

    if (why) {
        api_problem(c, ERR_BAD_INPUT, why, why, STR("Sec-WebSocket-Version: 13\r\n"));
        return false;
    }
    struct str key = http_header_get(head, STR("sec-websocket-key"));
    sha1(arena_printf(c->mem, "%.*s" GUID, STR_ARG(key)), digest);
    size_t n = base64_encode(digest, sizeof(digest), accept);
    *ret_lines = arena_printf(c->mem,
                              "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                              "Sec-WebSocket-Accept: %.*s\r\n",
                              (int)n, accept);
    return true;
}
