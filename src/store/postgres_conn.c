/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to PostgreSQL: connect, wait, notice a loss, reconnect.
 *
 *     away ──pg_ready(), once retry_us has passed──▶ connected ──pg_disconnect()──▶ away
 *
 * A failed connect doubles the wait before the next attempt (100 ms to 5 s, with jitter, so that
 * many nodes do not reconnect at the same instant).  The first attempt after a loss is made at
 * once.  A new connection prepares all statements again.  Errors may name the host and the reason,
 * but never the URL, because it may hold a password. */
#include "store/postgres_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/random.h"

#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000

/* The advice for an SQLSTATE or a class of SQLSTATEs. */
static const struct trouble {
    const char *state;
    bool gone;
    const char *what_to_do;
} troubles[] = {
    {"08", true, "the connection broke; it is made again"},
    {"25006", true, "it is read-only (a standby?); name the primary in the database URL"},
    {"26000", true, "a pooler between us dropped our statements; use its session mode"},
    {"0A000", true, "its schema changed under us; it is asked again"},
    {"28", true, "it refused our login; check user and password in the database URL"},
    {"3D000", true, "there is no such database; create it or correct the database URL"},
    {"40001", false, "others were writing the same; try again"},
    {"40P01", false, "others were writing the same; try again"},
    {"53100", false, "its disk is full; free some space there"},
    {"53300", true, "it has no free connection; raise max_connections or start fewer nodes"},
    {"53", false, "it ran out of resources; look at its log"},
    {"55P03", false, "others held a lock for too long; try again"},
    {"57014", false, "it took too long; look at its load"},
    {"57P", true, "it is shutting down or starting; wait for it"},
    {"58", true, "its disk reported an error; look at its log"},
    {"XX001", true, "its files are damaged; restore them from a backup"},
    {"XX002", true, "its files are damaged; restore them from a backup"},
};

int64_t pg_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void pg_deadline(struct pg_store *s, int64_t ms)
{
    s->until_us = pg_now_us() + ms * 1000;
}

/* libpq's messages have several lines; the first holds the reason. */
static void first_line(const char *text, char *ret, size_t size)
{
    size_t n = strcspn(text, "\n");
    while (n && (text[n - 1] == '.' || text[n - 1] == ' ' || text[n - 1] == ':'))
        n--;
    log_escape_cut(ret, size, str_n(text, n));
}

/* Before the first connection the operator reads this text, so it names the host and the reason.
 * Afterwards it may reach any caller, and only the log names them. */
static bool away_text(const struct pg_store *s, struct error *err)
{
    if (s->was_connected)
        return error_set(err, ERR_UNAVAILABLE,
                         "the database is not available; it is tried again by itself.");
    return error_set(err, ERR_UNAVAILABLE,
                     "PostgreSQL at %s is not available: %s; it is tried again by itself.",
                     s->where, s->reason);
}

bool pg_disconnect(struct pg_store *s, const char *why, struct error *err)
{
    first_line(why && *why ? why : "the connection broke", s->reason, sizeof(s->reason));
    if (!s->lost_us)
        s->lost_us = s->backend_us;
    s->backend_us = 0;
    pq.finish(s->conn);
    s->conn = NULL;
    memset(s->prepared, 0, sizeof(s->prepared));
    return away_text(s, err);
}

/* Waits until the socket is ready for `events`.  After the deadline closes the connection and
 * returns false. */
static bool wait_for(struct pg_store *s, short events, struct error *err)
{
    struct pollfd p = {.fd = pq.socket(s->conn), .events = events};
    for (;;) {
        int64_t left_us = s->until_us - pg_now_us();
        if (left_us <= 0)
            return pg_disconnect(s, "it did not answer in time", err);
        struct timespec left = {left_us / 1000000, left_us % 1000000 * 1000};
        int n = ppoll(&p, 1, &left, NULL);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return pg_disconnect(s, strerror(errno), err);
    }
}

bool pg_flush(struct pg_store *s, struct error *err)
{
    for (;;) {
        int left = pq.flush(s->conn);
        if (left < 0)
            return pg_disconnect(s, pq.error_message(s->conn), err);
        if (left == 0)
            return true;
        /* The server may wait for us to read before it reads on. */
        if (!wait_for(s, POLLIN | POLLOUT, err))
            return false;
        if (!pq.consume_input(s->conn))
            return pg_disconnect(s, pq.error_message(s->conn), err);
    }
}

bool pg_next(struct pg_store *s, PGresult **ret, struct error *err)
{
    while (pq.is_busy(s->conn)) {
        if (!wait_for(s, POLLIN, err))
            return false;
        if (!pq.consume_input(s->conn))
            return pg_disconnect(s, pq.error_message(s->conn), err);
    }
    *ret = pq.get_result(s->conn);
    return true;
}

bool pg_has_state(const PGresult *res, const char *sqlstate)
{
    const char *state = pq.result_error_field(res, PG_DIAG_SQLSTATE);
    return state && strncmp(state, sqlstate, strlen(sqlstate)) == 0;
}

