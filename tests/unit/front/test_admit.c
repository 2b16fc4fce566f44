/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline identify → limit → role over a real HTTP server: each refusal once, the caller that a
 * handler gets, and a client that disconnects while its key is looked up. */
#include "peer.h"

#include "base/clock.h"
#include "front/front.h"
#include "front/plain.h"
#include "identity/key.h"
#include "identity/throttle.h"

#include <semaphore.h>

#define NOW INT64_C(1800000000000)

static const struct principal admin = {STR("acme"), STR("local"), ROLE_ADMIN};

struct rig {
    struct loop *loop;
    struct store *failing;
    struct lanes *lanes;
    struct http_server *server;
    struct conn_address at, socket;
    struct front front;
    struct arena *mem;
    struct key_text keys[ROLE_SERVICE + 1]; /* one for each role */
    unsigned n_handled;
    char owner[128];    /* of the last caller */
    struct caller kept; /* taken by "/later" */
    struct http_request *later;
};

static void note(struct rig *r, const struct caller *c)
{
    r->n_handled++;
    snprintf(r->owner, sizeof(r->owner), "%.*s", STR_ARG(c->who.owner));
}

static void handle(void *arg, struct http_request *q, struct caller *c)
{
    note(arg, c);
    assert_true(c->config == ((struct rig *)arg)->front.config);
    http_reply(q, 200, "text/plain", STR_NONE, c->is_known ? STR("known") : STR("unknown"));
}

static void handle_later(void *arg, struct http_request *q, struct caller *c)
{
    struct rig *r = arg;

    note(r, c);
    caller_take(&r->kept, c);
    r->later = q;
}

static void refuse_loudly(void *arg unused_arg, struct http_request *q, struct caller *c unused_arg,
                          const struct refusal *why)
{
    http_reply(q, error_info(why->code)->http_status, "text/plain", why->headers,
               arena_printf(q->mem, "<%s>", error_info(why->code)->name));
}

static const char *is_off(const struct caller *c unused_arg)
{
    return "this is switched off";
}

static const struct need counted = {.access = ACCESS_ANY, .quota = QUOTA_REQUEST};
static const struct need need_write = {.access = ACCESS_WRITE};
static const struct need need_watch = {.access = ACCESS_WATCH, .denied = "watch from elsewhere"};
static const struct need need_admin = {
    .access = ACCESS_ADMIN, .quota = QUOTA_REQUEST, .is_free_for_local = true};
static const struct need need_off = {.access = ACCESS_LOCAL_ADMIN, .off = is_off};

static const struct front_route routes[] = {
    {"GET", "/open", handle, "Open.", 0, &need_open},
    {"GET", "/any", handle, "For principals.", 0, &need_any},
    {"GET", "/socket", handle, "On the socket.", ROUTE_SOCKET_ONLY, &need_any},
    {"GET", "/worded", handle, "Refuses in its own words.", 0, &need_any, refuse_loudly},
    {"POST", "/counted", handle, "Counts.", 0, &counted},
    {"GET", "/write", handle, "For writers.", 0, &need_write},
    {"GET", "/watch", handle, "For admin and auditor.", 0, &need_watch},
    {"GET", "/admin", handle, "For admins.", 0, &need_admin},
    {"GET", "/local", handle, "For the local admin.", 0, &need_local_admin},
    {"GET", "/off", handle, "Switched off.", 0, &need_off},
    {"GET", "/later", handle_later, "Answers later.", 0, &counted},
};

static void write_one(struct store *s, struct store_op op)
{
    struct error err;
    if (!store_write(s, &op, 1, &err))
        fail_msg("%s", err.text);
}

static void make_key(struct rig *r, enum role role)
{
    struct key_text *k = &r->keys[role];

    key_make(k);
    struct key_row row = {.id = str_of(k->id),
                          .tenant = STR("acme"),
                          .name = STR("test"),
                          .role = role,
                          .created_ms = NOW};
    memcpy(row.hash, k->hash, sizeof(row.hash));
    write_one(r->failing, (struct store_op){.kind = OP_KEY_CREATE, .who = &admin, .key = &row});
}

