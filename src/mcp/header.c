/* SPDX-License-Identifier: Apache-2.0 */
/* The sentinel form.  It is needed for a value that is empty, has bytes that a
 * header cannot carry, has blanks at its ends, or looks like the sentinel itself.  Half a sentinel
 * is a literal. */
#include "mcp/header.h"

#include "crypto/base64.h"

#define PREFIX "=?base64?"
#define SUFFIX "?="

static bool is_sentinel(struct str s)
{
    return s.n >= sizeof(PREFIX) + sizeof(SUFFIX) - 2 && str_starts(s, STR(PREFIX)) &&
           memcmp(s.p + s.n - 2, SUFFIX, 2) == 0;
}

static bool is_plain(struct str s)
{
    if (s.n == 0 || is_sentinel(s) || str_trim(s).n != s.n)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < 0x20 && c != '\t') || c > 0x7e)
            return false;
    }
    return true;
}

void mcp_header_encode(struct buf *out, struct str value)
{
    if (is_plain(value)) {
        buf_addstr(out, value);
        return;
    }
    size_t room = (value.n + 2) / 3 * 4 + 1;
    buf_addz(out, PREFIX);
    char *at = buf_room(out, room);
    if (!at)
        die("a mirrored header value is larger than its buffer");
    buf_grown(out, base64_encode(value.p, value.n, at));
    buf_addz(out, SUFFIX);
}

bool mcp_header_decode(struct str header, struct arena *mem, struct str *ret)
{
    if (!is_sentinel(header)) {
        *ret = header;
        return true;
    }
    struct str inner = str_n(header.p + sizeof(PREFIX) - 1,
                             header.n - (sizeof(PREFIX) - 1) - (sizeof(SUFFIX) - 1));
    if (inner.n == 0) {
        *ret = STR("");
        return true;
    }
    struct str decoded = base64_decode(inner, mem);
    if (!decoded.p)
        return false;
    *ret = decoded;
    return true;
}
