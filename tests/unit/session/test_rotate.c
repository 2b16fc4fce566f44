/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation, killed before each of its writes: whatever was there can still be read, and running it
 * again ends with one master key and every row under keys of this rotation.  The last test kills it
 * by the clock instead, wherever it is then; HOLDFAST_ROTATE=ROWS:KILLS:SEED makes it larger. */
#include "test.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/random.h"
#include "crypto/master.h"
#include "session/rotate.h"
#include "session/sealed.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS 450 /* two full pages and some */
#define TENANTS 3
#define PLAIN "{\"session_tokens\":{\"a\":\"secret %d\"}}"

struct place {
    char dir[40], db[64], key[64];
    int rows;
};

static void enter(struct place *p, int rows)
{
    p->rows = rows;
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

/* The next ROWS of a tenant at most; returns where it goes on. */
static int make_some(struct store *s, struct seal_key *key, struct str key_id, struct str tenant,
                     int first, int end)
{
    struct principal who = {.tenant = tenant, .owner = STR("user:a"), .role = ROLE_MEMBER};
    struct arena *mem = arena_new(1 << 20);
    struct store_op ops[ROWS];
    struct session_row rows[ROWS];
    struct error err;
    size_t at = 0;
    int n = first;
    for (; n < end && at < ROWS; n += TENANTS, at++) {
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
    return n;
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
        for (int n = t; n < p->rows;)
            n = make_some(s, seal, str_of(id), str_of(tenant), n, p->rows);
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

/* The rows from the first-th on, `most` of them at most. */
static size_t check_some(const struct place *p, int first, int most)
{
    struct store *s = open_store(p);
    struct master *m = open_master(p);
    char after[64] = "";
    struct error err;
    size_t page = 1, fresh = 0;
    int n = first;

    if (first)
        snprintf(after, sizeof(after), "00000000-0000-7000-8000-%012d", first - 1);
    while (page && n - first < most) {
        struct arena *mem = arena_new(64u << 20);
        struct session_row *rows = NULL;
        assert_true(store_sealed_page(s, *after ? str_of(after) : STR_NONE, STORE_PAGE_MAX, mem,
                                      &rows, &page, &err));
        for (size_t i = 0; i < page; i++)
            fresh += check_row(s, m, &rows[i], n++, mem);
        if (page)
            snprintf(after, sizeof(after), "%.*s", STR_ARG(rows[page - 1].id));
        arena_free(mem);
    }
    assert_true(n == p->rows || n - first >= most);
    master_free(m);
    store_close(s);
    return fresh;
}

static size_t check_all(const struct place *p)
{
    return check_some(p, 0, INT_MAX);
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
        enter(&p, ROWS);
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
    enter(&p, ROWS);
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

/* In a child that the clock ends after so many microseconds (0: never), wherever it is; true when
 * it came to its end before. */
static bool rotate_for(const struct place *p, int64_t us)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct rotation told;
        struct error err;
        struct itimerval end = {
            .it_value = {.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)}};
        struct store *s = open_store(p);
        setitimer(ITIMER_REAL, &end, NULL); /* nobody handles SIGALRM: it kills */
        _exit(rotate_master(s, str_of(p->key), STR_NONE, true, &told, &err) && !told.unusable ? 0
                                                                                              : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGALRM);
    return WIFEXITED(status);
}

static void check_is_over(const struct place *p)
{
    struct master *m = open_master(p);
    assert_false(master_has_old(m));
    master_free(m);
    assert_int_equal(check_all(p), p->rows);
}

TEST(test_rotate_master__killed_at_random_points_ends_with_every_row_under_the_new_key)
{
    const char *wanted = getenv("HOLDFAST_ROTATE");
    int rows = 2000, kills = 5, rounds = 0;
    uint64_t seed = random_u64();
    unsigned dice;
    struct place p;

    if (wanted)
        assert_true(sscanf(wanted, "%d:%d:%lu", &rows, &kills, &seed) >= 2);
    print_message("HOLDFAST_ROTATE=%d:%d:%llu\n", rows, kills, (unsigned long long)seed);
    dice = (unsigned)(seed ^ seed >> 32);
    enter(&p, rows);
    fill(&p);
    int64_t whole_us = clock_mono_us();
    assert_true(rotate_for(&p, 0));
    whole_us = clock_mono_us() - whole_us;
    for (int done = 0; done < kills;) {
        int64_t us =
            1 + (int64_t)((double)rand_r(&dice) / RAND_MAX * 2.0 * (double)whole_us / kills);
        if (rotate_for(&p, us)) {
            rounds++; /* the next begins another rotation */
            continue;
        }
        done++;
        (void)check_some(&p, (int)((unsigned)rand_r(&dice) % (unsigned)rows), 500);
    }
    assert_true(rotate_for(&p, 0));
    check_is_over(&p);
    print_message("%d rows, %d kills in %d rotations\n", rows, kills, rounds + 2);
    leave(&p);
}
