/* SPDX-License-Identifier: Apache-2.0 */
/* A store that reports the verb, success and duration of each call to a sink. */
#include "store/store_impl.h"

#include <stdlib.h>

#include "base/clock.h"

struct traced_store {
    struct store base;
    struct store *inner;
    void (*sink)(void *arg, const char *verb, bool ok, int64_t us);
    void *arg;
};

static struct traced_store *traced_of(struct store *s)
{
    return container_of(s, struct traced_store, base);
}

static bool told(struct store *s, const char *verb, int64_t began_us, bool ok)
{
    struct traced_store *t = traced_of(s);
    t->sink(t->arg, verb, ok, clock_mono_us() - began_us);
    return ok;
}

static bool t_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "write", began_us, store_write(traced_of(s)->inner, ops, n, err));
}

static bool t_session_by_handle(struct store *s, const struct principal *who, struct str handle,
                                struct arena *mem, struct session_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "session_by_handle", began_us,
                store_session_by_handle(traced_of(s)->inner, who, handle, mem, ret_row, err));
}

static bool t_session_by_id(struct store *s, const struct principal *who, struct str id,
                            struct arena *mem, struct session_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "session_by_id", began_us,
                store_session_by_id(traced_of(s)->inner, who, id, mem, ret_row, err));
}

static bool t_session_by_key(struct store *s, const struct principal *who, struct str carrier,
                             struct str key, struct arena *mem, struct session_row **ret_row,
                             struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "session_by_key", began_us,
                store_session_by_key(traced_of(s)->inner, who, carrier, key, mem, ret_row, err));
}

static bool t_transport_get(struct store *s, const struct principal *who, const uint8_t id_hash[32],
                            struct arena *mem, struct transport_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "transport_get", began_us,
                store_transport_get(traced_of(s)->inner, who, id_hash, mem, ret_row, err));
}

static bool t_links_of(struct store *s, const struct principal *who, struct str session_id,
                       struct arena *mem, struct link_row **ret_rows, size_t *ret_n,
                       struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "links_of", began_us,
                store_links_of(traced_of(s)->inner, who, session_id, mem, ret_rows, ret_n, err));
}

static bool t_sessions_page(struct store *s, const struct principal *who,
                            const struct session_filter *filter, unsigned limit, struct arena *mem,
                            struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(
        s, "sessions_page", began_us,
        store_sessions_page(traced_of(s)->inner, who, filter, limit, mem, ret_rows, ret_n, err));
}

static bool t_session_totals(struct store *s, const struct principal *who, int64_t now_ms,
                             int64_t since_ms, struct session_totals *ret, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "session_totals", began_us,
                store_session_totals(traced_of(s)->inner, who, now_ms, since_ms, ret, err));
}

static bool t_executions_page(struct store *s, const struct principal *who, struct str session_id,
                              int64_t before, bool with_bodies, unsigned limit, struct arena *mem,
                              struct execution_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "executions_page", began_us,
                store_executions_page(traced_of(s)->inner, who, session_id, before, with_bodies,
                                      limit, mem, ret_rows, ret_n, err));
}

static bool t_context_get(struct store *s, const struct principal *who, struct str id,
                          struct arena *mem, struct context_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "context_get", began_us,
                store_context_get(traced_of(s)->inner, who, id, mem, ret_row, err));
}

static bool t_idempotency_get(struct store *s, const struct principal *who, struct str key,
                              struct arena *mem, struct idempotency_row **ret_row,
                              struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "idempotency_get", began_us,
                store_idempotency_get(traced_of(s)->inner, who, key, mem, ret_row, err));
}

static bool t_tool_known(struct store *s, const struct principal *who, struct str tool_id,
                         bool *ret, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "tool_known", began_us,
                store_tool_known(traced_of(s)->inner, who, tool_id, ret, err));
}

static bool t_key_get(struct store *s, struct str id, struct arena *mem, struct key_row **ret_row,
                      struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "key_get", began_us, store_key_get(traced_of(s)->inner, id, mem, ret_row, err));
}

