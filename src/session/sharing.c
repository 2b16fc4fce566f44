/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, lists and ends shares; sharing_join.c joins with them. */
#include "session/sharing_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "crypto/hash.h"
#include "identity/key.h"
#include "identity/user_admin.h"
#include "session/session_json.h"

#include <stdlib.h>

const char *const share_may_names[] = {
    [SHARE_READ] = "read", [SHARE_USE] = "use", [SHARE_HAND_OVER] = "hand_over", NULL};

const char *const share_former_names[] = {
    [FORMER_NOTHING] = "nothing", [FORMER_READ] = "read", [FORMER_USE] = "use", NULL};

struct sharing *sharing_new(const struct sharing_config *config)
{
    struct sharing *s = xcalloc(1, sizeof(*s));

    s->config = *config;
    s->wrong = throttle_new();
    list_init(&s->waiting);
    return s;
}

void sharing_free(struct sharing *s)
{
    if (!s)
        return;
    throttle_free(s->wrong);
    free(s);
}

void sharing_finish(struct sharing_call *c)
{
    c->ok = c->err.code == ERR_NONE;
    c->session = c->row;
    c->done(c);
}

static void finish_task(struct loop_task *task)
{
    sharing_finish(container_of(task, struct sharing_call, task));
}

void sharing_finish_soon(struct sharing_call *c)
{
    c->task.fn = finish_task;
    loop_defer(c->home->config.loop, &c->task);
}

void sharing_read(struct sharing_call *c, bool (*run)(struct read_job *job, struct store *store),
                  void (*done)(struct read_job *job))
{
    c->read = (struct read_job){.run = run, .done = done};
    if (lane_lookup(c->home->config.lanes, &c->read))
        return;
    error_set(&c->err, ERR_UNAVAILABLE, "too many lookups are waiting; try again shortly");
    sharing_finish_soon(c);
}

void sharing_write(struct sharing_call *c, size_t n, void (*done)(struct write_job *job))
{
    c->write = (struct write_job){.ops = c->ops, .n = n, .grows = true, .done = done};
    if (lane_write(c->home->config.lanes, &c->write))
        return;
    error_set(&c->err, ERR_UNAVAILABLE, "too much is waiting for the store; try again shortly");
    sharing_finish_soon(c);
}

/* The event belongs to the owner of the session, if it is about one. */
void sharing_note(struct sharing_call *c, const char *method, const char *outcome, struct str text)
{
    c->event = (struct event_row){
        .tenant = c->who->tenant,
        .at_ms = clock_wall_ms(),
        .kind = EVENT_SYSTEM,
        .owner = c->row ? c->row->owner : c->who->owner,
        .session_id = c->row ? c->row->id : STR_NONE,
        .method = str_of(method),
        .outcome = str_of(outcome),
        .client = c->client,
        .error = text,
        .body_len = -1,
    };
}

static void begin(struct sharing *s, struct sharing_call *c)
{
    c->home = s;
    c->err = (struct error){.code = ERR_NONE};
    c->row = NULL;
    c->found = NULL;
}

static bool no_session(struct error *err)
{
    return error_set(err, ERR_SESSION_NOT_FOUND,
                     "There is no session of this name that is yours to share.");
}

static bool find_session(struct sharing_call *c, struct store *store, struct error *err)
{
    bool ok = c->by_id ? store_session_by_id(store, c->who, c->name, c->mem, &c->row, err)
                       : store_session_by_handle(store, c->who, c->name, c->mem, &c->row, err);

    return ok && (c->row || no_session(err));
}

/* Create. */

static void encode_code(const uint8_t bytes[16], char ret_text[SHARE_CODE_TEXT])
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    char *at = ret_text + sizeof(SHARE_CODE_PREFIX) - 1;
    unsigned held = 0, n_held = 0;

    memcpy(ret_text, SHARE_CODE_PREFIX, sizeof(SHARE_CODE_PREFIX) - 1);
    for (size_t i = 0; i < 16; i++) {
        held = held << 8 | bytes[i];
        for (n_held += 8; n_held >= 5; n_held -= 5)
            *at++ = digits[held >> (n_held - 5) & 31];
    }
    *at++ = digits[held << (5 - n_held) & 31];
    *at = '\0';
}

static bool find_user_grantee(struct sharing_call *c, struct store *store, struct error *err)
{
    struct user_row *user = NULL;
    struct str name = c->wish.user;

    if (!user_find(store, c->who->tenant, name, c->mem, &user, err) ||
        (!user && name.n == UUID_TEXT - 1 && !store_user_get(store, name, c->mem, &user, err)))
        return false;
    if (!user || !str_eq(user->tenant, c->who->tenant))
        return error_set(err, ERR_NOT_FOUND,
                         "there is no user \"%.*s\" in this tenant; see `holdfast user list`",
                         STR_ARG(str_cut(name, SHARE_GRANTEE_MAX)));
    c->share.grantee = arena_printf(c->mem, "user:%.*s", STR_ARG(user->id));
    return true;
}

