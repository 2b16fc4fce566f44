/* SPDX-License-Identifier: Apache-2.0 */
/* The reads of sharing. */
#ifndef HOLDFAST_SESSION_SHARE_STORE_VERBS_H
#define HOLDFAST_SESSION_SHARE_STORE_VERBS_H

#include "session/share_store/rows.h"
#include "store/store.h"

#define SHARING_VERBS(X)                                                                           \
    X(SHARES_PAGE, shares_page, PAGE)                                                              \
    X(SHARE, share, ROW)                                                                           \
    X(SHARED_SESSION, shared_session, ROW)                                                         \
    X(BINDING, binding, ROW)

enum sharing_verb {
    SHARING_VERBS_BEFORE = VERB_FAMILY + 15,
    SHARING_VERBS(VERB_ENUM) SHARING_VERBS_END,
};
_Static_assert(SHARING_VERBS_END <= VERB_COUNT, "raise VERB_COUNT");

/* The filter of VERB_SHARE: exactly one member is set. */
struct share_find {
    const uint8_t *code_hash;
    struct str id;
    struct str session_id; /* the live share of this session for `who` that permits most */
};

/* The shares of a session, oldest first, whoever has made them; `after` is an id.  The caller has
 * checked that the session is the principal's to see. */
must_check bool store_shares_page(struct store *s, const struct principal *who,
                                  struct str session_id, struct str after, unsigned limit,
                                  struct arena *mem, struct share_row **ret_rows, size_t *ret_n,
                                  struct error *err);
/* A share of the tenant, by its code, in any state. */
must_check bool store_share_by_code(struct store *s, const struct principal *who,
                                    const uint8_t code_hash[32], struct arena *mem,
                                    struct share_row **ret_row, struct error *err);
/* A share of the tenant, by its id, in any state. */
must_check bool store_share_by_id(struct store *s, const struct principal *who, struct str id,
                                  struct arena *mem, struct share_row **ret_row, struct error *err);
/* The live share of a session whose grantee is `who` and that permits most. */
must_check bool store_share_of(struct store *s, const struct principal *who, struct str session_id,
                               struct arena *mem, struct share_row **ret_row, struct error *err);
/* A session of which `who` has a live share, by its handle or row id.  An unknown name and a session
 * without such a share cost the same statement. */
must_check bool store_shared_session(struct store *s, const struct principal *who, struct str name,
                                     bool by_id, struct arena *mem, struct session_row **ret_row,
                                     struct error *err);
/* The binding of a carrier of `who`, also when its share is no longer live. */
must_check bool store_binding(struct store *s, const struct principal *who, struct str carrier,
                              struct str key, struct arena *mem, struct binding_row **ret_row,
                              struct error *err);
/* *ret: some carrier, of any owner, is bound. */
must_check bool store_has_bindings(struct store *s, bool *ret, struct error *err);

#endif
