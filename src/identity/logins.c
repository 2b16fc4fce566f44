/* SPDX-License-Identifier: Apache-2.0 */
/* Signing in and going on; ending is the store's and identity_revoked()'s business. */
#include "identity/logins.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "crypto/hash.h"
#include "crypto/token.h"
#include "identity/password.h"

#include <stdlib.h>

/* Wrong passwords from one address. */
struct address {
    struct list lru;
    struct str text; /* behind this struct */
    int64_t failures;
    int64_t locked_until_ms, forget_ms; /* life clock */
};

struct logins {
    struct logins_config config;
    struct worker *worker;
    unsigned waiting; /* for a worker */
    struct map addresses;
    struct list lru;       /* oldest first */
    struct map refreshing; /* digests under way */
};

struct logins *logins_new(const struct logins_config *config)
{
    struct logins *l = xcalloc(1, sizeof(*l));

    l->config = *config;
    if (!l->config.fits)
        l->config.fits = password_fits;
    l->worker = worker_new(config->loop);
    map_init(&l->addresses);
    map_init(&l->refreshing);
    list_init(&l->lru);
    return l;
}

void logins_stop(struct logins *l)
{
    if (l && l->worker)
        worker_free(l->worker);
    if (l)
        l->worker = NULL;
}

static void address_drop(struct logins *l, struct address *a)
{
    map_remove(&l->addresses, a->text);
    list_remove(&a->lru);
    free(a);
}

void logins_free(struct logins *l)
{
    if (!l)
        return;
    logins_stop(l);
    while (!list_empty(&l->lru))
        address_drop(l, list_entry(list_first(&l->lru), struct address, lru));
    map_release(&l->addresses);
    map_release(&l->refreshing);
    free(l);
}

struct str login_of_credential(struct str credential)
{
    const struct str prefix = STR("session:");

    return str_starts(credential, prefix) ? str_n(credential.p + prefix.n, credential.n - prefix.n)
                                          : STR_NONE;
}

/* Addresses. */

static struct address *address_of(struct logins *l, struct str text)
{
    struct address *a = map_get(&l->addresses, text);

    if (a && a->forget_ms <= clock_life_ms()) {
        address_drop(l, a);
        return NULL;
    }
    return a;
}

static bool address_is_locked(struct logins *l, struct str text)
{
    const struct address *a = address_of(l, text);

    return a && a->locked_until_ms > clock_life_ms();
}

static struct address *address_add(struct logins *l, struct str text)
{
    struct address *a = xcalloc(1, sizeof(*a) + text.n + 1);

    if (l->addresses.n >= LOGIN_MAX_ADDRESSES)
        address_drop(l, list_entry(list_first(&l->lru), struct address, lru));
    memcpy(a + 1, text.p, text.n);
    a->text = str_n((const char *)(a + 1), text.n);
    map_put(&l->addresses, a->text, a);
    list_push(&l->lru, &a->lru);
    return a;
}

static void address_failed(struct logins *l, struct str text)
{
    struct address *a = address_of(l, text);
    int64_t now = clock_life_ms();

    if (!a)
        a = address_add(l, text);
    list_remove(&a->lru);
    list_push(&l->lru, &a->lru);
    a->failures++;
    a->forget_ms = now + LOGIN_ADDRESS_MS;
    if (a->failures < LOGIN_ADDRESS_FAILURES)
        return;
    int64_t doubled = a->failures - LOGIN_ADDRESS_FAILURES;
    int64_t lock_ms = LOGIN_LOCK_MS << (doubled < 6 ? doubled : 6);
    a->locked_until_ms = now + (lock_ms < LOGIN_LOCK_MAX_MS ? lock_ms : LOGIN_LOCK_MAX_MS);
    a->forget_ms = a->locked_until_ms + LOGIN_ADDRESS_MS;
    log_warn("an address is locked out after wrong passwords", LS("address", a->text),
             LI("failures", a->failures));
}

/* Answers. */

static bool answer_now(struct login_call *c, enum login_result result)
{
    c->result = result;
    return true;
}

static void answer(struct login_call *c, enum login_result result)
{
    if (c->op.kind == OP_LOGIN_ROTATE)
        map_remove(&c->logins->refreshing, str_n((const char *)c->digest, sizeof(c->digest)));
    c->result = result;
    c->done(c);
}

static void answer_store(struct login_call *c, const struct error *why)
{
    log_warn("nobody can sign in: the store does not answer", LZ("why", why->text));
    error_set(&c->err, ERR_UNAVAILABLE, "the store cannot be used just now; try again in a moment");
    answer(c, LOGIN_UNAVAILABLE);
}