static bool t_keys_page(struct store *s, struct str tenant, struct str after, unsigned limit,
                        struct arena *mem, struct key_row **ret_rows, size_t *ret_n,
                        struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(
        s, "keys_page", began_us,
        store_keys_page(traced_of(s)->inner, tenant, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_user_get(struct store *s, struct str id, struct arena *mem, struct user_row **ret_row,
                       struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "user_get", began_us,
                store_user_get(traced_of(s)->inner, id, mem, ret_row, err));
}

static bool t_user_by_name(struct store *s, struct str tenant, struct str name, struct arena *mem,
                           struct user_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "user_by_name", began_us,
                store_user_by_name(traced_of(s)->inner, tenant, name, mem, ret_row, err));
}

static bool t_login_get(struct store *s, struct str id, struct arena *mem,
                        struct login_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "login_get", began_us,
                store_login_get(traced_of(s)->inner, id, mem, ret_row, err));
}

static bool t_login_by_hash(struct store *s, const uint8_t hash[32], struct arena *mem,
                            struct login_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "login_by_hash", began_us,
                store_login_by_hash(traced_of(s)->inner, hash, mem, ret_row, err));
}

static bool t_logins_page(struct store *s, struct str tenant, struct str user_id, struct str before,
                          unsigned limit, struct arena *mem, struct login_row **ret_rows,
                          size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "logins_page", began_us,
                store_logins_page(traced_of(s)->inner, tenant, user_id, before, limit, mem,
                                  ret_rows, ret_n, err));
}

static bool t_tenant_get(struct store *s, struct str id, struct arena *mem,
                         struct tenant_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "tenant_get", began_us,
                store_tenant_get(traced_of(s)->inner, id, mem, ret_row, err));
}

static bool t_tenants_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                           struct tenant_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "tenants_page", began_us,
                store_tenants_page(traced_of(s)->inner, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_tenant_key_get(struct store *s, struct str tenant, struct str id, struct arena *mem,
                             struct tenant_key_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "tenant_key_get", began_us,
                store_tenant_key_get(traced_of(s)->inner, tenant, id, mem, ret_row, err));
}

