/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "crypto/hash.h"
#include "crypto/master.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of these tests alone. */
#define HEX_A "9f1c7be2450da8336ef0915c27d8b41a63e90f527cbd86014ae3751fc8902dbb"
#define HEX_B "1be2f40c77935ad86601c9ae3f5284bd107a4ee3952fd8c06b31a7129d4cf065"

struct place {
    char dir[32], path[64];
};

static void enter(struct place *p)
{
    snprintf(p->dir, sizeof(p->dir), "/tmp/holdfast-master-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof(p->path), "%s/master.key", p->dir);
}

static void leave(struct place *p)
{
    unlink(p->path);
    assert_int_equal(rmdir(p->dir), 0); /* nothing was left beside it */
}

static void put(const struct place *p, const char *text, mode_t mode)
{
    unlink(p->path);
    int fd = open(p->path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static struct master *load(const struct place *p, bool create)
{
    struct master *m = NULL;
    struct error err;
    if (!master_load(str_of(p->path), create, &m, &err))
        fail_msg("%s", err.text);
    return m;
}

static void refused(const struct place *p, const char *text, const char *why)
{
    struct master *m = NULL;
    struct error err = {0};
    put(p, text, 0600);
    assert_false(master_load(str_of(p->path), true, &m, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
    assert_null(strstr(err.text, HEX_A));
}

TEST(test_master_load__makes_a_key_once_for_its_owner_alone)
{
    struct place p;
    struct stat st;
    char id[MASTER_ID_TEXT];
    enter(&p);
    struct master *m = load(&p, true);
    snprintf(id, sizeof(id), "%.*s", STR_ARG(master_id(m)));
    assert_int_equal(strlen(id), 16);
    assert_false(master_has_old(m));
    master_free(m);
    assert_int_equal(stat(p.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    m = load(&p, true);
    assert_str(master_id(m), id);
    master_free(m);
    leave(&p);
}

TEST(test_master_load__without_create_does_not_make_one)
{
    struct place p;
    struct master *m = NULL;
    struct error err;
    enter(&p);
    assert_false(master_load(str_of(p.path), false, &m, &err));
    assert_int_equal(err.code, ERR_CONFIG);
    leave(&p);
}

TEST(test_master_load__takes_hex_and_base64_and_reads_the_same_key)
{
    struct place p;
    char id[MASTER_ID_TEXT];
    enter(&p);
    put(&p, HEX_A "\n", 0600);
    struct master *m = load(&p, false);
    snprintf(id, sizeof(id), "%.*s", STR_ARG(master_id(m)));
    master_free(m);
    put(&p, "# ours\n\n  nxx74kUNqDNu8JFcJ9i0GmPpD1J8vYYBSuN1H8iQLbs=  \n", 0600);
    m = load(&p, false);
    assert_str(master_id(m), id);
    master_free(m);
    leave(&p);
}

TEST(test_master_load__refuses_a_file_that_others_can_read)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0601};
    struct place p;
    struct master *m = NULL;
    struct error err;
    enter(&p);
    for (size_t i = 0; i < countof(modes); i++) {
        put(&p, HEX_A, modes[i]);
        assert_false(master_load(str_of(p.path), false, &m, &err));
        assert_non_null(strstr(err.text, "chmod 600"));
    }
    put(&p, HEX_A, 0400);
    master_free(load(&p, false));
    leave(&p);
}

TEST(test_master_load__refuses_keys_that_are_short_guessable_or_published)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "no master key"},
        {"# nothing\n", "no master key"},
        {"changeme", "32 random bytes"},
        {"9f1c7be2450da8336ef0915c27d8b41a63e90f527cbd86014ae3751fc8902d", "32 random bytes"},
        {HEX_A "00", "32 random bytes"},
        {"0000000000000000000000000000000000000000000000000000000000000000", "sequence"},
        {"4141414141414141414141414141414141414141414141414141414141414141", "sequence"},
        {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "sequence"},
        {"9f1c7be2450da8336ef0915c27d8b41a9f1c7be2450da8336ef0915c27d8b41a", "repeats"},
        {"dGhpcy1pcy1hLXNlY3JldC10aGF0LWV2ZXJ5Ym9keSE=", "is a text"},
        {"603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "published"},
        {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "published"},
        {"hfmk1 0000000000000000 " HEX_A, "does not fit its id"},
    };
    struct place p;
    enter(&p);
    for (size_t i = 0; i < countof(cases); i++)
        refused(&p, cases[i].text, cases[i].why);
    leave(&p);
}

TEST(test_master_load__takes_eight_keys_and_no_ninth)
{
    struct place p;
    char id[MASTER_ID_TEXT];
    struct error err;
    enter(&p);
    master_free(load(&p, true));
    for (int i = 1; i < MASTER_KEYS_MAX; i++)
        assert_true(master_add(str_of(p.path), STR_NONE, &err));
    struct master *m = load(&p, false);
    snprintf(id, sizeof(id), "%.*s", STR_ARG(master_id(m)));
    master_free(m);
    assert_false(master_add(str_of(p.path), STR_NONE, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    m = load(&p, false);
    assert_str(master_id(m), id);
    master_free(m);
    leave(&p);
}

struct wrapped {
    uint8_t key[SEAL_KEY_BYTES], bytes[MASTER_WRAPPED];
    char by[MASTER_ID_TEXT];
};

static void wrap(struct master *m, struct wrapped *w)
{
    for (size_t i = 0; i < sizeof(w->key); i++)
        w->key[i] = (uint8_t)(i * 7 + 1);
    master_wrap(m, STR("acme"), STR("k1"), w->key, w->bytes);
    snprintf(w->by, sizeof(w->by), "%.*s", STR_ARG(master_id(m)));
}

static bool opens(struct master *m, const struct wrapped *w, const char *tenant, const char *id,
                  size_t n)
{
    uint8_t key[SEAL_KEY_BYTES];
    bool ok = master_unwrap(m, str_of(w->by), str_of(tenant), str_of(id),
                            str_n((const char *)w->bytes, n), key);
    if (ok)
        assert_memory_equal(key, w->key, sizeof(key));
    return ok;
}

TEST(test_master_unwrap__opens_for_its_tenant_and_id_and_for_nothing_else)
{
    struct place p;
    struct wrapped w;
    enter(&p);
    struct master *m = load(&p, true);
    wrap(m, &w);
    assert_true(opens(m, &w, "acme", "k1", MASTER_WRAPPED));
    assert_false(opens(m, &w, "umbrella", "k1", MASTER_WRAPPED));
    assert_false(opens(m, &w, "acme", "k2", MASTER_WRAPPED));
    for (size_t n = 0; n < MASTER_WRAPPED; n++)
        assert_false(opens(m, &w, "acme", "k1", n));
    for (size_t i = 0; i < MASTER_WRAPPED; i++) {
        w.bytes[i] ^= 1;
        assert_false(opens(m, &w, "acme", "k1", MASTER_WRAPPED));
        w.bytes[i] ^= 1;
    }
    w.by[0] ^= 1;
    assert_false(opens(m, &w, "acme", "k1", MASTER_WRAPPED));
    master_free(m);
    leave(&p);
}

TEST(test_master_add__keeps_the_old_key_readable_until_it_is_dropped)
{
    struct place p;
    struct wrapped old, fresh;
    struct error err;
    enter(&p);
    put(&p, HEX_A, 0600);
    struct master *m = load(&p, false);
    wrap(m, &old);
    master_free(m);
    assert_true(master_add(str_of(p.path), STR(HEX_B "\n"), &err));
    m = load(&p, false);
    assert_true(master_has_old(m));
    wrap(m, &fresh);
    assert_string_not_equal(old.by, fresh.by);
    assert_true(opens(m, &old, "acme", "k1", MASTER_WRAPPED));
    assert_true(opens(m, &fresh, "acme", "k1", MASTER_WRAPPED));
    master_free(m);
    assert_true(master_drop_old(str_of(p.path), &err));
    m = load(&p, false);
    assert_false(master_has_old(m));
    assert_false(opens(m, &old, "acme", "k1", MASTER_WRAPPED));
    assert_true(opens(m, &fresh, "acme", "k1", MASTER_WRAPPED));
    master_free(m);
    leave(&p);
}

/* Beside the file, as a crash or its owner leaves it. */
static void put_beside(const struct place *p, const char *end, struct place *ret)
{
    *ret = *p;
    snprintf(ret->path, sizeof(ret->path), "%s/master.key%s", p->dir, end);
    put(ret, HEX_A, 0600);
}

TEST(test_master_add__takes_away_what_a_crash_left_and_no_copy_of_its_owners)
{
    static const char *const copies[] = {".new", ".new.20261116", ".20261116", ".bak"};
    struct place p, left, copy[countof(copies)];
    struct error err;
    enter(&p);
    put(&p, HEX_A, 0600);
    put_beside(&p, ".new.00c0ffee12345678", &left);
    for (size_t i = 0; i < countof(copies); i++)
        put_beside(&p, copies[i], &copy[i]);
    assert_true(master_add(str_of(p.path), STR(HEX_B "\n"), &err));
    assert_int_equal(access(left.path, F_OK), -1);
    for (size_t i = 0; i < countof(copies); i++)
        assert_int_equal(unlink(copy[i].path), 0);
    leave(&p);
}

TEST(test_master_add__refuses_a_weak_key_and_the_one_in_use)
{
    struct place p;
    struct error err;
    enter(&p);
    put(&p, HEX_A, 0600);
    assert_false(master_add(str_of(p.path), STR(HEX_A), &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_false(master_add(str_of(p.path), STR("password"), &err));
    assert_int_equal(err.code, ERR_CONFIG);
    struct master *m = load(&p, false);
    assert_false(master_has_old(m));
    master_free(m);
    leave(&p);
}
