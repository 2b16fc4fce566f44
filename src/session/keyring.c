/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the keys of tenants on demand.  If two keys are created at the same time for one tenant,
 * both are valid, because sealed text names its key. */
#include "session/keyring.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "session/session_metrics.h"

#include <stdlib.h>

struct keyring_key {
    struct seal_key *seal;
    struct str name; /* tenant, NUL, id; stored after this struct */
    struct str id;
    size_t n_tenant;
};

struct keyring {
    struct keyring_config config;
    struct lanes *lanes;
    struct map keys;   /* struct keyring_key by tenant, NUL, id */
    struct map newest; /* by tenant: the key that seals */
};

struct keyring *keyring_new(const struct keyring_config *config)
{
    struct keyring *v = xcalloc(1, sizeof(*v));
    v->config = *config;
    v->config.path = str_n(strndup(config->path.p, config->path.n), config->path.n);
    map_init(&v->keys);
    map_init(&v->newest);
    return v;
}

void keyring_use(struct keyring *v, struct lanes *lanes)
{
    v->lanes = lanes;
}

static void forget_all(struct keyring *v)
{
    struct str name;
    void *value;
    size_t at = 0;

    map_release(&v->newest);
    map_init(&v->newest);
    while (map_next(&v->keys, &at, &name, &value)) {
        struct keyring_key *k = value;
        seal_key_free(k->seal);
        free(k);
    }
    map_release(&v->keys);
    map_init(&v->keys);
}

void keyring_free(struct keyring *v)
{
    if (!v)
        return;
    forget_all(v);
    map_release(&v->keys);
    map_release(&v->newest);
    master_free(v->config.master);
    free((char *)v->config.path.p);
    free(v);
}

bool keyring_fits(struct store *store, struct master *master, bool *ret_any, struct error *err)
{
    struct arena *mem = arena_new(4u * 1024 * 1024);
    struct tenant_key_row *rows = NULL;
    uint8_t key[SEAL_KEY_BYTES];
    size_t n = 0;
    bool ok = store_tenant_keys_page(store, STR_NONE, STORE_PAGE_MAX, mem, &rows, &n, err);

    *ret_any = ok && n > 0;
    for (size_t i = 0; ok && master && i < n; i++)
        ok = master_unwrap(master, rows[i].master_id, rows[i].tenant, rows[i].id, rows[i].wrapped,
                           key) ||
             error_set(err, ERR_CONFIG,
                       "the credentials in the database are sealed by the master key %.*s, which "
                       "is not the one given; give the right one, or restore it from a backup",
                       STR_ARG(rows[i].master_id));
    crypto_wipe(key, sizeof(key));
    arena_free(mem);
    return ok;
}

static struct keyring_key *keep(struct keyring *v, struct str tenant, struct str id,
                                const uint8_t key[SEAL_KEY_BYTES])
{
    size_t n = tenant.n + 1 + id.n;
    if (v->keys.n >= KEYRING_KEYS_MAX)
        forget_all(v);
    struct keyring_key *k = xcalloc(1, sizeof(*k) + n);
    char *name = (char *)(k + 1);
    memcpy(name, tenant.p, tenant.n);
    memcpy(name + tenant.n + 1, id.p, id.n);
    k->name = str_n(name, n);
    k->n_tenant = tenant.n;
    k->id = str_n(name + tenant.n + 1, id.n);
    k->seal = seal_key_new(key);
    struct keyring_key *before = map_get(&v->keys, k->name);
    if (before) { /* two jobs loaded the same key */
        seal_key_free(k->seal);
        free(k);
        return before;
    }
    map_put(&v->keys, k->name, k);
    return k;
}

static void keep_newest(struct keyring *v, struct keyring_key *k)
{
    struct str tenant = str_n(k->name.p, k->n_tenant);
    struct keyring_key *before = map_get(&v->newest, tenant);
    if (before && str_cmp(before->id, k->id) >= 0)
        return;
    if (before)
        map_remove(&v->newest, tenant);
    map_put(&v->newest, tenant, k);
}

/* A rotation may have added a master key since the file was read. */
static bool unwrap(struct keyring *v, const struct tenant_key_row *row, uint8_t ret[SEAL_KEY_BYTES])
{
    struct master *fresh = NULL;
    struct error ignored;

    if (master_unwrap(v->config.master, row->master_id, row->tenant, row->id, row->wrapped, ret))
        return true;
    if (!master_load(v->config.path, false, &fresh, &ignored))
        return false;
    master_free(v->config.master);
    v->config.master = fresh;
    return master_unwrap(fresh, row->master_id, row->tenant, row->id, row->wrapped, ret);
}

static void fail(struct keyring_job *j, enum err_code code, const char *text)
{
    j->ok = false;
    error_set(&j->err, code, "%s", text);
    if (code != ERR_SEALED || j->is_quiet)
        return;
    session_metric_crypt_failed(j->opens ? CRYPT_OPEN : CRYPT_SEAL);
    log_error("stored credentials cannot be used", LS("session", j->place.session_id),
              LS("tenant", j->place.tenant), LZ("operation", j->opens ? "open" : "seal"),
              LS("key_id", j->opens ? j->parts.key_id : STR_NONE));
}

