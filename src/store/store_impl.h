/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between store.c and the backends.  The contracts are at the functions of store.h
 * and verbs.h. */
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

/* One row per op; without a name where no family has added an op (family.c). */
struct op_info {
    const char *name;
    bool needs_who; /* a principal with tenant and owner */
    /* Runs before any backend sees the op; NULL: nothing to check. */
    bool (*is_sound)(const struct store_op *op, struct error *err);
    /* Runs after the batch is committed, for output members.  Until then the input members must stay
     * intact, because a batch may be written again.  NULL: none. */
    void (*done)(struct store_op *op);
    /* For an op of a family: the session whose row it may write, and which other nodes then read
     * again; NULL: the op writes no session. */
    struct str (*session)(const struct store_op *op);
    /* For an op of a family: it may add a row to the changes that other nodes read. */
    bool announces;
};
extern struct op_info store_op_infos[OP_COUNT];

/* Answers one verb. */
typedef bool store_handler(struct store *s, struct store_call *c, struct error *err);
/* A backend's files each export a list of the verbs that they answer; the last row is zero. */
struct verb_handler {
    unsigned verb;
    store_handler *run;
};
void store_handlers_add(store_handler *table[VERB_COUNT], const struct verb_handler *list);
/* VERB_SESSIONS_FIND for stores that look the sessions up one after the other. */
store_handler store_find_each;

struct store_ops {
    const char *name;
    void (*close)(struct store *s);
    bool (*write)(struct store *s, struct store_op *ops, size_t n, struct error *err);
    store_handler *call; /* every verb */
};

#endif
