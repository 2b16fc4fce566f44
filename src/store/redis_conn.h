/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to Redis for one thread that may wait, though never past a deadline.  hiredis
 * writes the commands and reads the replies; the socket is ours (io/wire.h).
 *
 * A connection that failed, was too slow or answered nonsense is dropped.  Until its back-off is
 * over everything answers ERR_UNAVAILABLE at once; then the next call tries again.  Nothing is sent
 * twice: the caller knows whether a command may be repeated.
 *
 * The URL may hold a password, so it goes nowhere else; people see `shown`. */
#ifndef HOLDFAST_STORE_REDIS_CONN_H
#define HOLDFAST_STORE_REDIS_CONN_H

#include "base/arena.h"
#include "base/error.h"

#define REDIS_DEADLINE_MS 50
#define REDIS_CONNECT_MS 250
#define REDIS_PAUSE_MIN_MS 100
#define REDIS_PAUSE_MAX_MS 5000
#define REDIS_URL_MAX 4096
/* All replies to one call, and the elements of one array in them. */
#define REDIS_REPLY_BYTES_MAX (4u << 20)
#define REDIS_REPLY_ITEMS_MAX 4096

struct redis_target {
    bool is_tls;
    struct str path; /* of a unix socket; absent: host and port */
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

/* The same for an environment variable: absent or empty leaves *ret zeroed, `shown` absent. */
must_check bool redis_choose(struct str url, struct arena *mem, struct redis_target *ret,
                             struct error *err);

struct redis_config {
    const struct redis_target *target; /* lasts as long as the connection */
    const char *ca_file;               /* authorities for TLS; NULL: the system's */
    int64_t deadline_ms;               /* of one call; 0: REDIS_DEADLINE_MS */
    int64_t connect_ms;                /* of connecting and signing in; 0: REDIS_CONNECT_MS */
};
struct redis;
/* Connects at first use. */
must_check bool redis_new(const struct redis_config *config, struct redis **ret, struct error *err);
void redis_free(struct redis *r); /* NULL is fine */

enum redis_kind { REDIS_NONE, REDIS_TEXT, REDIS_NUMBER, REDIS_LIST, REDIS_REFUSAL };
struct redis_reply {
    enum redis_kind kind;
    struct str text; /* REDIS_TEXT (also of a status), REDIS_REFUSAL */
    int64_t number;
    struct redis_reply **items; /* REDIS_LIST */
    size_t n;
};
struct redis_command {
    const struct str *args; /* any bytes */
    size_t n;
};
/* Connected and signed in now, or ERR_UNAVAILABLE. */
must_check bool redis_ready(struct redis *r, struct error *err);
/* How often it has connected: another number than before means another connection. */
uint64_t redis_connects(const struct redis *r);
/* Sends all commands at once and waits for the reply to each, in ret[n].  A refusal by Redis is a
 * reply, not a failure. */
must_check bool redis_call(struct redis *r, const struct redis_command *commands, size_t n,
                           struct arena *mem, struct redis_reply **ret, struct error *err);
/* What comes without being asked for, after a SUBSCRIBE.  *ret is NULL when none came within
 * wait_ms, or `stop_fd` became readable. */
must_check bool redis_hear(struct redis *r, int stop_fd, int64_t wait_ms, struct arena *mem,
                           struct redis_reply **ret, struct error *err);
/* How long until it may be tried again; 0: now. */
int64_t redis_pause_ms(const struct redis *r);

#endif
