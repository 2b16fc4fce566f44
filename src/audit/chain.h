/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and chains events per (tenant, writer): mac(n) = HMAC(key, mac(n-1) | id | record of
 * event n).  The record holds every field but the body, and the body's digest (store/record.h).
 * The key lives outside the database (DATA/audit.key, 0600).  Once the lanes run, the write lane
 * owns the chain. */
#ifndef HOLDFAST_AUDIT_CHAIN_H
#define HOLDFAST_AUDIT_CHAIN_H

#include "base/buf.h"
#include "store/lanes.h"

struct chain;
struct publish_point;
/* Reads or creates the key file.  With `create` false, a missing file is an error that tells the
 * operator how to continue. */
must_check bool chain_open(struct str key_file, bool create, int64_t writer, struct chain **ret,
                           struct error *err);
/* A chain without heads that borrows the key of `c`, to verify on another thread. */
struct chain *chain_like(const struct chain *c) must_check;
void chain_free(struct chain *c);
struct write_hook chain_hook(struct chain *c);
/* Events that commit from now on go to this publish point; NULL: to none.  For publish.c; any
 * thread. */
void chain_publish_to(struct chain *c, struct publish_point *p);
void chain_mac(struct chain *c, const uint8_t previous[32], const struct event_row *e,
               uint8_t ret[32]);
/* Derives a separate key for another purpose from the same secret.  It stays the same across
 * restarts. */
void chain_derive(struct chain *c, const char *purpose, uint8_t ret[32]);
/* Number of events appended by this writer so far (committed).  Any thread. */
int64_t chain_count(const struct chain *c);
/* Reads the heads from the store.  Called at start, so that the first anchor covers the events of
 * earlier writers.  After a failed commit, the hook rereads the heads by itself. */
must_check bool chain_load(struct chain *c, struct store *store, struct error *err);
/* Whether chain_load() found events that no anchor covers, as a killed process leaves them. */
bool chain_was_behind(const struct chain *c);

/* Checks that the newest events in the store were sealed with our key.  Without this check, a key
 * file that was lost and created anew would continue the chain, and no key could verify all of
 * it. */
must_check bool chain_check_key(struct chain *c, struct store *store, struct error *err);

/* All nodes that share a store must seal with one key.  The first node to start claims the store
 * for its key; a node with another key fails with ERR_CONFIG.  A read-only store is only compared,
 * and an unclaimed read-only store is accepted. */
must_check bool chain_claim(struct chain *c, struct store *store, bool read_only, struct str where,
                            struct error *err);

/* The tenant of Holdfast's own events (anchors, writers).  No key belongs to this tenant. */
#define CHAIN_SYSTEM_TENANT "_system"
/* Most heads in one anchor; the remaining heads go into the next anchor. */
#define CHAIN_ANCHOR_HEADS 256
/* Writes the body of an anchor: {"heads":[{"tenant","writer","seq","id","mac"}…]} for every head
 * that moved since it was last anchored (a writer's first anchor names all heads).  Anchors are
 * cumulative: a head that an earlier anchor names is still anchored.  Heads count as anchored once
 * the anchor event commits.  Call it on the write lane.  Returns the number of heads written;
 * *ret_left says whether some did not fit. */
size_t chain_anchor_body(struct chain *c, struct buf *out, bool *ret_left);
/* Writes the second sink's line for a committed anchor: its id, seq and MAC, then the heads in its
 * body. */
void chain_anchor_line(const struct event_row *anchor, struct buf *out);

/* Verification over pages of events, in id order.  Names the first bad event. */
struct chain_verifier;
struct chain_verifier *chain_verifier_new(struct chain *c) must_check;
void chain_verifier_free(struct chain_verifier *v);
struct removed_row;
/* Where the events come from; borrowed.  The verifier reads the checkpoints there, that is what
 * retention removed, when an event is missing that it knows nothing of, and at the end: after the
 * events, so events may be removed during a verification.  Without a store there are none. */
void chain_verifier_store(struct chain_verifier *v, struct store *store);
/* What was removed, by writer, tenant and seq; after chain_verify_end(). */
const struct removed_row *chain_verified_removed(const struct chain_verifier *v, size_t *ret_n);
/* false with ERR_CHAIN_BROKEN and text like "event 3.17 (2026-…Z, tools/call echo): content differs
 * from its seal". */
must_check bool chain_verify_event(struct chain_verifier *v, const struct event_row *e,
                                   struct error *err);
/* Call after the last page.  Checks the anchors (from the events and from the second sink's lines)
 * against the heads seen, so that a cut tail is found. */
must_check bool chain_verify_end(struct chain_verifier *v, struct str anchor_lines,
                                 struct error *err);
struct chain_report {
    size_t events, writers, anchors;
    size_t bodies_deleted;  /* sealed and since deleted: valid, and counted */
    int64_t last_anchor_ms; /* 0: no anchor yet */
    size_t unproven;        /* events that no anchor covers: cutting them off goes unnoticed */
    size_t removed;         /* by retention, behind checkpoints */
};
struct chain_report chain_verified(const struct chain_verifier *v);

#endif
