/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as time goes by: from files that change, from a server that answers, fails, hangs or gives
 * nonsense; and tokens that wait for them. */
#include "peer.h"
#include "tokens.h"

#include "base/clock.h"
#include "identity/issuers.h"

#include <netinet/in.h>
#include <openssl/pem.h>

#define START_MS (TOKEN_NOW * 1000)
#define PEERS_MAX 16

struct fixture {
    struct loop *loop;
    struct arena *mem;
    struct token_issuer t;
    struct config *config;
    struct issuers *issuers;
    /* The server of keys. */
    int listener;
    struct conn_address at;
    struct loop_fd *watch;
    unsigned port;
    struct peer peers[PEERS_MAX];
    unsigned n_peers;
    char file[64];
};

struct asked {
    struct token_question q;
    unsigned n_done;
};

static void on_acceptable(void *arg, int events unused_arg)
{
    struct fixture *f = arg;
    int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return;
    assert_true(f->n_peers < PEERS_MAX);
    peer_adopt(&f->peers[f->n_peers++], f->loop, fd, NULL);
}

static void setup(struct fixture *f)
{
    struct sockaddr_in sa;

    memset(f, 0, sizeof(*f));
    clock_set_fake(START_MS, 1000000);
    f->loop = loop_new();
    f->mem = arena_new(SIZE_MAX);
    token_issuer_init(&f->t);
    f->listener = peer_listen(&f->at);
    memcpy(&sa, &f->at.sa, sizeof(sa));
    f->port = ntohs(sa.sin_port);
    f->watch = loop_fd_new(f->loop, f->listener, on_acceptable, f);
    loop_fd_want(f->watch, LOOP_READ);
    snprintf(f->file, sizeof(f->file), "/tmp/holdfast-test-%d.jwks", (int)getpid());
}

static void teardown(struct fixture *f)
{
    issuers_free(f->issuers);
    config_unref(f->config);
    for (unsigned i = 0; i < f->n_peers; i++)
        peer_close(&f->peers[i]);
    loop_fd_free(f->watch);
    close(f->listener);
    loop_free(f->loop);
    token_issuer_release(&f->t);
    arena_free(f->mem);
    unlink(f->file);
    clock_set_real();
}

static struct config *parse(struct fixture *f, const char *more)
{
    struct str text = arena_printf(f->mem,
                                   "{\"holdfast\":{\"jwt\":{\"issuer\":\"" TOKEN_ISSUER
                                   "\",\"audience\":\"" TOKEN_AUDIENCE "\",%s}}}",
                                   more);
    struct config *c;
    struct error err;

    if (!config_parse(text, STR("h.json"), NULL, &c, &err))
        fail_msg("%s", err.text);
    return c;
}

static void begin(struct fixture *f, const char *more)
{
    struct error err;

    f->config = parse(f, more);
    if (!issuers_new(f->loop, f->config, &f->issuers, &err))
        fail_msg("%s", err.text);
}

static void begin_url(struct fixture *f)
{
    begin(f, arena_printf(f->mem, "\"jwks\":\"http://127.0.0.1:%u/keys\"", f->port).p);
}

static void begin_file(struct fixture *f)
{
    begin(f, arena_printf(f->mem, "\"jwks\":\"%s\"", f->file).p);
}

static struct str set_of(struct fixture *f, enum jwt_alg alg)
{
    return token_set(f->mem, token_jwk(f->mem, f->t.pairs[alg], token_kids[alg], ""));
}

static void write_file(struct fixture *f, struct str text)
{
    FILE *out = fopen(f->file, "w");

    assert_non_null(out);
    fwrite(text.p, 1, text.n, out);
    fclose(out);
}

/* Waits for the n-th request of keys and answers it. */
static void serve(struct fixture *f, unsigned n, const char *status, struct str body)
{
    while (f->n_peers < n)
        loop_turn(f->loop);
    peer_wait(&f->peers[n - 1], "\r\n\r\n");
    assert_true(peer_has(&f->peers[n - 1], "GET /keys HTTP/1.1\r\n"));
    peer_say(&f->peers[n - 1], arena_printf(f->mem,
                                            "HTTP/1.1 %s\r\nContent-Length: %zu\r\n"
                                            "Connection: close\r\n\r\n%.*s",
                                            status, body.n, STR_ARG(body))
                                   .p);
}

static void on_done(struct token_question *q)
{
    container_of(q, struct asked, q)->n_done++;
}

/* true: answered at once. */
static bool ask(struct fixture *f, struct asked *a, enum jwt_alg alg)
{
    memset(a, 0, sizeof(*a));
    a->q.token = token_issue(&f->t, alg, STR("{" TOKEN_CLAIMS "}"));
    a->q.mem = f->mem;
    a->q.done = on_done;
    return issuers_ask(f->issuers, &a->q);
}

