/* SPDX-License-Identifier: Apache-2.0 */
/* What backends see: the table of our verbs.  Contracts are written at the functions of store.h. */
#ifndef HOLDFAST_STORE_STORE_IMPL_H
#define HOLDFAST_STORE_STORE_IMPL_H

#include "store/store.h"

/* A page has 1 to STORE_PAGE_MAX rows. */
must_check bool store_page_is_sound(unsigned limit, struct error *err);
/* Asked by a backend after each op's verdict: is it required and not OK?  Then *err is set, and the
 * backend rolls back and fails with it. */
must_check bool store_op_is_refused(const struct store_op *op, struct error *err);

/* A session used further ahead of now than this was used by a clock that was wrong; the reaper
 * pulls it back. */
#define SESSION_FUTURE_MS (INT64_C(5) * 60 * 1000)

/* The execution that `first`, an intent or a record, began and `outcome` (NULL: none yet) ended.
 * Spans are in `mem`; bodies are looked at only when asked for. */
void store_execution_join(const struct event_row *first, const struct event_row *outcome,
                          bool with_bodies, struct arena *mem, struct execution_row *ret);

/* store_event.c: a copy of an event in `mem`. */
void event_row_keep(struct arena *mem, const struct event_row *from, struct event_row *to);
bool event_filter_matches(const struct event_filter *f, const struct event_row *e);
/* Is it older than all that a newest-first scan of its writer's events can still find? */
bool event_is_before_all(const struct event_filter *f, const struct event_row *e);

/* Which executions are open: what the fold knows, and events that it has not come to yet. */
struct open_set {
    int64_t *opened, *closed;
    size_t n_opened, cap_opened, n_closed, cap_closed;
};
void open_set_add(struct open_set *o, int64_t exec);
void open_set_note(struct open_set *o, const struct event_row *e);
/* Leaves in `opened` those that are open and that the filter's after and before let through, each
 * once, in the filter's order. */
void open_set_filter(struct open_set *o, const struct event_filter *f);
void open_set_release(struct open_set *o);
/* Always false: an event that is not this one has its id. */
must_check bool event_id_is_taken(const struct event_row *e, struct error *err);

/* store_document.c: of store_write(), for ops on documents.  Before the backend sees it; and once
 * the batch stands, for the backend fills in revision->revision and document_id alone: what came in
 * must still be there when a batch is written again. */
must_check bool store_document_op_is_sound(const struct store_op *op, struct error *err);
void store_document_op_done(struct store_op *op);
/* For backends: the revision's document_id becomes a copy of `id`. */
/* A text as it is stored: `middle` between the first `prefix` and the last `suffix` bytes of the
 * one before; the first is whole. */
#define REVISION_PARTS_MEM (64u * 1024 * 1024) /* what one takes while it is read */
#define REVISION_DEPTH_MAX 31                  /* differences that follow a whole one */
struct revision_part {
    size_t prefix, suffix;
    struct str middle;
    size_t size; /* filled by revision_assemble() */
};
/* The last of them, in mem. */
must_check bool revision_assemble(struct revision_part *parts, size_t n, struct arena *mem,
                                  struct str *ret, struct error *err);
void revision_row_name(struct revision_row *row, struct str id);