#define CANNOT_OPEN                                                                                \
    "the credentials stored with this session cannot be opened; store them again with PATCH "      \
    "passthrough_auth, and tell the operator"
#define CANNOT_SEAL                                                                                \
    "the key that seals this tenant's credentials cannot be opened; the operator has to restore "  \
    "the master key"
#define STORE_AWAY "the store does not answer, so credentials cannot be used now; try again shortly"

static void use_key(struct keyring_job *j, struct keyring_key *k)
{
    size_t n = 0;

    if (!j->opens) {
        j->result = sealed_write(k->seal, k->id, &j->place, j->services, j->plain, j->mem);
        j->ok = true;
        return;
    }
    char *plain = arena_alloc(j->mem, j->parts.bytes.n + 1);
    if (!sealed_open(k->seal, &j->parts, &j->place, plain, &n)) {
        fail(j, ERR_SEALED, CANNOT_OPEN);
        return;
    }
    j->result = str_n(plain, n);
    j->ok = true;
}

static void on_made(struct write_job *job)
{
    struct keyring_job *j = container_of(job, struct keyring_job, write);
    uint8_t key[SEAL_KEY_BYTES];

    if (!job->ok || j->op.verdict != VERDICT_OK)
        fail(j, ERR_UNAVAILABLE, STORE_AWAY);
    else if (!unwrap(j->home, &j->fresh, key))
        fail(j, ERR_SEALED, CANNOT_SEAL);
    else {
        struct keyring_key *k = keep(j->home, j->fresh.tenant, j->fresh.id, key);
        keep_newest(j->home, k);
        use_key(j, k);
    }
    crypto_wipe(key, sizeof(key));
    j->done(j);
}

/* Creates the first key of a tenant. */
static void make_key(struct keyring_job *j)
{
    struct keyring *v = j->home;
    uint8_t key[SEAL_KEY_BYTES];

    random_bytes(key, sizeof(key));
    random_uuid7(j->id);
    j->fresh = (struct tenant_key_row){
        .id = str_of(j->id),
        .tenant = j->place.tenant,
        .master_id = arena_dup(j->mem, master_id(v->config.master)),
        .wrapped = str_n((const char *)j->wrapped, sizeof(j->wrapped)),
        .created_ms = clock_life_ms(),
    };
    master_wrap(v->config.master, j->fresh.tenant, j->fresh.id, key, j->wrapped);
    crypto_wipe(key, sizeof(key));
    j->op = (struct store_op){.kind = OP_TENANT_KEY_PUT, .tenant_key = &j->fresh};
    j->write = (struct write_job){.ops = &j->op, .n = 1, .done = on_made};
    if (lane_write(v->lanes, &j->write))
        return;
    fail(j, ERR_UNAVAILABLE, STORE_AWAY);
    j->done(j);
}

static bool run_read(struct read_job *job, struct store *store)
{
    struct keyring_job *j = container_of(job, struct keyring_job, read);

    if (fault_hits("keyring.read"))
        return error_set(&job->err, ERR_UNAVAILABLE, "a fault was asked for");
    return store_tenant_key_get(store, j->place.tenant, j->opens ? j->parts.key_id : STR_NONE,
                                j->mem, &j->row, &job->err);
}

static void on_read(struct read_job *job)
{
    struct keyring_job *j = container_of(job, struct keyring_job, read);
    uint8_t key[SEAL_KEY_BYTES];

    if (job->ok && !j->row && !j->opens) {
        make_key(j);
        return;
    }
    if (!job->ok)
        fail(j, ERR_UNAVAILABLE, STORE_AWAY);
    else if (!j->row || !unwrap(j->home, j->row, key))
        fail(j, ERR_SEALED, j->opens ? CANNOT_OPEN : CANNOT_SEAL);
    else {
        struct keyring_key *k = keep(j->home, j->row->tenant, j->row->id, key);
        if (!j->opens)
            keep_newest(j->home, k);
        use_key(j, k);
    }
    crypto_wipe(key, sizeof(key));
    j->done(j);
}

static bool want_key(struct keyring_job *j, struct keyring_key *k)
{
    if (k) {
        use_key(j, k);
        return true;
    }
    j->row = NULL;
    j->read = (struct read_job){.run = run_read, .done = on_read};
    if (lane_lookup(j->home->lanes, &j->read))
        return false;
    fail(j, ERR_UNAVAILABLE, STORE_AWAY);
    return true;
}

bool keyring_seal(struct keyring *v, struct keyring_job *j)
{
    j->home = v;
    j->opens = false;
    return want_key(j, map_get(&v->newest, j->place.tenant));
}

bool keyring_open(struct keyring *v, struct keyring_job *j)
{
    j->home = v;
    j->opens = true;
    j->parts = (struct sealed){.key_id = STR("")};
    if (!sealed_read(j->sealed, j->mem, &j->parts)) {
        fail(j, ERR_SEALED, CANNOT_OPEN);
        return true;
    }
    struct str name = arena_printf(j->mem, "%.*s%c%.*s", STR_ARG(j->place.tenant), '\0',
                                   STR_ARG(j->parts.key_id));
    return want_key(j, map_get(&v->keys, name));
}
