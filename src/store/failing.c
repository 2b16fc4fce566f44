/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails on demand, for tests of what happens when the n-th call fails.  A failed call
 * never reaches the inner store. */
#include "store/store_impl.h"

#include <stdatomic.h>
#include <stdlib.h>

struct failing_store {
    struct store base;
    struct store *inner;
    _Atomic int64_t calls; /* since the last store_failing_set() */
    _Atomic int64_t nth;
    atomic_bool only_once;
};

static struct failing_store *failing_of(struct store *s)
{
    return container_of(s, struct failing_store, base);
}

static bool spared(struct store *s, struct error *err)
{
    struct failing_store *f = failing_of(s);
    int64_t call = atomic_fetch_add(&f->calls, 1) + 1;
    int64_t nth = atomic_load(&f->nth);
    bool fails = nth && (atomic_load(&f->only_once) ? call == nth : call >= nth);
    if (fails)
        return error_set(err, ERR_UNAVAILABLE, "The store failed because a test wanted it to.");
    return true;
}

static bool f_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    return spared(s, err) && store_write(failing_of(s)->inner, ops, n, err);
}

static bool f_session_by_handle(struct store *s, const struct principal *who, struct str handle,
                                struct arena *mem, struct session_row **ret_row, struct error *err)
{
    return spared(s, err) &&
           store_session_by_handle(failing_of(s)->inner, who, handle, mem, ret_row, err);
}

static bool f_session_by_id(struct store *s, const struct principal *who, struct str id,
                            struct arena *mem, struct session_row **ret_row, struct error *err)
{
    return spared(s, err) && store_session_by_id(failing_of(s)->inner, who, id, mem, ret_row, err);
}

static bool f_session_by_key(struct store *s, const struct principal *who, struct str carrier,
                             struct str key, struct arena *mem, struct session_row **ret_row,
                             struct error *err)
{
    return spared(s, err) &&
           store_session_by_key(failing_of(s)->inner, who, carrier, key, mem, ret_row, err);
}

static bool f_transport_get(struct store *s, const struct principal *who, const uint8_t id_hash[32],
                            struct arena *mem, struct transport_row **ret_row, struct error *err)
{
    return spared(s, err) &&
           store_transport_get(failing_of(s)->inner, who, id_hash, mem, ret_row, err);
}

static bool f_links_of(struct store *s, const struct principal *who, struct str session_id,
                       struct arena *mem, struct link_row **ret_rows, size_t *ret_n,
                       struct error *err)
{
    return spared(s, err) &&
           store_links_of(failing_of(s)->inner, who, session_id, mem, ret_rows, ret_n, err);
}

static bool f_sessions_page(struct store *s, const struct principal *who,
                            const struct session_filter *filter, unsigned limit, struct arena *mem,
                            struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) &&
           store_sessions_page(failing_of(s)->inner, who, filter, limit, mem, ret_rows, ret_n, err);
}

static bool f_session_totals(struct store *s, const struct principal *who, int64_t now_ms,
                             int64_t since_ms, struct session_totals *ret, struct error *err)
{
    return spared(s, err) &&
           store_session_totals(failing_of(s)->inner, who, now_ms, since_ms, ret, err);
}

static bool f_executions_page(struct store *s, const struct principal *who, struct str session_id,
                              int64_t before, bool with_bodies, unsigned limit, struct arena *mem,
                              struct execution_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) && store_executions_page(failing_of(s)->inner, who, session_id, before,
                                                   with_bodies, limit, mem, ret_rows, ret_n, err);
}

static bool f_context_get(struct store *s, const struct principal *who, struct str id,
                          struct arena *mem, struct context_row **ret_row, struct error *err)
{
    return spared(s, err) && store_context_get(failing_of(s)->inner, who, id, mem, ret_row, err);
}

static bool f_idempotency_get(struct store *s, const struct principal *who, struct str key,
                              struct arena *mem, struct idempotency_row **ret_row,
                              struct error *err)
{
    return spared(s, err) &&
           store_idempotency_get(failing_of(s)->inner, who, key, mem, ret_row, err);
}

static bool f_tool_known(struct store *s, const struct principal *who, struct str tool_id,
                         bool *ret, struct error *err)
{
    return spared(s, err) && store_tool_known(failing_of(s)->inner, who, tool_id, ret, err);
}

static bool f_key_get(struct store *s, struct str id, struct arena *mem, struct key_row **ret_row,
                      struct error *err)
{
    return spared(s, err) && store_key_get(failing_of(s)->inner, id, mem, ret_row, err);
}

