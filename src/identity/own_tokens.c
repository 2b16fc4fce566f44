/* SPDX-License-Identifier: Apache-2.0 */
/* The key's kid is a digest of its public key, so tokens of a replaced key are refused by their
 * kid. */
#include "identity/own_tokens.h"

#include "base/buf.h"
#include "crypto/base64.h"
#include "json/write.h"

#include <openssl/evp.h>
#include <stdlib.h>

struct own_tokens {
    EVP_PKEY *key;
    struct jwt_keys *keys; /* the public key */
    char kid[17];
    uint8_t fingerprint[32];
};

static const struct str audience = {OWN_ISSUER, sizeof(OWN_ISSUER) - 1};
static const struct jwt_rules rules = {
    .issuer = {OWN_ISSUER, sizeof(OWN_ISSUER) - 1},
    .audiences = &audience,
    .n_audiences = 1,
    .tenant_claim = {"tenant", 6},
    .role_claim = {"role", 4},
};

struct own_tokens *own_tokens_new(const uint8_t seed[32])
{
    struct own_tokens *o = xcalloc(1, sizeof(*o));
    uint8_t public_half[32], digest[32];
    size_t n = sizeof(public_half);
    struct error err;

    o->key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, 32);
    if (!o->key || EVP_PKEY_get_raw_public_key(o->key, public_half, &n) != 1)
        die("OpenSSL does not take an Ed25519 key");
    sha256(str_n((const char *)public_half, n), digest);
    hex_encode(digest, 8, o->kid);
    memcpy(o->fingerprint, digest, sizeof(o->fingerprint));
    o->keys = jwt_keys_new();
    if (!jwt_keys_take(o->keys, str_of(o->kid), JWT_EDDSA,
                       EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_half, n), &err))
        die("OpenSSL does not take an Ed25519 key");
    return o;
}

void own_tokens_fingerprint(const struct own_tokens *o, uint8_t ret[32])
{
    memcpy(ret, o->fingerprint, sizeof(o->fingerprint));
}

void own_tokens_free(struct own_tokens *o)
{
    if (!o)
        return;
    EVP_PKEY_free(o->key);
    jwt_keys_free(o->keys);
    free(o);
}

static void write_claims(struct buf *out, const struct login_row *login,
                         const struct user_row *user, int64_t now_ms)
{
    struct js_writer w;

    js_begin(&w, out);
    js_object(&w);
    js_kv_string(&w, "iss", STR(OWN_ISSUER));
    js_kv_string(&w, "aud", STR(OWN_ISSUER));
    js_kv_string(&w, "sub", user->id);
    js_kv_string(&w, "jti", login->id);
    js_kv_string(&w, "tenant", user->tenant);
    js_kv_string(&w, "role", str_of(role_name(user->role)));
    js_kv_int(&w, "iat", now_ms / 1000);
    js_kv_int(&w, "exp", (now_ms + OWN_TOKEN_MS) / 1000);
    js_object_end(&w);
}

static void add_base64(struct buf *out, struct str bytes)
{
    char *room = buf_room(out, bytes.n * 2 + 8);
    buf_grown(out, base64url_encode(bytes.p, bytes.n, room));
}

struct str own_token_mint(struct own_tokens *o, const struct login_row *login,
                          const struct user_row *user, int64_t now_ms, struct arena *mem)
{
    struct str header =
        arena_printf(mem, "{\"alg\":\"EdDSA\",\"typ\":\"JWT\",\"kid\":\"%s\"}", o->kid);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    struct buf claims, out;
    uint8_t signature[64];
    size_t n = sizeof(signature);

    buf_init(&claims, JWT_BYTES_MAX);
    buf_init_secret(&out, 4 * JWT_BYTES_MAX);
    write_claims(&claims, login, user, now_ms);
    add_base64(&out, header);
    buf_addc(&out, '.');
    add_base64(&out, buf_str(&claims));
    if (!ctx || EVP_DigestSignInit(ctx, NULL, NULL, NULL, o->key) != 1 ||
        EVP_DigestSign(ctx, signature, &n, (const uint8_t *)out.p, out.n) != 1)
        die("OpenSSL does not sign with Ed25519");
    EVP_MD_CTX_free(ctx);
    buf_addc(&out, '.');
    add_base64(&out, str_n((const char *)signature, n));
    struct str token = arena_dup(mem, buf_str(&out));
    buf_release(&claims);
    buf_release(&out);
    return token;
}

bool own_token_is(struct str token, struct arena *mem)
{
    return str_eq(jwt_claimed_issuer(token, mem), STR(OWN_ISSUER));
}

bool own_token_verify(struct own_tokens *o, struct str token, int64_t now_ms, struct arena *mem,
                      struct jwt_claims *ret, struct error *err)
{
    return jwt_verify(o->keys, &rules, token, now_ms, mem, ret, err);
}