/* A client is known by its key: by the id, or by the name if only one key has it. */
static bool find_key(struct sharing_call *c, struct store *store, struct key_row **ret,
                     struct error *err)
{
    struct str name = c->wish.client, after = STR_NONE;
    struct key_row *rows = NULL;
    size_t n;

    if (!store_key_get(store, name, c->mem, ret, err))
        return false;
    if (*ret && str_eq((*ret)->tenant, c->who->tenant) && !(*ret)->revoked_ms)
        return true;
    *ret = NULL;
    do {
        if (!store_keys_page(store, c->who->tenant, after, STORE_PAGE_MAX, c->mem, &rows, &n, err))
            return false;
        for (size_t i = 0; i < n; i++) {
            if (rows[i].revoked_ms || !str_eq(rows[i].name, name))
                continue;
            if (*ret)
                return error_set(err, ERR_BAD_INPUT,
                                 "several keys are named \"%.*s\"; give the id of one",
                                 STR_ARG(str_cut(name, SHARE_GRANTEE_MAX)));
            *ret = &rows[i];
        }
        after = n ? rows[n - 1].id : STR_NONE;
    } while (n == STORE_PAGE_MAX);
    return *ret || error_set(err, ERR_NOT_FOUND,
                             "there is no key \"%.*s\" in this tenant; see `holdfast key list`",
                             STR_ARG(str_cut(name, SHARE_GRANTEE_MAX)));
}

static bool find_client_grantee(struct sharing_call *c, struct store *store, struct error *err)
{
    struct principal who;
    struct key_row *key = NULL;

    if (!find_key(c, store, &key, err) || !key_principal(key, c->mem, &who, err))
        return false;
    c->share.grantee = who.owner;
    return true;
}

static bool run_create(struct read_job *job, struct store *store)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);

    if (!find_session(c, store, &job->err) ||
        (c->wish.user.p && !find_user_grantee(c, store, &job->err)) ||
        (c->wish.client.p && !find_client_grantee(c, store, &job->err)))
        return false;
    if (c->share.grantee.p && str_eq(c->share.grantee, c->row->owner))
        return error_set(
            &job->err, ERR_BAD_INPUT,
            "the session belongs to \"%.*s\" already; for another client of the same "
            "owner, make a code",
            STR_ARG(str_cut(c->wish.user.p ? c->wish.user : c->wish.client, SHARE_GRANTEE_MAX)));
    return true;
}

static void on_created(struct write_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, write);

    switch (c->ops[0].verdict) {
    case VERDICT_OK:
        if (!job->ok)
            c->err = job->err;
        break;
    case VERDICT_MISSING:
        (void)no_session(&c->err);
        break;
    case VERDICT_NOT_ACTIVE:
        error_set(&c->err, ERR_SESSION_NOT_ACTIVE,
                  "the session is over; only a live one is shared");
        break;
    case VERDICT_LIMIT:
        error_set(&c->err, ERR_LIMIT,
                  "the session has %d live shares already; revoke one that is not needed any more",
                  SHARES_LIVE_MAX);
        break;
    default:
        c->err = job->err;
    }
    if (c->err.code != ERR_NONE)
        memset(c->new_code, 0, sizeof(c->new_code));
    else
        log_info("a session is shared", LS("session", c->row->id), LS("share", c->share.id),
                 LZ("may", share_may_names[c->share.may]));
    sharing_finish(c);
}

/* A session that is handed over has no end of the access. */
static void fill_share(struct sharing_call *c)
{
    struct share_row *r = &c->share;
    uint8_t bytes[16];

    random_uuid7(c->id);
    r->id = str_of(c->id);
    r->tenant = c->who->tenant;
    r->session_id = c->row->id;
    r->made_by = c->who->owner;
    r->may = c->wish.may;
    r->created_ms = clock_life_ms();
    r->access_ms = r->may == SHARE_HAND_OVER || r->grantee.p ? 0 : c->wish.access_ms;
    if (r->grantee.p) {
        bool ends = c->wish.expires_ms && r->may != SHARE_HAND_OVER;
        r->expires_ms = ends ? r->created_ms + c->wish.expires_ms : 0;
        return;
    }
    r->expires_ms = r->created_ms + (c->wish.expires_ms ? c->wish.expires_ms : SHARE_CODE_MS);
    random_bytes(bytes, sizeof(bytes));
    encode_code(bytes, c->new_code);
    crypto_wipe(bytes, sizeof(bytes));
    sha256(str_of(c->new_code), r->code_hash);
}

