/* SPDX-License-Identifier: Apache-2.0 */
/* Names that Holdfast mints.  They are compared by their hash or looked up by their owner. */
#include "session/token.h"

#include "base/random.h"
#include "crypto/base64.h"
#include "crypto/hash.h"

#define NAME_BYTES 32

void token_transport_id(char ret_text[TRANSPORT_ID_LENGTH + 1])
{
    uint8_t bytes[NAME_BYTES];

    random_bytes(bytes, sizeof(bytes));
    base64url_encode(bytes, sizeof(bytes), ret_text);
}

void token_handle(char ret_text[HANDLE_LENGTH + 1])
{
    memcpy(ret_text, "ses_", 4);
    token_transport_id(ret_text + 4);
}

/* 43 digits hold 258 bits: the last two bits of a minted name are zero. */
bool token_looks_like_transport_id(struct str s)
{
    if (s.n != TRANSPORT_ID_LENGTH)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (base64url_digit(s.p[i]) < 0)
            return false;
    return (base64url_digit(s.p[s.n - 1]) & 3) == 0;
}

bool token_looks_like_handle(struct str s)
{
    return s.n == HANDLE_LENGTH && str_starts(s, STR("ses_")) &&
           token_looks_like_transport_id(str_n(s.p + 4, s.n - 4));
}

void token_hash(struct str transport_id, uint8_t ret[32])
{
    sha256(transport_id, ret);
}
