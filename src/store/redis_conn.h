/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to Redis, for one thread that may block, but never past a deadline.  hiredis
 * encodes the commands and decodes the replies; the socket is ours (io/wire.h).
 *
 * A connection that failed, timed out or sent an invalid reply is dropped.  During the back-off
 * every call fails at once with ERR_UNAVAILABLE; after it the next call connects again.  No command
 * is sent twice: only the caller knows whether a command may be repeated.
 *
 * The URL may hold a password, so it is not passed on; `shown` is the printable form. */
#ifndef HOLDFAST_STORE_REDIS_CONN_H
#define HOLDFAST_STORE_REDIS_CONN_H

#include "base/arena.h"
#include "base/error.h"

#define REDIS_DEADLINE_MS 50
#define REDIS_CONNECT_MS 250
#define REDIS_PAUSE_MIN_MS 100
#define REDIS_PAUSE_MAX_MS 5000
#define REDIS_URL_MAX 4096
/* Limits of all replies to one call, and of the elements of one array in them. */
#define REDIS_REPLY_BYTES_MAX (4u << 20)
#define REDIS_REPLY_ITEMS_MAX 4096

struct redis_target {
    bool is_tls;
    struct str path; /* path of a unix socket; absent: host and port */
    struct str host;
    uint16_t port;
    struct str user, password; /* absent: none */
    uint64_t db;
    struct str shown;
};
/* redis://[USER[:PASSWORD]@]HOST[:PORT][/DB], rediss:// for TLS, unix://[USER[:PASSWORD]@]/PATH
 * with ?db=N; user and password percent-encoded.  ERR_CONFIG for anything else.  Texts are
 * NUL-terminated, in mem. */
must_check bool redis_target_parse(struct str url, struct arena *mem, struct redis_target *ret,
                                   struct error *err);

/* As redis_target_parse(), for an environment variable: an absent or empty URL leaves *ret zeroed
 * and `shown` absent. */
must_check bool redis_choose(struct str url, struct arena *mem, struct redis_target *ret,
                             struct error *err);

struct redis_config {
    const struct redis_target *target; /* must outlive the connection */
    const char *ca_file;               /* CA certificates for TLS; NULL: the system's */
    int64_t deadline_ms;               /* of one call; 0: REDIS_DEADLINE_MS */
    int64_t connect_ms;                /* of connect and login; 0: REDIS_CONNECT_MS */
};
struct redis;
/* Connects at first use. */
must_check bool redis_new(const struct redis_config *config, struct redis **ret, struct error *err);
void redis_free(struct redis *r); /* NULL is fine */

enum redis_kind { REDIS_NONE, REDIS_TEXT, REDIS_NUMBER, REDIS_LIST, REDIS_REFUSAL };
struct redis_reply {
    enum redis_kind kind;
    struct str text; /* REDIS_TEXT (also for a status), REDIS_REFUSAL */
    int64_t number;
    struct redis_reply **items; /* REDIS_LIST */
    size_t n;
};
struct redis_command {
    const struct str *args; /* any bytes */
    size_t n;
};
/* Connects and logs in if necessary; ERR_UNAVAILABLE on failure. */
must_check bool redis_ready(struct redis *r, struct error *err);
/* The number of connects so far.  A changed number means a new connection. */
uint64_t redis_connects(const struct redis *r);
/* Sends all commands at once and waits for the reply to each, in ret[n].  An error reply from Redis
 * is a reply (REDIS_REFUSAL), not a failure. */
must_check bool redis_call(struct redis *r, const struct redis_command *commands, size_t n,
                           struct arena *mem, struct redis_reply **ret, struct error *err);
/* Waits for a message after a SUBSCRIBE.  *ret is NULL when none came within wait_ms, or when
 * `stop_fd` became readable. */
must_check bool redis_receive(struct redis *r, int stop_fd, int64_t wait_ms, struct arena *mem,
                              struct redis_reply **ret, struct error *err);
/* How long until the next connect is allowed; 0: now. */
int64_t redis_pause_ms(const struct redis *r);

#endif
