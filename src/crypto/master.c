/* SPDX-License-Identifier: Apache-2.0 */
/* The master key in use.  Reading and writing its file is master_file.c. */
#include "crypto/master_impl.h"

#include "crypto/hash.h"

#include <stdlib.h>
#include <sys/mman.h>

#define VERSION "holdfast-data-key-1"

/* In separate pages, so that they can be kept out of swap and core dumps. */
struct master *master_new(void)
{
    struct master *m =
        mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        die("no memory for the master key");
    (void)mlock(m, sizeof(*m)); /* best effort: there may be a limit */
    (void)madvise(m, sizeof(*m), MADV_DONTDUMP);
    (void)madvise(m, sizeof(*m), MADV_WIPEONFORK);
    return m;
}

void master_free(struct master *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        seal_key_free(m->keys[i].seal);
    crypto_wipe(m, sizeof(*m));
    munmap(m, sizeof(*m));
}

struct str master_id(const struct master *m)
{
    return str_of(m->keys[0].id);
}

size_t master_fingerprints(const struct master *m, uint8_t ret[MASTER_KEYS_MAX][32])
{
    for (size_t i = 0; i < m->n; i++) {
        struct str parts[] = {STR("the master key "), str_of(m->keys[i].id)};
        sha256_parts(parts, countof(parts), ret[i]);
    }
    return m->n;
}

bool master_has_old(const struct master *m)
{
    return m->n > 1;
}

void master_wrap(struct master *m, struct str tenant, struct str key_id,
                 const uint8_t key[SEAL_KEY_BYTES], uint8_t ret[MASTER_WRAPPED])
{
    struct str bound[] = {STR(VERSION), tenant, key_id, master_id(m)};
    seal(m->keys[0].seal, bound, countof(bound), str_n((const char *)key, SEAL_KEY_BYTES), ret);
}

bool master_unwrap(struct master *m, struct str by, struct str tenant, struct str key_id,
                   struct str wrapped, uint8_t ret_key[SEAL_KEY_BYTES])
{
    struct str bound[] = {STR(VERSION), tenant, key_id, by};
    for (size_t i = 0; wrapped.n == MASTER_WRAPPED && i < m->n; i++)
        if (str_eq(by, str_of(m->keys[i].id)))
            return unseal(m->keys[i].seal, bound, countof(bound), wrapped, ret_key);
    return false;
}
