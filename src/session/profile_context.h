/* SPDX-License-Identifier: Apache-2.0 */
/* What a client tells its session when the session begins, on a profile that lists the keys: a JSON
 * object in ?config= or in the header mcp-config, itself or in base64.  It is fixed then, and
 * stored sealed with the session:
 *
 *   text ── parse ──> {KEY: text} ── keyring ──> hfs1.KEY-ID.LABEL.BYTES      (session/sealed.h)
 *
 * LABEL, which is in clear, has the keys and a MAC of the whole, so that a later request is held
 * against it without opening anything.  All values count as secrets: errors name keys alone. */
#ifndef HOLDFAST_SESSION_PROFILE_CONTEXT_H
#define HOLDFAST_SESSION_PROFILE_CONTEXT_H

#include "config/config.h"
#include "crypto/hash.h"
#include "http/codec.h"

#define PROFILE_CONTEXT_BYTES_MAX 8192 /* of JSON */

struct profile_context {
    struct str plain; /* {KEY: "value"}, sorted, without blanks: the same for all that mean it */
    struct str keys;  /* a JSON array, sorted */
    uint8_t mac[SHA256_BYTES];
};
struct profile_context_rules {
    const struct profile_config *profile;
    const struct hmac_key *key; /* the same on every node */
    struct str tenant;
};
/* What stands there; *ret_text absent: nothing does. */
must_check bool profile_context_in_query(const struct http_head *head, struct arena *mem,
                                         struct str *ret_text, struct error *err);
must_check bool profile_context_in_header(const struct http_head *head, struct str *ret_text,
                                          struct error *err);
/* plain absent: it says nothing ({}).  In mem, which is to be wiped. */
must_check bool profile_context_parse(struct str text, const struct profile_context_rules *rules,
                                      struct arena *mem, struct profile_context *ret,
                                      struct error *err);

/* What stands in clear beside the sealed bytes, … */
struct str profile_context_label(const struct profile_context *c, struct arena *mem);
/* … read back from the sealed text.  ret_keys: a JSON array.  False: it is none. */
must_check bool profile_context_read_label(struct str sealed, struct arena *mem,
                                           struct str *ret_keys, uint8_t ret_mac[SHA256_BYTES]);
/* Is that key in such an array? */
bool profile_context_has_key(struct str keys, struct str key);
/* The opened bytes as pairs, in mem. */
must_check bool profile_context_read(struct str plain, struct arena *mem, struct config_pair **ret,
                                     size_t *ret_n);

#endif
