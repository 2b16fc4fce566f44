/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and chains events per (tenant, writer): mac(n) = HMAC(key, mac(n-1) | every field of event n
 * but its body, whose digest it covers).  The key lives outside the database (DATA/audit.key, 0600).
 * Owned by the write lane once the lanes run. */
#ifndef HOLDFAST_AUDIT_CHAIN_H
#define HOLDFAST_AUDIT_CHAIN_H

#include "store/lanes.h"

struct chain;
/* Reads or makes the key file. `create` false: a missing file is an error that says what to do. */
must_check bool chain_open(struct str key_file, bool create, int64_t writer, struct chain **ret, struct error *err);
void chain_free(struct chain *c);
struct write_hook chain_hook(struct chain *c);
void chain_mac(struct chain *c, const uint8_t previous[32], const struct event_row *e, uint8_t ret[32]);
/* Number of events appended by this writer so far (committed). */
int64_t chain_count(const struct chain *c);

/* Verification over pages of events, in id order.  Names the first bad event. */
struct chain_verifier;
struct chain_verifier *chain_verifier_new(struct chain *c) must_check;
void chain_verifier_free(struct chain_verifier *v);
/* false with ERR_CHAIN_BROKEN and text like "event 3.17 (2026-…Z, tools/call echo): content differs from its seal". */
must_check bool chain_verify_event(struct chain_verifier *v, const struct event_row *e, struct error *err);
/* After the last page: checks anchors (from the events and from the second sink's lines) against the
 * heads seen, so that a cut tail is found. */
must_check bool chain_verify_end(struct chain_verifier *v, struct str anchor_lines, struct error *err);
size_t chain_verified(const struct chain_verifier *v);

#endif
