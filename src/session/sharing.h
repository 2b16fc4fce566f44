/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing of sessions as a service, for REST and for the built-in session server: shares are made,
 * listed, ended, and joined with.  What a share permits a caller of MCP is decided in lookup.c, and
 * what it permits a caller of REST in registry.c.
 *
 * A share lets another principal of the tenant, or another client of the same principal, go on in a
 * session.  It never widens what that principal may call: role, scopes, quotas, profile and held tools
 * are the caller's own, and stored credentials stay with the owner of the session.
 *
 * A code is 128 random bits, shown once and stored as its digest.  Wrong codes are recorded, and
 * counted against whoever sends them like invalid credentials (identity/throttle.h).
 *
 * One `struct sharing_call` is one request.  The caller embeds it, zeroed, and keeps it in place until
 * `done`, which is called from the loop, never before the function returns.  Each change and each
 * refused code appends an event. */
#ifndef HOLDFAST_SESSION_SHARING_H
#define HOLDFAST_SESSION_SHARING_H

#include "base/list.h"
#include "base/random.h"
#include "json/write.h"
#include "session/share_store/ops.h"
#include "store/lanes.h"

#define SHARE_CODE_PREFIX "hf-share-"
#define SHARE_CODE_TEXT (9 + 26 + 1) /* the prefix, 128 bits in base32, NUL */
#define SHARE_CODE_MS (INT64_C(10) * 60 * 1000)
/* The longest that the tool `share` makes; REST and commands make longer ones too. */
#define SHARE_CODE_MS_MAX (INT64_C(24) * 3600 * 1000)
#define SHARE_GRANTEE_MAX 200

extern const char *const share_may_names[];    /* NULL-terminated; by enum share_may */
extern const char *const share_former_names[]; /* likewise; by sharing_call.former */

struct registry;
struct sessions;
struct sharing;
struct sharing_config {
    struct loop *loop;
    struct lanes *lanes;
    struct sessions *sessions;
    struct registry *registry;
    bool is_shared; /* other nodes use the store */
};
struct sharing *sharing_new(const struct sharing_config *config) must_check;
/* Before lanes_free: joins wait for other nodes no longer.  NULL is fine for both. */
void sharing_stop(struct sharing *s);
void sharing_free(struct sharing *s); /* after lanes_free */

struct share_wish {
    struct str user, client; /* name or id of a user, or of a key; both absent: a code is made */
    int may;                 /* enum share_may */
    int64_t expires_ms; /* from now: of the code, or of the access of a grantee; 0: the default */
    int64_t access_ms;  /* how long the access by a code lasts once it is used; 0: as the session */
};

struct sharing_call {
    const struct principal *who;
    struct arena *mem;
    struct str name; /* session_id, or the row id with by_id */
    bool by_id;
    struct share_wish wish; /* sharing_create */
    struct str share_id;    /* sharing_end; sharing_list: the one before the page, or absent */
    unsigned limit;         /* sharing_list */
    /* sharing_join: the code; absent: `name` is a session that is shared with `who`. */
    struct str code;
    struct str client;               /* the name that the client gives itself; absent: none */
    struct str carrier, carrier_key; /* to bind to the session; absent: none */
    /* When the session is handed over: what its former owner may do from then on. */
    enum { FORMER_NOTHING, FORMER_READ, FORMER_USE } former;
    int64_t life_ms, max_counted; /* sharing_fork: of new sessions of the tenant */
    void (*done)(struct sharing_call *c);
    void *user;

    bool ok; /* else `err` says why not, in words for the person who asked */
    struct error err;
    const struct session_row *session; /* the row, as it was read; sharing_fork: the new one */
    struct share_row share;            /* made, ended, or joined with */
    char new_code[SHARE_CODE_TEXT];    /* sharing_create; empty: none was made */
    const struct share_row *rows;      /* sharing_list */
    size_t n;
    const struct link_row *links; /* sharing_join: servers that the session has used */
    size_t n_links;

    /* private */
    struct sharing *home;
    struct read_job read;
    struct write_job write;
    struct loop_task task;
    struct loop_timer *timer;
    struct list node; /* among those that wait for other nodes */
    struct session_row *row;
    struct share_row *found;
    struct share_join join;
    struct event_row event;
    struct store_op ops[4];
    struct session_row bare;     /* of a session that is handed over */
    struct share_row for_former; /* … and the share of its former owner */
    char former_id[UUID_TEXT];
    struct forking *fork; /* sharing_fork */
    char id[UUID_TEXT];
};

/* Only the owner of the session, and an administrator of the tenant (tenant_wide), may share it.
 * ERR_SESSION_NOT_FOUND, ERR_SESSION_NOT_ACTIVE, ERR_NOT_FOUND (the grantee), ERR_BAD_INPUT, ERR_LIMIT. */
void sharing_create(struct sharing *s, struct sharing_call *c);
/* `rows`, `n`: live shares and the newest of the others, oldest first.  ERR_SESSION_NOT_FOUND. */
void sharing_list(struct sharing *s, struct sharing_call *c);
/* Ends a share, effective at the next call, on every node.  ERR_SESSION_NOT_FOUND, ERR_NOT_FOUND. */
void sharing_end(struct sharing *s, struct sharing_call *c);
/* Joins: `session` and `share` say by what, `links` which servers the session has used.  With a share
 * that hands the session over, `who` is its owner then.  ERR_NOT_FOUND when the code is not known,
 * ERR_CONFLICT when it was used, ERR_DENIED when it has expired or was revoked,
 * ERR_SESSION_NOT_ACTIVE, ERR_LIMIT after many wrong codes. */
void sharing_join(struct sharing *s, struct sharing_call *c);

/* Makes a session of `who` with what the session remembers: its context document, toolsets, set-up and
 * the lines of documents that it has seen.  Not with processes, credentials, context values or
 * history.  `who` owns the session, or may read it.  ERR_SESSION_NOT_FOUND, ERR_SESSION_LIMIT. */
void sharing_fork(struct sharing *s, struct sharing_call *c);

/* "open" (a code that nobody has used), "live", "expired", "revoked", "handed_over". */
const char *share_state(const struct share_row *row, int64_t now_ms);
/* Writes members of an open object. */
void share_to_json(const struct share_row *row, struct js_writer *w);

#endif
