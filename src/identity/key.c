/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, parses and checks API keys. */
#include "identity/key.h"

#include "base/random.h"
#include "crypto/base64.h"
#include "crypto/hash.h"
#include "identity/scopes.h"

#define SECRET_BYTES 32
#define SECRET_LENGTH 43

static const char id_alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";

void key_make(struct key_text *ret)
{
    uint8_t secret[SECRET_BYTES];
    char *at = ret->text;

    for (size_t i = 0; i < KEY_ID_LENGTH; i++)
        ret->id[i] = id_alphabet[random_below(sizeof(id_alphabet) - 1)];
    ret->id[KEY_ID_LENGTH] = '\0';
    random_bytes(secret, sizeof(secret));
    memcpy(at, KEY_PREFIX, sizeof(KEY_PREFIX) - 1);
    at += sizeof(KEY_PREFIX) - 1;
    memcpy(at, ret->id, KEY_ID_LENGTH);
    at += KEY_ID_LENGTH;
    *at++ = '_';
    base64url_encode(secret, sizeof(secret), at);
    crypto_wipe(secret, sizeof(secret));
    sha256(str_of(ret->text), ret->hash);
}

bool key_id_is_valid(struct str id)
{
    for (size_t i = 0; i < id.n; i++)
        if (!id.p[i] || !strchr(id_alphabet, id.p[i]))
            return false;
    return id.n == KEY_ID_LENGTH;
}

static bool is_secret_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

bool key_parse(struct str text, struct str *ret_id)
{
    struct str id;

    if (text.n != KEY_LENGTH || !str_starts(text, STR(KEY_PREFIX)))
        return false;
    id = str_n(text.p + sizeof(KEY_PREFIX) - 1, KEY_ID_LENGTH);
    if (!key_id_is_valid(id) || text.p[KEY_LENGTH - SECRET_LENGTH - 1] != '_')
        return false;
    for (size_t i = KEY_LENGTH - SECRET_LENGTH; i < KEY_LENGTH; i++)
        if (!is_secret_char(text.p[i]))
            return false;
    *ret_id = id;
    return true;
}

bool key_check(const struct key_row *row, struct str text, int64_t now_ms, struct error *err)
{
    static const uint8_t none[32];
    uint8_t hash[32];

    sha256(text, hash);
    bool is_same = crypto_equal(hash, row ? row->hash : none, sizeof(hash)) && row;
    crypto_wipe(hash, sizeof(hash));
    if (!is_same)
        return error_set(
            err, ERR_UNAUTHENTICATED,
            "this key is unknown; see `holdfast key list`, or make one with `holdfast key create`");
    if (row->revoked_ms)
        return error_set(err, ERR_UNAUTHENTICATED,
                         "this key was revoked; make another with `holdfast key create`");
    if (row->expires_ms && row->expires_ms <= now_ms)
        return error_set(err, ERR_UNAUTHENTICATED,
                         "this key has expired; make another with `holdfast key create`");
    return true;
}

bool key_principal(const struct key_row *row, struct arena *mem, struct principal *ret,
                   struct error *err)
{
    const struct scopes *scopes = NULL;

    if (!scopes_parse(row->scopes, mem, &scopes, err))
        return false;
    /* A key with fewer rights than its user owns only what it creates itself. */
    bool is_user = row->user_id.p && !scopes_narrow(scopes);
    *ret = (struct principal){
        .tenant = arena_dup(mem, row->tenant),
        .owner = is_user ? arena_printf(mem, "user:%.*s", STR_ARG(row->user_id))
                         : arena_printf(mem, "key:%.*s", STR_ARG(row->id)),
        .role = row->role,
        .user_id = arena_dup(mem, row->user_id),
        .credential = arena_printf(mem, "key:%.*s", STR_ARG(row->id)),
        .expires_ms = row->expires_ms,
        .scopes = scopes,
    };
    return true;
}
