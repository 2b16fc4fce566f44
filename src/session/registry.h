/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: durable sessions as a service, for REST and for the built-in session server.
 * Sessions made here and by MCP traffic are the same rows.
 *
 * One `struct registry_call` is one question or change.  It is embedded in whoever asks, stays in
 * place until `done`, and everything it finds is in its `mem`.  `done` comes from the loop, never
 * before the verb returns.  What was handed in is carried through even when the asker has lost
 * interest; so the asker's memory must last until then.
 *
 * Reads are never older than what this process has written: a row the loop holds is used only while
 * nothing has touched its session since it was read (session/read_your_writes.h), and never where
 * others write to the store too.  Another's session and an unknown one take the same way to
 * MISSING. */
#ifndef HOLDFAST_SESSION_REGISTRY_H
#define HOLDFAST_SESSION_REGISTRY_H

#include "audit/audit.h"
#include "base/random.h"
#include "session/plan.h"
#include "session/read_your_writes.h"
#include "session/session_json.h"

struct registry;

struct registry_config {
    struct loop *loop;
    struct lanes *lanes;
    struct sessions *sessions;
    struct audit *audit;
    bool is_shared; /* other processes write to the store too */
    /* A session of ours ended: its links ("s:ROW-ID") end with it. */
    void (*on_ended)(void *arg, struct str link_key);
    void *arg;
};
struct registry *registry_new(const struct registry_config *config) must_check;
void registry_free(struct registry *r); /* after lanes_free; NULL is fine */

enum registry_result {
    REGISTRY_OK,
    REGISTRY_MISSING,
    REGISTRY_NOT_ACTIVE,
    REGISTRY_DUPLICATE,
    REGISTRY_LIMIT,
    REGISTRY_STALE,
    REGISTRY_NO_CONTEXT, /* the context_id named is not one of the tenant's */
    REGISTRY_NO_TOOL,    /* likewise a tool_id */
    REGISTRY_ONCE,       /* `once` was stored before, by a request that overtook this one */
    REGISTRY_TOO_LARGE,
    REGISTRY_FAILED, /* see err */
};

enum context_change {
    CONTEXT_REPLACE, /* the whole document */
    CONTEXT_MERGE,   /* an RFC 7396 merge patch */
    CONTEXT_APPEND,  /* arrays grow, objects are joined, all else is replaced */
};

struct registry_call {
    const struct principal *who;
    struct arena *mem;
    struct str name; /* session_id, or the row's id */
    bool by_id;
    int64_t idle_ms; /* by which active and idle are told apart */
    /* Committed with the change or not at all; NULL: nothing. */
    const struct idempotency_row *once;
    struct own_secrets own; /* the caller's, for what is recorded */
    void (*done)(struct registry_call *c);
    void *user;

    enum registry_result result;
    struct error err;
    const struct session_row *row; /* as it reads now; see each verb */
    struct str json;               /* of `row`, and its tag: registry_get alone */
    struct str tag;
    const struct session_row *rows; /* registry_list */
    const struct execution_row *executions;
    const struct idempotency_row *stored_answer; /* registry_stored_answer */
    const struct context_row *context;           /* NULL: it has none yet */
    struct session_totals totals;
    int64_t counted; /* registry_create: live sessions of the tenant that count; -1: not known */
    size_t n;

    /* private */
    struct registry *home;
    struct loop_task task;
    struct fold_wait fold;
    struct read_job read;
    struct write_job write;
    struct session_plan plan; /* the change of the session, if this is one */
    size_t n_plan;            /* its operations in `ops` */
    struct store_op ops[SESSION_PLAN_OPS + 1];
    void (*next)(struct registry_call *c);
    uint64_t stamp;
    unsigned tries;
    struct session_row found, change;
    struct session_row *read_row;
    struct session_filter filter;
    unsigned limit;      /* registry_list, registry_executions: rows of a page */
    int64_t before;      /* registry_executions */
    bool with_bodies;    /* registry_executions */
    int64_t since_ms;    /* registry_totals */
    int64_t max_counted; /* registry_create */
    unsigned fields;     /* registry_patch: enum session_field */
    int64_t version;     /* registry_patch, registry_context_change: the one that must be there */
    enum context_change how; /* registry_context_change */
    bool any_version;        /* registry_context_change: tried again when another was faster */
    bool tools_known;        /* registry_record */
    struct context_row *context_row;
    struct context_row new_context;
    struct str text;
    const struct reported_execution *reported;
    size_t n_reported;
    struct audit_record *record;
    char uuid[UUID_TEXT];
};

/* The session, whatever its status.  true: answered now; `row`, `json` and `tag` are good until the
 * caller returns to the loop.  false: `done` comes. */
must_check bool registry_get(struct registry *r, struct registry_call *c);
/* Makes `row` (all columns but tenant and owner, which are the asker's).  DUPLICATE, LIMIT,
 * NO_CONTEXT.  `row` is the new one. */
void registry_create(struct registry *r, struct registry_call *c, const struct session_row *row,
                     int64_t max_counted);
/* Writes the columns that `fields` names where the version is still the one given.  MISSING,
 * NOT_ACTIVE, STALE, NO_CONTEXT. */
void registry_patch(struct registry *r, struct registry_call *c, const struct session_row *change,
                    unsigned fields, int64_t version);
/* Ends it for good: no name finds it any more, its links end.  MISSING when terminal too. */
void registry_end(struct registry *r, struct registry_call *c, struct str reason);
/* Activity.  MISSING, NOT_ACTIVE. */
void registry_use(struct registry *r, struct registry_call *c);
/* A new end.  MISSING, NOT_ACTIVE. */
void registry_refresh(struct registry *r, struct registry_call *c, int64_t expires_ms,
                      int64_t ttl_ms);
/* Executions that a client reports, all or none; `reported` lives until done.  MISSING, NOT_ACTIVE,
 * NO_TOOL. */
void registry_record(struct registry *r, struct registry_call *c,
                     const struct reported_execution *reported, size_t n);
/* `rows`, `n`: a page of the sessions the asker may see. */
void registry_list(struct registry *r, struct registry_call *c, const struct session_filter *filter,
                   unsigned limit);
void registry_totals(struct registry *r, struct registry_call *c, int64_t since_ms);
/* `executions`, `n`: newest first, those before an exec (0: the newest).  MISSING. */
void registry_executions(struct registry *r, struct registry_call *c, int64_t before,
                         bool with_bodies, unsigned limit);
/* `stored_answer`: the answer that this key had before; NULL: none. */
void registry_stored_answer(struct registry *r, struct registry_call *c, struct str key);

/* A key whose request is under way here: false while another holds it.  The bytes stay until it is
 * dropped. */
must_check bool registry_take_key(struct registry *r, struct str key);
void registry_drop_key(struct registry *r, struct str key);

/* The context document, whatever the session's status.  `row` and `context`. */
void registry_context(struct registry *r, struct registry_call *c);
/* What is there, changed by `text`, a JSON object.  version: the one that must be there, 0 when
 * there must be none, < 0 for whatever is there, tried again when another was faster.  MISSING,
 * NOT_ACTIVE, STALE, TOO_LARGE; `context` is the new one. */
void registry_context_change(struct registry *r, struct registry_call *c, enum context_change how,
                             struct str text, int64_t version);
#define CONTEXT_BYTES_MAX ((size_t)1 << 20)

#endif