static void open_services(struct rig *r, const char *config)
{
    struct tenant_row tenant = {.id = STR("acme"), .created_ms = NOW};
    struct store *memory = NULL;
    struct error err;

    assert_true(store_open_memory(&memory, &err));
    r->failing = store_failing(memory);
    struct lanes_config lanes = {.write = r->failing, .lookup = r->failing, .query = r->failing};
    r->lanes = lanes_new(r->loop, &lanes);
    if (!config_parse(str_of(config), STR("test.json"), &(struct config_source){0},
                      &r->front.config, &err))
        fail_msg("%s", err.text);
    struct identity_config identity = {.loop = r->loop, .lanes = r->lanes};
    struct quotas_config quotas = {.config = r->front.config};
    if (!identity_new(&identity, r->front.config, &r->front.identity, &err) ||
        !quotas_new(&quotas, &r->front.quotas, &err))
        fail_msg("%s", err.text);
    write_one(r->failing,
              (struct store_op){.kind = OP_TENANT_ENSURE, .who = &admin, .tenant = &tenant});
    for (enum role role = ROLE_ADMIN; role <= ROLE_SERVICE; role++)
        make_key(r, role);
}

static int listen_socket(struct rig *r)
{
    struct str name = arena_printf(r->mem, "unix:/tmp/holdfast-test-admit-%d", (int)getpid());
    struct error err;
    int fd = -1;

    unlink(name.p + strlen("unix:"));
    if (!address_parse(name, &r->socket, &err) || !address_listen(&r->socket, &fd, &err))
        fail_msg("%s", err.text);
    return fd;
}

static void rig_open(struct rig *r, const char *config)
{
    clock_set_fake(NOW, 1000);
    memset(r, 0, sizeof(*r));
    r->loop = loop_new();
    r->mem = arena_new(1024 * 1024);
    open_services(r, config);
    front_add(&r->front, NULL, routes, countof(routes), r);
    r->server =
        http_server_new(r->loop, &http_server_defaults, front_gate, front_handle, &r->front);
    http_server_listen(r->server, peer_listen(&r->at), NULL, false);
    http_server_listen(r->server, listen_socket(r), NULL, true);
}

static void rig_close(struct rig *r)
{
    assert_int_equal(r->front.under_way, 0);
    http_server_free(r->server);
    identity_stop(r->front.identity);
    lanes_free(r->lanes);
    identity_free(r->front.identity);
    quotas_free(r->front.quotas);
    front_release(&r->front);
    config_unref(r->front.config);
    loop_free(r->loop);
    unlink(arena_printf(r->mem, "/tmp/holdfast-test-admit-%d", (int)getpid()).p);
    arena_free(r->mem);
    clock_set_real();
}

static void say(struct peer *p, struct rig *r, const char *line, const char *key)
{
    peer_say(p, arena_printf(r->mem,
                             "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n%s%s%s\r\n",
                             line, key ? "X-API-Key: " : "", key ? key : "", key ? "\r\n" : "")
                    .p);
}

/* Sends a request on a connection of its own; the answer has all of `want`. */
static void expect(struct rig *r, const struct conn_address *to, const char *line, const char *key,
                   const char *const *want)
{
    struct peer p;

    peer_dial(&p, r->loop, to);
    say(&p, r, line, key);
    for (; *want; want++)
        peer_wait(&p, *want);
    peer_close(&p);
}
#define EXPECT_AT(r, to, line, key, ...)                                                           \
    expect(r, to, line, key, (const char *const[]){__VA_ARGS__, NULL})
#define EXPECT(r, line, key, ...) EXPECT_AT(r, &(r)->at, line, key, __VA_ARGS__)

#define REQUIRED "{\"holdfast\":{\"auth\":\"required\"}}"

TEST(test_admit__an_open_route_has_no_known_caller)
{
    struct rig r;

    rig_open(&r, REQUIRED);
    EXPECT(&r, "GET /open", NULL, "200 OK", "unknown");
    EXPECT(&r, "GET /open", "hf_wrong", "200 OK", "unknown");
    assert_int_equal(r.n_handled, 2);
    rig_close(&r);
}

