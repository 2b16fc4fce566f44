/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the memory store: its arrays and helpers.  Functions that take a struct
 * memory_store expect the caller to hold its lock. */
#ifndef HOLDFAST_STORE_MEMORY_IMPL_H
#define HOLDFAST_STORE_MEMORY_IMPL_H

#include <pthread.h>

#include "store/counted.h"
#include "store/family.h"
#include "store/store_impl.h"

struct mem_event {
    struct event_row row;
    bool folded;
    bool removed; /* by retention: only the end of its chain is read from it */
};
struct mem_exec {
    int64_t id;
    int64_t outcome; /* id of the outcome event that counts; 0: none yet */
    bool closed;
    bool indeterminate;
};

struct memory_store {
    struct store base;
    pthread_mutex_t lock;
    struct arena *mem; /* holds every text */
    struct session_row *sessions;
    size_t n_sessions, cap_sessions;
    struct transport_row *transports;
    size_t n_transports, cap_transports;
    struct link_row *links;
    size_t n_links, cap_links;
    struct writer_row *writers; /* index: number - 1 */
    size_t n_writers, cap_writers;
    struct undelivered_row *undelivered;
    size_t n_undelivered, cap_undelivered;
    struct tenant_row *tenants; /* counted_sessions is computed on every read */
    size_t n_tenants, cap_tenants;
    struct user_row *users;
    size_t n_users, cap_users;
    struct key_row *keys;
    size_t n_keys, cap_keys;
    struct tenant_key_row *tenant_keys;
    size_t n_tenant_keys, cap_tenant_keys;
    struct secret_row *secrets;
    size_t n_secrets, cap_secrets;
    struct login_row *logins;
    size_t n_logins, cap_logins;
    struct context_row *contexts;
    size_t n_contexts, cap_contexts;
    struct idempotency_row *idempotency;
    size_t n_idempotency, cap_idempotency;
    struct tool_row *tools;
    size_t n_tools, cap_tools;
    struct server_row *servers;
    size_t n_servers, cap_servers;
    struct mem_event *events; /* sorted by id */
    size_t n_events, cap_events;
    size_t first_unfolded;  /* all events before this index are folded */
    struct mem_exec *execs; /* sorted by id */
    size_t n_execs, cap_execs;
    int64_t holds_made;                 /* a removal must not miss a new hold */
    void *families[STORE_FAMILIES_MAX]; /* the arrays of each family */
};

static inline struct memory_store *mem_of(struct store *s)
{
    return container_of(s, struct memory_store, base);
}

/* The ops that each file applies; the last row is zero. */
struct mem_op {
    unsigned kind;
    enum verdict (*run)(struct memory_store *s, const struct store_op *op, int64_t now_ms);
};
extern const struct mem_op mem_session_ops[], mem_registry_ops[], mem_secret_ops[], mem_login_ops[],
    mem_tool_ops[], mem_undelivered_ops[], mem_size_ops[];
/* The verbs that each file answers. */
extern const struct verb_handler mem_session_verbs[], mem_registry_verbs[], mem_secret_verbs[],
    mem_login_verbs[], mem_tool_verbs[], mem_event_verbs[], mem_undelivered_verbs[],
    mem_size_verbs[];

/* An array that a verb may change; a refused batch restores it. */
struct mem_table {
    void **rows;
    size_t *n, size;
};
#define MEM_TABLES_MAX 48
/* The part of a family (store/family.h) for the memory store.  Its arrays are members of a struct
 * of `size` bytes, zero at first, that each store has. */
struct memory_family {
    size_t size;
    /* Lists the arrays, and returns their number. */
    size_t (*tables)(void *arrays, struct mem_table *ret);
    const struct mem_op *ops;
    const struct verb_handler *verbs;
    /* Deletes the rows of sessions that are over, all of them; NULL: there are none. */
    void (*reap)(struct memory_store *s);
    /* Whether the session is held, so that the reaper may not delete it; NULL: this family holds
     * none. */
    bool (*keeps)(struct memory_store *s, const struct session_row *row);
    /* Counts one call of the fold; NULL: this family counts none. */
    void (*count)(struct memory_store *s, const struct counted_call *call);
    /* Frees what the arrays hold; NULL: nothing. */
    void (*release)(void *arrays);
};
/* memory_family.c */
/* Called together with store_family_add(), before a memory store is opened. */
void memory_family_add(const struct memory_family *family);
const struct memory_family *const *memory_families(size_t *ret_n);
/* The struct with the arrays of a family in this store. */
void *mem_family_arrays(struct memory_store *s, const struct memory_family *family);
bool mem_families_keep(struct memory_store *s, const struct session_row *row);
void mem_families_count(struct memory_store *s, const struct counted_call *call);
/* For memory.c: make and free these structs, and list all of their arrays. */
void mem_families_init(struct memory_store *s);
void mem_families_release(struct memory_store *s);
size_t mem_families_tables(struct memory_store *s, struct mem_table *ret);

void mem_copy_texts(struct arena *mem, void *row, const size_t *offsets, size_t n);
/* Makes room for one more element after `n`; the array may move. */
void *mem_grow(void *array, size_t n, size_t *cap, size_t size);
struct transport_row *mem_transport_of(struct memory_store *s, const struct principal *who,
                                       const uint8_t id_hash[32]);

/* memory_session.c */
struct session_row *mem_session_of(struct memory_store *s, const struct principal *who,
                                   struct str id);
struct session_row *mem_session_reached(struct memory_store *s, const struct principal *who,
                                        struct str id);
/* Records a use at `at_ms`: last activity, idle → active, and the sliding end. */
void mem_session_use(struct session_row *row, int64_t at_ms);
/* A copy in `mem`; a session past its end has the status expired. */
struct session_row *mem_session_copy(const struct session_row *row, struct arena *mem);
struct reaped mem_sessions_reap(struct memory_store *s, const struct reap_request *what);

/* memory_registry.c */
#define MEM_USER_TEXTS 5
extern const size_t mem_user_texts[MEM_USER_TEXTS];
/* Copies `row` into `mem`; NULL stays NULL. */
void *mem_copy_row(struct arena *mem, const void *row, size_t size, const size_t *texts,
                   size_t n_texts);
/* Makes the tenant if it does not exist. */
void mem_tenant_make(struct memory_store *s, struct str id, int64_t now_ms);
/* Writes op->context as the document `id`, without checking which sessions reach that document. */
enum verdict mem_context_write(struct memory_store *s, const struct store_op *op, struct str id);
void mem_idempotency_reap(struct memory_store *s, int64_t now_ms, unsigned batch);

/* memory_secret.c */
struct user_row *mem_user_by_id(struct memory_store *s, struct str id);
/* memory_login.c */
void mem_logins_reap(struct memory_store *s, int64_t now_ms, unsigned batch);

/* memory.c */
/* True also when there is no such session. */
bool mem_session_is_over(const struct memory_store *s, struct str id);

/* memory_event.c */
/* True when every id is free or taken by the same event. */
must_check bool mem_events_check(const struct memory_store *s, const struct store_op *ops, size_t n,
                                 struct error *err);
void mem_events_append(struct memory_store *s, const struct store_op *ops, size_t n);
void mem_fold_all(struct memory_store *s);
/* memory_undelivered.c */
void mem_undelivered_reap(struct memory_store *s, int64_t now_ms, unsigned batch);

#endif
