/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: durable sessions as a service, for REST and for the built-in session server.  The
 * registry and MCP traffic create the same rows.
 *
 * One `struct registry_call` is one query or change.  The caller embeds it and keeps it in place
 * until `done`.  All results are in its `mem`.  `done` is called from the loop, never before the
 * verb returns.  A queued call is always completed, even if the caller no longer needs it, so the
 * caller's memory must last until then.
 *
 * Reads never return data older than a write of this process: a snapshot of the row (resident.h) is
 * used only if its session was not touched since the read (session/read_your_writes.h), and never if
 * other processes write to the store.  A session of another owner and an unknown session reach MISSING in the same
 * way. */
#ifndef HOLDFAST_SESSION_REGISTRY_H
#define HOLDFAST_SESSION_REGISTRY_H

#include "audit/audit.h"
#include "base/random.h"
#include "session/plan.h"
#include "session/read_your_writes.h"
#include "session/secrets.h"
#include "session/session_json.h"

struct registry;

struct registry_config {
    struct loop *loop;
    struct lanes *lanes;
    struct sessions *sessions;
    struct audit *audit;
    struct secrets *secrets; /* secrets of sessions, redacted from records */
    bool is_shared;          /* other processes write to the store too */
    /* A session ended on this node: ends its links ("s:ROW-ID"). */
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
    REGISTRY_NO_CONTEXT, /* the context_id is not of this tenant */
    REGISTRY_NO_TOOL,    /* a tool_id is not of this tenant */
    REGISTRY_ONCE,       /* an earlier request has stored `once` */
    REGISTRY_TOO_LARGE,
    REGISTRY_FAILED, /* see err */
};

/* Whose sessions a call reaches. */
enum registry_reach {
    REACH_OWN,  /* those of the principal; of the whole tenant with tenant_wide */
    REACH_READ, /* also those that are shared with the principal, for reading at least */
    REACH_USE,  /* … for use at least */
};

enum context_change {
    CONTEXT_REPLACE, /* the whole document */
    CONTEXT_MERGE,   /* an RFC 7396 merge patch */
    CONTEXT_APPEND,  /* arrays are extended, objects merged, other values replaced */
};

struct registry_call {
    const struct principal *who;
    struct arena *mem;
    struct str name; /* session_id, or the row id with by_id */
    bool by_id;
    enum registry_reach reach;
    int64_t idle_ms; /* idle time that separates active from idle */
    /* Committed together with the change; NULL: nothing. */
    const struct idempotency_row *once;
    /* registry_create: the first context document (JSON) of the new session, whose context_id names
     * no document yet; absent: none. */
    struct str first_context;
    /* registry_patch: recorded together with the change; NULL: nothing. */
    struct event_row *event;
    struct own_secrets own; /* secrets of the caller, redacted from records */
    void (*done)(struct registry_call *c);
    void *user;

    enum registry_result result;
    struct error err;
    const struct session_row *row; /* with its current status; see each verb */
    struct str json;               /* of `row`, with its tag; registry_get only */
    struct str tag;
    const struct session_row *rows; /* registry_list */
    const struct execution_row *executions;
    const struct idempotency_row *stored_answer; /* registry_stored_answer */
    const struct context_row *context;           /* NULL: the session has no context */
    struct session_totals totals;
    /* registry_create: counted live sessions of the tenant; -1: not known. */
    int64_t counted;
    size_t n;