bool pg_failed(struct pg_store *s, const PGresult *res, const char *doing, struct error *err)
{
    char reason[256];
    if (!pq.result_error_field(res, PG_DIAG_SQLSTATE))
        return pg_disconnect(s, pq.result_error_message(res), err); /* error of libpq itself */
    for (size_t i = 0; i < countof(troubles); i++) {
        const struct trouble *t = &troubles[i];
        if (!pg_has_state(res, t->state))
            continue;
        if (t->gone)
            pg_disconnect(s, pq.result_error_field(res, PG_DIAG_MESSAGE_PRIMARY), err);
        return error_set(err, ERR_UNAVAILABLE, "PostgreSQL at %s failed while %s: %s.", s->where,
                         doing, t->what_to_do);
    }
    first_line(pq.result_error_field(res, PG_DIAG_MESSAGE_PRIMARY), reason, sizeof(reason));
    if (pg_has_state(res, "42501"))
        return error_set(
            err, ERR_CONFIG,
            "PostgreSQL refused %s (%s): the role of DATABASE_URL lacks a privilege; run `holdfast "
            "db migrate` as the schema's owner and grant this role what it lacks.",
            doing, reason);
    return error_set(err, ERR_INTERNAL, "PostgreSQL refused %s (%s: %s); report it.", doing,
                     pq.result_error_field(res, PG_DIAG_SQLSTATE), reason);
}

static int64_t number_of(const PGresult *res)
{
    if (pq.result_status(res) != PGRES_TUPLES_OK || pq.ntuples(res) == 0 || pq.getisnull(res, 0, 0))
        return 0;
    return strtoll(pq.getvalue(res, 0, 0), NULL, 10);
}

bool pg_exec_text(struct pg_store *s, const char *sql, const char *doing, int64_t *ret,
                  struct error *err)
{
    bool ok = true;
    PGresult *res = NULL;
    if (!pq.send_query(s->conn, sql))
        return pg_disconnect(s, pq.error_message(s->conn), err);
    if (!pg_flush(s, err))
        return false;
    for (;;) {
        if (!pg_next(s, &res, err))
            return false;
        if (!res)
            return ok;
        ExecStatusType status = pq.result_status(res);
        if (ok && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            ok = pg_failed(s, res, doing, err);
        if (ok && ret)
            *ret = number_of(res);
        pq.clear(res);
        if (!s->conn)
            return false;
    }
}

static const char *option(const struct pg_store *s, const char *name)
{
    for (const PQconninfoOption *o = s->options; o->keyword; o++)
        if (strcmp(o->keyword, name) == 0)
            return o->val && *o->val ? o->val : NULL;
    return NULL;
}

/* Starts a connection with the options of the URL.  Unless the URL sets them, adds an application
 * name and timeouts for all waits in the kernel. */
static PGconn *start(const struct pg_store *s)
{
    char connect_s[16], user_ms[24];
    snprintf(connect_s, sizeof(connect_s), "%d", (int)(s->deadline_ms / 1000) + 1);
    snprintf(user_ms, sizeof(user_ms), "%lld", (long long)s->deadline_ms);
    const struct {
        const char *name, *value;
    } ours[] = {
        {"application_name", "holdfast"},
        {"client_encoding", "UTF8"},
        {"connect_timeout", connect_s},
        {"keepalives_idle", "30"},
        {"keepalives_interval", "5"},
        {"keepalives_count", "3"},
        {"tcp_user_timeout", user_ms},
        {"target_session_attrs", s->read_only ? "any" : "read-write"},
    };
    const char *names[64], *values[64];
    size_t n = 0;
    for (const PQconninfoOption *o = s->options; o->keyword && n < 50; o++)
        if (o->val && *o->val) {
            names[n] = o->keyword;
            values[n++] = o->val;
        }
    for (size_t i = 0; i < countof(ours); i++)
        if (!option(s, ours[i].name) || strcmp(ours[i].name, "client_encoding") == 0) {
            names[n] = ours[i].name;
            values[n++] = ours[i].value;
        }
    names[n] = values[n] = NULL;
    return pq.connect_start_params(names, values, 0);
}

static bool connect_on_time(struct pg_store *s, struct error *err)
{
    s->conn = start(s);
    if (!s->conn)
        return pg_disconnect(s, "memory ran out", err);
    if (pq.status(s->conn) == CONNECTION_BAD)
        return pg_disconnect(s, pq.error_message(s->conn), err);
    for (PostgresPollingStatusType next = PGRES_POLLING_WRITING;;) {
        if (next == PGRES_POLLING_OK)
            return true;
        if (next == PGRES_POLLING_FAILED)
            return pg_disconnect(s, pq.error_message(s->conn), err);
        if (!wait_for(s, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, err))
            return false;
        next = pq.connect_poll(s->conn);
    }
}

/* Sets the options of a connection.  The server times out a little before we do, so that it rarely
 * works on an abandoned statement. */
static bool set_session_options(struct pg_store *s, struct error *err)
{
    char sql[1024];
    long long most_ms = s->deadline_ms - s->deadline_ms / 10;
    snprintf(sql, sizeof(sql),
             "SET statement_timeout = %lld; SET lock_timeout = %lld;"
             "SET idle_in_transaction_session_timeout = %lld;"
             "SET search_path = pg_catalog; SET timezone = 'UTC'; SET jit = off;"
             "SET default_transaction_isolation = 'read committed';"
             "SET default_transaction_read_only = %s;"
             "SELECT set_config('synchronous_commit', 'on', false)"
             " WHERE current_setting('synchronous_commit') IN ('off', 'local');",
             most_ms, most_ms, 4 * most_ms, s->read_only ? "on" : "off");
    return pg_exec_text(s, sql, "beginning", NULL, err);
}

#define BACKEND_US "(extract(epoch FROM backend_start) * 1000000)::bigint"

/* The server process of a broken connection may still commit the last batch.  The outcome is known
 * only when that process has ended, so we end the process and wait.  If PostgreSQL does not allow
 * that, we continue without waiting. */
static bool end_lost(struct pg_store *s, struct error *err)
{
    char sql[512];
    int64_t left = 1;

    snprintf(sql, sizeof(sql),
             "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename ="
             " current_user AND pid <> pg_backend_pid() AND " BACKEND_US " = %lld",
             (long long)s->lost_us);
    while (s->lost_us && left > 0) {
        if (!pg_exec_text(s, sql, "ending a connection that broke", &left, err)) {
            if (!s->conn)
                return false;
            log_warn("PostgreSQL did not allow to end a broken connection", LZ("why", err->text));
            break;
        }
        if (left > 0 && pg_now_us() >= s->until_us)
            return pg_disconnect(s, "an earlier connection has not ended there", err);
        if (left > 0)
            poll(NULL, 0, 5);
    }
    s->lost_us = 0;
    return pg_exec_text(s,
                        "SELECT " BACKEND_US " FROM pg_stat_activity WHERE pid = pg_backend_pid()",
                        "beginning", &s->backend_us, err);
}

static bool is_local(const char *host)
{
    uint8_t address[16];
    if (!host || !*host || host[0] == '/' || host[0] == '@' || strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, address) == 1)
        return address[0] == 127;
    return strcmp(host, "::1") == 0;
}

