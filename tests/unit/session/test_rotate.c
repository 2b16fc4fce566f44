/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation, killed before each of its writes: whatever was there can still be read, and running it
 * again ends with one master key and every row under keys of this rotation. */
#include "test.h"

#include "base/fault.h"
#include "base/random.h"
#include "crypto/master.h"
#include "session/rotate.h"
#include "session/sealed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS 450 /* two full pages and some */
#define TENANTS 3
#define PLAIN "{\"session_tokens\":{\"a\":\"secret %d\"}}"

struct place {
    char dir[40], db[64], key[64];
};

static void enter(struct place *p)
{
    snprintf(p->dir, sizeof(p->dir), "/tmp/holdfast-rotate-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->db, sizeof(p->db), "%s/holdfast.db", p->dir);
    snprintf(p->key, sizeof(p->key), "%s/master.key", p->dir);
}

static void leave(const struct place *p)
{
    char path[96];
    static const char *const files[] = {"holdfast.db", "holdfast.db-wal", "holdfast.db-shm",
                                        "master.key"};
    for (size_t i = 0; i < countof(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", p->dir, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(p->dir), 0);
}

static struct store *open_store(const struct place *p)
{
    struct store_config config = {.path = str_of(p->db)};
    struct store *s = NULL;
    struct error err;
    if (!store_open_sqlite(&config, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static struct master *open_master(const struct place *p)
{
    struct master *m = NULL;
    struct error err;
    if (!master_load(str_of(p->key), true, &m, &err))
        fail_msg("%s", err.text);
    return m;
}

static void write_op(struct store *s, struct store_op op)
{
    struct error err;
    if (!store_write(s, &op, 1, &err))
        fail_msg("%s", err.text);
    assert_int_equal(op.verdict, VERDICT_OK);
}

static struct session_row row_of(struct seal_key *key, struct str key_id, struct str tenant, int n,
                                 struct arena *mem)
{
    struct str id = arena_printf(mem, "00000000-0000-7000-8000-%012d", n);
    struct sealed_place place = {tenant, id, STR(SEALED_FIELD_AUTH)};
    return (struct session_row){
        .id = id,
        .handle = arena_printf(mem, "ses_%d", n),
        .edge_mcp_id = STR("e"),
        .origin = ORIGIN_REST,
        .expires_ms = INT64_C(1) << 50,
        .version = 1,
        .sealed_auth =
            sealed_write(key, key_id, &place, STR("[\"a\"]"), arena_printf(mem, PLAIN, n), mem),
    };
}

static void make_rows(struct store *s, struct seal_key *key, struct str key_id, struct str tenant,
                      int first)
{
    struct principal who = {.tenant = tenant, .owner = STR("user:a"), .role = ROLE_MEMBER};
    struct arena *mem = arena_new(1 << 20);
    struct store_op ops[ROWS];
    struct session_row rows[ROWS];
    struct error err;
    size_t at = 0;
    for (int n = first; n < ROWS; n += TENANTS, at++) {
        rows[at] = row_of(key, key_id, tenant, n, mem);
        ops[at] = (struct store_op){.kind = OP_SESSION_CREATE,
                                    .who = &who,
                                    .session = &rows[at],
                                    .max_counted = -1,
                                    .required = true};
    }
    if (!store_write(s, ops, at, &err))
        fail_msg("%s", err.text);
    arena_free(mem);
}

static void fill(const struct place *p)
{
    struct store *s = open_store(p);
    struct master *m = open_master(p);
    for (int t = 0; t < TENANTS; t++) {
        char tenant[16], id[UUID_TEXT];
        uint8_t key[SEAL_KEY_BYTES], wrapped[MASTER_WRAPPED];
        snprintf(tenant, sizeof(tenant), "tenant-%d", t);
        random_uuid7(id);
        random_bytes(key, sizeof(key));
        master_wrap(m, str_of(tenant), str_of(id), key, wrapped);
        struct tenant_key_row row = {.id = str_of(id),
                                     .tenant = str_of(tenant),
                                     .master_id = master_id(m),
                                     .wrapped = str_n((const char *)wrapped, sizeof(wrapped)),
                                     .created_ms = 1};
        write_op(s, (struct store_op){.kind = OP_TENANT_KEY_PUT, .tenant_key = &row});
        struct seal_key *seal = seal_key_new(key);
        make_rows(s, seal, str_of(id), str_of(tenant), t);
        seal_key_free(seal);
    }
    master_free(m);
    store_close(s);
}

/* How many rows are sealed by their tenant's newest key; all must open. */
static size_t check_row(struct store *s, struct master *m, const struct session_row *row, int n,
                        struct arena *mem)
{
    struct sealed_place place = {row->tenant, row->id, STR(SEALED_FIELD_AUTH)};
    struct tenant_key_row *key = NULL, *newest = NULL;
    uint8_t bytes[SEAL_KEY_BYTES];
    struct sealed sealed;
    struct error err;
    size_t len = 0;

    assert_true(sealed_read(row->sealed_auth, mem, &sealed));
    assert_true(store_tenant_key_get(s, row->tenant, sealed.key_id, mem, &key, &err));
    assert_true(store_tenant_key_get(s, row->tenant, STR_NONE, mem, &newest, &err));
    assert_non_null(key);
    assert_true(master_unwrap(m, key->master_id, key->tenant, key->id, key->wrapped, bytes));
    struct seal_key *seal = seal_key_new(bytes);
    char *plain = arena_alloc(mem, sealed.bytes.n);
    assert_true(sealed_open(seal, &sealed, &place, plain, &len));
    seal_key_free(seal);
    assert_true(str_eq(str_n(plain, len), arena_printf(mem, PLAIN, n)));
    return str_eq(newest->id, sealed.key_id);
}

static size_t check_all(const struct place *p)
{
    struct store *s = open_store(p);
    struct master *m = open_master(p);
    struct arena *mem = arena_new(64u << 20);
    struct session_row *rows = NULL;
    struct str after = STR_NONE;
    struct error err;
    size_t n = 0, page = 0, fresh = 0;

    do {
        assert_true(store_sealed_page(s, after, STORE_PAGE_MAX, mem, &rows, &page, &err));
        for (size_t i = 0; i < page; i++)
            fresh += check_row(s, m, &rows[i], (int)n++, mem);
        after = page ? rows[page - 1].id : STR_NONE;
    } while (page);
    assert_int_equal(n, ROWS);
    arena_free(mem);
    master_free(m);
    store_close(s);
    return fresh;
}

/* In a child that dies before its n-th write; true when it came to its end. */
static bool rotate_and_die(const struct place *p, int n)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        char spec[32];
        struct rotation told;
        struct error err;
        struct store *s = open_store(p);
        snprintf(spec, sizeof(spec), "rotate.write:%d", n);
        fault_load(spec);
        _exit(rotate_master(s, str_of(p->key), STR_NONE, true, &told, &err) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    return WIFEXITED(status);
}

TEST(test_rotate_master__killed_before_any_write_loses_nothing_and_goes_on)
{
    struct rotation told;
    struct error err;
    bool finished = false;

    for (int n = 1; !finished; n++) {
        struct place p;
        enter(&p);
        fill(&p);
        finished = rotate_and_die(&p, n);
        size_t fresh = check_all(&p);
        if (!finished) {
            struct store *s = open_store(&p);
            if (!rotate_master(s, str_of(p.key), STR_NONE, true, &told, &err))
                fail_msg("%s", err.text);
            store_close(s);
            assert_true(told.resumed);
            /* nothing is sealed again before every tenant has its new key */
            assert_int_equal(told.rows, n <= TENANTS ? ROWS : ROWS - fresh);
            assert_int_equal(told.unusable, 0);
        }
        assert_int_equal(check_all(&p), ROWS);
        struct master *m = open_master(&p);
        assert_false(master_has_old(m));
        master_free(m);
        leave(&p);
        assert_true(n < 50);
    }
}

TEST(test_rotate_master__refuses_another_new_key_while_one_is_half_way)
{
    struct place p;
    struct rotation told;
    struct error err;
    enter(&p);
    fill(&p);
    assert_false(rotate_and_die(&p, 2));
    struct store *s = open_store(&p);
    assert_false(rotate_master(
        s, str_of(p.key), STR("9f1c7be2450da8336ef0915c27d8b41a63e90f527cbd86014ae3751fc8902dbb"),
        false, &told, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    store_close(s);
    (void)check_all(&p);
    leave(&p);
}
