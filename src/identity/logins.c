/* SPDX-License-Identifier: Apache-2.0 */
/* Login and refresh.  The store and identity_revoked() end sign-ins. */
#include "identity/logins.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "crypto/base64.h"
#include "crypto/hash.h"
#include "identity/password.h"
#include "identity/proxy.h"
#include "identity/user_admin.h"

#include <stdlib.h>

#define NO_USER "00000000-0000-0000-0000-000000000000"

/* Wrong passwords from one address, or for one name from one network. */
struct failures {
    struct list lru;
    struct str text; /* stored after this struct */
    int64_t n;
    int64_t locked_until_ms, forget_ms; /* life clock */
    uint64_t password;                  /* password_mark() of the password that was tried against */
};
struct failure_set {
    struct map by_text;
    struct list lru; /* least recently used first */
};
/* After how many failures an entry locks, and for how long: each further failure doubles the
 * time. */
struct lock_rule {
    int64_t free, first_ms, max_ms;
};
static const struct lock_rule address_rule = {LOGIN_ADDRESS_FAILURES, LOGIN_NETWORK_LOCK_MS,
                                              LOGIN_NETWORK_LOCK_MAX_MS};
static const struct lock_rule network_rule = {LOGIN_NETWORK_FAILURES, LOGIN_NETWORK_LOCK_MS,
                                              LOGIN_NETWORK_LOCK_MAX_MS};
/* In a known network of the user, others may share the address: short locks only. */
static const struct lock_rule known_rule = {LOGIN_NETWORK_FAILURES, LOGIN_LOCK_MS,
                                            LOGIN_LOCK_MAX_MS};

struct logins {
    struct logins_config config;
    struct worker *worker;
    unsigned waiting;        /* logins that wait for a worker */
    unsigned waiting_locked; /* of those, the logins from a locked address or network */
    struct failure_set addresses;
    struct failure_set networks; /* key: tenant, name and network */
    struct map refreshing;       /* digests of refresh tokens in progress */
    /* Networks where users signed in since the start: marks of known_slot().  A later mark of the
     * same slot replaces the entry. */
    uint64_t known[LOGIN_KNOWN];
};

/* Failures. */

static void failures_init(struct failure_set *s)
{
    map_init(&s->by_text);
    list_init(&s->lru);
}

static void failures_drop(struct failure_set *s, struct failures *f)
{
    map_remove(&s->by_text, f->text);
    list_remove(&f->lru);
    free(f);
}

static void failures_release(struct failure_set *s)
{
    while (!list_empty(&s->lru))
        failures_drop(s, list_entry(list_first(&s->lru), struct failures, lru));
    map_release(&s->by_text);
}

static struct failures *failures_of(struct failure_set *s, struct str text)
{
    struct failures *f = map_get(&s->by_text, text);

    if (f && f->forget_ms <= clock_life_ms()) {
        failures_drop(s, f);
        return NULL;
    }
    return f;
}

static bool failures_lock(struct failure_set *s, struct str text)
{
    const struct failures *f = failures_of(s, text);

    return f && f->locked_until_ms > clock_life_ms();
}

static void failures_forget(struct failure_set *s, struct str text)
{
    struct failures *f = failures_of(s, text);

    if (f)
        failures_drop(s, f);
}

static struct failures *failures_new(struct failure_set *s, struct str text)
{
    struct failures *f = xcalloc(1, sizeof(*f) + text.n + 1);

    if (s->by_text.n >= LOGIN_MAX_ADDRESSES)
        failures_drop(s, list_entry(list_first(&s->lru), struct failures, lru));
    memcpy(f + 1, text.p, text.n);
    f->text = str_n((const char *)(f + 1), text.n);
    map_put(&s->by_text, f->text, f);
    list_push(&s->lru, &f->lru);
    return f;
}

/* Counts one failure.  Returns true when it causes a lock. */
static bool failures_add(struct failure_set *s, struct str text, uint64_t password,
                         const struct lock_rule *rule)
{
    struct failures *f = failures_of(s, text);
    int64_t now = clock_life_ms();

    if (!f)
        f = failures_new(s, text);
    list_remove(&f->lru);
    list_push(&s->lru, &f->lru);
    f->n++;
    f->password = password;
    f->forget_ms = now + LOGIN_ADDRESS_MS;
    if (f->n < rule->free)
        return false;
    int64_t doubled = f->n - rule->free;
    int64_t lock_ms = rule->first_ms << (doubled < 20 ? doubled : 20);
    f->locked_until_ms = now + (lock_ms < rule->max_ms ? lock_ms : rule->max_ms);
    f->forget_ms = f->locked_until_ms + LOGIN_ADDRESS_MS;
    return true;
}