static void on_to_create(struct read_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);

    if (!job->ok) {
        c->err = job->err;
        sharing_finish(c);
        return;
    }
    fill_share(c);
    sharing_note(
        c, "session/share", "ok",
        arena_printf(c->mem, "share %s by %.*s, for %.*s, may %s", c->id, STR_ARG(c->who->owner),
                     STR_ARG(c->share.grantee.p ? c->share.grantee : STR("whoever has the code")),
                     share_may_names[c->share.may]));
    c->ops[0] = op_share_create(c->who, &c->share);
    c->ops[0].required = true;
    c->ops[1] = (struct store_op){.kind = OP_EVENT_APPEND, .who = c->who, .event = &c->event};
    sharing_write(c, 2, on_created);
}

void sharing_create(struct sharing *s, struct sharing_call *c)
{
    begin(s, c);
    c->share = (struct share_row){0};
    c->new_code[0] = '\0';
    sharing_read(c, run_create, on_to_create);
}

/* List. */

static void on_read(struct read_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);

    if (!job->ok)
        c->err = job->err;
    sharing_finish(c);
}

static bool run_list(struct read_job *job, struct store *store)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);
    struct share_row *rows = NULL;

    if (!find_session(c, store, &job->err) ||
        !store_shares_page(store, c->who, c->row->id, c->share_id, c->limit, c->mem, &rows, &c->n,
                           &job->err))
        return false;
    c->rows = rows;
    return true;
}

void sharing_list(struct sharing *s, struct sharing_call *c)
{
    begin(s, c);
    c->n = 0;
    sharing_read(c, run_list, on_read);
}

/* End. */

static bool no_share(struct error *err)
{
    return error_set(err, ERR_NOT_FOUND,
                     "the session has no such share, or it was revoked already");
}

static bool run_end(struct read_job *job, struct store *store)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);

    if (!find_session(c, store, &job->err) ||
        !store_share_by_id(store, c->who, c->share_id, c->mem, &c->found, &job->err))
        return false;
    return (c->found && str_eq(c->found->session_id, c->row->id)) || no_share(&job->err);
}

static void on_ended(struct write_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, write);

    if (c->ops[0].verdict == VERDICT_MISSING)
        (void)no_share(&c->err);
    else if (!job->ok)
        c->err = job->err;
    else
        log_info("a share was revoked", LS("session", c->row->id), LS("share", c->share.id));
    sharing_finish(c);
}

static void on_to_end(struct read_job *job)
{
    struct sharing_call *c = container_of(job, struct sharing_call, read);

    if (!job->ok) {
        c->err = job->err;
        sharing_finish(c);
        return;
    }
    c->share = *c->found;
    c->share.ended_ms = clock_life_ms();
    c->share.end_reason = STR("revoked");
    sharing_note(
        c, "session/unshare", "ok",
        arena_printf(c->mem, "share %.*s by %.*s", STR_ARG(c->share.id), STR_ARG(c->who->owner)));
    c->ops[0] = op_share_end(c->who, &c->share);
    c->ops[0].required = true;
    c->ops[1] = (struct store_op){.kind = OP_EVENT_APPEND, .who = c->who, .event = &c->event};
    sharing_write(c, 2, on_ended);
}

void sharing_end(struct sharing *s, struct sharing_call *c)
{
    begin(s, c);
    sharing_read(c, run_end, on_to_end);
}

/* JSON. */

static bool has_code(const struct share_row *row)
{
    static const uint8_t none[32];

    return memcmp(row->code_hash, none, sizeof(none)) != 0;
}

const char *share_state(const struct share_row *row, int64_t now_ms)
{
    if (row->ended_ms)
        return str_eq(row->end_reason, STR("handed_over")) ? "handed_over" : "revoked";
    if (row->expires_ms && row->expires_ms <= now_ms)
        return "expired";
    return row->grantee.p ? "live" : "open";
}

void share_to_json(const struct share_row *row, struct js_writer *w)
{
    js_kv_string(w, "id", row->id);
    js_kv_string(w, "status", str_of(share_state(row, clock_life_ms())));
    js_kv_string(w, "may", str_of(share_may_names[row->may]));
    js_kv_bool(w, "by_code", has_code(row));
    js_kv_string(w, "grantee", row->grantee);
    js_kv_string(w, "made_by", row->made_by);
    json_kv_time(w, "created_at", row->created_ms);
    json_kv_time(w, "expires_at", row->expires_ms);
    json_kv_time(w, "joined_at", row->joined_ms);
    js_kv_string(w, "joined_client", row->joined_client);
    json_kv_time(w, "ended_at", row->ended_ms);
}
