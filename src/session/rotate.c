/* SPDX-License-Identifier: Apache-2.0 */
/* Rotates in batches of one page, each one transaction.  New keys of tenants are created before old
 * ones are wrapped again: if the newest key of a tenant is wrapped by an old master key, the tenant
 * has no key of this rotation yet, so no other mark is needed. */
#include "session/rotate.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/random.h"
#include "crypto/hash.h"
#include "crypto/master.h"
#include "session/config_secrets.h"
#include "session/sealed.h"
#include "store/claim.h"

#include <signal.h>
#include <stdio.h>

#define BATCH STORE_PAGE_MAX
#define PAGE_BYTES (64u * 1024 * 1024) /* two pages of the largest bundles */
#define MOST_PASSES 10

struct rotating {
    struct store *store;
    struct master *master;
    struct rotation *progress;
};

/* For tests: kills the process, as a power failure would. */
static void die_at(const char *point unused_arg)
{
    if (fault_hits(point))
        raise(SIGKILL);
}

static bool write_all(struct rotating *r, struct store_op *ops, size_t n, struct error *err)
{
    die_at("rotate.write");
    return n == 0 || store_write(r->store, ops, n, err);
}

/* Keys of tenants. */

static bool wrap_again(struct rotating *r, const struct tenant_key_row *row, struct arena *mem,
                       struct tenant_key_row *ret, struct error *err)
{
    uint8_t key[SEAL_KEY_BYTES], *wrapped = arena_alloc(mem, MASTER_WRAPPED);

    if (!master_unwrap(r->master, row->master_id, row->tenant, row->id, row->wrapped, key))
        return error_set(
            err, ERR_SEALED,
            "a key of the tenant %.*s was wrapped by the master key %.*s, which is not "
            "in the file; add that line, and run this again",
            STR_ARG(row->tenant), STR_ARG(row->master_id));
    master_wrap(r->master, row->tenant, row->id, key, wrapped);
    crypto_wipe(key, sizeof(key));
    *ret = *row;
    ret->master_id = master_id(r->master);
    ret->wrapped = str_n((const char *)wrapped, MASTER_WRAPPED);
    return true;
}

static bool wrap_page(struct rotating *r, const struct tenant_key_row *rows, size_t n,
                      struct arena *mem, struct error *err)
{
    struct store_op ops[BATCH];
    struct tenant_key_row *fresh = arena_zalloc(mem, BATCH * sizeof(*fresh));
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (str_eq(rows[i].master_id, master_id(r->master)))
            continue;
        if (!wrap_again(r, &rows[i], mem, &fresh[at], err))
            return false;
        ops[at] = (struct store_op){.kind = OP_TENANT_KEY_WRAP, .tenant_key = &fresh[at]};
        at++;
    }
    r->progress->keys += at;
    return write_all(r, ops, at, err);
}

/* Calls fn with each page of keys. */
static bool each_page(struct rotating *r,
                      bool (*fn)(struct rotating *r, const struct tenant_key_row *rows, size_t n,
                                 struct arena *mem, struct error *err),
                      struct error *err)
{
    char after[64] = "";
    size_t n = 1;
    bool ok = true;

    while (ok && n > 0) {
        struct arena *mem = arena_new(PAGE_BYTES);
        struct tenant_key_row *rows = NULL;
        ok = store_tenant_keys_page(r->store, *after ? str_of(after) : STR_NONE, BATCH, mem, &rows,
                                    &n, err) &&
             (n == 0 || fn(r, rows, n, mem, err));
        if (ok && n > 0)
            snprintf(after, sizeof(after), "%.*s", STR_ARG(rows[n - 1].id));
        arena_free(mem);
    }
    return ok;
}

static struct store_op new_key(struct rotating *r, struct str tenant, struct arena *mem)
{
    struct tenant_key_row *row = arena_new_of(mem, struct tenant_key_row);
    uint8_t key[SEAL_KEY_BYTES], *wrapped = arena_alloc(mem, MASTER_WRAPPED);
    char *id = arena_alloc(mem, UUID_TEXT);

    random_uuid7(id);
    random_bytes(key, sizeof(key));
    master_wrap(r->master, tenant, str_of(id), key, wrapped);
    crypto_wipe(key, sizeof(key));
    *row = (struct tenant_key_row){.id = str_of(id),
                                   .tenant = tenant,
                                   .master_id = master_id(r->master),
                                   .wrapped = str_n((const char *)wrapped, MASTER_WRAPPED),
                                   .created_ms = clock_life_ms()};
    return (struct store_op){.kind = OP_TENANT_KEY_PUT, .tenant_key = row};
}