/* The service. */

struct logins *logins_new(const struct logins_config *config)
{
    struct logins *l = xcalloc(1, sizeof(*l));

    l->config = *config;
    if (!l->config.fits)
        l->config.fits = password_fits;
    l->worker = worker_new(config->loop);
    failures_init(&l->addresses);
    failures_init(&l->networks);
    map_init(&l->refreshing);
    return l;
}

void logins_stop(struct logins *l)
{
    if (l && l->worker)
        worker_free(l->worker);
    if (l)
        l->worker = NULL;
}

void logins_free(struct logins *l)
{
    if (!l)
        return;
    logins_stop(l);
    failures_release(&l->addresses);
    failures_release(&l->networks);
    map_release(&l->refreshing);
    free(l);
}

struct str login_of_credential(struct str credential)
{
    const struct str prefix = STR("session:");

    return str_starts(credential, prefix) ? str_n(credential.p + prefix.n, credential.n - prefix.n)
                                          : STR_NONE;
}

/* Identifies the user's current password by its hash; 0: the user has no password. */
static uint64_t password_mark(const struct user_row *u)
{
    uint8_t digest[32];
    uint64_t mark;

    if (!u || !u->password.p)
        return 0;
    sha256(u->password, digest);
    memcpy(&mark, digest, sizeof(mark));
    return mark;
}

/* A new password lifts the lock. */
static bool is_locked_here(struct login_call *c)
{
    const struct failures *f = failures_of(&c->logins->networks, c->attempt);

    if (f && f->password != password_mark(c->row)) {
        failures_forget(&c->logins->networks, c->attempt);
        return false;
    }
    return f && f->locked_until_ms > clock_life_ms();
}

/* Known networks. */

/* The password hash is part of the digest, so networks are forgotten when the password changes. */
static uint64_t *known_slot(struct logins *l, const struct user_row *u, struct str network,
                            uint64_t *ret_mark)
{
    struct str zero = str_n("", 1), parts[] = {u->id, zero, u->password, zero, network};
    uint8_t digest[32];
    uint64_t words[2];

    sha256_parts(parts, countof(parts), digest);
    memcpy(words, digest, sizeof(words));
    *ret_mark = words[0];
    return &l->known[words[1] % LOGIN_KNOWN];
}

static void remember_network(struct login_call *c)
{
    uint64_t mark, *slot = known_slot(c->logins, c->row, c->network, &mark);

    *slot = mark;
    failures_forget(&c->logins->networks, c->attempt);
}

/* The user has a live sign-in from the network, or signed in from it since the start. */
static bool is_known_there(struct login_call *c)
{
    uint64_t mark, *slot;

    if (!c->row || !c->row->password.p)
        return false;
    for (size_t i = 0; i < c->n_live; i++)
        if (str_eq(address_network(c->live[i].ip_address, c->mem), c->network))
            return true;
    slot = known_slot(c->logins, c->row, c->network, &mark);
    return *slot == mark;
}

