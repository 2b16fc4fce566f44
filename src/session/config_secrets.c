/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the secrets of the configuration with the master key from its file.  It runs before the
 * lanes, and on a lane beside the loop's keyring, so it shares no key with the keyring. */
#include "session/config_secrets.h"

#include "base/log.h"
#include "crypto/hash.h"
#include "crypto/master.h"
#include "store/verbs.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE 100
#define PAGE_BYTES (64u * 1024 * 1024)

struct opening {
    struct store *store;
    struct str master_file;
    struct master *master;
    struct arena *mem;
    struct config_secret *list;
    size_t n;
    char key_id[64]; /* of `key` */
    struct seal_key *key;
};

struct sealed_place config_secret_place(struct str name)
{
    return (struct sealed_place){.tenant = STR(CONFIG_SECRETS_TENANT),
                                 .session_id = name,
                                 .field = STR(SEALED_FIELD_SECRET)};
}

/* Keeps the last key: usually all secrets have the same. */
static bool key_for(struct opening *o, struct str id, struct arena *mem, struct error *err)
{
    struct tenant_key_row *row = NULL;
    uint8_t bytes[SEAL_KEY_BYTES];

    if (o->key && str_eq(id, str_of(o->key_id)))
        return true;
    seal_key_free(o->key);
    o->key = NULL;
    if (!o->master && !master_load(o->master_file, false, &o->master, err))
        return false;
    if (!store_tenant_key_get(o->store, STR(CONFIG_SECRETS_TENANT), id, mem, &row, err))
        return false;
    if (row &&
        master_unwrap(o->master, row->master_id, row->tenant, row->id, row->wrapped, bytes)) {
        o->key = seal_key_new(bytes);
        snprintf(o->key_id, sizeof(o->key_id), "%.*s", STR_ARG(row->id));
    }
    crypto_wipe(bytes, sizeof(bytes));
    return true;
}

static bool open_one(struct opening *o, const struct secret_row *row, struct arena *mem,
                     struct error *err)
{
    struct sealed_place place = config_secret_place(row->name);
    struct config_secret *secret = &o->list[o->n++];
    struct sealed parts;
    size_t n = 0;

    *secret = (struct config_secret){.name = arena_dup(o->mem, row->name)};
    bool reads = sealed_read(row->sealed, mem, &parts);
    if (reads && !key_for(o, parts.key_id, mem, err))
        return false;
    char *plain = reads ? arena_alloc(o->mem, parts.bytes.n + 1) : NULL;
    if (reads && o->key && sealed_open(o->key, &parts, &place, plain, &n))
        secret->value = str_n(plain, n);
    else
        log_error("a secret of the configuration cannot be opened; set it again",
                  LS("name", row->name));
    return true;
}

static bool open_page(struct opening *o, struct str after, size_t *ret_n, struct error *err)
{
    struct arena *mem = arena_new(PAGE_BYTES);
    struct secret_row *rows = NULL;
    bool ok = store_secrets_page(o->store, after, PAGE, mem, &rows, ret_n, err);

    for (size_t i = 0; ok && i < *ret_n && o->n < CONFIG_SECRETS_MAX; i++)
        ok = open_one(o, &rows[i], mem, err);
    arena_free(mem);
    return ok;
}

bool config_secrets_read(struct store *store, struct str master_file, struct arena *mem,
                         struct config_secret **ret, size_t *ret_n, struct error *err)
{
    struct opening o = {.store = store, .master_file = master_file, .mem = mem};
    size_t n = PAGE;
    bool ok = true;

    o.list = arena_zalloc(mem, CONFIG_SECRETS_MAX * sizeof(*o.list));
    while (ok && n == PAGE && o.n < CONFIG_SECRETS_MAX)
        ok = open_page(&o, o.n ? o.list[o.n - 1].name : STR_NONE, &n, err);
    seal_key_free(o.key);
    master_free(o.master);
    if (!ok)
        return false;
    *ret = o.list;
    *ret_n = o.n;
    return true;
}
