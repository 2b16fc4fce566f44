/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs that the cache does not handle go straight to the inner store. */
#include "store/cached_impl.h"

static bool pass_session_by_key(struct store *s, const struct principal *who, struct str carrier,
                                struct str key, struct arena *mem, struct session_row **ret_row,
                                struct error *err)
{
    return store_session_by_key(cached_of(s)->inner, who, carrier, key, mem, ret_row, err);
}

static bool pass_transport_get(struct store *s, const struct principal *who,
                               const uint8_t id_hash[32], struct arena *mem,
                               struct transport_row **ret_row, struct error *err)
{
    return store_transport_get(cached_of(s)->inner, who, id_hash, mem, ret_row, err);
}

static bool pass_links_of(struct store *s, const struct principal *who, struct str session_id,
                          struct arena *mem, struct link_row **ret_rows, size_t *ret_n,
                          struct error *err)
{
    return store_links_of(cached_of(s)->inner, who, session_id, mem, ret_rows, ret_n, err);
}

static bool pass_sessions_page(struct store *s, const struct principal *who,
                               const struct session_filter *filter, unsigned limit,
                               struct arena *mem, struct session_row **ret_rows, size_t *ret_n,
                               struct error *err)
{
    return store_sessions_page(cached_of(s)->inner, who, filter, limit, mem, ret_rows, ret_n, err);
}

static bool pass_session_totals(struct store *s, const struct principal *who, int64_t now_ms,
                                int64_t since_ms, struct session_totals *ret, struct error *err)
{
    return store_session_totals(cached_of(s)->inner, who, now_ms, since_ms, ret, err);
}

static bool pass_executions_page(struct store *s, const struct principal *who,
                                 struct str session_id, int64_t before, bool with_bodies,
                                 unsigned limit, struct arena *mem, struct execution_row **ret_rows,
                                 size_t *ret_n, struct error *err)
{
    return store_executions_page(cached_of(s)->inner, who, session_id, before, with_bodies, limit,
                                 mem, ret_rows, ret_n, err);
}

static bool pass_context_get(struct store *s, const struct principal *who, struct str id,
                             struct arena *mem, struct context_row **ret_row, struct error *err)
{
    return store_context_get(cached_of(s)->inner, who, id, mem, ret_row, err);
}

static bool pass_idempotency_get(struct store *s, const struct principal *who, struct str key,
                                 struct arena *mem, struct idempotency_row **ret_row,
                                 struct error *err)
{
    return store_idempotency_get(cached_of(s)->inner, who, key, mem, ret_row, err);
}

static bool pass_tool_known(struct store *s, const struct principal *who, struct str tool_id,
                            bool *ret, struct error *err)
{
    return store_tool_known(cached_of(s)->inner, who, tool_id, ret, err);
}

static bool pass_key_get(struct store *s, struct str id, struct arena *mem,
                         struct key_row **ret_row, struct error *err)
{
    return store_key_get(cached_of(s)->inner, id, mem, ret_row, err);
}

static bool pass_keys_page(struct store *s, struct str tenant, struct str after, unsigned limit,
                           struct arena *mem, struct key_row **ret_rows, size_t *ret_n,
                           struct error *err)
{
    return store_keys_page(cached_of(s)->inner, tenant, after, limit, mem, ret_rows, ret_n, err);
}

static bool pass_user_get(struct store *s, struct str id, struct arena *mem,
                          struct user_row **ret_row, struct error *err)
{
    return store_user_get(cached_of(s)->inner, id, mem, ret_row, err);
}

static bool pass_user_by_name(struct store *s, struct str tenant, struct str name,
                              struct arena *mem, struct user_row **ret_row, struct error *err)
{
    return store_user_by_name(cached_of(s)->inner, tenant, name, mem, ret_row, err);
}

static bool pass_login_get(struct store *s, struct str id, struct arena *mem,
                           struct login_row **ret_row, struct error *err)
{
    return store_login_get(cached_of(s)->inner, id, mem, ret_row, err);
}

static bool pass_login_by_hash(struct store *s, const uint8_t hash[32], struct arena *mem,
                               struct login_row **ret_row, struct error *err)
{
    return store_login_by_hash(cached_of(s)->inner, hash, mem, ret_row, err);
}

static bool pass_logins_page(struct store *s, struct str tenant, struct str user_id,
                             struct str before, unsigned limit, struct arena *mem,
                             struct login_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_logins_page(cached_of(s)->inner, tenant, user_id, before, limit, mem, ret_rows,
                             ret_n, err);
}

static bool pass_tenant_get(struct store *s, struct str id, struct arena *mem,
                            struct tenant_row **ret_row, struct error *err)
{
    return store_tenant_get(cached_of(s)->inner, id, mem, ret_row, err);
}

