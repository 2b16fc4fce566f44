/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the memory store share: its arrays, and the few helpers over them.
 * Functions that take a struct memory_store expect its lock to be held. */
#ifndef HOLDFAST_STORE_MEMORY_IMPL_H
#define HOLDFAST_STORE_MEMORY_IMPL_H

#include <pthread.h>

#include "store/store_impl.h"

struct mem_event {
    struct event_row row;
    bool folded;
};
struct mem_exec {
    int64_t id;
    bool closed;
    bool indeterminate;
};

struct memory_store {
    struct store base;
    pthread_mutex_t lock;
    struct arena *mem; /* every text */
    struct session_row *sessions;
    size_t n_sessions, cap_sessions;
    struct transport_row *transports;
    size_t n_transports, cap_transports;
    struct link_row *links;
    size_t n_links, cap_links;
    struct writer_row *writers; /* number - 1 is the index */
    size_t n_writers, cap_writers;
    struct undelivered_row *undelivered;
    size_t n_undelivered, cap_undelivered;
    struct mem_event *events; /* by id */
    size_t n_events, cap_events;
    size_t first_unfolded;  /* all before it are folded */
    struct mem_exec *execs; /* by id */
    size_t n_execs, cap_execs;
};

static inline struct memory_store *mem_of(struct store *s)
{
    return container_of(s, struct memory_store, base);
}

void mem_copy_texts(struct arena *mem, void *row, const size_t *offsets, size_t n);
/* Room for one more after n; the array may move. */
void *mem_grow(void *array, size_t n, size_t *cap, size_t size);
struct session_row *mem_session_of(struct memory_store *s, const struct principal *who,
                                   struct str id);
struct transport_row *mem_transport_of(struct memory_store *s, const struct principal *who,
                                       const uint8_t id_hash[32]);

/* memory_event.c */
must_check bool mem_events_append(struct memory_store *s, const struct store_op *ops, size_t n,
                                  struct error *err);
void mem_fold_all(struct memory_store *s);
bool mem_events_page(struct store *s, const struct event_filter *filter, unsigned limit,
                     struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                     struct error *err);
bool mem_chain_heads(struct store *s, struct arena *mem, struct chain_head **ret_heads,
                     size_t *ret_n, struct error *err);
bool mem_fold(struct store *s, unsigned max, bool *ret_left, struct error *err);
bool mem_open_intents(struct store *s, int64_t now_ms, int64_t after, unsigned limit,
                      struct arena *mem, struct event_row **ret_rows, size_t *ret_n,
                      struct error *err);
/* memory_undelivered.c */
enum verdict mem_undelivered_put(struct memory_store *s, const struct store_op *op, int64_t now_ms);
enum verdict mem_undelivered_take(struct memory_store *s, const struct store_op *op,
                                  int64_t now_ms);
void mem_undelivered_reap(struct memory_store *s, int64_t now_ms, unsigned batch);
bool mem_undelivered_get(struct store *s, const struct principal *who, int64_t id,
                         struct arena *mem, struct undelivered_row **ret_row, struct error *err);
bool mem_undelivered_page(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                          struct undelivered_row **ret_rows, size_t *ret_n, struct error *err);

#endif
