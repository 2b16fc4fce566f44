/* SPDX-License-Identifier: Apache-2.0 */
/* AES-256-GCM on OpenSSL's EVP.  One context per direction keeps the key schedule; only the nonce
 * is set each time.  Sealing fails only without memory or with a broken OpenSSL; then the process
 * ends, and nothing is stored unsealed. */
#include "crypto/seal.h"

#include "base/random.h"
#include "crypto/hash.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>

#define VERSION 1
#define NONCE_BYTES 12
#define TAG_BYTES 16
_Static_assert(1 + NONCE_BYTES + TAG_BYTES == SEAL_OVERHEAD, "the layout in the header");

struct seal_key {
    EVP_CIPHER_CTX *to, *from;
};

static never_returns void broken(void)
{
    die("OpenSSL does not do AES-256-GCM; check its installation and FIPS settings");
}

struct seal_key *seal_key_new(const uint8_t key[SEAL_KEY_BYTES])
{
    struct seal_key *k = xcalloc(1, sizeof(*k));
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);

    k->to = EVP_CIPHER_CTX_new();
    k->from = EVP_CIPHER_CTX_new();
    if (!cipher || !k->to || !k->from || !EVP_EncryptInit_ex2(k->to, cipher, key, NULL, NULL) ||
        !EVP_DecryptInit_ex2(k->from, cipher, key, NULL, NULL))
        broken();
    EVP_CIPHER_free(cipher);
    return k;
}

void seal_key_free(struct seal_key *k)
{
    if (!k)
        return;
    EVP_CIPHER_CTX_free(k->to);
    EVP_CIPHER_CTX_free(k->from);
    free(k);
}

/* Each part is preceded by its length, so that bytes cannot move from one part to another. */
static bool bind_parts(EVP_CIPHER_CTX *ctx, const struct str *bound, size_t n)
{
    bool ok = true;
    int done;

    for (size_t i = 0; ok && i < n; i++) {
        uint8_t length[8];
        for (size_t k = 0; k < sizeof(length); k++)
            length[k] = (uint8_t)((uint64_t)bound[i].n >> (8 * k));
        ok = EVP_CipherUpdate(ctx, NULL, &done, length, sizeof(length)) &&
             (!bound[i].n ||
              EVP_CipherUpdate(ctx, NULL, &done, (const uint8_t *)bound[i].p, (int)bound[i].n));
    }
    return ok;
}

void seal(struct seal_key *k, const struct str *bound, size_t n_bound, struct str plain,
          uint8_t *ret_sealed)
{
    uint8_t *nonce = ret_sealed + 1, *text = nonce + NONCE_BYTES, *tag = text + plain.n;
    int n = 0, last = 0;

    *ret_sealed = VERSION;
    random_bytes(nonce, NONCE_BYTES);
    if (plain.n > INT_MAX || !EVP_EncryptInit_ex2(k->to, NULL, NULL, nonce, NULL) ||
        !bind_parts(k->to, bound, n_bound) ||
        (plain.n && !EVP_EncryptUpdate(k->to, text, &n, (const uint8_t *)plain.p, (int)plain.n)) ||
        !EVP_EncryptFinal_ex(k->to, text + n, &last) ||
        !EVP_CIPHER_CTX_ctrl(k->to, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, tag))
        broken();
}

bool unseal(struct seal_key *k, const struct str *bound, size_t n_bound, struct str sealed,
            uint8_t *ret_plain)
{
    const uint8_t *nonce = (const uint8_t *)sealed.p + 1, *text = nonce + NONCE_BYTES;
    uint8_t tag[TAG_BYTES];
    int n = 0, last = 0;

    if (sealed.n < SEAL_OVERHEAD || sealed.n > INT_MAX || sealed.p[0] != VERSION)
        return false;
    size_t n_text = sealed.n - SEAL_OVERHEAD;
    memcpy(tag, text + n_text, TAG_BYTES);
    if (EVP_DecryptInit_ex2(k->from, NULL, NULL, nonce, NULL) &&
        bind_parts(k->from, bound, n_bound) &&
        (!n_text || EVP_DecryptUpdate(k->from, ret_plain, &n, text, (int)n_text)) &&
        EVP_CIPHER_CTX_ctrl(k->from, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) &&
        EVP_DecryptFinal_ex(k->from, ret_plain + n, &last))
        return true;
    crypto_wipe(ret_plain, n_text);
    return false;
}