/* Creates a new key for each tenant of the page if its newest key is wrapped by an old master
 * key. */
static bool renew_page(struct rotating *r, const struct tenant_key_row *rows, size_t n,
                       struct arena *mem, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct tenant_key_row *newest = NULL;
        if (!store_tenant_key_get(r->store, rows[i].tenant, STR_NONE, mem, &newest, err))
            return false;
        if (!newest || str_eq(newest->master_id, master_id(r->master)))
            continue;
        struct store_op op = new_key(r, rows[i].tenant, mem);
        if (!write_all(r, &op, 1, err))
            return false;
        r->progress->made++;
    }
    return true;
}

/* Sessions. */

/* The tenant's key `id` (absent: its newest); *ret is NULL when it cannot be unwrapped. */
static bool open_key(struct rotating *r, struct str tenant, struct str id, struct arena *mem,
                     struct str *ret_id, struct seal_key **ret, struct error *err)
{
    struct tenant_key_row *row = NULL;
    uint8_t key[SEAL_KEY_BYTES];

    if (!store_tenant_key_get(r->store, tenant, id, mem, &row, err))
        return false;
    *ret = NULL;
    if (row && master_unwrap(r->master, row->master_id, tenant, row->id, row->wrapped, key)) {
        *ret = seal_key_new(key);
        *ret_id = row->id;
    }
    crypto_wipe(key, sizeof(key));
    return true;
}

/* Seals a secret of the row with the tenant's newest key.  *ret is absent when there is no secret,
 * when it already uses that key, or when it cannot be opened. */
static bool seal_again(struct rotating *r, const struct session_row *row, struct str field,
                       struct str sealed, struct arena *mem, struct str *ret, struct error *err)
{
    struct sealed_place place = {row->tenant, row->id, field};
    struct seal_key *old = NULL, *fresh = NULL;
    struct str old_id = STR_NONE, id = STR_NONE;
    struct sealed s;
    size_t n = 0;
    bool opened = false;

    *ret = STR_NONE;
    if (!sealed.p)
        return true;
    if (!sealed_read(sealed, mem, &s)) {
        r->progress->unusable++;
        return true;
    }
    bool ok = open_key(r, row->tenant, STR_NONE, mem, &id, &fresh, err) &&
              (str_eq(id, s.key_id) || open_key(r, row->tenant, s.key_id, mem, &old_id, &old, err));
    if (ok && old && fresh) {
        char *plain = arena_alloc(mem, s.bytes.n + 1);
        opened = sealed_open(old, &s, &place, plain, &n);
        if (opened) {
            *ret = sealed_write(fresh, id, &place, s.services, str_n(plain, n), mem);
            crypto_wipe(plain, n);
        }
    }
    if (ok && !opened && !str_eq(id, s.key_id))
        r->progress->unusable++;
    seal_key_free(old);
    seal_key_free(fresh);
    return ok;
}

static bool reseal_page(struct rotating *r, const struct session_row *rows, size_t n,
                        struct arena *mem, bool *ret_stale, struct error *err)
{
    struct store_op ops[BATCH];
    struct session_row *fresh = arena_zalloc(mem, BATCH * sizeof(*fresh));
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        struct str auth, context;
        if (!seal_again(r, &rows[i], STR(SEALED_FIELD_AUTH), rows[i].sealed_auth, mem, &auth,
                        err) ||
            !seal_again(r, &rows[i], STR(SEALED_FIELD_CONTEXT), rows[i].sealed_context, mem,
                        &context, err))
            return false;
        if (!auth.p && !context.p)
            continue;
        fresh[at] = (struct session_row){.id = rows[i].id,
                                         .tenant = rows[i].tenant,
                                         .sealed_auth = auth,
                                         .sealed_context = context,
                                         .version = rows[i].version};
        ops[at] = (struct store_op){.kind = OP_SESSION_RESEAL, .session = &fresh[at]};
        at++;
    }
    if (!write_all(r, ops, at, err))
        return false;
    for (size_t i = 0; i < at; i++) {
        r->progress->rows += ops[i].verdict == VERDICT_OK;
        *ret_stale = *ret_stale || ops[i].verdict == VERDICT_STALE;
    }
    return true;
}

