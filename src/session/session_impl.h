/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by session.c (the cache), lookup.c and resident.c (filling it from the store) and live.c
 * (counting transports). */
#ifndef HOLDFAST_SESSION_SESSION_IMPL_H
#define HOLDFAST_SESSION_SESSION_IMPL_H

#include "crypto/hash.h"
#include "session/session.h"

/* Numbers of changed rows, by the hash of the row's id.  Two ids in one slot cost a lookup. */
#define CHANGED_SLOTS 1024 /* a power of two */

struct sessions {
    struct lanes *lanes;
    struct str node;
    int64_t writer;
    unsigned max_resident;
    bool is_shared;
    /* Key → struct session or struct transport, by the key's first byte. */
    struct map names;
    /* Least recently used first.  idle_rows: sessions without links_known. */
    struct list idle_sessions, idle_rows, idle_transports;
    struct list snapshots; /* least recently used first */
    size_t snapshot_bytes, max_snapshot_bytes;
    unsigned n_sessions, n_transports;
    void (*on_sealed)(void *arg, struct str link_key); /* NULL: not set */
    void *on_sealed_arg;
    /* NULL: not set */
    void (*on_handed_over)(void *arg, struct str link_key, bool had_secrets);
    void *on_handed_over_arg;
    struct read_your_writes *writes; /* NULL: sessions are not read outside of the cache */
    uint64_t toolset_moves;
    uint64_t changes; /* sessions_changes() */
    uint64_t changed[CHANGED_SLOTS];
    struct live_transports *live;
    struct bindings *bindings;
};

/* The maximum length of a cache key.  Handles and carrier names are bounded before; a longer key is
 * absent and is never found. */
#define KEY_ROOM 2048
/* Builds: kind, tenant \0 owner \0 a \0 b, in `room`; absent when it does not fit. */
struct str sessions_key_in(char *room, size_t n, char kind, struct str tenant, struct str owner,
                           struct str a, struct str b);
/* Like sessions_key_in(), in mem. */
struct str sessions_key(struct arena *mem, char kind, struct str tenant, struct str owner,
                        struct str a, struct str b);
struct arena *session_arena(struct str tenant, struct str owner, struct str key, struct str client);
/* Copied; absent: no credentials. */
void session_take_sealed(struct session *s, struct str sealed_auth);
/* Sets the context from the row; absent: no context. */
void session_load_context(struct session *s, struct str sealed);
/* Adds a session to the cache under its names. */
void session_enter_cache(struct session *s);
/* The links of a session in use were added; its carrier key finds it from now on. */
void session_links_are_known(struct session *s);
/* Drops idle sessions until there is room for another one.  False: all are in use. */
must_check bool sessions_make_room(struct sessions *s);
/* Computes handle_slots and id_slots once. */
void session_name_slots(struct session *s);
struct session_link *session_add_link(struct session *s, struct str server);
void session_link_take_resume(struct session_link *l, struct str resume); /* copied */
struct str client_type_of(struct str client_name);
/* Queues OP_TRANSPORT_TOUCH or OP_TRANSPORT_END and does not wait. */
void transport_write(struct sessions *home, enum op_kind kind, struct str tenant, struct str owner,
                     const uint8_t id_hash[32], int64_t at_ms);

/* bindings.c */
struct bindings *bindings_new(bool any) must_check;
void bindings_free(struct bindings *b);
/* Counts what sessions_bound() has learned. */
uint64_t bindings_changes(const struct bindings *b);
/* The store has no binding of this carrier, and bindings_changes() has not moved since it was asked. */
void bindings_none(struct bindings *b, struct str tenant, struct str owner, struct str carrier,
                   struct str key, uint64_t since);

/* live.c */
struct live_transports *live_new(void) must_check;
void live_free(struct live_transports *l);
/* The transport was created, found or used: makes it the most recently used of its owner. */
void live_used(struct sessions *home, const struct transport *t);
void live_ended(struct sessions *home, const uint8_t hash[SHA256_BYTES]);

#endif
