/* SPDX-License-Identifier: Apache-2.0 */
/* Context values that a client sets when its session begins, on a profile that lists the keys: a
 * JSON object in ?config= or in the header mcp-config, plain or in base64.  They cannot change
 * later.  They are stored sealed with the session:
 *
 *   text ── parse ──> {KEY: text} ── keyring ──> hfs1.KEY-ID.LABEL.BYTES      (session/sealed.h)
 *
 * LABEL is not encrypted.  It holds the keys and a MAC of all values, so a later request is
 * compared with it without decryption.  All values count as secrets: errors name only keys. */
#ifndef HOLDFAST_SESSION_PROFILE_CONTEXT_H
#define HOLDFAST_SESSION_PROFILE_CONTEXT_H

#include "config/config.h"
#include "crypto/hash.h"
#include "http/codec.h"

#define PROFILE_CONTEXT_BYTES_MAX 8192 /* size of the JSON text */

struct profile_context {
    /* {KEY: "value"}, sorted, without blanks: the same text for the same values. */
    struct str plain;
    struct str keys; /* a JSON array, sorted */
    uint8_t mac[SHA256_BYTES];
};
struct profile_context_rules {
    const struct profile_config *profile;
    const struct hmac_key *key; /* the same on every node */
    struct str tenant;
};
/* Finds the raw text; *ret_text absent: not sent. */
must_check bool profile_context_in_query(const struct http_head *head, struct arena *mem,
                                         struct str *ret_text, struct error *err);
must_check bool profile_context_in_header(const struct http_head *head, struct str *ret_text,
                                          struct error *err);
/* `plain` absent: the object is empty ({}).  The result is in mem; the caller wipes mem. */
must_check bool profile_context_parse(struct str text, const struct profile_context_rules *rules,
                                      struct arena *mem, struct profile_context *ret,
                                      struct error *err);

/* The unencrypted label beside the sealed bytes. */
struct str profile_context_label(const struct profile_context *c, struct arena *mem);
/* Reads the label of a sealed text.  ret_keys: a JSON array.  Returns false when it is not a
 * label. */
must_check bool profile_context_read_label(struct str sealed, struct arena *mem,
                                           struct str *ret_keys, uint8_t ret_mac[SHA256_BYTES]);
/* Whether such an array contains the key. */
bool profile_context_has_key(struct str keys, struct str key);
/* The decrypted values as pairs, in mem. */
must_check bool profile_context_read(struct str plain, struct arena *mem, struct config_pair **ret,
                                     size_t *ret_n);

#endif
