/* SPDX-License-Identifier: Apache-2.0 */
/* Joins a session, with a code or by a share that names the caller.
 *
 *   code: throttle → the share of the code → one write: the join and its event
 *                                        └─▶ refused: one write, the event alone
 *
 * Other nodes learn of a binding and of a new owner when they poll the store (store/change_poller.h).
 * So that the next call goes on in the joined session on every node, the answer waits for their poll. */
#include "session/sharing_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "session/setup.h"
#include "store/change_poller.h"

#define POLLED_MS (CHANGE_POLL_MS + 250)
#define THROWER_BYTES 16
#define ROLE_NONE (-1)

/* A digest, because a throttle cuts long names and tells those that begin alike not apart. */
static struct str thrower(struct sharing_call *c)
{
    const struct str parts[] = {c->who->tenant, STR(" "), c->who->owner};
    uint8_t hash[SHA256_BYTES];
    char digits[THROWER_BYTES * 2 + 1];

    sha256_parts(parts, countof(parts), hash);
    hex_encode(hash, THROWER_BYTES, digits);
    return arena_dup(c->mem, str_of(digits));
}

/* A code as a person copies it. */
static struct str clean_code(struct sharing_call *c)
{
    struct str text = str_trim(c->code);
    char *copy = arena_alloc(c->mem, text.n + 1);

    for (size_t i = 0; i < text.n; i++)
        copy[i] = (char)(text.p[i] >= 'A' && text.p[i] <= 'Z' ? text.p[i] + 32 : text.p[i]);
    return str_n(copy, text.n);
}

static bool no_such_code(struct error *err)
{
    return error_set(err, ERR_NOT_FOUND,
                     "This code is not known. Check that all of it was copied, or ask for a new "
                     "one: a code is used once, and ends after ten minutes unless its maker said "
                     "otherwise.");
}

static bool find_by_code(struct sharing_call *c, struct store *store, struct error *err)
{
    const struct principal wide = {.tenant = c->who->tenant, .tenant_wide = true};
    uint8_t hash[SHA256_BYTES];

    sha256(clean_code(c), hash);
    return store_share_by_code(store, c->who, hash, c->mem, &c->found, err) &&
           (!c->found ||
            store_session_by_id(store, &wide, c->found->session_id, c->mem, &c->row, err));
}

static bool find_by_session(struct sharing_call *c, struct store *store, struct error *err)
{
    return store_shared_session(store, c->who, c->name, c->by_id, c->mem, &c->row, err) &&
           (!c->row || store_share_of(store, c->who, c->row->id, c->mem, &c->found, err));
}

static bool hands_over(const struct sharing_call *c)
{
    return c->found->may == SHARE_HAND_OVER && !str_eq(c->row->owner, c->who->owner);
}

/* *ret: the role that an owner has now; ROLE_NONE: the owner may do nothing any more. */
static bool role_of_user(struct sharing_call *c, struct store *store, struct str id, int *ret,
                         struct error *err)
{
    struct user_row *user = NULL;

    if (!store_user_get(store, id, c->mem, &user, err))
        return false;
    *ret = user && str_eq(user->tenant, c->who->tenant) && !user->ended_ms ? (int)user->role
                                                                           : ROLE_NONE;
    return true;
}

static bool role_of_key(struct sharing_call *c, struct store *store, struct str id, int *ret,
                        struct error *err)
{
    struct key_row *key = NULL;
    int of_user = ROLE_ADMIN;

    if (!store_key_get(store, id, c->mem, &key, err) ||
        (key && key->user_id.p && !role_of_user(c, store, key->user_id, &of_user, err)))
        return false;
    bool is_valid = key && str_eq(key->tenant, c->who->tenant) && !key->revoked_ms &&
                    !(key->expires_ms && key->expires_ms <= clock_life_ms());
    *ret = is_valid && of_user != ROLE_NONE ? (int)key->role : ROLE_NONE;
    return true;
}

/* The maker of an unused code, or of a hand-over, must still have the right to share: a key that was
 * revoked since then must not give a session away.  Callers that have joined keep their access. */
static bool check_maker(struct sharing_call *c, struct store *store, struct error *err)
{
    struct str id = c->found->made_by, kind = str_split(&id, ':');
    bool is_owner = str_eq(c->found->made_by, c->row->owner),
         is_over = c->found->ended_ms ||
                   (c->found->expires_ms && c->found->expires_ms <= clock_life_ms());
    int role = ROLE_ADMIN; /* whoever runs Holdfast */

    if (is_over || (c->found->grantee.p && !hands_over(c)))
        return true; /* the join refuses the former in other words */
    if ((str_eq(kind, STR("user")) && !role_of_user(c, store, id, &role, err)) ||
        (str_eq(kind, STR("key")) && !role_of_key(c, store, id, &role, err)))
        return false;
    return role == ROLE_ADMIN || (role != ROLE_NONE && is_owner) ||
           error_set(err, ERR_DENIED,
                     "Whoever made this share may not share the session any more. Ask its owner "
                     "for a new one.");
}

