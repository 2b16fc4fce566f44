/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of all ops and verbs: those of this folder, and those that families add. */
#include "store/family.h"

#include <assert.h>
#include <stdatomic.h>

static struct {
    size_t n;
    const struct store_family *items[STORE_FAMILIES_MAX];
    atomic_bool is_fixed; /* a store may have been opened with these */
} families;

#define VERB_ROW(upper, lower, kind) [VERB_##upper] = {#lower, VERB_KIND_##kind},
struct verb_info store_verbs[VERB_COUNT] = {STORE_VERBS(VERB_ROW)};

static bool session_end_is_sound(const struct store_op *op, struct error *err)
{
    if (op->session->status != SESSION_EXPIRED && op->session->status != SESSION_TERMINATED)
        return error_set(err, ERR_INTERNAL,
                         "A session can only end in a terminal status; report it.");
    return true;
}

static bool event_is_sound(const struct store_op *op, struct error *err)
{
    if (op->event->id <= 0 || !op->event->tenant.p)
        return error_set(err, ERR_INTERNAL,
                         "An event without id or tenant was refused; report it.");
    return true;
}

struct op_info store_op_infos[OP_COUNT] = {
    [OP_SESSION_CREATE] = {"session create", true},
    [OP_SESSION_PROMOTE] = {"session name", true},
    [OP_SESSION_END] = {"session end", true, session_end_is_sound},
    [OP_TRANSPORT_CREATE] = {"transport create", true},
    [OP_TRANSPORT_LINK] = {"transport link", true},
    [OP_TRANSPORT_TOUCH] = {"transport touch", true},
    [OP_TRANSPORT_END] = {"transport end", true},
    [OP_LINK_PUT] = {"link put", true},
    [OP_LINK_END] = {"link end", true},
    [OP_EVENT_APPEND] = {"event append", false, event_is_sound},
    [OP_WRITER_RENEW] = {"writer renew", false},
    [OP_WRITER_END] = {"writer end", false},
    [OP_UNDELIVERED_PUT] = {"undelivered put", true},
    [OP_UNDELIVERED_TAKE] = {"undelivered take", true},
    [OP_SESSION_USE] = {"session use", true},
    [OP_SESSION_PATCH] = {"session patch", true},
    [OP_SESSION_REFRESH] = {"session refresh", true},
    [OP_CONTEXT_PUT] = {"context put", true},
    [OP_TENANT_ENSURE] = {"tenant ensure", false},
    [OP_USER_ENSURE] = {"user ensure", false},
    [OP_KEY_CREATE] = {"key create", false},
    [OP_KEY_REVOKE] = {"key revoke", false},
    [OP_KEY_USED] = {"key used", false},
    [OP_IDEMPOTENCY_PUT] = {"idempotency put", true},
    [OP_TENANT_KEY_PUT] = {"tenant key put", false},
    [OP_TENANT_KEY_WRAP] = {"tenant key wrap", false},
    [OP_SESSION_RESEAL] = {"session reseal", false},
    [OP_SECRET_PUT] = {"secret put", false},
    [OP_SECRET_REMOVE] = {"secret remove", false},
    [OP_USER_CREATE] = {"user create", false},
    [OP_USER_PASSWORD] = {"user password", false},
    [OP_USER_END] = {"user end", false},
    [OP_LOGIN_FAILED] = {"login failed", false},
    [OP_LOGIN_CREATE] = {"login create", false},
    [OP_LOGIN_ROTATE] = {"login rotate", false},
    [OP_LOGIN_REVOKE] = {"login revoke", false},
    [OP_LOGINS_REVOKE] = {"logins revoke", false},
    [OP_TOOL_SEEN] = {"tool seen", false},
    [OP_TOOL_APPROVE] = {"tool approve", false},
    [OP_SERVER_COUNT] = {"server tell", false},
    [OP_SIZES_SUBTRACT] = {"sizes subtract", false},
};

void store_family_add(const struct store_family *family)
{
    for (size_t i = 0; i < families.n; i++)
        if (families.items[i] == family)
            return;
    assert(!atomic_load(&families.is_fixed) && families.n < STORE_FAMILIES_MAX);
    families.items[families.n++] = family;
    for (const struct family_verb *v = family->verbs; v->info.name; v++) {
        assert(v->verb >= VERB_FAMILY && v->verb < VERB_COUNT && !store_verbs[v->verb].name);
        store_verbs[v->verb] = v->info;
    }
    for (const struct family_op *op = family->ops; op->info.name; op++) {
        assert(op->kind >= OP_FAMILY && op->kind < OP_COUNT && !store_op_infos[op->kind].name);
        store_op_infos[op->kind] = op->info;
    }
}

const struct store_family *const *store_families(size_t *ret_n)
{
    atomic_store(&families.is_fixed, true);
    *ret_n = families.n;
    return families.items;
}
