/* SPDX-License-Identifier: Apache-2.0 */
/* Event ids: WRITER.STREAM.NUMBER.REQUEST.MAC.
 *
 * The first three are lower-case hex.  REQUEST is the request id's raw bytes in base64url ("-" on
 * the standalone stream, "_" when they are too long; neither is valid base64url).  MAC is the first
 * 12 bytes of HMAC-SHA-256 over the transport's id hash and the text before its dot.  A client
 * hands the text back on resumption.  A text without our MAC for this transport is unknown.  A text
 * with it is exactly what we wrote, so the fields are never normalised. */
#include "delivery/stream_impl.h"

#include "crypto/base64.h"

#include <assert.h>

#define MAC_BYTES 12
#define MAC_TEXT 16
#define STANDALONE "-"
#define TOO_LONG "_"

static char *put_hex(char *to, uint64_t value)
{
    static const char digits[] = "0123456789abcdef";
    int shift = 0;

    while (shift < 60 && value >> (shift + 4))
        shift += 4;
    for (; shift >= 0; shift -= 4)
        *to++ = digits[value >> shift & 15];
    return to;
}

static char *put_request(char *to, const struct stream *st)
{
    if (st->is_standalone || st->request_id.n > STREAM_ID_REQUEST) {
        *to = st->is_standalone ? STANDALONE[0] : TOO_LONG[0];
        return to + 1;
    }
    return to + base64url_encode(st->request_id.p, st->request_id.n, to);
}

static void make_mac(struct streams *s, const struct transport *t, struct str text,
                     char ret[MAC_TEXT + 1])
{
    struct str parts[] = {str_n((const char *)t->id_hash, sizeof(t->id_hash)), text};
    uint8_t mac[SHA256_BYTES];

    hmac_sha256(s->key, parts, countof(parts), mac);
    base64url_encode(mac, MAC_BYTES, ret);
}

size_t stream_id_format(const struct stream *st, uint64_t number, char ret_text[STREAM_ID_TEXT])
{
    char *at = put_hex(ret_text, st->all->writer);

    *at++ = '.';
    at = put_hex(at, st->number);
    *at++ = '.';
    at = put_hex(at, number);
    *at++ = '.';
    at = put_request(at, st);
    make_mac(st->all, st->transport, str_n(ret_text, (size_t)(at - ret_text)), at + 1);
    *at = '.';
    return (size_t)(at - ret_text) + 1 + MAC_TEXT;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_hex(struct str s, uint64_t *ret)
{
    uint64_t value = 0;

    if (s.n == 0 || s.n > 16 || (s.n > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (hex_digit(s.p[i]) < 0)
            return false;
        value = value << 4 | (uint64_t)hex_digit(s.p[i]);
    }
    *ret = value;
    return true;
}

static int url_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

static bool take_request(struct str s, struct stream_id *ret)
{
    unsigned held = 0, bits = 0;

    ret->is_standalone = str_eq(s, STR(STANDALONE));
    ret->n_request = 0;
    if (ret->is_standalone || str_eq(s, STR(TOO_LONG)))
        return true;
    if (s.n == 0 || s.n * 3 / 4 > STREAM_ID_REQUEST || s.n % 4 == 1)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (url_digit(s.p[i]) < 0)
            return false;
        held = held << 6 | (unsigned)url_digit(s.p[i]);
        bits += 6;
        if (bits >= 8)
            ret->request[ret->n_request++] = (char)(held >> (bits -= 8));
        held &= (1u << bits) - 1;
    }
    return held == 0;
}

bool stream_id_parse(struct streams *s, const struct transport *t, struct str text,
                     struct stream_id *ret)
{
    struct stream_id id;
    char mac[MAC_TEXT + 1];
    struct str rest;

    if (text.n >= STREAM_ID_TEXT || text.n <= MAC_TEXT || text.p[text.n - MAC_TEXT - 1] != '.')
        return false;
    rest = str_n(text.p, text.n - MAC_TEXT - 1);
    make_mac(s, t, rest, mac);
    if (!crypto_equal(mac, text.p + text.n - MAC_TEXT, MAC_TEXT))
        return false;
    if (!take_hex(str_split(&rest, '.'), &id.writer) ||
        !take_hex(str_split(&rest, '.'), &id.stream) ||
        !take_hex(str_split(&rest, '.'), &id.number) || !rest.p || !take_request(rest, &id))
        return false;
    *ret = id;
    return true;
}