static bool pass_tenants_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                              struct tenant_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_tenants_page(cached_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool pass_tenant_key_get(struct store *s, struct str tenant, struct str id,
                                struct arena *mem, struct tenant_key_row **ret_row,
                                struct error *err)
{
    return store_tenant_key_get(cached_of(s)->inner, tenant, id, mem, ret_row, err);
}

static bool pass_tenant_keys_page(struct store *s, struct str after, unsigned limit,
                                  struct arena *mem, struct tenant_key_row **ret_rows,
                                  size_t *ret_n, struct error *err)
{
    return store_tenant_keys_page(cached_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool pass_sealed_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                             struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_sealed_page(cached_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool pass_document(struct store *s, struct str folder, struct str path, bool ended,
                          struct arena *mem, struct document_row **ret_row, struct error *err)
{
    return (ended ? store_document_ended : store_document)(cached_of(s)->inner, folder, path, mem,
                                                           ret_row, err);
}

static bool pass_document_by_id(struct store *s, struct str id, struct arena *mem,
                                struct document_row **ret_row, struct error *err)
{
    return store_document_by_id(cached_of(s)->inner, id, mem, ret_row, err);
}

static bool pass_tools_page(struct store *s, const struct tool_filter *filter, unsigned limit,
                            struct arena *mem, struct tool_row **ret_rows, size_t *ret_n,
                            struct error *err)
{
    return store_tools_page(cached_of(s)->inner, filter, limit, mem, ret_rows, ret_n, err);
}

static bool pass_servers_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                              struct server_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_servers_page(cached_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool pass_documents_page(struct store *s, struct str folder, struct str after,
                                unsigned limit, struct arena *mem, struct document_row **ret_rows,
                                size_t *ret_n, struct error *err)
{
    return store_documents_page(cached_of(s)->inner, folder, after, limit, mem, ret_rows, ret_n,
                                err);
}

static bool pass_document_history(struct store *s, struct str document_id, int64_t before,
                                  unsigned limit, struct arena *mem, struct revision_row **ret_rows,
                                  size_t *ret_n, struct error *err)
{
    return store_document_history(cached_of(s)->inner, document_id, before, limit, mem, ret_rows,
                                  ret_n, err);
}

static bool pass_document_revision(struct store *s, struct str document_id, int64_t revision,
                                   struct arena *mem, struct revision_row **ret_row,
                                   struct error *err)
{
    return store_document_revision(cached_of(s)->inner, document_id, revision, mem, ret_row, err);
}

static bool pass_document_reads(struct store *s, const struct principal *who, struct str session_id,
                                struct str document_id, struct arena *mem,
                                struct document_read_row **ret_rows, size_t *ret_n,
                                struct error *err)
{
    return store_document_reads(cached_of(s)->inner, who, session_id, document_id, mem, ret_rows,
                                ret_n, err);
}

static bool pass_undelivered_get(struct store *s, const struct principal *who, int64_t id,
                                 struct arena *mem, struct undelivered_row **ret_row,
                                 struct error *err)
{
    return store_undelivered_get(cached_of(s)->inner, who, id, mem, ret_row, err);
}

static bool pass_undelivered_page(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                                  struct undelivered_row **ret_rows, size_t *ret_n,
                                  struct error *err)
{
    return store_undelivered_page(cached_of(s)->inner, after, limit, mem, ret_rows, ret_n, err);
}

static bool pass_events_page(struct store *s, const struct event_filter *filter, unsigned limit,
                             struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                             struct error *err)
{
    return store_events_page(cached_of(s)->inner, filter, limit, mem, ret_rows, ret_n, err);
}

static bool pass_chain_heads(struct store *s, struct arena *mem, struct chain_head **ret_heads,
                             size_t *ret_n, struct error *err)
{
    return store_chain_heads(cached_of(s)->inner, mem, ret_heads, ret_n, err);
}

static bool pass_writer_start(struct store *s, struct writer_row *row, bool exclusive,
                              struct error *err)
{
    return store_writer_start(cached_of(s)->inner, row, exclusive, err);
}

static bool pass_counts(struct store *s, struct store_counts *ret, struct error *err)
{
    return store_counts(cached_of(s)->inner, ret, err);
}

const struct store_ops cached_ops = {
    .name = "cached",
    .close = cached_close,
    .write = cached_write,
    .session_by_handle = cached_session_by_handle,
    .session_by_id = cached_session_by_id,
    .sessions_find = cached_sessions_find,
    .session_by_key = pass_session_by_key,
    .transport_get = pass_transport_get,
    .links_of = pass_links_of,
    .sessions_page = pass_sessions_page,
    .session_totals = pass_session_totals,
    .executions_page = pass_executions_page,
    .context_get = pass_context_get,
    .idempotency_get = pass_idempotency_get,
    .tool_known = pass_tool_known,
    .key_get = pass_key_get,
    .keys_page = pass_keys_page,
    .user_get = pass_user_get,
    .user_by_name = pass_user_by_name,
    .login_get = pass_login_get,
    .login_by_hash = pass_login_by_hash,
    .logins_page = pass_logins_page,
    .tenant_get = pass_tenant_get,
    .tenants_page = pass_tenants_page,
    .tenant_key_get = pass_tenant_key_get,
    .tenant_keys_page = pass_tenant_keys_page,
    .sealed_page = pass_sealed_page,
    .changes = cached_changes,
    .document = pass_document,
    .document_by_id = pass_document_by_id,
    .documents_page = pass_documents_page,
    .tools_page = pass_tools_page,
    .servers_page = pass_servers_page,
    .document_history = pass_document_history,
    .document_revision = pass_document_revision,
    .document_reads = pass_document_reads,
    .undelivered_get = pass_undelivered_get,
    .undelivered_page = pass_undelivered_page,
    .events_page = pass_events_page,
    .chain_heads = pass_chain_heads,
    .writer_start = pass_writer_start,
    .open_intents = cached_open_intents,
    .fold = cached_fold,
    .counts = pass_counts,
    .reap = cached_reap,
};
