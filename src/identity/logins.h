/* SPDX-License-Identifier: Apache-2.0 */
/* Signing in: a name and a password to an access token (own_tokens.h) and a refresh token, and what
 * becomes of those.
 *
 *   login    the user's row (lookup lane) ── the password (a worker) ── the row of the sign-in, or
 *            one more failure (write lane)
 *   refresh  the token's row and its user (lookup lane) ── the next token in its place (write lane)
 *
 * A refresh token (hf_r_ and 256 random bits) is good once, for 30 days; stored is its hash.  One
 * that was used up ends the whole sign-in, and an audit event says so.  Of two requests with the
 * same token that are under way at once, one wins and the other is told that there was another
 * (LOGIN_CONFLICT): that ends nothing.
 *
 * Every refusal of a login reads the same and, but for locks by address or network, costs the same.
 * Wrong passwords lock three things:
 *
 *   a name in one network (/24, or /64 of IPv6)  after 5, for a minute to an hour
 *   an address, whatever names they were for     after 20, for a minute to an hour
 *   a user everywhere (store/rows.h)             after 20, for a second to half a minute
 *
 * so that somebody elsewhere cannot keep a user out, and many networks together guess slowly.  The
 * last two do not hold in a network that the user is known in: one with a live sign-in, or where
 * the user signed in since the start of this node.  There the first one locks for half a minute at
 * most.  Loop thread only. */
#ifndef HOLDFAST_IDENTITY_LOGINS_H
#define HOLDFAST_IDENTITY_LOGINS_H

#include "identity/identity.h"
#include "identity/own_tokens.h"
#include "io/worker.h"

#define LOGIN_LIFE_MS (INT64_C(30) * 24 * 3600 * 1000)
#define LOGIN_MAX_PER_USER 50
#define LOGIN_MAX_WAITING 32       /* for their password to be looked at; then LOGIN_BUSY */
#define LOGIN_MAX_WAITING_LOCKED 4 /* of those, where there is a lock; then LOGIN_REFUSED */
#define LOGIN_MAX_ADDRESSES 4096   /* remembered, and as many names in networks */
#define LOGIN_ADDRESS_FAILURES 20  /* of one address, before it is locked */
#define LOGIN_NETWORK_FAILURES 5   /* for one name in one network, before it is locked there */
#define LOGIN_NETWORK_LOCK_MS (INT64_C(60) * 1000)
#define LOGIN_NETWORK_LOCK_MAX_MS (INT64_C(3600) * 1000)
#define LOGIN_ADDRESS_MS (INT64_C(3600) * 1000) /* after which failures are forgotten */
#define LOGIN_KNOWN 4096                        /* slots: users in networks */
#define REFRESH_PREFIX "hf_r_"
#define REFRESH_LENGTH 48

struct logins;
struct logins_config {
    struct loop *loop;
    struct lanes *lanes;
    struct identity *identity;
    struct own_tokens *own;
    /* On a worker; NULL: password_fits().  Tests have no time for that. */
    bool (*fits)(struct str password, struct str hash);
};
struct logins *logins_new(const struct logins_config *config) must_check;
/* Before lanes_free(): passwords that are being looked at are waited for. */
void logins_stop(struct logins *l);
void logins_free(struct logins *l); /* after lanes_free(); NULL is fine */

enum login_result {
    LOGIN_OK,
    LOGIN_REFUSED,
    LOGIN_CONFLICT, /* refresh: another request with this token was faster */
    LOGIN_BUSY,
    LOGIN_UNAVAILABLE, /* err says why */
};

/* One question.  The asker's, in memory that stays until `done`. */
struct login_call {
    /* In. */
    struct arena *mem;
    struct str tenant, name;
    struct str password;    /* in memory of the asker's, which wipes it */
    struct str token;       /* refresh */
    struct str device_info; /* JSON, or absent */
    struct str address;
    void (*done)(struct login_call *c); /* from the loop */
    void *user;
    /* Out. */
    enum login_result result;
    struct error err;
    struct str access_token;
    char refresh_token[REFRESH_LENGTH + 1]; /* wipe it */
    struct user_row *row;
    struct login_row *login;
    /* private */
    struct logins *logins;
    struct read_job read;
    struct worker_job work;
    struct write_job write;
    struct store_op op;
    struct login_row change;
    struct user_row failed;
    struct event_row event;
    struct str network; /* of the address */
    struct str source;  /* what is locked as one address: the network of an IPv6 one */
    struct str attempt; /* tenant, name and network */
    struct login_row *live;
    size_t n_live;
    bool is_known;   /* in this network */
    bool is_locked;  /* the address is */
    bool is_late;    /* … or the name in this network, when it came */
    struct str hash; /* what the password is held against; absent: nothing */
    bool fits;
    int64_t arrived_ms;
    uint8_t digest[32];
    char id[UUID_TEXT];
};
/* true: answered now, `done` does not come. */
must_check bool logins_login(struct logins *l, struct login_call *c);
must_check bool logins_refresh(struct logins *l, struct login_call *c);

/* "session:ID": the id of the sign-in that a credential is of; absent: of none. */
struct str login_of_credential(struct str credential);

#endif
