/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor is the base64url of the first bytes of the digest and the row's name. */
#include "api/cursor.h"

#include "crypto/base64.h"
#include "crypto/hash.h"

#define DIGEST_BYTES 12

static void digest(const struct principal *who, struct str about, struct str row,
                   uint8_t ret[SHA256_BYTES])
{
    const struct str parts[] = {
        STR("cursor"), STR("\0"), who->tenant, STR("\0"), who->tenant_wide ? STR("*") : who->owner,
        STR("\0"),     about,     STR("\0"),   row,
    };
    sha256_parts(parts, countof(parts), ret);
}

struct str cursor_make(const struct principal *who, struct str about, struct str row,
                       struct arena *mem)
{
    uint8_t sha[SHA256_BYTES], bytes[DIGEST_BYTES + CURSOR_ROW_MAX];
    char text[(sizeof(bytes) * 4 + 2) / 3 + 4];

    digest(who, about, row, sha);
    memcpy(bytes, sha, DIGEST_BYTES);
    memcpy(bytes + DIGEST_BYTES, row.p, row.n);
    return arena_dup(mem, str_n(text, base64url_encode(bytes, DIGEST_BYTES + row.n, text)));
}

bool cursor_read(struct str cursor, const struct principal *who, struct str about,
                 struct arena *mem, struct str *ret_row)
{
    uint8_t sha[SHA256_BYTES];
    struct str bytes =
        cursor.n <= 2 * (DIGEST_BYTES + CURSOR_ROW_MAX) ? base64url_decode(cursor, mem) : STR_NONE;

    if (!bytes.p || bytes.n <= DIGEST_BYTES || bytes.n > DIGEST_BYTES + CURSOR_ROW_MAX)
        return false;
    struct str row = str_n(bytes.p + DIGEST_BYTES, bytes.n - DIGEST_BYTES);
    digest(who, about, row, sha);
    if (memcmp(sha, bytes.p, DIGEST_BYTES) != 0)
        return false;
    *ret_row = row;
    return true;
}