static bool f_keys_page(struct store *s, struct str tenant, struct str after, unsigned limit,
                        struct arena *mem, struct key_row **ret_rows, size_t *ret_n,
                        struct error *err)
{
    return spared(s, err) &&
           store_keys_page(failing_of(s)->inner, tenant, after, limit, mem, ret_rows, ret_n, err);
}

static bool f_user_get(struct store *s, struct str id, struct arena *mem, struct user_row **ret_row,
                       struct error *err)
{
    return spared(s, err) && store_user_get(failing_of(s)->inner, id, mem, ret_row, err);
}

static bool f_user_by_name(struct store *s, struct str tenant, struct str name, struct arena *mem,
                           struct user_row **ret_row, struct error *err)
{
    return spared(s, err) &&
           store_user_by_name(failing_of(s)->inner, tenant, name, mem, ret_row, err);
}

static bool f_login_get(struct store *s, struct str id, struct arena *mem,
                        struct login_row **ret_row, struct error *err)
{
    return spared(s, err) && store_login_get(failing_of(s)->inner, id, mem, ret_row, err);
}

static bool f_login_by_hash(struct store *s, const uint8_t hash[32], struct arena *mem,
                            struct login_row **ret_row, struct error *err)
{
    return spared(s, err) && store_login_by_hash(failing_of(s)->inner, hash, mem, ret_row, err);
}

static bool f_logins_page(struct store *s, struct str tenant, struct str user_id, struct str before,
                          unsigned limit, struct arena *mem, struct login_row **ret_rows,
                          size_t *ret_n, struct error *err)
{
    return spared(s, err) && store_logins_page(failing_of(s)->inner, tenant, user_id, before, limit,
                                               mem, ret_rows, ret_n, err);
}

static bool f_tenant_get(struct store *s, struct str id, struct arena *mem,
                         struct tenant_row **ret_row, struct error *err)
{
    return spared(s, err) && store_tenant_get(failing_of(s)->inner, id, mem, ret_row, err);
}