static bool run_find(struct read_job *job, struct store *store)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);
    bool ok = c->code.p ? find_by_code(c, store, &job->err) : find_by_session(c, store, &job->err);

    if (!ok)
        return false;
    if (c->found && c->row)
        return check_maker(c, store, &job->err);
    c->found = NULL;
    c->row = NULL;
    return c->code.p ? no_such_code(&job->err)
                     : error_set(&job->err, ERR_SESSION_NOT_FOUND,
                                 "No session of this name is shared with you.");
}

static void on_refused(struct write_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, write);

    if (!job->ok)
        log_warn("a refused code could not be recorded", LZ("why", job->err.text));
    sharing_finish(c);
}

/* c->err says why. */
static void refuse(struct sharing_call *c, const char *why)
{
    throttle_failed(c->home->wrong, thrower(c), clock_mono_ms());
    log_warn("a code for a session was refused", LS("owner", c->who->owner), LZ("why", why));
    sharing_note(c, "session/join", "refused",
                 arena_printf(c->mem, "%s%.*s by %.*s: %s", c->found ? "share " : "unknown code",
                              STR_ARG(c->found ? c->found->id : STR("")), STR_ARG(c->who->owner),
                              why));
    c->ops[0] = (struct store_op){.kind = OP_EVENT_APPEND, .who = c->who, .event = &c->event};
    sharing_write(c, 1, on_refused);
}

/* True: c->err and *ret_why say why the store did not let the caller join. */
static bool is_refusal(struct sharing_call *c, const char **ret_why)
{
    switch (c->ops[0].verdict) {
    case VERDICT_MISSING:
        *ret_why = "not for this caller";
        return !no_such_code(&c->err);
    case VERDICT_DUPLICATE:
        *ret_why = "used before";
        return !error_set(&c->err, ERR_CONFLICT,
                          "This code was used before. A code works once: ask for a new one. If it "
                          "was meant for you, tell the person who made it that somebody else has "
                          "used it.");
    case VERDICT_STALE:
        if (str_eq(c->found->end_reason, STR("handed_over"))) {
            *ret_why = "handed over since then";
            return !error_set(&c->err, ERR_DENIED,
                              "The session has another owner now, so this code has ended. Ask that "
                              "owner for a new one.");
        }
        *ret_why = c->found->ended_ms ? "revoked" : "expired";
        return !error_set(&c->err, ERR_DENIED, "This code %s. Ask for a new one.",
                          c->found->ended_ms ? "was revoked" : "has expired");
    case VERDICT_NOT_ACTIVE:
        *ret_why = "the session is over";
        return !error_set(&c->err, ERR_SESSION_NOT_ACTIVE,
                          "The session is over, so nobody can go on in it.");
    default:
        return false;
    }
}

static bool run_links(struct read_job *job, struct store *store)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);
    const struct principal wide = {.tenant = c->who->tenant, .tenant_wide = true};
    struct session_row *row = NULL;
    struct link_row *links = NULL;

    if (!store_session_by_id(store, &wide, c->share.session_id, c->mem, &row, &job->err))
        return false;
    if (!row)
        return true;
    c->row = row;
    const struct principal owner = {.tenant = row->tenant, .owner = row->owner};
    if (!store_links_of(store, &owner, row->id, c->mem, &links, &c->n_links, &job->err))
        return false;
    c->links = links;
    return true;
}

/* It has joined, whatever the read for its answer says. */
static void on_links(struct read_job *job)
{
    sharing_finish(container_of(job, struct sharing_call, read));
}

static void answer(struct sharing_call *c)
{
    sharing_read(c, run_links, on_links);
}

static void on_polled(void *arg)
{
    struct sharing_call *c = arg;

    list_remove(&c->node);
    loop_timer_free(c->timer);
    c->timer = NULL;
    answer(c);
}

void sharing_stop(struct sharing *s)
{
    if (s)
        list_each(&s->waiting, n) on_polled(list_entry(n, struct sharing_call, node));
}

/* The set-up names secrets, as its template laid down. */
static bool names_secrets(const struct sharing_call *c)
{
    struct session_setup setup;

    return c->row->setup.p && session_setup_parse(c->row->setup, c->mem, &setup) &&
           setup.n_credentials;
}

/* As its row was before. */
static bool had_secrets(const struct sharing_call *c)
{
    return c->row->sealed_auth.p || c->row->sealed_context.p || names_secrets(c);
}

