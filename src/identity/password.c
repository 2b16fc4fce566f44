/* SPDX-License-Identifier: Apache-2.0 */
/* Uses libargon2, which compares hashes in constant time. */
#include "identity/password.h"

#include "base/fault.h"
#include "base/random.h"
#include "base/utf8.h"

#include <argon2.h>
#include <string.h>

#define PASSES 3
#define KIBIBYTES (64 * 1024)
#define LANES 1
#define SALT_BYTES 16
#define HASH_BYTES 32
#define PREFIX "$argon2id$v=19$m=65536,t=3,p=1$"
#define CHEAP_KIBIBYTES 1024
#define CHEAP_PREFIX "$argon2id$v=19$m=1024,t=3,p=1$"

/* With the fault point "password.cheap" a hash costs two milliseconds.  Tests that sign in often
 * use it.  A build without fault points neither writes nor accepts a cheap hash. */
static uint32_t kibibytes(void)
{
    return fault_hits("password.cheap") ? CHEAP_KIBIBYTES : KIBIBYTES;
}

static bool is_cheap(struct str hash)
{
#ifdef HOLDFAST_FAULTS
    return str_starts(hash, STR(CHEAP_PREFIX));
#else
    (void)hash;
    return false;
#endif
}

bool password_check(struct str password, struct error *err)
{
    if (password.n < PASSWORD_MIN || password.n > PASSWORD_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "a password has %d to %d bytes; choose another, such as four words",
                         PASSWORD_MIN, PASSWORD_MAX);
    for (size_t i = 0; i < password.n; i++)
        if ((unsigned char)password.p[i] < ' ' || password.p[i] == 0x7f)
            return error_set(err, ERR_BAD_INPUT,
                             "a password holds no control characters; choose another");
    return utf8_is_valid(password) ||
           error_set(err, ERR_BAD_INPUT, "a password is UTF-8; choose another");
}

bool password_hash(struct str password, char ret[PASSWORD_HASH_TEXT], struct error *err)
{
    uint8_t salt[SALT_BYTES];
    char text[PASSWORD_HASH_TEXT];

    random_bytes(salt, sizeof(salt));
    int failed = argon2id_hash_encoded(PASSES, kibibytes(), LANES, password.p, password.n, salt,
                                       sizeof(salt), HASH_BYTES, text, sizeof(text));
    if (failed)
        return error_set(err, ERR_UNAVAILABLE, "a password cannot be hashed: %s; try again",
                         argon2_error_message(failed));
    memcpy(ret, text, sizeof(text));
    return true;
}

bool password_hash_is_sound(struct str hash)
{
    return hash.n < PASSWORD_HASH_TEXT && (str_starts(hash, STR(PREFIX)) || is_cheap(hash)) &&
           str_find(hash, '\0') == hash.n;
}

bool password_fits(struct str password, struct str hash)
{
    static const uint8_t salt[SALT_BYTES];
    uint8_t out[HASH_BYTES];
    char text[PASSWORD_HASH_TEXT];

    fault_hold("password.fits", hash);
    if (!password_hash_is_sound(hash)) {
        (void)argon2id_hash_raw(PASSES, kibibytes(), LANES, password.p, password.n, salt,
                                sizeof(salt), out, sizeof(out));
        return false;
    }
    memcpy(text, hash.p, hash.n);
    text[hash.n] = '\0';
    return argon2id_verify(text, password.p, password.n) == ARGON2_OK;
}