static bool reseal_all(struct rotating *r, bool *ret_stale, struct error *err)
{
    char after[64] = "";
    size_t n = 1;
    bool ok = true;

    r->progress->unusable = 0;
    while (ok && n > 0) {
        struct arena *mem = arena_new(PAGE_BYTES);
        struct session_row *rows = NULL;
        ok = store_sealed_page(r->store, *after ? str_of(after) : STR_NONE, BATCH, mem, &rows, &n,
                               err) &&
             (n == 0 || reseal_page(r, rows, n, mem, ret_stale, err));
        if (ok && n > 0)
            snprintf(after, sizeof(after), "%.*s", STR_ARG(rows[n - 1].id));
        arena_free(mem);
    }
    return ok;
}

/* Secrets of the configuration.  They are put again with their times. */

static bool reseal_secret_page(struct rotating *r, const struct secret_row *rows, size_t n,
                               struct arena *mem, struct error *err)
{
    struct secret_row *fresh = arena_zalloc(mem, BATCH * sizeof(*fresh));
    struct store_op ops[BATCH];
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        const struct session_row place = {.tenant = STR(CONFIG_SECRETS_TENANT), .id = rows[i].name};
        fresh[at] = rows[i];
        if (!seal_again(r, &place, STR(SEALED_FIELD_SECRET), rows[i].sealed, mem, &fresh[at].sealed,
                        err))
            return false;
        if (!fresh[at].sealed.p)
            continue;
        ops[at] = (struct store_op){.kind = OP_SECRET_PUT, .secret = &fresh[at], .max_counted = -1};
        at++;
    }
    if (!write_all(r, ops, at, err))
        return false;
    r->progress->secrets += at;
    return true;
}

static bool reseal_secrets(struct rotating *r, struct error *err)
{
    char after[CONFIG_SECRET_NAME_MAX + 1] = "";
    size_t n = 1, unusable = r->progress->unusable;
    bool ok = true;

    while (ok && n > 0) {
        struct arena *mem = arena_new(PAGE_BYTES);
        struct secret_row *rows = NULL;
        ok = store_secrets_page(r->store, *after ? str_of(after) : STR_NONE, BATCH, mem, &rows, &n,
                                err) &&
             (n == 0 || reseal_secret_page(r, rows, n, mem, err));
        if (ok && n > 0)
            snprintf(after, sizeof(after), "%.*s", STR_ARG(rows[n - 1].name));
        arena_free(mem);
    }
    r->progress->unusable_secrets = r->progress->unusable - unusable;
    r->progress->unusable = unusable;
    return ok;
}

/* Processes rows again that were changed meanwhile. */
static bool reseal(struct rotating *r, struct error *err)
{
    bool stale = true;

    for (int pass = 0; stale && pass < MOST_PASSES; pass++) {
        stale = false;
        if (!reseal_all(r, &stale, err))
            return false;
    }
    return !stale || error_set(err, ERR_CONFLICT,
                               "sessions are being changed by somebody else; stop every node that "
                               "uses the database, and run this again");
}

/* The whole rotation. */

/* Adds the new key to the file, or resumes an unfinished rotation. */
static bool begin(struct str path, struct str text, struct rotating *r, struct error *err)
{
    if (!master_load(path, false, &r->master, err))
        return false;
    r->progress->resumed = master_has_old(r->master);
    if (r->progress->resumed)
        return !text.p || error_set(err, ERR_CONFLICT,
                                    "a rotation was left half-way; finish it first: run this "
                                    "without --new-file");
    master_free(r->master);
    r->master = NULL;
    die_at("rotate.add");
    return master_add(path, text, err) && master_load(path, false, &r->master, err);
}

/* Nodes that share the store must use the new key from now on.  The claim is written before the old
 * key is removed, so this node can start with either claim. */
static bool claim_new(struct rotating *r, struct str path, struct error *err)
{
    const struct key_claim claim = {
        .file = "master.key", .variable = "HOLDFAST_MASTER_KEY_FILE", .path = path};
    uint8_t prints[MASTER_KEYS_MAX][32];

    (void)master_fingerprints(r->master, prints);
    return claim_key_rotated(r->store, &claim, prints[0], err);
}

bool rotate_master(struct store *store, struct str path, struct str text, bool with_rows,
                   struct rotation *ret, struct error *err)
{
    struct rotating r = {.store = store, .progress = ret};

    *ret = (struct rotation){0};
    bool ok = begin(path, text, &r, err) &&
              (!with_rows ||
               (each_page(&r, renew_page, err) && reseal(&r, err) && reseal_secrets(&r, err))) &&
              each_page(&r, wrap_page, err) && claim_new(&r, path, err);
    if (ok)
        snprintf(ret->master_id, sizeof(ret->master_id), "%.*s", STR_ARG(master_id(r.master)));
    master_free(r.master);
    die_at("rotate.drop");
    return ok && master_drop_old(path, err);
}