static void follow(struct sharing_call *c, bool is_handed_over)
{
    const struct sharing_config *config = &c->home->config;

    if (c->carrier.p)
        sessions_bound(config->sessions, c->who->tenant, c->who->owner, c->carrier, c->carrier_key);
    if (is_handed_over)
        sessions_handed_over(config->sessions, c->who->tenant, c->share.session_id, had_secrets(c));
    if (!config->is_shared || (!c->carrier.p && !is_handed_over)) {
        answer(c);
        return;
    }
    list_push(&c->home->waiting, &c->node);
    c->timer = loop_timer_new(config->loop, on_polled, c);
    loop_timer_start(c->timer, POLLED_MS, 0);
}

static void on_joined(struct write_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, write);
    const char *why;

    if (is_refusal(c, &why)) {
        refuse(c, why);
        return;
    }
    if (!job->ok) {
        c->err = job->err;
        sharing_finish(c);
        return;
    }
    log_info(hands_over(c) ? "a session was handed over" : "a session was joined",
             LS("session", c->share.session_id), LS("share", c->share.id),
             LS("owner", c->who->owner));
    if (!c->share.grantee.p)
        c->share.expires_ms = c->share.access_ms ? c->join.at_ms + c->share.access_ms : 0;
    c->share.grantee = c->who->owner;
    c->share.joined_ms = c->join.at_ms;
    c->share.joined_client = c->client;
    follow(c, hands_over(c));
}

static void join(struct sharing_call *c)
{
    c->share = *c->found;
    c->join = (struct share_join){
        .id = c->share.id,
        .session_id = c->share.session_id,
        .at_ms = clock_life_ms(),
        .client = c->client,
        .carrier = c->carrier,
        .carrier_key = c->carrier_key,
    };
    sharing_note(c, hands_over(c) ? "session/hand_over" : "session/join", "ok",
                 hands_over(c)
                     ? arena_printf(c->mem, "share %.*s by %.*s, from %.*s, who keeps %s",
                                    STR_ARG(c->share.id), STR_ARG(c->who->owner),
                                    STR_ARG(c->row->owner), share_former_names[c->former])
                     : arena_printf(c->mem, "share %.*s by %.*s, may %s", STR_ARG(c->share.id),
                                    STR_ARG(c->who->owner), share_may_names[c->share.may]));
    c->ops[0] = op_share_join(c->who, &c->join);
    c->ops[0].required = true;
    size_t n = 1;
    if (hands_over(c) && had_secrets(c)) {
        /* The sealed ones are gone already.  The patch tells other nodes, whose links may hold them. */
        c->bare = (struct session_row){
            .id = c->share.session_id,
            .setup = names_secrets(c) ? session_setup_for_copy(c->row->setup, c->mem) : STR_NONE};
        c->ops[n++] =
            (struct store_op){.kind = OP_SESSION_PATCH,
                              .who = c->who,
                              .session = &c->bare,
                              .fields = FIELD_SEALED_AUTH | (names_secrets(c) ? FIELD_SETUP : 0)};
    }
    if (hands_over(c) && c->former) { /* the new owner shares it back */
        random_uuid7(c->former_id);
        c->for_former = (struct share_row){
            .id = str_of(c->former_id),
            .session_id = c->share.session_id,
            .grantee = c->row->owner,
            .may = c->former == FORMER_READ ? SHARE_READ : SHARE_USE,
            .created_ms = c->join.at_ms,
        };
        c->ops[n++] = op_share_create(c->who, &c->for_former);
    }
    c->ops[n++] = (struct store_op){.kind = OP_EVENT_APPEND, .who = c->who, .event = &c->event};
    sharing_write(c, n, on_joined);
}

static void on_found(struct read_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);

    if (job->ok) {
        if (c->found->may == SHARE_READ) { /* nothing can be called in it */
            c->carrier = STR_NONE;
            c->carrier_key = STR_NONE;
        }
        join(c);
        return;
    }
    c->err = job->err;
    if (c->code.p && job->err.code == ERR_NOT_FOUND)
        refuse(c, "not known");
    else if (job->err.code == ERR_DENIED)
        refuse(c, "its maker may not share the session any more");
    else
        sharing_finish(c);
}

void sharing_join(struct sharing *s, struct sharing_call *c)
{
    c->home = s;
    c->err = (struct error){.code = ERR_NONE};
    c->row = NULL;
    c->found = NULL;
    c->links = NULL;
    c->n_links = 0;
    if (throttle_allows(s->wrong, thrower(c), clock_mono_ms())) {
        sharing_read(c, run_find, on_found);
        return;
    }
    error_set(&c->err, ERR_LIMIT, "Too many codes were wrong; try again in a minute.");
    sharing_finish_soon(c);
}