static bool t_tenant_keys_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                               struct tenant_key_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(
        s, "tenant_keys_page", began_us,
        store_tenant_keys_page(traced_of(s)->inner, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_sealed_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                          struct session_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "sealed_page", began_us,
                store_sealed_page(traced_of(s)->inner, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_changes(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                      struct change_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "changes", began_us,
                store_changes(traced_of(s)->inner, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_document(struct store *s, struct str folder, struct str path, bool ended,
                       struct arena *mem, struct document_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "document", began_us,
                (ended ? store_document_ended : store_document)(traced_of(s)->inner, folder, path,
                                                                mem, ret_row, err));
}

static bool t_document_by_id(struct store *s, struct str id, struct arena *mem,
                             struct document_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "document_by_id", began_us,
                store_document_by_id(traced_of(s)->inner, id, mem, ret_row, err));
}

static bool t_tools_page(struct store *s, const struct tool_filter *filter, unsigned limit,
                         struct arena *mem, struct tool_row **ret_rows, size_t *ret_n,
                         struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "tools_page", began_us,
                store_tools_page(traced_of(s)->inner, filter, limit, mem, ret_rows, ret_n, err));
}

static bool t_servers_page(struct store *s, struct str after, unsigned limit, struct arena *mem,
                           struct server_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "servers_page", began_us,
                store_servers_page(traced_of(s)->inner, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_documents_page(struct store *s, struct str folder, struct str after, unsigned limit,
                             struct arena *mem, struct document_row **ret_rows, size_t *ret_n,
                             struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(
        s, "documents_page", began_us,
        store_documents_page(traced_of(s)->inner, folder, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_document_history(struct store *s, struct str document_id, int64_t before,
                               unsigned limit, struct arena *mem, struct revision_row **ret_rows,
                               size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "document_history", began_us,
                store_document_history(traced_of(s)->inner, document_id, before, limit, mem,
                                       ret_rows, ret_n, err));
}

static bool t_document_revision(struct store *s, struct str document_id, int64_t revision,
                                struct arena *mem, struct revision_row **ret_row, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(
        s, "document_revision", began_us,
        store_document_revision(traced_of(s)->inner, document_id, revision, mem, ret_row, err));
}

static bool t_document_reads(struct store *s, const struct principal *who, struct str session_id,
                             struct str document_id, struct arena *mem,
                             struct document_read_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "document_reads", began_us,
                store_document_reads(traced_of(s)->inner, who, session_id, document_id, mem,
                                     ret_rows, ret_n, err));
}

static bool t_undelivered_get(struct store *s, const struct principal *who, int64_t id,
                              struct arena *mem, struct undelivered_row **ret_row,
                              struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "undelivered_get", began_us,
                store_undelivered_get(traced_of(s)->inner, who, id, mem, ret_row, err));
}

static bool t_undelivered_page(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                               struct undelivered_row **ret_rows, size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(
        s, "undelivered_page", began_us,
        store_undelivered_page(traced_of(s)->inner, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_events_page(struct store *s, const struct event_filter *filter, unsigned limit,
                          struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                          struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "events_page", began_us,
                store_events_page(traced_of(s)->inner, filter, limit, mem, ret_rows, ret_n, err));
}

static bool t_chain_heads(struct store *s, struct arena *mem, struct chain_head **ret_heads,
                          size_t *ret_n, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "chain_heads", began_us,
                store_chain_heads(traced_of(s)->inner, mem, ret_heads, ret_n, err));
}

static bool t_writer_start(struct store *s, struct writer_row *row, bool exclusive,
                           struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "writer_start", began_us,
                store_writer_start(traced_of(s)->inner, row, exclusive, err));
}

static bool t_open_intents(struct store *s, int64_t now_ms, int64_t after, unsigned limit,
                           struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                           struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(
        s, "open_intents", began_us,
        store_open_intents(traced_of(s)->inner, now_ms, after, limit, mem, ret_rows, ret_n, err));
}

static bool t_fold(struct store *s, unsigned max, bool *ret_left, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "fold", began_us, store_fold(traced_of(s)->inner, max, ret_left, err));
}

static bool t_counts(struct store *s, struct store_counts *ret, struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "counts", began_us, store_counts(traced_of(s)->inner, ret, err));
}

static bool t_reap(struct store *s, const struct reap_what *what, struct reaped *ret,
                   struct error *err)
{
    int64_t began_us = clock_mono_us();
    return told(s, "reap", began_us, store_reap(traced_of(s)->inner, what, ret, err));
}

static void t_close(struct store *s)
{
    store_close(traced_of(s)->inner);
    free(traced_of(s));
}

static const struct store_ops traced_ops = {
    .name = "traced",
    .close = t_close,
    .write = t_write,
    .session_by_handle = t_session_by_handle,
    .session_by_id = t_session_by_id,
    .session_by_key = t_session_by_key,
    .transport_get = t_transport_get,
    .links_of = t_links_of,
    .sessions_page = t_sessions_page,
    .session_totals = t_session_totals,
    .executions_page = t_executions_page,
    .context_get = t_context_get,
    .idempotency_get = t_idempotency_get,
    .tool_known = t_tool_known,
    .key_get = t_key_get,
    .keys_page = t_keys_page,
    .user_get = t_user_get,
    .user_by_name = t_user_by_name,
    .login_get = t_login_get,
    .login_by_hash = t_login_by_hash,
    .logins_page = t_logins_page,
    .tenant_get = t_tenant_get,
    .tenants_page = t_tenants_page,
    .tenant_key_get = t_tenant_key_get,
    .tenant_keys_page = t_tenant_keys_page,
    .sealed_page = t_sealed_page,
    .changes = t_changes,
    .document = t_document,
    .document_by_id = t_document_by_id,
    .documents_page = t_documents_page,
    .tools_page = t_tools_page,
    .servers_page = t_servers_page,
    .document_history = t_document_history,
    .document_revision = t_document_revision,
    .document_reads = t_document_reads,
    .undelivered_get = t_undelivered_get,
    .undelivered_page = t_undelivered_page,
    .events_page = t_events_page,
    .chain_heads = t_chain_heads,
    .writer_start = t_writer_start,
    .open_intents = t_open_intents,
    .fold = t_fold,
    .counts = t_counts,
    .reap = t_reap,
};

struct store *store_traced(struct store *inner,
                           void (*sink)(void *arg, const char *verb, bool ok, int64_t us),
                           void *arg)
{
    struct traced_store *t = xcalloc(1, sizeof(*t));
    t->base.ops = &traced_ops;
    t->inner = inner;
    t->sink = sink;
    t->arg = arg;
    return &t->base;
}