static void wait_for(struct fixture *f, struct asked *a)
{
    while (!a->n_done)
        loop_turn(f->loop);
}

static void expect(struct fixture *f, enum jwt_alg alg, enum jwt_fault fault)
{
    struct asked a;

    assert_true(ask(f, &a, alg));
    assert_string_equal(jwt_fault_name(a.q.fault), jwt_fault_name(fault));
    assert_int_equal(a.q.ok, fault == JWT_OK);
}

TEST(test_issuers__a_first_token_waits_for_the_first_fetch)
{
    struct fixture f;
    struct asked a, b;

    setup(&f);
    begin_url(&f);
    assert_false(ask(&f, &a, JWT_RS256));
    assert_false(ask(&f, &b, JWT_ES256));
    serve(&f, 1, "200 OK", set_of(&f, JWT_RS256));
    wait_for(&f, &a);
    wait_for(&f, &b);
    assert_true(a.q.ok);
    assert_str(a.q.claims.subject, "alice");
    assert_false(b.q.ok);
    assert_int_equal(b.q.err.code, ERR_UNAUTHENTICATED);
    assert_int_equal(a.n_done + b.n_done, 2);
    assert_int_equal(f.n_peers, 1);
    teardown(&f);
}

TEST(test_issuers__a_question_that_is_cancelled_is_not_answered)
{
    struct fixture f;
    struct asked a, b;

    setup(&f);
    begin_url(&f);
    assert_false(ask(&f, &a, JWT_RS256));
    assert_false(ask(&f, &b, JWT_RS256));
    token_question_cancel(&a.q);
    serve(&f, 1, "200 OK", set_of(&f, JWT_RS256));
    wait_for(&f, &b);
    assert_int_equal(a.n_done, 0);
    teardown(&f);
}

TEST(test_issuers__without_keys_the_answer_is_unavailable_and_soon_tried_again)
{
    static const char *const bad[] = {"404 Not Found", "302 Found", "500 Oops"};
    struct fixture f;
    struct asked a;

    setup(&f);
    begin_url(&f);
    for (unsigned i = 0; i < countof(bad); i++) {
        assert_false(ask(&f, &a, JWT_RS256));
        serve(&f, i + 1, bad[i], set_of(&f, JWT_RS256));
        wait_for(&f, &a);
        assert_false(a.q.ok);
        assert_int_equal(a.q.err.code, ERR_UNAVAILABLE);
        assert_true(ask(&f, &a, JWT_RS256)); /* too soon */
        assert_int_equal(a.q.err.code, ERR_UNAVAILABLE);
        clock_advance_fake(JWKS_RETRY_MS);
    }
    assert_false(ask(&f, &a, JWT_RS256));
    serve(&f, countof(bad) + 1, "200 OK", set_of(&f, JWT_RS256));
    wait_for(&f, &a);
    assert_true(a.q.ok);
    teardown(&f);
}

