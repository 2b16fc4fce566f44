/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of sharing: shares of sessions, and bindings of carriers to sessions. */
#ifndef HOLDFAST_SESSION_SHARE_STORE_ROWS_H
#define HOLDFAST_SESSION_SHARE_STORE_ROWS_H

#include "base/str.h"

#include <stdint.h>

/* What a share permits.  Each value includes those before it. */
enum share_may {
    SHARE_READ,      /* look at the session: its row, executions and context */
    SHARE_USE,       /* call tools in it */
    SHARE_HAND_OVER, /* become its owner by joining */
};

/* A share lets another principal of the tenant go on in a session.  Its grantee is known from the
 * start, or is whoever joins with its code. */
struct share_row {
    struct str id; /* UUIDv7 */
    struct str tenant, session_id;
    struct str made_by;    /* the owner who made it */
    struct str grantee;    /* an owner: "user:ID", "key:ID" …; absent: nobody has used the code */
    uint8_t code_hash[32]; /* SHA-256 of the code; zero: the share has no code */
    int may;               /* enum share_may */
    int64_t created_ms;
    int64_t expires_ms; /* end of the code until it is used, then end of the access; 0: none */
    int64_t access_ms;  /* how long the access lasts once the code is used; 0: as the session */
    int64_t joined_ms;  /* last join; 0: none */
    struct str joined_client; /* the name that the client gave itself; absent: none */
    int64_t ended_ms;         /* revoked; 0: not */
    struct str end_reason;    /* "revoked", "handed_over" */
};

/* A carrier of its owner that names a session by a share.  It takes precedence over the session that
 * the carrier names otherwise. */
#define BINDING_TRANSPORT "transport" /* the carrier of a transport; its key: hex of the hash */
struct binding_row {
    struct str tenant, owner;
    struct str carrier, carrier_key;
    struct str session_id, share_id;
    int64_t bound_ms;
    /* Read only, of the share: */
    int may;
    bool is_live;          /* the owner may use the session by it */
    struct str end_reason; /* of a share that was revoked */
};

#define SHARES_LIVE_MAX 32   /* per session: not revoked and not expired */
#define SHARES_ENDED_KEPT 32 /* per session: the newest of the others */

#endif
