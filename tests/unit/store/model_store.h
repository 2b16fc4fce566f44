/* SPDX-License-Identifier: Apache-2.0 */
/* A store of one session for tests of the cache: the row is the test's own, and it is told before
 * and after each read and commit, so that it can do something in between. */
#ifndef HOLDFAST_TESTS_MODEL_STORE_H
#define HOLDFAST_TESTS_MODEL_STORE_H

#include <stdlib.h>

#include "test.h"

#include "base/clock.h"
#include "store/cached.h"
#include "store/store_impl.h"

enum model_point { BEFORE_READ, AFTER_READ, BEFORE_COMMIT, AFTER_COMMIT };

struct model_store {
    struct store base;
    struct session_row *row; /* shared by the stores of all nodes */
    unsigned reads;
    void (*hook)(void *arg, enum model_point point);
    void *arg;
    bool fails; /* the commit */
};

static inline void model_at(struct model_store *m, enum model_point point)
{
    if (m->hook)
        m->hook(m->arg, point);
}

static inline bool model_read(struct store *s, const struct principal *who, bool named,
                              struct arena *mem, struct session_row **ret_row)
{
    struct model_store *m = container_of(s, struct model_store, base);
    struct session_row *row = NULL;
    m->reads++;
    model_at(m, BEFORE_READ);
    if (named && str_eq(who->tenant, m->row->tenant) &&
        (who->tenant_wide || str_eq(who->owner, m->row->owner))) {
        row = arena_new_of(mem, struct session_row);
        *row = *m->row;
        session_row_apply_expiry(row, clock_life_ms());
    }
    model_at(m, AFTER_READ);
    *ret_row = row;
    return true;
}

static inline bool model_by_id(struct store *s, const struct principal *who, struct str id,
                               struct arena *mem, struct session_row **ret_row, struct error *err)
{
    struct model_store *m = container_of(s, struct model_store, base);
    (void)err;
    return model_read(s, who, str_ieq(id, m->row->id), mem, ret_row);
}

static inline bool model_by_handle(struct store *s, const struct principal *who, struct str handle,
                                   struct arena *mem, struct session_row **ret_row,
                                   struct error *err)
{
    struct model_store *m = container_of(s, struct model_store, base);
    (void)err;
    return model_read(s, who, str_eq(handle, m->row->handle), mem, ret_row);
}

static inline bool model_write(struct store *s, struct store_op *ops, size_t n, struct error *err)
{
    struct model_store *m = container_of(s, struct model_store, base);
    model_at(m, BEFORE_COMMIT);
    if (m->fails)
        return error_set(err, ERR_UNAVAILABLE, "told to fail");
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind == OP_SESSION_END)
            m->row->status = SESSION_TERMINATED;
        if (ops[i].kind != OP_WRITER_RENEW && ops[i].kind != OP_EVENT_APPEND)
            m->row->version++;
        ops[i].verdict = VERDICT_OK;
    }
    model_at(m, AFTER_COMMIT);
    return true;
}

/* The session, once it has ended or has toolsets. */
static inline bool model_changes(struct store *s, int64_t after, unsigned limit, struct arena *mem,
                                 struct change_row **ret_rows, size_t *ret_n, struct error *err)
{
    struct model_store *m = container_of(s, struct model_store, base);
    (void)after, (void)limit, (void)err;
    *ret_rows = arena_new_of(mem, struct change_row);
    **ret_rows =
        (struct change_row){1, m->row->toolsets.p ? CHANGE_SESSION_TOOLSETS : CHANGE_SESSION_ENDED,
                            m->row->tenant, m->row->id};
    *ret_n = m->row->status == SESSION_TERMINATED || m->row->toolsets.p;
    return true;
}

static inline bool model_fold(struct store *s, unsigned max, bool *ret_left, struct error *err)
{
    struct model_store *m = container_of(s, struct model_store, base);
    (void)max, (void)err;
    m->row->tool_count++;
    *ret_left = false;
    return true;
}

static inline bool model_reap(struct store *s, const struct reap_request *what, struct reaped *ret,
                              struct error *err)
{
    struct model_store *m = container_of(s, struct model_store, base);
    (void)what, (void)err;
    m->row->status = SESSION_IDLE;
    *ret = (struct reaped){.idled = 1};
    return true;
}

static inline bool model_call(struct store *s, struct store_call *c, struct error *err)
{
    switch (c->verb) {
    case VERB_SESSION_BY_ID:
        return model_by_id(s, c->who, c->id, c->mem, (struct session_row **)&c->rows, err);
    case VERB_SESSION_BY_HANDLE:
        return model_by_handle(s, c->who, c->id, c->mem, (struct session_row **)&c->rows, err);
    case VERB_SESSIONS_FIND:
        return store_find_each(s, c, err);
    case VERB_CHANGES:
        return model_changes(s, c->after_id, c->limit, c->mem, (struct change_row **)&c->rows,
                             &c->n, err);
    case VERB_FOLD:
        return model_fold(s, c->limit, c->ret, err);
    case VERB_REAP:
        return model_reap(s, c->filter, c->ret, err);
    default:
        return error_set(err, ERR_INTERNAL, "the model has no %s", store_verbs[c->verb].name);
    }
}

static inline void model_close(struct store *s)
{
    free(container_of(s, struct model_store, base));
}

static inline struct model_store *model_store_new(struct session_row *row)
{
    static const struct store_ops ops = {
        .name = "model",
        .close = model_close,
        .write = model_write,
        .call = model_call,
    };
    struct model_store *m = xcalloc(1, sizeof(*m));
    m->base.ops = &ops;
    m->row = row;
    return m;
}

#endif