static bool f_tenants_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                           struct tenant_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) &&
           store_tenants_page(failing_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool f_tenant_key_get(struct store *s, struct str tenant, struct str id, struct arena *mem,
                             struct tenant_key_row **ret_row, struct error *err)
{
    return spared(s, err) &&
           store_tenant_key_get(failing_of(s)->inner, tenant, id, mem, ret_row, err);
}

static bool f_tenant_keys_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                               struct tenant_key_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) &&
           store_tenant_keys_page(failing_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool f_sealed_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                          struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) &&
           store_sealed_page(failing_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool f_changes(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                      struct change_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) &&
           store_changes(failing_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool f_document(struct store *s, struct str folder, struct str path, bool ended,
                       struct arena *mem, struct document_row **ret_row, struct error *err)
{
    return spared(s, err) && (ended ? store_document_ended : store_document)(
                                 failing_of(s)->inner, folder, path, mem, ret_row, err);
}

static bool f_document_by_id(struct store *s, struct str id, struct arena *mem,
                             struct document_row **ret_row, struct error *err)
{
    return spared(s, err) && store_document_by_id(failing_of(s)->inner, id, mem, ret_row, err);
}

static bool f_tools_page(struct store *s, const struct tool_filter *filter, unsigned limit,
                         struct arena *mem, struct tool_row **ret_rows, size_t *ret_n,
                         struct error *err)
{
    return spared(s, err) &&
           store_tools_page(failing_of(s)->inner, filter, limit, mem, ret_rows, ret_n, err);
}

static bool f_servers_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                           struct server_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) &&
           store_servers_page(failing_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool f_documents_page(struct store *s, struct str folder, struct str after, unsigned limit,
                             struct arena *mem, struct document_row **ret_rows, size_t *ret_n,
                             struct error *err)
{
    return spared(s, err) && store_documents_page(failing_of(s)->inner, folder, after, limit, mem,
                                                  ret_rows, ret_n, err);
}

static bool f_document_history(struct store *s, struct str document_id, int64_t before,
                               unsigned limit, struct arena *mem, struct revision_row **ret_rows,
                               size_t *ret_n, struct error *err)
{
    return spared(s, err) && store_document_history(failing_of(s)->inner, document_id, before,
                                                    limit, mem, ret_rows, ret_n, err);
}

static bool f_document_revision(struct store *s, struct str document_id, int64_t revision,
                                struct arena *mem, struct revision_row **ret_row, struct error *err)
{
    return spared(s, err) &&
           store_document_revision(failing_of(s)->inner, document_id, revision, mem, ret_row, err);
}

static bool f_document_reads(struct store *s, const struct principal *who, struct str session_id,
                             struct str document_id, struct arena *mem,
                             struct document_read_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) && store_document_reads(failing_of(s)->inner, who, session_id,
                                                  document_id, mem, ret_rows, ret_n, err);
}

static bool f_undelivered_get(struct store *s, const struct principal *who, int64_t id,
                              struct arena *mem, struct undelivered_row **ret_row,
                              struct error *err)
{
    return spared(s, err) &&
           store_undelivered_get(failing_of(s)->inner, who, id, mem, ret_row, err);
}

static bool f_undelivered_page(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                               struct undelivered_row **ret_rows, size_t *ret_n, struct error *err)
{
    return spared(s, err) &&
           store_undelivered_page(failing_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool f_events_page(struct store *s, const struct event_filter *filter, unsigned limit,
                          struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                          struct error *err)
{
    return spared(s, err) &&
           store_events_page(failing_of(s)->inner, filter, limit, mem, ret_rows, ret_n, err);
}

static bool f_chain_heads(struct store *s, struct arena *mem, struct chain_head **ret_heads,
                          size_t *ret_n, struct error *err)
{
    return spared(s, err) && store_chain_heads(failing_of(s)->inner, mem, ret_heads, ret_n, err);
}

static bool f_writer_start(struct store *s, struct writer_row *row, bool exclusive,
                           struct error *err)
{
    return spared(s, err) && store_writer_start(failing_of(s)->inner, row, exclusive, err);
}

static bool f_open_intents(struct store *s, int64_t now_ms, int64_t after, unsigned limit,
                           struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                           struct error *err)
{
    return spared(s, err) && store_open_intents(failing_of(s)->inner, now_ms, after, limit, mem,
                                                ret_rows, ret_n, err);
}

static bool f_fold(struct store *s, unsigned max, bool *ret_left, struct error *err)
{
    return spared(s, err) && store_fold(failing_of(s)->inner, max, ret_left, err);
}

static bool f_counts(struct store *s, struct store_counts *ret, struct error *err)
{
    return spared(s, err) && store_counts(failing_of(s)->inner, ret, err);
}

static bool f_reap(struct store *s, const struct reap_what *what, struct reaped *ret,
                   struct error *err)
{
    return spared(s, err) && store_reap(failing_of(s)->inner, what, ret, err);
}

static void f_close(struct store *s)
{
    store_close(failing_of(s)->inner);
    free(failing_of(s));
}

static const struct store_ops failing_ops = {
    .name = "failing",
    .close = f_close,
    .write = f_write,
    .session_by_handle = f_session_by_handle,
    .session_by_id = f_session_by_id,
    .session_by_key = f_session_by_key,
    .transport_get = f_transport_get,
    .links_of = f_links_of,
    .sessions_page = f_sessions_page,
    .session_totals = f_session_totals,
    .executions_page = f_executions_page,
    .context_get = f_context_get,
    .idempotency_get = f_idempotency_get,
    .tool_known = f_tool_known,
    .key_get = f_key_get,
    .keys_page = f_keys_page,
    .user_get = f_user_get,
    .user_by_name = f_user_by_name,
    .login_get = f_login_get,
    .login_by_hash = f_login_by_hash,
    .logins_page = f_logins_page,
    .tenant_get = f_tenant_get,
    .tenants_page = f_tenants_page,
    .tenant_key_get = f_tenant_key_get,
    .tenant_keys_page = f_tenant_keys_page,
    .sealed_page = f_sealed_page,
    .changes = f_changes,
    .document = f_document,
    .document_by_id = f_document_by_id,
    .documents_page = f_documents_page,
    .tools_page = f_tools_page,
    .servers_page = f_servers_page,
    .document_history = f_document_history,
    .document_revision = f_document_revision,
    .document_reads = f_document_reads,
    .undelivered_get = f_undelivered_get,
    .undelivered_page = f_undelivered_page,
    .events_page = f_events_page,
    .chain_heads = f_chain_heads,
    .writer_start = f_writer_start,
    .open_intents = f_open_intents,
    .fold = f_fold,
    .counts = f_counts,
    .reap = f_reap,
};

struct store *store_failing(struct store *inner)
{
    struct failing_store *f = xcalloc(1, sizeof(*f));
    f->base.ops = &failing_ops;
    f->inner = inner;
    return &f->base;
}

void store_failing_set(struct store *failing, int64_t nth, bool only_once)
{
    struct failing_store *f = failing_of(failing);
    atomic_store(&f->nth, nth);
    atomic_store(&f->only_once, only_once);
    atomic_store(&f->calls, 0);
}
