/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of sharing.  Each function below makes one op for store_write(). */
#ifndef HOLDFAST_SESSION_SHARE_STORE_OPS_H
#define HOLDFAST_SESSION_SHARE_STORE_OPS_H

#include "session/share_store/rows.h"
#include "store/store.h"

enum sharing_op {
    OP_SHARE_CREATE = OP_FAMILY + 8,
    OP_SHARE_END,
    OP_SHARE_JOIN,
    OP_BINDING_DROP,
    SHARING_OPS_END,
};
_Static_assert(SHARING_OPS_END <= OP_COUNT, "raise OP_COUNT");

/* All columns; tenant and made_by are those of `who`.  `who` must reach the session: MISSING, and
 * NOT_ACTIVE when the session is over.  LIMIT when the session has SHARES_LIVE_MAX live shares.
 * DUPLICATE on id or code. */
static inline struct store_op op_share_create(const struct principal *who, struct share_row *row)
{
    return (struct store_op){.kind = OP_SHARE_CREATE, .who = who, .row = row};
}
/* id, session_id, ended_ms, end_reason.  `who` must reach the session.  MISSING when the session has
 * no such share, or the share has ended. */
static inline struct store_op op_share_end(const struct principal *who, struct share_row *row)
{
    return (struct store_op){.kind = OP_SHARE_END, .who = who, .row = row};
}

struct share_join {
    struct str id, session_id; /* of the share, and of its session */
    int64_t at_ms;
    struct str client; /* the name that the client gave itself; absent: none */
    /* The carrier to bind to the session, instead of its earlier binding; absent: none. */
    struct str carrier, carrier_key;
};
/* `who` joins: becomes the grantee of a share whose code nobody has used, whose access begins now.
 * A joined share with SHARE_HAND_OVER makes `who` the owner of the session.  Then the session loses
 * the credentials and context values of its former owner, its carrier key, and its undelivered
 * results; all other shares end; and the carriers of the former owner are bound to this share, whose
 * grantee he is not, so that his clients are told.  A derived session becomes one of a transport,
 * because a link of a derived session belongs to its owner.
 *
 * MISSING when the tenant has no such share, or it is for another grantee; DUPLICATE when the code was
 * used, unless this carrier of `who` is bound by it; STALE when the share has ended or expired;
 * NOT_ACTIVE when the session is over. */
static inline struct store_op op_share_join(const struct principal *who, struct share_join *join)
{
    return (struct store_op){.kind = OP_SHARE_JOIN, .who = who, .row = join};
}
/* carrier, carrier_key, share_id: this carrier of `who` is no longer bound by the share.  MISSING
 * when it is not. */
static inline struct store_op op_binding_drop(const struct principal *who, struct binding_row *row)
{
    return (struct store_op){.kind = OP_BINDING_DROP, .who = who, .row = row};
}

#endif
