/* SPDX-License-Identifier: Apache-2.0 */
/* Sign-in: exchanges a name and a password for an access token (own_tokens.h) and a refresh token,
 * and refreshes them.
 *
 *   login    the user's row (lookup lane) ── the password (a worker) ── the row of the sign-in, or
 *            one more failure (write lane)
 *   refresh  the token's row and its user (lookup lane) ── the next token replaces it (write lane)
 *
 * A refresh token (hf_r_ and 256 random bits) is valid once, for 30 days.  The store holds its
 * hash.  The reuse of a refresh token ends the whole sign-in and writes an audit event.  If two
 * requests send the same token at the same time, one succeeds and the other gets LOGIN_CONFLICT;
 * the sign-in continues.
 *
 * All refusals of a login have the same text.  They also cost the same, except for lockouts by
 * address or network.  Wrong passwords cause three lockouts:
 *
 *   a name in one network (/24, or /64 of IPv6)  after 5, for a minute to an hour
 *   an address, for all names                    after 20, for a minute to an hour
 *   a user everywhere (store/rows.h)             after 20, for a second to half a minute
 *
 * So an attacker in another network cannot lock a user out for long, and many networks together can
 * guess only slowly.  The last two lockouts do not apply in a known network of the user: one with a
 * live sign-in, or one where the user signed in since the start of this node.  There the first
 * lockout lasts half a minute at most.  Loop thread only. */
#ifndef HOLDFAST_IDENTITY_LOGINS_H
#define HOLDFAST_IDENTITY_LOGINS_H

#include "identity/identity.h"
#include "identity/own_tokens.h"
#include "io/worker.h"

#define LOGIN_LIFE_MS (INT64_C(30) * 24 * 3600 * 1000)
#define LOGIN_MAX_PER_USER 50
#define LOGIN_MAX_WAITING 32       /* logins waiting for the password check; then LOGIN_BUSY */
#define LOGIN_MAX_WAITING_LOCKED 4 /* of those, the logins under a lockout; then LOGIN_REFUSED */
#define LOGIN_MAX_ADDRESSES 4096   /* entries for addresses, and as many for names in networks */
#define LOGIN_ADDRESS_FAILURES 20  /* failures of one address until its lockout */
/* Failures for one name in one network until the lockout there. */
#define LOGIN_NETWORK_FAILURES 5
#define LOGIN_NETWORK_LOCK_MS (INT64_C(60) * 1000)
#define LOGIN_NETWORK_LOCK_MAX_MS (INT64_C(3600) * 1000)
#define LOGIN_ADDRESS_MS (INT64_C(3600) * 1000) /* failures are forgotten after this time */
#define LOGIN_KNOWN 4096                        /* slots for pairs of user and network */
#define REFRESH_PREFIX "hf_r_"
#define REFRESH_LENGTH 48

struct logins;
struct logins_config {
    struct loop *loop;
    struct lanes *lanes;
    struct identity *identity;
    struct own_tokens *own;
    /* Runs on a worker.  NULL: password_fits(), which is too slow for tests. */
    bool (*fits)(struct str password, struct str hash);
};
struct logins *logins_new(const struct logins_config *config) must_check;
/* Call it before lanes_free().  Waits for running password checks. */
void logins_stop(struct logins *l);
void logins_free(struct logins *l); /* after lanes_free(); NULL is fine */

enum login_result {
    LOGIN_OK,
    LOGIN_REFUSED,
    LOGIN_CONFLICT, /* refresh: another request with this token came first */
    LOGIN_BUSY,
    LOGIN_UNAVAILABLE, /* see err */
};

/* One login or refresh.  The caller's memory, valid until `done`. */
struct login_call {
    /* Input. */
    struct arena *mem;
    struct str tenant, name;
    struct str password;    /* the caller's memory; the caller wipes it */
    struct str token;       /* for refresh */
    struct str device_info; /* JSON; absent: not given */
    struct str address;
    void (*done)(struct login_call *c); /* from the loop */
    void *user;
    /* Output. */
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
    struct str network; /* network of `address` */
    struct str source;  /* the unit of address lockouts: `address`, or its network for IPv6 */
    struct str attempt; /* tenant, name and network */
    struct login_row *live;
    size_t n_live;
    bool is_known;   /* this network is a known network of the user */
    bool is_locked;  /* the address was locked on arrival */
    bool is_late;    /* the address, or the name in this network, was locked on arrival */
    struct str hash; /* hash to check the password against; absent: every password fails */
    bool fits;
    int64_t arrived_ms;
    uint8_t digest[32];
    char id[UUID_TEXT];
};
/* Returns true when `c` is answered at once; then `done` is not called. */
must_check bool logins_login(struct logins *l, struct login_call *c);
must_check bool logins_refresh(struct logins *l, struct login_call *c);

/* The sign-in id of a credential "session:ID"; absent for other credentials. */
struct str login_of_credential(struct str credential);

#endif