TEST(test_admit__a_caller_is_known_to_its_handler_or_gets_401)
{
    struct rig r;

    rig_open(&r, REQUIRED);
    EXPECT(&r, "GET /any", NULL, "401 ", "WWW-Authenticate: Bearer", "{\"error\":\"a credential");
    EXPECT(&r, "GET /any", "hf_wrong", "401 ", "error=\"invalid_token\"");
    assert_int_equal(r.n_handled, 0);
    EXPECT(&r, "GET /any", r.keys[ROLE_MEMBER].text, "200 OK", "known");
    assert_string_equal(r.owner, arena_printf(r.mem, "key:%s", r.keys[ROLE_MEMBER].id).p);
    rig_close(&r);
    rig_open(&r, "{}");
    EXPECT(&r, "GET /any", NULL, "200 OK", "known");
    assert_string_equal(r.owner, "local");
    rig_close(&r);
}

TEST(test_admit__each_surface_words_its_refusals)
{
    struct rig r;

    rig_open(&r, REQUIRED);
    EXPECT(&r, "GET /worded", NULL, "401 ", "WWW-Authenticate: Bearer", "<unauthenticated>");
    rig_close(&r);
}

TEST(test_admit__too_many_invalid_keys_from_an_address_are_429)
{
    struct key_text unknown;
    struct rig r;

    rig_open(&r, REQUIRED);
    key_make(&unknown);
    for (unsigned i = 0; i < THROTTLE_AT_ONCE; i++)
        EXPECT(&r, "GET /any", unknown.text, "401 ");
    EXPECT(&r, "GET /any", unknown.text, "429 ", "Retry-After: 1", "too many invalid credentials");
    assert_int_equal(r.n_handled, 0);
    rig_close(&r);
}

TEST(test_admit__a_store_that_fails_is_503_and_no_401)
{
    struct rig r;

    rig_open(&r, REQUIRED);
    store_failing_set(r.failing, 1, false);
    EXPECT(&r, "GET /any", r.keys[ROLE_MEMBER].text, "503 ", "Retry-After: 1");
    assert_int_equal(r.n_handled, 0);
    rig_close(&r);
}

TEST(test_admit__requests_are_counted_at_the_limit_and_one_past_it)
{
    struct rig r;

    rig_open(&r,
             "{\"holdfast\":{\"auth\":\"required\",\"limits\":{\"requests\":\"3/h burst 2\"}}}");
    for (unsigned i = 0; i < 5; i++)
        EXPECT(&r, "GET /any", r.keys[ROLE_ADMIN].text, "200 OK"); /* not counted */
    EXPECT(&r, "POST /counted", NULL, "401 ");                     /* not counted either */
    EXPECT(&r, "POST /counted", r.keys[ROLE_ADMIN].text, "200 OK");
    EXPECT(&r, "POST /counted", r.keys[ROLE_MEMBER].text, "200 OK");
    EXPECT(&r, "POST /counted", r.keys[ROLE_ADMIN].text, "429 ",
           "Retry-After: ", "RateLimit: ", "Rate limit of tenant 'acme' reached");
    assert_int_equal(r.n_handled, 7);
    rig_close(&r);
}

TEST(test_admit__commands_of_the_local_admin_work_whatever_is_used_up)
{
    struct rig r;

    rig_open(&r, "{\"holdfast\":{\"limits\":{\"requests\":\"3/h burst 1\"}}}");
    EXPECT(&r, "GET /admin", NULL, "200 OK"); /* over TCP it is counted */
    EXPECT(&r, "GET /admin", NULL, "429 ");
    EXPECT_AT(&r, &r.socket, "POST /counted", NULL, "429 ");
    EXPECT_AT(&r, &r.socket, "GET /admin", NULL, "200 OK");
    assert_int_equal(r.n_handled, 2);
    rig_close(&r);
}

