/* SPDX-License-Identifier: Apache-2.0 */
/* How a session's credentials are stored: sealed, as text that says by which key,
 *
 *   hfs1.KEY-ID.SERVICES.BYTES      the last two in base64url, SERVICES a JSON array of names
 *                                   (of a context, see profile_context.h: its label)
 *
 * Bound to the bytes are the version, the tenant, the session, the field, the key's id and the
 * services: moved to another row, field or tenant, or cut, or changed, they do not open. */
#ifndef HOLDFAST_SESSION_SEALED_H
#define HOLDFAST_SESSION_SEALED_H

#include "base/arena.h"
#include "crypto/seal.h"

#define SEALED_FIELD_AUTH "passthrough_auth"
#define SEALED_FIELD_CONTEXT "profile_context"

struct sealed {
    struct str key_id;
    struct str services; /* JSON */
    struct str bytes;    /* as seal() wrote them */
};
/* False: no such text.  In mem. */
must_check bool sealed_read(struct str text, struct arena *mem, struct sealed *ret);

/* Whose, and what of it. */
struct sealed_place {
    struct str tenant, session_id, field;
};
struct str sealed_write(struct seal_key *key, struct str key_id, const struct sealed_place *place,
                        struct str services, struct str plain, struct arena *mem) must_check;
/* Into room for s->bytes.n bytes, which the caller wipes.  False: nothing of it is there. */
must_check bool sealed_open(struct seal_key *key, const struct sealed *s,
                            const struct sealed_place *place, char *ret_plain, size_t *ret_n);

#endif