static void write(struct login_call *c, void (*done)(struct write_job *job))
{
    struct error err;

    c->write = (struct write_job){.ops = &c->op, .n = 1, .done = done};
    if (lane_write(c->logins->config.lanes, &c->write))
        return;
    error_set(&err, ERR_UNAVAILABLE, "too much is waiting to be written");
    answer_store(c, &err);
}

static void make_refresh_token(struct login_call *c, uint8_t ret_hash[32])
{
    uint8_t secret[32];

    random_bytes(secret, sizeof(secret));
    memcpy(c->refresh_token, REFRESH_PREFIX, sizeof(REFRESH_PREFIX));
    base64url_encode(secret, sizeof(secret), c->refresh_token + sizeof(REFRESH_PREFIX) - 1);
    sha256(str_of(c->refresh_token), ret_hash);
    crypto_wipe(secret, sizeof(secret));
}

static void answer_tokens(struct login_call *c)
{
    c->access_token =
        own_token_mint(c->logins->config.own, c->login, c->row, clock_life_ms(), c->mem);
    answer(c, LOGIN_OK);
}

/* Login. */

static void on_created(struct write_job *job)
{
    struct login_call *c = container_of(job, struct login_call, write);

    if (!job->ok) {
        answer_store(c, &job->err);
    } else if (c->op.verdict != VERDICT_OK) { /* disabled, or another password, meanwhile */
        answer(c, LOGIN_REFUSED);
    } else {
        log_info("a user signed in", LS("user", c->row->id), LS("tenant", c->row->tenant),
                 LS("address", c->address));
        answer_tokens(c);
    }
}

static void create(struct login_call *c)
{
    int64_t now = clock_life_ms();

    random_uuid7(c->id);
    c->change = (struct login_row){
        .id = str_of(c->id),
        .family = str_of(c->id),
        .tenant = c->row->tenant,
        .user_id = c->row->id,
        .device_info = c->device_info,
        .ip_address = c->address,
        .created_ms = now,
        .last_activity_ms = now,
        .expires_ms = now + LOGIN_LIFE_MS,
        .password = c->row->password,
    };
    make_refresh_token(c, c->change.refresh_hash);
    c->login = &c->change;
    c->op = (struct store_op){
        .kind = OP_LOGIN_CREATE, .login = &c->change, .max_counted = LOGIN_MAX_PER_USER};
    write(c, on_created);
}

static void on_failed(struct write_job *job)
{
    struct login_call *c = container_of(job, struct login_call, write);

    if (!job->ok)
        answer_store(c, &job->err);
    else
        answer(c, LOGIN_REFUSED);
}

/* Also for whoever is not there: a write like any other, of nobody. */
static void note_failure(struct login_call *c)
{
    bool counts = c->row && c->row->locked_until_ms <= clock_life_ms();

    address_failed(c->logins, c->address);
    c->failed = (struct user_row){
        .id = counts ? c->row->id : STR("00000000-0000-0000-0000-000000000000"),
        .tenant = c->tenant,
    };
    c->op = (struct store_op){.kind = OP_LOGIN_FAILED, .user = &c->failed};
    write(c, on_failed);
}

static void run_password(struct worker_job *job)
{
    struct login_call *c = container_of(job, struct login_call, work);
    c->fits = c->logins->config.fits(c->password, c->hash);
}

static void on_password(struct worker_job *job, bool ran)
{
    struct login_call *c = container_of(job, struct login_call, work);

    c->logins->waiting--;
    if (!ran) {
        error_set(&c->err, ERR_UNAVAILABLE, "Holdfast is stopping; try again in a moment");
        answer(c, LOGIN_UNAVAILABLE);
    } else if (c->fits) {
        create(c);
    } else {
        note_failure(c);
    }
}

static bool run_user(struct read_job *job, struct store *store)
{
    struct login_call *c = container_of(job, struct login_call, read);
    return store_user_by_name(store, c->tenant, c->name, c->mem, &c->row, &job->err);
}

static void on_user(struct read_job *job)
{
    struct login_call *c = container_of(job, struct login_call, read);
    const struct user_row *u = c->row;

    if (!job->ok) {
        c->logins->waiting--;
        answer_store(c, &job->err);
        return;
    }
    if (u && !u->ended_ms && u->locked_until_ms <= clock_life_ms())
        c->hash = u->password;
    c->work = (struct worker_job){.run = run_password, .done = on_password};
    if (c->logins->worker && worker_submit(c->logins->worker, &c->work))
        return;
    c->logins->waiting--;
    answer(c, LOGIN_BUSY);
}

