/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between store.c and the backends: the table of verbs.  The contracts are at the
 * functions of store.h. */
#ifndef HOLDFAST_STORE_STORE_IMPL_H
#define HOLDFAST_STORE_STORE_IMPL_H

#include "store/store.h"

/* Refuses a limit outside 1 to STORE_PAGE_MAX. */
must_check bool store_page_is_sound(unsigned limit, struct error *err);
/* A backend calls this after each op's verdict.  True when the op is required and its verdict is
 * not OK.  Then *err is set, and the backend rolls back and fails with *err. */
must_check bool store_op_is_refused(const struct store_op *op, struct error *err);

/* A last use further ahead of now than this came from a wrong clock; the reaper sets it back to
 * now. */
#define SESSION_FUTURE_MS (INT64_C(5) * 60 * 1000)

/* Makes the execution that `first`, an intent or a record, began.  `outcome` ended it; NULL while
 * it is open.  Spans are allocated in `mem`; bodies are parsed only with `with_bodies`. */
void store_execution_join(const struct event_row *first, const struct event_row *outcome,
                          bool with_bodies, struct arena *mem, struct execution_row *ret);

/* store_event.c: copies an event into `mem`. */
void event_row_keep(struct arena *mem, const struct event_row *from, struct event_row *to);
bool event_filter_matches(const struct event_filter *f, const struct event_row *e);
/* True when a newest-first scan of this writer's events can stop at `e`, because all events after
 * it are too old for the filter. */
bool event_is_before_all(const struct event_filter *f, const struct event_row *e);

/* Collects open executions from the projection and from events that are not folded yet. */
struct open_set {
    int64_t *opened, *closed;
    size_t n_opened, cap_opened, n_closed, cap_closed;
};
void open_set_add(struct open_set *o, int64_t exec);
void open_set_note(struct open_set *o, const struct event_row *e);
/* Reduces `opened` to the executions that are open and within the filter's after and before, each
 * once, in the filter's order. */
void open_set_filter(struct open_set *o, const struct event_filter *f);
void open_set_release(struct open_set *o);
/* Always returns false; the error says that another event has this id. */
must_check bool event_id_is_taken(const struct event_row *e, struct error *err);

/* store_document.c: the part of store_write() for ops on documents.  The check runs before the
 * backend sees the op.  The second function runs after the batch is committed and sets the output
 * members.  Backends set only revision->revision and document_id, so that the input members are
 * intact when a batch is written again. */
must_check bool store_document_op_is_sound(const struct store_op *op, struct error *err);
void store_document_op_done(struct store_op *op);
/* A text as it is stored: `middle` between the first `prefix` and the last `suffix` bytes of the
 * previous text.  The first part of a chain is a whole text. */
#define REVISION_PARTS_MEM (64u * 1024 * 1024) /* memory for reading one text */
#define REVISION_DEPTH_MAX 31                  /* differences after a whole text */
struct revision_part {
    size_t prefix, suffix;
    struct str middle;
    size_t size; /* set by revision_assemble() */
};
/* Assembles the text of the last part in `mem`. */
must_check bool revision_assemble(struct revision_part *parts, size_t n, struct arena *mem,
                                  struct str *ret, struct error *err);
/* For backends: sets document_id of the revision to a copy of `id`. */
void revision_row_name(struct revision_row *row, struct str id);

struct store_ops {
    const char *name;
    void (*close)(struct store *s);
    bool (*write)(struct store *s, struct store_op *ops, size_t n, struct error *err);
    bool (*session_by_handle)(struct store *s, const struct principal *who, struct str handle,
                              struct arena *mem, struct session_row **ret_row, struct error *err);
    bool (*session_by_id)(struct store *s, const struct principal *who, struct str id,
                          struct arena *mem, struct session_row **ret_row, struct error *err);
    /* NULL: store.c looks the sessions up one after the other. */
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
    /* The live document, or with `ended` the one that ended last. */
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
