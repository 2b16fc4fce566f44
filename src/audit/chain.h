/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and chains events per (tenant, writer): mac(n) = HMAC(key, mac(n-1) | id | record of
 * event n), the record being every field but the body, whose digest it holds (store/record.h).  The
 * key lives outside the database (DATA/audit.key, 0600).  Owned by the write lane once the lanes
 * run. */
#ifndef HOLDFAST_AUDIT_CHAIN_H
#define HOLDFAST_AUDIT_CHAIN_H

#include "base/buf.h"
#include "store/lanes.h"

struct chain;
/* Reads or makes the key file. `create` false: a missing file is an error that says what to do. */
must_check bool chain_open(struct str key_file, bool create, int64_t writer, struct chain **ret,
                           struct error *err);
void chain_free(struct chain *c);
struct write_hook chain_hook(struct chain *c);
void chain_mac(struct chain *c, const uint8_t previous[32], const struct event_row *e,
               uint8_t ret[32]);
/* A key of its own for another purpose, from the same secret: good across restarts. */
void chain_derive(struct chain *c, const char *purpose, uint8_t ret[32]);
/* Number of events appended by this writer so far (committed).  Any thread. */
int64_t chain_count(const struct chain *c);
/* Reads the heads anew from the store.  Called at start, so that the first anchor vouches for what
 * earlier writers left; the hook does it by itself after a failed commit. */
must_check bool chain_load(struct chain *c, struct store *store, struct error *err);

/* Asks whether the newest events in the store were sealed with our key: a key file that was lost
 * and made anew would go on as if nothing had happened and leave a chain that nobody can verify. */
must_check bool chain_check_key(struct chain *c, struct store *store, struct error *err);

/* Where several nodes share a store all must seal with one key: the first to start claims the store
 * for its key, whoever comes with another is refused (ERR_CONFIG).  A read-only store is only
 * asked, and one that nobody has claimed yet will do. */
must_check bool chain_claim(struct chain *c, struct store *store, bool read_only, struct str where,
                            struct error *err);

/* The tenant under which our own events (anchors, writers) are chained; no key belongs to it. */
#define CHAIN_SYSTEM_TENANT "_system"
/* Heads named by one anchor at most; the rest is left for the next one. */
#define CHAIN_ANCHOR_HEADS 256
/* The body of an anchor: {"heads":[{"tenant","writer","seq","id","mac"}…]} for every head that
 * moved since it was last anchored (all of them in a writer's first).  Anchors are cumulative: what
 * an earlier one said of a head still binds.  Heads count as anchored once the anchor event
 * commits.  Write lane. Returns how many heads are named; *ret_left tells whether some did not fit.
 */
size_t chain_anchor_body(struct chain *c, struct buf *out, bool *ret_left);
/* The second sink's line for a committed anchor: its own id, seq and MAC, then its body's heads. */
void chain_anchor_line(const struct event_row *anchor, struct buf *out);

/* Verification over pages of events, in id order.  Names the first bad event. */
struct chain_verifier;
struct chain_verifier *chain_verifier_new(struct chain *c) must_check;
void chain_verifier_free(struct chain_verifier *v);
/* false with ERR_CHAIN_BROKEN and text like "event 3.17 (2026-…Z, tools/call echo): content differs
 * from its seal". */
must_check bool chain_verify_event(struct chain_verifier *v, const struct event_row *e,
                                   struct error *err);
/* After the last page: checks anchors (from the events and from the second sink's lines) against
 * the heads seen, so that a cut tail is found. */
must_check bool chain_verify_end(struct chain_verifier *v, struct str anchor_lines,
                                 struct error *err);
struct chain_report {
    size_t events, writers, anchors;
    size_t bodies_deleted;  /* sealed but no longer kept: fine, and counted */
    int64_t last_anchor_ms; /* 0: none yet */
    size_t unproven;        /* events that no anchor vouches for: cutting them off is not seen */
};
struct chain_report chain_verified(const struct chain_verifier *v);

#endif