bool logins_login(struct logins *l, struct login_call *c)
{
    c->logins = l;
    if (address_is_locked(l, c->address))
        return answer_now(c, LOGIN_REFUSED);
    if (l->waiting >= LOGIN_MAX_WAITING)
        return answer_now(c, LOGIN_BUSY);
    c->read = (struct read_job){.run = run_user, .done = on_user};
    if (!lane_lookup(l->config.lanes, &c->read))
        return answer_now(c, LOGIN_BUSY);
    l->waiting++;
    return false;
}

/* Refresh. */

static void on_told(struct write_job *job)
{
    struct login_call *c = container_of(job, struct login_call, write);

    if (!job->ok)
        log_error("the reuse of a refresh token is not in the audit", LZ("why", job->err.text));
    c->op.kind = OP_LOGIN_ROTATE; /* what it was about */
    answer(c, LOGIN_REFUSED);
}

/* Somebody has a copy: the sign-in is over by now, and it goes on record. */
static void tell_reuse(struct login_call *c)
{
    log_warn("a refresh token came a second time; its sign-in is ended", LS("user", c->row->id),
             LS("sign_in", c->login->family), LS("address", c->address));
    identity_revoked(c->logins->config.identity,
                     arena_printf(c->mem, "session:%.*s", STR_ARG(c->login->family)));
    c->event = (struct event_row){
        .tenant = c->login->tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = arena_printf(c->mem, "user:%.*s", STR_ARG(c->login->user_id)),
        .method = STR("auth/refresh"),
        .outcome = STR("refused"),
        .error = arena_printf(c->mem, "a refresh token was used again; sign-in %.*s is ended",
                              STR_ARG(c->login->family)),
        .body_len = -1,
    };
    c->op = (struct store_op){.kind = OP_EVENT_APPEND, .event = &c->event};
    write(c, on_told);
}

static void on_rotated(struct write_job *job)
{
    struct login_call *c = container_of(job, struct login_call, write);

    if (!job->ok)
        answer_store(c, &job->err);
    else if (c->op.verdict == VERDICT_OK)
        answer_tokens(c);
    else if (c->op.verdict == VERDICT_STALE)
        tell_reuse(c);
    else
        answer(c, c->op.verdict == VERDICT_DUPLICATE ? LOGIN_CONFLICT : LOGIN_REFUSED);
}

static bool run_token(struct read_job *job, struct store *store)
{
    struct login_call *c = container_of(job, struct login_call, read);

    return store_login_by_hash(store, c->digest, c->mem, &c->login, &job->err) &&
           (!c->login || store_user_get(store, c->login->user_id, c->mem, &c->row, &job->err));
}

static void on_token(struct read_job *job)
{
    struct login_call *c = container_of(job, struct login_call, read);

    if (!job->ok) {
        answer_store(c, &job->err);
        return;
    }
    if (!c->login || !c->row) {
        answer(c, LOGIN_REFUSED);
        return;
    }
    random_uuid7(c->id);
    c->change = (struct login_row){
        .id = str_of(c->id),
        .expires_ms = clock_life_ms() + LOGIN_LIFE_MS,
        .ip_address = c->address,
        .arrived_ms = c->arrived_ms,
    };
    memcpy(c->change.refresh_hash, c->digest, sizeof(c->digest));
    make_refresh_token(c, c->change.next_hash);
    c->op.login = &c->change;
    write(c, on_rotated);
}

bool logins_refresh(struct logins *l, struct login_call *c)
{
    struct str key = str_n((const char *)c->digest, sizeof(c->digest));

    c->logins = l;
    if (c->token.n != REFRESH_LENGTH || !str_starts(c->token, STR(REFRESH_PREFIX)))
        return answer_now(c, LOGIN_REFUSED);
    sha256(c->token, c->digest);
    c->arrived_ms = clock_life_ms();
    if (map_get(&l->refreshing, key))
        return answer_now(c, LOGIN_CONFLICT);
    c->op = (struct store_op){.kind = OP_LOGIN_ROTATE};
    c->read = (struct read_job){.run = run_token, .done = on_token};
    if (!lane_lookup(l->config.lanes, &c->read))
        return answer_now(c, LOGIN_BUSY);
    map_put(&l->refreshing, key, c);
    return false;
}
