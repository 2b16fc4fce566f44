/* SPDX-License-Identifier: Apache-2.0 */
/* The stored form of a session's credentials: sealed text that names its key,
 *
 *   hfs1.KEY-ID.SERVICES.BYTES      the last two in base64url, SERVICES a JSON array of names
 *                                   (for a context: its label, see profile_context.h)
 *
 * The seal authenticates version, tenant, session, field, key id and services.  If the text is
 * moved to another row, field or tenant, or is cut or changed, it does not open. */
#ifndef HOLDFAST_SESSION_SEALED_H
#define HOLDFAST_SESSION_SEALED_H

#include "base/arena.h"
#include "crypto/seal.h"

#define SEALED_FIELD_AUTH "passthrough_auth"
#define SEALED_FIELD_CONTEXT "profile_context"
#define SEALED_FIELD_SECRET "secret" /* of the configuration; the session is the secret's name */

struct sealed {
    struct str key_id;
    struct str services; /* JSON */
    struct str bytes;    /* output of seal() */
};
/* Returns false when the text is not of this form.  In mem. */
must_check bool sealed_read(struct str text, struct arena *mem, struct sealed *ret);

/* The row and field of the text. */
struct sealed_place {
    struct str tenant, session_id, field;
};
struct str sealed_write(struct seal_key *key, struct str key_id, const struct sealed_place *place,
                        struct str services, struct str plain, struct arena *mem) must_check;
/* Writes up to s->bytes.n bytes to ret_plain; the caller wipes them.  On false nothing is left
 * there. */
must_check bool sealed_open(struct seal_key *key, const struct sealed *s,
                            const struct sealed_place *place, char *ret_plain, size_t *ret_n);

#endif