TEST(test_issuers__nobody_waits_longer_than_5_s_for_a_server_that_hangs)
{
    struct fixture f;
    struct asked a;

    setup(&f);
    begin_url(&f);
    assert_false(ask(&f, &a, JWT_RS256));
    while (f.n_peers == 0)
        loop_turn(f.loop);
    peer_wait(&f.peers[0], "\r\n\r\n");
    peer_say(&f.peers[0], "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
    clock_advance_fake(JWKS_FETCH_MS);
    wait_for(&f, &a);
    assert_int_equal(a.q.err.code, ERR_UNAVAILABLE);
    teardown(&f);
}

TEST(test_issuers__an_unknown_kid_fetches_again_but_not_within_30_s)
{
    struct fixture f;
    struct asked a;
    uint64_t epoch;

    setup(&f);
    begin_url(&f);
    assert_false(ask(&f, &a, JWT_RS256));
    serve(&f, 1, "200 OK", set_of(&f, JWT_RS256));
    wait_for(&f, &a);
    epoch = issuers_epoch(f.issuers);
    expect(&f, JWT_ES256, JWT_NO_KEY);
    clock_advance_fake(JWKS_UNKNOWN_MS - 1);
    expect(&f, JWT_ES256, JWT_NO_KEY);
    clock_advance_fake(1);
    expect(&f, JWT_RS256, JWT_OK); /* known keys fetch nothing */
    assert_false(ask(&f, &a, JWT_ES256));
    serve(&f, 2, "200 OK", set_of(&f, JWT_ES256));
    wait_for(&f, &a);
    assert_true(a.q.ok);
    assert_int_not_equal(issuers_epoch(f.issuers), epoch);
    expect(&f, JWT_RS256, JWT_NO_KEY); /* withdrawn */
    assert_int_equal(f.n_peers, 2);
    teardown(&f);
}

TEST(test_issuers__a_token_of_an_unknown_issuer_fetches_nothing)
{
    struct fixture f;
    struct asked a;

    setup(&f);
    begin_url(&f);
    assert_false(ask(&f, &a, JWT_RS256));
    serve(&f, 1, "200 OK", set_of(&f, JWT_RS256));
    wait_for(&f, &a);
    clock_advance_fake(JWKS_UNKNOWN_MS);
    a.q.token = token_issue(&f.t, JWT_ES256, STR("{\"iss\":\"https://evil.example\"}"));
    assert_true(issuers_ask(f.issuers, &a.q));
    assert_int_equal(a.q.fault, JWT_ISS);
    a.q.token = STR("not a token");
    assert_true(issuers_ask(f.issuers, &a.q));
    assert_int_equal(a.q.err.code, ERR_UNAUTHENTICATED);
    assert_int_equal(f.n_peers, 1);
    teardown(&f);
}

TEST(test_issuers__old_keys_stay_when_a_refresh_fails_but_only_for_a_day)
{
    struct fixture f;
    struct asked a;

    setup(&f);
    begin_url(&f);
    assert_false(ask(&f, &a, JWT_RS256));
    serve(&f, 1, "200 OK", set_of(&f, JWT_RS256));
    wait_for(&f, &a);
    clock_set_fake(START_MS, 1000000 + JWKS_REFRESH_MS); /* the token stays young */
    expect(&f, JWT_RS256, JWT_OK);                       /* and begins a fetch */
    serve(&f, 2, "500 Oops", STR("{}"));
    assert_false(ask(&f, &a, JWT_ES256));
    wait_for(&f, &a);
    assert_int_equal(a.q.fault, JWT_NO_KEY);
    expect(&f, JWT_RS256, JWT_OK);
    clock_set_fake(START_MS, 1000000 + JWKS_STALE_MS - 1);
    expect(&f, JWT_RS256, JWT_OK);
    serve(&f, 3, "200 OK", STR("{\"keys\":[]}"));
    assert_false(ask(&f, &a, JWT_ES256));
    wait_for(&f, &a);
    clock_set_fake(START_MS, 1000000 + JWKS_STALE_MS + JWKS_RETRY_MS);
    assert_false(ask(&f, &a, JWT_RS256));
    serve(&f, 4, "500 Oops", STR("{}"));
    wait_for(&f, &a);
    assert_int_equal(a.q.err.code, ERR_UNAVAILABLE);
    teardown(&f);
}

TEST(test_issuers__a_set_past_256_kib_is_not_taken)
{
    struct fixture f;
    struct asked a;

    setup(&f);
    begin_url(&f);
    for (unsigned over = 0; over < 2; over++) {
        struct str set = set_of(&f, JWT_ES256);
        char *body = arena_alloc(f.mem, JWKS_BYTES_MAX + 2);
        size_t n = JWKS_BYTES_MAX + 1 - over; /* first too long, then just right */
        memset(body, ' ', n);
        body[n] = '\0';
        memcpy(body, set.p, set.n);
        assert_false(ask(&f, &a, JWT_ES256));
        serve(&f, over + 1, "200 OK", str_n(body, n));
        wait_for(&f, &a);
        assert_int_equal(a.q.ok, over);
        clock_advance_fake(JWKS_RETRY_MS);
    }
    teardown(&f);
}

TEST(test_issuers__a_file_is_read_again_when_it_changes)
{
    struct fixture f;

    setup(&f);
    write_file(&f, set_of(&f, JWT_RS256));
    begin_file(&f);
    expect(&f, JWT_RS256, JWT_OK);
    expect(&f, JWT_EDDSA, JWT_NO_KEY);
    write_file(&f, set_of(&f, JWT_EDDSA));
    expect(&f, JWT_EDDSA, JWT_NO_KEY); /* not looked at yet */
    clock_advance_fake(JWKS_LOOK_MS);
    expect(&f, JWT_EDDSA, JWT_OK);
    expect(&f, JWT_RS256, JWT_NO_KEY);
    write_file(&f, STR("{\"keys\":["));
    clock_advance_fake(JWKS_LOOK_MS);
    expect(&f, JWT_EDDSA, JWT_OK); /* the old keys stay */
    teardown(&f);
}

TEST(test_issuers__a_reload_reads_files_at_once_and_keeps_what_was_fetched)
{
    struct fixture f;
    struct asked a;
    struct config *fresh;
    struct error err;

    setup(&f);
    begin_url(&f);
    assert_false(ask(&f, &a, JWT_RS256));
    serve(&f, 1, "200 OK", set_of(&f, JWT_RS256));
    wait_for(&f, &a);
    assert_true(issuers_apply(f.issuers, f.config, &err));
    expect(&f, JWT_RS256, JWT_OK);
    assert_false(ask(&f, &a, JWT_EDDSA)); /* the new fetch is under way */
    write_file(&f, set_of(&f, JWT_EDDSA));
    fresh = parse(&f, arena_printf(f.mem, "\"jwks\":\"%s\"", f.file).p);
    assert_true(issuers_apply(f.issuers, fresh, &err));
    config_unref(fresh);
    assert_int_equal(a.n_done, 1); /* answered from the file */
    assert_true(a.q.ok);
    expect(&f, JWT_RS256, JWT_NO_KEY);
    teardown(&f);
}

TEST(test_issuers__a_reload_that_fails_changes_nothing)
{
    struct fixture f;
    struct config *fresh;
    struct error err;

    setup(&f);
    write_file(&f, set_of(&f, JWT_RS256));
    begin_file(&f);
    fresh = parse(&f, "\"jwks\":\"/nowhere/keys.json\"");
    assert_false(issuers_apply(f.issuers, fresh, &err));
    assert_false(issuers_try(fresh, &err));
    config_unref(fresh);
    assert_int_equal(err.code, ERR_CONFIG);
    assert_string_equal(err.text, "h.json:1:91: /nowhere/keys.json: it cannot be opened: No such "
                                  "file or directory");
    expect(&f, JWT_RS256, JWT_OK);
    teardown(&f);
}

static void write_pem(struct fixture *f, EVP_PKEY *key, bool private)
{
    FILE *out = fopen(f->file, "w");

    assert_non_null(out);
    if (private)
        PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
    else
        PEM_write_PUBKEY(out, key);
    fclose(out);
}

TEST(test_issuers__keys_of_the_configuration_need_no_set)
{
    struct fixture f;

    setup(&f);
    write_pem(&f, f.t.pairs[JWT_ES384], false);
    begin(&f, arena_printf(f.mem,
                           "\"keys\":[{\"kid\":\"es384\",\"alg\":\"ES384\",\"pem\":\"%s\"},"
                           "{\"kid\":\"hs256\",\"alg\":\"HS256\",\"secret\":\"" TOKEN_SECRET "\"}]",
                           f.file)
                  .p);
    expect(&f, JWT_ES384, JWT_OK);
    expect(&f, JWT_HS256, JWT_OK);
    expect(&f, JWT_RS256, JWT_NO_KEY);
    teardown(&f);
}

static void complains(struct fixture *f, const char *more, const char *message)
{
    struct config *c = parse(f, more);
    struct error err = {0};

    assert_false(issuers_try(c, &err));
    config_unref(c);
    if (err.code != ERR_CONFIG || strncmp(err.text, "h.json:1:", 9) != 0 ||
        !strstr(err.text, message))
        fail_msg("%s: %s", more, err.text);
}

TEST(test_issuers__files_that_hold_no_fit_key_are_refused_at_start)
{
    struct fixture f;
    const char *es256, *rs256;

    setup(&f);
    es256 = arena_printf(f.mem, "\"keys\":[{\"alg\":\"ES256\",\"pem\":\"%s\"}]", f.file).p;
    rs256 = arena_printf(f.mem, "\"keys\":[{\"alg\":\"RS256\",\"pem\":\"%s\"}]", f.file).p;
    write_pem(&f, f.t.pairs[JWT_ES256], true);
    complains(&f, es256, "private key");
    write_pem(&f, f.t.pairs[JWT_ES384], false);
    complains(&f, es256, "P-256");
    complains(&f, rs256, "an RSA key");
    write_file(&f, STR("hello"));
    complains(&f, es256, "BEGIN PUBLIC KEY");
    complains(&f, arena_printf(f.mem, "\"jwks\":\"%s\"", f.file).p, "not JSON");
    complains(&f, "\"jwks\":\"/dev/zero\"", "regular file");
    complains(&f, "\"jwks\":\"/tmp\"", "regular file");
    complains(&f, "\"keys\":[{\"alg\":\"HS256\",\"secret\":\"0123456789012345678901234567890\"}]",
              "32 random bytes");
    complains(&f, "\"keys\":[{\"alg\":\"HS256\",\"secret\":\"changemechangemechangemechangeme\"}]",
              "32 random bytes");
    teardown(&f);
}