TEST(test_admit__a_role_may_use_what_its_row_says)
{
    static const struct {
        const char *line;
        bool may[ROLE_SERVICE + 1]; /* admin, member, auditor, service */
        const char *text;
    } rows[] = {
        {"GET /any", {true, true, true, true}, NULL},
        {"GET /write", {true, true, false, true}, "The role auditor reads and changes nothing"},
        {"GET /watch", {true, false, true, false}, "watch from elsewhere"},
        {"GET /admin", {true, false, false, false}, "This is for the role admin"},
        {"GET /local", {false, false, false, false}, "for the user who runs Holdfast"},
    };
    struct rig r;

    rig_open(&r, "{}");
    for (size_t i = 0; i < countof(rows); i++)
        for (enum role role = ROLE_ADMIN; role <= ROLE_SERVICE; role++) {
            if (rows[i].may[role])
                EXPECT(&r, rows[i].line, r.keys[role].text, "200 OK");
            else
                EXPECT(&r, rows[i].line, r.keys[role].text, "403 ", rows[i].text);
        }
    EXPECT(&r, "GET /local", NULL, "403 ");
    EXPECT_AT(&r, &r.socket, "GET /local", r.keys[ROLE_ADMIN].text, "403 ");
    EXPECT_AT(&r, &r.socket, "GET /local", NULL, "200 OK");
    rig_close(&r);
}

TEST(test_admit__what_is_switched_off_is_404_before_a_role_is_checked)
{
    struct rig r;

    rig_open(&r, REQUIRED);
    EXPECT(&r, "GET /off", NULL, "401 ");
    EXPECT(&r, "GET /off", r.keys[ROLE_MEMBER].text, "404 ", "this is switched off");
    rig_close(&r);
}

TEST(test_admit__rows_of_the_socket_are_not_there_for_others)
{
    struct rig r;

    rig_open(&r, "{}");
    EXPECT(&r, "GET /socket", NULL, "404 ", "there is nothing here");
    EXPECT(&r, "POST /socket", NULL, "404 ", "there is nothing here");
    EXPECT_AT(&r, &r.socket, "GET /socket", NULL, "200 OK", "known");
    EXPECT_AT(&r, &r.socket, "POST /socket", NULL, "405 ", "Allow: GET");
    EXPECT(&r, "POST /any", NULL, "405 ", "Allow: GET");
    rig_close(&r);
}

TEST(test_admit__a_caller_that_was_taken_keeps_its_configuration)
{
    struct rig r;
    struct peer p;
    struct error err;
    struct config *fresh = NULL;

    rig_open(&r, "{\"holdfast\":{\"limits\":{\"requests\":\"9/h\"}}}");
    peer_dial(&p, r.loop, &r.at);
    say(&p, &r, "GET /later", NULL);
    while (!r.later)
        loop_turn(r.loop);
    assert_true(r.kept.is_limited);
    assert_true(
        config_parse(STR("{}"), STR("test.json"), &(struct config_source){0}, &fresh, &err));
    quotas_apply(r.front.quotas, fresh);
    config_unref(r.front.config);
    r.front.config = fresh;
    assert_true(r.kept.config->is_limited && !fresh->is_limited);
    caller_spend(&r.kept, 100);
    caller_release(&r.kept);
    caller_release(&r.kept); /* holds nothing any more */
    http_reply(r.later, 204, NULL, STR_NONE, STR_NONE);
    peer_wait(&p, "204 ");
    peer_close(&p);
    rig_close(&r);
}

/* Holds the lookup lane until the test lets it go. */
struct hold {
    struct read_job job;
    sem_t go;
    bool done;
};

static bool run_hold(struct read_job *job, struct store *store unused_arg)
{
    sem_wait(&container_of(job, struct hold, job)->go);
    return true;
}

static void hold_done(struct read_job *job)
{
    container_of(job, struct hold, job)->done = true;
}

TEST(test_admit__a_client_that_leaves_while_its_key_is_looked_up_leaves_nothing_behind)
{
    struct hold hold = {.job = {.run = run_hold, .done = hold_done}};
    struct rig r;
    struct peer p;

    rig_open(&r, REQUIRED);
    sem_init(&hold.go, 0, 0);
    assert_true(lane_lookup(r.lanes, &hold.job));
    peer_dial(&p, r.loop, &r.at);
    say(&p, &r, "GET /any", r.keys[ROLE_MEMBER].text);
    while (!r.front.under_way)
        loop_turn(r.loop);
    peer_close(&p);
    while (r.front.under_way)
        loop_turn(r.loop);
    sem_post(&hold.go);
    while (!hold.done)
        loop_turn(r.loop);
    EXPECT(&r, "GET /any", r.keys[ROLE_MEMBER].text, "200 OK");
    assert_int_equal(r.n_handled, 1);
    sem_destroy(&hold.go);
    rig_close(&r);
}