/* Answering. */

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
    log_warn("users cannot sign in: the store does not answer", LZ("why", why->text));
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
        /* Meanwhile the user was disabled or the password changed. */
    } else if (c->op.verdict != VERDICT_OK) {
        answer(c, LOGIN_REFUSED);
    } else {
        remember_network(c);
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

/* An unknown name causes the same write, with NO_USER. */
static void note_failure(struct login_call *c)
{
    bool counts = c->row && c->row->locked_until_ms <= clock_life_ms();
    const struct lock_rule *rule = c->is_known ? &known_rule : &network_rule;

    if (failures_add(&c->logins->addresses, c->source, 0, &address_rule))
        log_warn("an address is locked out after wrong passwords", LS("address", c->source));
    if (failures_add(&c->logins->networks, c->attempt, password_mark(c->row), rule))
        log_warn("a user is locked out of a network after wrong passwords", LS("user", c->name),
                 LS("tenant", c->tenant), LS("network", c->network));
    c->failed = (struct user_row){
        .id = counts ? c->row->id : STR(NO_USER),
        .tenant = c->tenant,
    };
    c->op = (struct store_op){.kind = OP_LOGIN_FAILED, .user = &c->failed};
    write(c, on_failed);
}

static void stop_waiting(struct login_call *c)
{
    c->logins->waiting--;
    c->logins->waiting_locked -= c->is_late;
}

static void run_password(struct worker_job *job)
{
    struct login_call *c = container_of(job, struct login_call, work);
    c->fits = c->logins->config.fits(c->password, c->hash);
}

static void on_password(struct worker_job *job, bool ran)
{
    struct login_call *c = container_of(job, struct login_call, work);

    stop_waiting(c);
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

    /* Sign-ins are read even for an unknown name, so that both cases cost the same. */
    return user_find(store, c->tenant, c->name, c->mem, &c->row, &job->err) &&
           store_logins_page(store, c->tenant, c->row ? c->row->id : STR(NO_USER), STR_NONE,
                             LOGIN_MAX_PER_USER, c->mem, &c->live, &c->n_live, &job->err);
}

static void on_user(struct read_job *job)
{
    struct login_call *c = container_of(job, struct login_call, read);
    const struct user_row *u = c->row;

    if (!job->ok) {
        stop_waiting(c);
        answer_store(c, &job->err);
        return;
    }
    c->is_known = is_known_there(c);
    if (is_locked_here(c) || (c->is_locked && !c->is_known)) {
        stop_waiting(c);
        answer(c, LOGIN_REFUSED);
        return;
    }
    if (u && !u->ended_ms && (c->is_known || u->locked_until_ms <= clock_life_ms()))
        c->hash = u->password;
    c->work = (struct worker_job){.run = run_password, .done = on_password};
    if (c->logins->worker && worker_submit(c->logins->worker, &c->work))
        return;
    stop_waiting(c);
    answer(c, LOGIN_BUSY);
}

/* The key that counts wrong passwords for this name from this network, in any encoding of its
 * accents.  A name may contain any bytes, so lengths separate the parts. */
static struct str attempt_of(const struct login_call *c)
{
    struct str name = user_name_composed(c->name, c->mem);
    return arena_printf(c->mem, "%zu:%.*s%zu:%.*s%.*s", c->tenant.n, STR_ARG(c->tenant), name.n,
                        STR_ARG(name), STR_ARG(c->network));
}

bool logins_login(struct logins *l, struct login_call *c)
{
    c->logins = l;
    c->network = address_network(c->address, c->mem);
    c->source = str_find(c->address, ':') < c->address.n ? c->network : c->address;
    c->attempt = attempt_of(c);
    c->is_locked = failures_lock(&l->addresses, c->source);
    c->is_late = c->is_locked || failures_lock(&l->networks, c->attempt);
    if (c->is_late && l->waiting_locked >= LOGIN_MAX_WAITING_LOCKED)
        return answer_now(c, LOGIN_REFUSED);
    if (l->waiting >= LOGIN_MAX_WAITING)
        return answer_now(c, LOGIN_BUSY);
    c->read = (struct read_job){.run = run_user, .done = on_user};
    if (!lane_lookup(l->config.lanes, &c->read))
        return answer_now(c, LOGIN_BUSY);
    l->waiting++;
    l->waiting_locked += c->is_late;
    return false;
}

/* Refresh. */

static void on_reuse_recorded(struct write_job *job)
{
    struct login_call *c = container_of(job, struct login_call, write);

    if (!job->ok)
        log_error("the reuse of a refresh token could not be recorded in the audit",
                  LZ("why", job->err.text));
    c->op.kind = OP_LOGIN_ROTATE; /* so that answer() ends the refresh */
    answer(c, LOGIN_REFUSED);
}

/* The token was copied.  The store has ended the sign-in; this notifies watches and writes an audit
 * event. */
static void report_reuse(struct login_call *c)
{
    log_warn("a refresh token was used a second time; its sign-in was ended",
             LS("user", c->row->id), LS("sign_in", c->login->family), LS("address", c->address));
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
    write(c, on_reuse_recorded);
}

static void on_rotated(struct write_job *job)
{
    struct login_call *c = container_of(job, struct login_call, write);

    if (!job->ok)
        answer_store(c, &job->err);
    else if (c->op.verdict == VERDICT_OK)
        answer_tokens(c);
    else if (c->op.verdict == VERDICT_STALE)
        report_reuse(c);
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
