/* SPDX-License-Identifier: Apache-2.0 */
/* The registry part of the entry (store.c): lists of sessions, executions, contexts, keys, users,
 * tenants.  Like store.c it makes the checks that all backends need, then calls through the
 * table. */
#include "store/store.h"

#include "store/store_impl.h"

#include <stdio.h>

bool store_sessions_page(struct store *s, const struct principal *who,
                         const struct session_filter *filter, unsigned limit, struct arena *mem,
                         struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->sessions_page(s, who, filter, limit, mem, ret_rows, ret_n, err);
}

bool store_session_totals(struct store *s, const struct principal *who, int64_t now_ms,
                          int64_t since_ms, struct session_totals *ret, struct error *err)
{
    since_ms -= since_ms % STORE_TOTALS_STEP_MS;
    return s->ops->session_totals(s, who, now_ms, since_ms, ret, err);
}

bool store_executions_page(struct store *s, const struct principal *who, struct str session_id,
                           int64_t before, bool with_bodies, unsigned limit, struct arena *mem,
                           struct execution_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->executions_page(s, who, session_id, before, with_bodies, limit, mem, ret_rows,
                                   ret_n, err);
}

bool store_context_get(struct store *s, const struct principal *who, struct str id,
                       struct arena *mem, struct context_row **ret_row, struct error *err)
{
    return s->ops->context_get(s, who, id, mem, ret_row, err);
}

bool store_idempotency_get(struct store *s, const struct principal *who, struct str key,
                           struct arena *mem, struct idempotency_row **ret_row, struct error *err)
{
    return s->ops->idempotency_get(s, who, key, mem, ret_row, err);
}

bool store_tool_known(struct store *s, const struct principal *who, struct str tool_id, bool *ret,
                      struct error *err)
{
    return s->ops->tool_known(s, who, tool_id, ret, err);
}

bool store_key_get(struct store *s, struct str id, struct arena *mem, struct key_row **ret_row,
                   struct error *err)
{
    return s->ops->key_get(s, id, mem, ret_row, err);
}

bool store_keys_page(struct store *s, struct str tenant, struct str after, unsigned limit,
                     struct arena *mem, struct key_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->keys_page(s, tenant, after, limit, mem, ret_rows, ret_n, err);
}

bool store_user_get(struct store *s, struct str id, struct arena *mem, struct user_row **ret_row,
                    struct error *err)
{
    return s->ops->user_get(s, id, mem, ret_row, err);
}

bool store_user_by_name(struct store *s, struct str tenant, struct str name, struct arena *mem,
                        struct user_row **ret_row, struct error *err)
{
    return s->ops->user_by_name(s, tenant, name, mem, ret_row, err);
}

bool store_login_get(struct store *s, struct str id, struct arena *mem, struct login_row **ret_row,
                     struct error *err)
{
    return s->ops->login_get(s, id, mem, ret_row, err);
}

bool store_login_by_hash(struct store *s, const uint8_t hash[32], struct arena *mem,
                         struct login_row **ret_row, struct error *err)
{
    return s->ops->login_by_hash(s, hash, mem, ret_row, err);
}

bool store_logins_page(struct store *s, struct str tenant, struct str user_id, struct str before,
                       unsigned limit, struct arena *mem, struct login_row **ret_rows,
                       size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->logins_page(s, tenant, user_id, before, limit, mem, ret_rows, ret_n, err);
}

bool store_tenant_get(struct store *s, struct str id, struct arena *mem,
                      struct tenant_row **ret_row, struct error *err)
{
    return s->ops->tenant_get(s, id, mem, ret_row, err);
}

bool store_tenants_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                        struct tenant_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->tenants_page(s, after, limit, mem, ret_rows, ret_n, err);
}

bool store_tenant_key_get(struct store *s, struct str tenant, struct str id, struct arena *mem,
                          struct tenant_key_row **ret_row, struct error *err)
{
    return s->ops->tenant_key_get(s, tenant, id, mem, ret_row, err);
}

bool store_tenant_keys_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                            struct tenant_key_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->tenant_keys_page(s, after, limit, mem, ret_rows, ret_n, err);
}

bool store_tools_page(struct store *s, const struct tool_filter *filter, unsigned limit,
                      struct arena *mem, struct tool_row **ret_rows, size_t *ret_n,
                      struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->tools_page(s, filter, limit, mem, ret_rows, ret_n, err);
}

bool store_servers_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                        struct server_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->servers_page(s, after, limit, mem, ret_rows, ret_n, err);
}

bool store_sealed_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                       struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->sealed_page(s, after, limit, mem, ret_rows, ret_n, err);
}

bool store_changes(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                   struct change_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_page_is_sound(limit, err) &&
           s->ops->changes(s, after, limit, mem, ret_rows, ret_n, err);
}

/* Puts the 63 bits of an event id around the version and variant of a UUID. */
void execution_uuid(int64_t exec, char ret[EXECUTION_UUID_TEXT])
{
    uint64_t id = (uint64_t)exec;
    snprintf(ret, EXECUTION_UUID_TEXT, "%08x-%04x-8%03x-8000-00000000000%x", (unsigned)(id >> 32),
             (unsigned)(id >> 16 & 0xffff), (unsigned)(id >> 4 & 0xfff), (unsigned)(id & 0xf));
}

bool execution_uuid_parse(struct str uuid, int64_t *ret_exec)
{
    char again[EXECUTION_UUID_TEXT], text[EXECUTION_UUID_TEXT];
    unsigned high, middle, low, last;

    if (uuid.n != EXECUTION_UUID_TEXT - 1)
        return false;
    memcpy(text, uuid.p, uuid.n);
    text[uuid.n] = '\0';
    if (sscanf(text, "%8x-%4x-8%3x-8000-00000000000%1x", &high, &middle, &low, &last) != 4)
        return false;
    int64_t exec = (int64_t)((uint64_t)high << 32 | (uint64_t)middle << 16 | low << 4 | last);
    execution_uuid(exec, again);
    if (memcmp(again, text, sizeof(again)) != 0)
        return false;
    *ret_exec = exec;
    return true;
}