    /* private */
    struct principal owner; /* of a session that another owner shares: becomes `who` */
    struct registry *home;
    struct loop_task task;
    struct fold_wait fold;
    struct read_job read;
    struct write_job write;
    struct session_plan plan; /* the change of the session, if any */
    size_t n_plan;            /* number of its operations in `ops` */
    struct store_op ops[SESSION_PLAN_OPS + 2];
    void (*next)(struct registry_call *c);
    uint64_t stamp;
    uint64_t changes; /* sessions_changes() when the lookup began */
    unsigned tries;
    struct session_row found, change;
    struct session_row *read_row;
    struct session_filter filter;
    unsigned limit;          /* registry_list, registry_executions: page size */
    int64_t before;          /* registry_executions */
    bool with_bodies;        /* registry_executions */
    int64_t since_ms;        /* registry_totals */
    int64_t max_counted;     /* registry_create */
    unsigned fields;         /* registry_patch: enum session_field */
    int64_t version;         /* registry_patch, registry_context_change: expected version */
    enum context_change how; /* registry_context_change */
    /* registry_context_change: retried when another change came first. */
    bool any_version;
    bool tools_known; /* registry_record */
    struct context_row *context_row;
    struct context_row new_context;
    struct str text;
    const struct reported_execution *reported;
    size_t n_reported;
    struct audit_record *record;
    char uuid[UUID_TEXT];
};

/* Reads the session in any status.  Returns true when answered at once: `row`, `json` and `tag` are
 * valid until the caller returns to the loop.  Returns false when `done` will be called. */
must_check bool registry_get(struct registry *r, struct registry_call *c);
/* Creates `row` (all columns but tenant and owner, which are the caller's).  DUPLICATE, LIMIT,
 * NO_CONTEXT.  `row` is the new row. */
void registry_create(struct registry *r, struct registry_call *c, const struct session_row *row,
                     int64_t max_counted);
/* Writes the columns of `fields` if the row still has this version.  MISSING, NOT_ACTIVE, STALE,
 * NO_CONTEXT. */
void registry_patch(struct registry *r, struct registry_call *c, const struct session_row *change,
                    unsigned fields, int64_t version);
/* Terminates the session: its names no longer find it, and its links end.  MISSING also when it has
 * ended before. */
void registry_end(struct registry *r, struct registry_call *c, struct str reason);
/* Records activity.  MISSING, NOT_ACTIVE. */
void registry_use(struct registry *r, struct registry_call *c);
/* Sets a new expiry.  MISSING, NOT_ACTIVE. */
void registry_refresh(struct registry *r, struct registry_call *c, int64_t expires_ms,
                      int64_t ttl_ms);
/* Records executions that a client reports, all or none; `reported` lives until `done`.  MISSING,
 * NOT_ACTIVE, NO_TOOL. */
void registry_record(struct registry *r, struct registry_call *c,
                     const struct reported_execution *reported, size_t n);
/* `rows`, `n`: a page of the sessions that the caller may see. */
void registry_list(struct registry *r, struct registry_call *c, const struct session_filter *filter,
                   unsigned limit);
void registry_totals(struct registry *r, struct registry_call *c, int64_t since_ms);
/* `executions`, `n`: newest first, those before the execution `before` (0: from the newest).
 * MISSING. */
void registry_executions(struct registry *r, struct registry_call *c, int64_t before,
                         bool with_bodies, unsigned limit);
/* `stored_answer`: the stored answer of this key; NULL: none. */
void registry_stored_answer(struct registry *r, struct registry_call *c, struct str key);

/* Locks a key while its request runs here.  Returns false while another request holds it.  The
 * bytes of the key must stay valid until registry_drop_key(). */
must_check bool registry_take_key(struct registry *r, struct str key);
void registry_drop_key(struct registry *r, struct str key);

/* Reads the context document, in any status of the session.  Sets `row` and `context`. */
void registry_context(struct registry *r, struct registry_call *c);
/* Changes the context document by `text`, a JSON object.  version: the expected version; 0: no
 * document may exist; < 0: any version, with a retry when another change came first.  MISSING,
 * NOT_ACTIVE, STALE, TOO_LARGE.  `context` is the new document. */
void registry_context_change(struct registry *r, struct registry_call *c, enum context_change how,
                             struct str text, int64_t version);
#define CONTEXT_BYTES_MAX ((size_t)1 << 20)

#endif