/* So that the warning is logged once per process, not once per connection. */
static atomic_flag warned_unencrypted = ATOMIC_FLAG_INIT;

static void log_connection(struct pg_store *s)
{
    const char *host = pq.host(s->conn);
    snprintf(s->where, sizeof(s->where), "%s", host && *host ? host : "the local socket");
    if (!pq.ssl_in_use(s->conn) && !is_local(host) &&
        !atomic_flag_test_and_set(&warned_unencrypted))
        log_warn("the connection to PostgreSQL is not encrypted: add sslmode=verify-full to the "
                 "database URL",
                 LZ("host", s->where));
    if (s->failures)
        log_info("connected to PostgreSQL again", LZ("host", s->where),
                 LI("attempts", s->failures + 1));
}

static bool connect_now(struct pg_store *s, struct error *err)
{
    if (fault_hits("store.connect"))
        return pg_disconnect(s, "fault injected", err);
    if (!connect_on_time(s, err))
        return false;
    if (pq.setnonblocking(s->conn, 1) != 0)
        return pg_disconnect(s, pq.error_message(s->conn), err);
    return set_session_options(s, err) && end_lost(s, err);
}

static void back_off(struct pg_store *s)
{
    int64_t ms = BACKOFF_MAX_MS;
    if (s->failures < 6)
        ms = (int64_t)BACKOFF_MIN_MS << s->failures;
    if (ms > BACKOFF_MAX_MS)
        ms = BACKOFF_MAX_MS;
    s->failures++;
    s->retry_us = pg_now_us() + ms * 500 + (int64_t)random_below((uint64_t)ms * 500 + 1);
}

/* Notices that the server has closed an idle connection.  libpq first reads the reason, then the
 * end of the connection. */
static void notice_loss(struct pg_store *s)
{
    struct error ignored;
    struct pollfd p = {.fd = pq.socket(s->conn), .events = POLLIN};
    for (int i = 0; i < 10 && poll(&p, 1, 0) > 0; i++)
        if (!pq.consume_input(s->conn) || pq.status(s->conn) != CONNECTION_OK) {
            pg_disconnect(s, pq.error_message(s->conn), &ignored);
            return;
        }
}

bool pg_ready(struct pg_store *s, struct error *err)
{
    pg_deadline(s, s->deadline_ms);
    if (s->conn)
        notice_loss(s);
    if (s->conn)
        return true;
    if (s->failures && pg_now_us() < s->retry_us)
        return away_text(s, err);
    if (!connect_now(s, err)) {
        struct error ignored;
        if (s->conn)
            pg_disconnect(s, err->text, &ignored);
        if (s->failures == 0)
            log_warn("PostgreSQL is not available", LZ("host", s->where), LZ("why", s->reason));
        back_off(s);
        return false;
    }
    log_connection(s);
    s->failures = 0;
    s->was_connected = true;
    return true;
}