struct store_ops {
    const char *name;
    void (*close)(struct store *s);
    bool (*write)(struct store *s, struct store_op *ops, size_t n, struct error *err);
    bool (*session_by_handle)(struct store *s, const struct principal *who, struct str handle,
                              struct arena *mem, struct session_row **ret_row, struct error *err);
    bool (*session_by_id)(struct store *s, const struct principal *who, struct str id,
                          struct arena *mem, struct session_row **ret_row, struct error *err);
    /* NULL: one after the other. */
    bool (*sessions_find)(struct store *s, struct session_find *finds, size_t n, struct error *err);
    bool (*session_by_key)(struct store *s, const struct principal *who, struct str carrier,
                           struct str key, struct arena *mem, struct session_row **ret_row,
                           struct error *err);
    bool (*transport_get)(struct store *s, const struct principal *who, const uint8_t id_hash[32],
                          struct arena *mem, struct transport_row **ret_row, struct error *err);
    bool (*links_of)(struct store *s, const struct principal *who, struct str session_id,
                     struct arena *mem, struct link_row **ret_rows, size_t *ret_n,
                     struct error *err);
    bool (*sessions_page)(struct store *s, const struct principal *who,
                          const struct session_filter *filter, unsigned limit, struct arena *mem,
                          struct session_row **ret_rows, size_t *ret_n, struct error *err);
    bool (*session_totals)(struct store *s, const struct principal *who, int64_t now_ms,
                           int64_t since_ms, struct session_totals *ret, struct error *err);
    bool (*executions_page)(struct store *s, const struct principal *who, struct str session_id,
                            int64_t before, bool with_bodies, unsigned limit, struct arena *mem,
                            struct execution_row **ret_rows, size_t *ret_n, struct error *err);
    bool (*context_get)(struct store *s, const struct principal *who, struct str id,
                        struct arena *mem, struct context_row **ret_row, struct error *err);
    bool (*idempotency_get)(struct store *s, const struct principal *who, struct str key,
                            struct arena *mem, struct idempotency_row **ret_row, struct error *err);
    bool (*tool_known)(struct store *s, const struct principal *who, struct str tool_id, bool *ret,
                       struct error *err);
    bool (*key_get)(struct store *s, struct str id, struct arena *mem, struct key_row **ret_row,
                    struct error *err);
    bool (*keys_page)(struct store *s, struct str tenant, struct str after, unsigned limit,
                      struct arena *mem, struct key_row **ret_rows, size_t *ret_n,
                      struct error *err);
    bool (*user_get)(struct store *s, struct str id, struct arena *mem, struct user_row **ret_row,
                     struct error *err);
    bool (*user_by_name)(struct store *s, struct str tenant, struct str name, struct arena *mem,
                         struct user_row **ret_row, struct error *err);
    bool (*login_get)(struct store *s, struct str id, struct arena *mem, struct login_row **ret_row,
                      struct error *err);
    bool (*login_by_hash)(struct store *s, const uint8_t hash[32], struct arena *mem,
                          struct login_row **ret_row, struct error *err);
    bool (*logins_page)(struct store *s, struct str tenant, struct str user_id, struct str before,
                        unsigned limit, struct arena *mem, struct login_row **ret_rows,
                        size_t *ret_n, struct error *err);
    bool (*tenant_get)(struct store *s, struct str id, struct arena *mem,
                       struct tenant_row **ret_row, struct error *err);
    bool (*tenants_page)(struct store *s, struct str after, unsigned limit, struct arena *mem,
                         struct tenant_row **ret_rows, size_t *ret_n, struct error *err);
    bool (*tenant_key_get)(struct store *s, struct str tenant, struct str id, struct arena *mem,
                           struct tenant_key_row **ret_row, struct error *err);
    bool (*tenant_keys_page)(struct store *s, struct str after, unsigned limit, struct arena *mem,
                             struct tenant_key_row **ret_rows, size_t *ret_n, struct error *err);
    bool (*sealed_page)(struct store *s, struct str after, unsigned limit, struct arena *mem,
                        struct session_row **ret_rows, size_t *ret_n, struct error *err);
    bool (*changes)(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                    struct change_row **ret_rows, size_t *ret_n, struct error *err);
    /* The live one, or that which ended last. */
    bool (*document)(struct store *s, struct str folder, struct str path, bool ended,
                     struct arena *mem, struct document_row **ret_row, struct error *err);
    bool (*document_by_id)(struct store *s, struct str id, struct arena *mem,
                           struct document_row **ret_row, struct error *err);
    bool (*documents_page)(struct store *s, struct str folder, struct str after, unsigned limit,
                           struct arena *mem, struct document_row **ret_rows, size_t *ret_n,
                           struct error *err);
    bool (*document_history)(struct store *s, struct str document_id, int64_t before,
                             unsigned limit, struct arena *mem, struct revision_row **ret_rows,
                             size_t *ret_n, struct error *err);
    bool (*document_revision)(struct store *s, struct str document_id, int64_t revision,
                              struct arena *mem, struct revision_row **ret_row, struct error *err);
    bool (*document_reads)(struct store *s, const struct principal *who, struct str session_id,
                           struct str document_id, struct arena *mem,
                           struct document_read_row **ret_rows, size_t *ret_n, struct error *err);
    bool (*tools_page)(struct store *s, const struct tool_filter *filter, unsigned limit,
                       struct arena *mem, struct tool_row **ret_rows, size_t *ret_n,
                       struct error *err);
    bool (*servers_page)(struct store *s, struct str after, unsigned limit, struct arena *mem,
                         struct server_row **ret_rows, size_t *ret_n, struct error *err);
    bool (*undelivered_get)(struct store *s, const struct principal *who, int64_t id,
                            struct arena *mem, struct undelivered_row **ret_row, struct error *err);
    bool (*undelivered_page)(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                             struct undelivered_row **ret_rows, size_t *ret_n, struct error *err);
    bool (*events_page)(struct store *s, const struct event_filter *filter, unsigned limit,
                        struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                        struct error *err);
    bool (*chain_heads)(struct store *s, struct arena *mem, struct chain_head **ret_heads,
                        size_t *ret_n, struct error *err);
    bool (*writer_start)(struct store *s, struct writer_row *row, bool exclusive,
                         struct error *err);
    bool (*open_intents)(struct store *s, int64_t now_ms, int64_t after, unsigned limit,
                         struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                         struct error *err);
    bool (*fold)(struct store *s, unsigned max, bool *ret_left, struct error *err);
    bool (*counts)(struct store *s, struct store_counts *ret, struct error *err);
    bool (*reap)(struct store *s, const struct reap_what *what, struct reaped *ret,
                 struct error *err);
};

#endif
