/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: what is parsed, what is loopback, listening, lookups. */
#include "test.h"

#include "io/address.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(test_address_parse__and_format_agree)
{
    static const struct {
        const char *text, *shown;
        bool is_loopback;
    } rows[] = {
        {"127.0.0.1:4653", "127.0.0.1:4653", true},
        {"localhost:80", "127.0.0.1:80", true},
        {"127.255.0.9:1", "127.255.0.9:1", true},
        {"0.0.0.0:0", "0.0.0.0:0", false},
        {"10.0.0.1:65535", "10.0.0.1:65535", false},
        {"[::1]:80", "[::1]:80", true},
        {"[::]:80", "[::]:80", false},
        {"[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", true},
        {"[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.1]:80", false},
        {"unix:/run/x.sock", "unix:/run/x.sock", true},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct conn_address a;
        struct error err;
        char text[160];
        assert_true(address_parse(str_of(rows[i].text), &a, &err));
        address_format(&a, text, sizeof(text));
        assert_string_equal(text, rows[i].shown);
        assert_int_equal(address_is_loopback(&a), rows[i].is_loopback);
    }
}

TEST(test_address_parse__refuses_names_and_nonsense)
{
    static const char *const rows[] = {
        "",         "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "host:80",  ":80",       "::1:80",     "[::1]80",         "[::1:80",
        "1.2.3:80", "unix:",     "[]:80",      "127.0.0.1:8x"};
    for (size_t i = 0; i < countof(rows); i++) {
        struct conn_address a = {.len = 7};
        struct error err;
        assert_false(address_parse(str_of(rows[i]), &a, &err));
        assert_int_equal(err.code, ERR_BAD_INPUT);
        assert_int_equal(a.len, 7);
    }
}

TEST(test_address_parse__unix_paths_fit_up_to_the_kernels_limit)
{
    char text[5 + 108 + 1] = "unix:";
    struct conn_address a;
    struct error err;

    memset(text + 5, 'p', 108);
    assert_true(address_parse(str_n(text, 5 + 107), &a, &err));
    assert_false(address_parse(str_n(text, 5 + 108), &a, &err));
}

TEST(test_address_listen__unix_socket_is_for_its_owner_alone_and_taken_is_a_conflict)
{
    struct conn_address a;
    struct error err;
    struct stat st;
    char path[64], text[80];
    int fd = -1, again = -1;

    snprintf(path, sizeof(path), "/tmp/holdfast-test-%d-listen.sock", (int)getpid());
    snprintf(text, sizeof(text), "unix:%s", path);
    unlink(path);
    assert_true(address_parse(str_of(text), &a, &err));
    assert_true(address_listen(&a, &fd, &err));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_false(address_listen(&a, &again, &err));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(again, -1);
    close(fd);
    unlink(path);
}

struct answer {
    unsigned n;
    struct conn_address address;
    struct error err;
};

static void on_resolved(void *arg, const struct conn_address *a, const struct error *e)
{
    struct answer *answer = arg;
    answer->n++;
    if (a)
        answer->address = *a;
    else
        answer->err = *e;
}

TEST(test_address_resolve__answers_once_from_the_loop)
{
    struct loop *loop = loop_new();
    struct answer good = {0}, bad = {0}, empty = {0}, gone = {0};
    struct address_lookup *cancelled;

    assert_non_null(address_resolve(loop, STR("127.0.0.1"), 80, on_resolved, &good));
    assert_non_null(address_resolve(loop, STR("no-such-host.invalid"), 80, on_resolved, &bad));
    assert_non_null(address_resolve(loop, STR(""), 80, on_resolved, &empty));
    cancelled = address_resolve(loop, STR("127.0.0.1"), 80, on_resolved, &gone);
    address_resolve_cancel(cancelled);
    assert_int_equal(good.n, 0);
    while (!good.n || !bad.n || !empty.n)
        loop_turn(loop);
    assert_true(address_is_loopback(&good.address));
    assert_int_equal(bad.err.code, ERR_UNREACHABLE);
    assert_int_equal(empty.err.code, ERR_UNREACHABLE);
    loop_free(loop); /* waits for the cancelled one */
    assert_int_equal(gone.n, 0);
    assert_int_equal(good.n + bad.n + empty.n, 3);
}
