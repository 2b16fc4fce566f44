/* SPDX-License-Identifier: Apache-2.0 */
/* Sends all commands in one write and reads until all replies are there, within one deadline.
 * hiredis builds the replies directly in the caller's arena, so a failed call leaks nothing. */
#include "store/redis_conn.h"

#include "base/buf.h"
#include "base/random.h"
#include "io/wire.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>

struct redis {
    struct redis_config config;
    struct tls_context *tls;
    struct wire *wire; /* NULL: not connected */
    redisReader *reader;
    uint64_t connects;
    unsigned failures;   /* since the last reply */
    int64_t retry_at_us; /* earliest time of the next connect; 0: at once */
};

/* Callbacks of hiredis that build replies; privdata is the caller's arena. */

static void *new_reply(const redisReadTask *task, enum redis_kind kind)
{
    struct redis_reply *reply = arena_new_of(task->privdata, struct redis_reply);
    reply->kind = kind;
    if (task->parent) {
        struct redis_reply *list = task->parent->obj;
        list->items[task->idx] = reply;
    }
    return reply;
}

static void *make_text(const redisReadTask *task, char *p, size_t n)
{
    bool refused = task->type == REDIS_REPLY_ERROR;
    struct redis_reply *reply = new_reply(task, refused ? REDIS_REFUSAL : REDIS_TEXT);
    reply->text = arena_dup(task->privdata, str_n(p, n));
    return reply;
}

/* NULL ends the parse, so the limit is checked before memory is allocated. */
static void *make_list(const redisReadTask *task, int n)
{
    if (n < 0 || n > REDIS_REPLY_ITEMS_MAX)
        return NULL;
    struct redis_reply *reply = new_reply(task, REDIS_LIST);
    reply->n = (size_t)n;
    reply->items = arena_zalloc(task->privdata, ((size_t)n + 1) * sizeof(*reply->items));
    return reply;
}

static void *make_number(const redisReadTask *task, long long value)
{
    struct redis_reply *reply = new_reply(task, REDIS_NUMBER);
    reply->number = value;
    return reply;
}

static void *make_none(const redisReadTask *task)
{
    return new_reply(task, REDIS_NONE);
}

static void drop_reply(void *reply unused_arg) /* the arena owns it */
{
}

static redisReplyObjectFunctions makers = {make_text, make_list, make_number, make_none,
                                           drop_reply};

/* Connecting and failing. */

static void drop(struct redis *r)
{
    wire_close(r->wire);
    r->wire = NULL;
    if (r->reader)
        redisReaderFree(r->reader);
    r->reader = NULL;
}

/* Half of the pause is random, so that nodes that lost Redis together do not reconnect together. */
static bool failed(struct redis *r, struct error *err)
{
    int64_t pause = REDIS_PAUSE_MIN_MS;
    for (unsigned i = 0; i < r->failures && pause < REDIS_PAUSE_MAX_MS; i++)
        pause *= 2;
    if (pause > REDIS_PAUSE_MAX_MS)
        pause = REDIS_PAUSE_MAX_MS;
    drop(r);
    r->failures++;
    r->retry_at_us =
        wire_now_us() + pause * 500 + (int64_t)random_below((uint64_t)(pause * 500 + 1));
    err->code = ERR_UNAVAILABLE;
    return error_wrap(err, "Redis at %.*s", STR_ARG(r->config.target->shown));
}

static void add_command(struct buf *out, const struct redis_command *c)
{
    const char **argv = xcalloc(c->n, sizeof(*argv));
    size_t *lengths = xcalloc(c->n, sizeof(*lengths));
    char *bytes = NULL;
    for (size_t i = 0; i < c->n; i++) {
        argv[i] = c->args[i].p;
        lengths[i] = c->args[i].n;
    }
    int n = (int)redisFormatCommandArgv(&bytes, (int)c->n, argv, lengths);
    if (n < 0)
        die("out of memory");
    buf_add(out, bytes, (size_t)n);
    redisFreeCommand(bytes);
    free(argv);
    free(lengths);
}

static bool send_all(struct redis *r, const struct redis_command *commands, size_t n,
                     int64_t until_us, struct error *err)
{
    struct buf out;
    buf_init(&out, (size_t)64 << 20);
    for (size_t i = 0; i < n; i++)
        add_command(&out, &commands[i]);
    bool ok = wire_write(r->wire, buf_str(&out), until_us, err);
    buf_release(&out);
    return ok;
}

static bool read_some(struct redis *r, int64_t until_us, size_t *total, struct error *err)
{
    char room[16384];
    size_t n = 0;
    if (!wire_read(r->wire, room, sizeof(room), until_us, &n, err))
        return false;
    *total += n;
    if (*total > REDIS_REPLY_BYTES_MAX)
        return error_set(err, ERR_TOO_LARGE, "its reply is longer than 4 MiB");
    return redisReaderFeed(r->reader, room, n) == REDIS_OK ||
           error_set(err, ERR_UPSTREAM, "its reply could not be read");
}

static bool read_replies(struct redis *r, size_t n, int64_t until_us, struct redis_reply **ret,
                         struct error *err)
{
    size_t total = 0;
    for (size_t have = 0; have < n;) {
        void *reply = NULL;
        if (redisReaderGetReply(r->reader, &reply) != REDIS_OK)
            return error_set(err, ERR_UPSTREAM, "it does not answer like Redis; check REDIS_URL");
        if (reply)
            ret[have++] = reply;
        else if (!read_some(r, until_us, &total, err))
            return false;
    }
    return true;
}

static bool exchange(struct redis *r, const struct redis_command *commands, size_t n,
                     int64_t until_us, struct arena *mem, struct redis_reply **ret,
                     struct error *err)
{
    r->reader->privdata = mem;
    return send_all(r, commands, n, until_us, err) && read_replies(r, n, until_us, ret, err);
}

/* Redis may quote text that it does not understand, and that may be the password.  So only the
 * first word is shown: the kind of the refusal. */
static bool accepted(const struct redis_reply *reply, const char *what, struct error *err)
{
    if (reply->kind != REDIS_REFUSAL)
        return true;
    struct str text = reply->text;
    struct str kind = str_split(&text, ' ');
    return error_set(err, ERR_UNAUTHENTICATED, "it refused %s (%.*s); correct REDIS_URL", what,
                     kind.n < 32 ? (int)kind.n : 32, kind.p);
}

static bool sign_in(struct redis *r, int64_t until_us, struct arena *mem, struct error *err)
{
    const struct redis_target *t = r->config.target;
    struct str auth[3] = {STR("AUTH"), t->user, t->password};
    struct str number = arena_printf(mem, "%u", (unsigned)t->db);
    struct str select[2] = {STR("SELECT"), number};
    struct redis_command auth_command = {auth, 3}, select_command = {select, 2};
    struct redis_reply *reply = NULL;

    if (!t->user.p) {
        auth[1] = t->password;
        auth_command.n = 2;
    }
    return (!t->password.p || (exchange(r, &auth_command, 1, until_us, mem, &reply, err) &&
                               accepted(reply, "the user or password", err))) &&
           (t->db == 0 || (exchange(r, &select_command, 1, until_us, mem, &reply, err) &&
                           accepted(reply, "the database", err)));
}

static bool connect_now(struct redis *r, struct error *err)
{
    const struct redis_target *t = r->config.target;
    struct wire_target to = {.path = t->path.p, .host = t->host.p, .port = t->port, .tls = r->tls};
    int64_t until_us = wire_now_us() + r->config.connect_ms * 1000;

    if (!wire_open(&to, until_us, &r->wire, err))
        return false;
    r->reader = redisReaderCreateWithFunctions(&makers);
    if (!r->reader)
        die("out of memory");
    struct arena *mem = arena_new(1 << 20);
    bool ok = sign_in(r, until_us, mem, err);
    arena_free(mem);
    if (ok)
        r->connects++;
    return ok;
}

bool redis_ready(struct redis *r, struct error *err)
{
    /* No command is pending, so readable means that the connection has ended. */
    if (r->wire && wire_is_readable(r->wire))
        drop(r);
    if (r->wire)
        return true;
    if (wire_now_us() < r->retry_at_us)
        return error_set(err, ERR_UNAVAILABLE,
                         "Redis at %.*s does not answer; it is tried again soon",
                         STR_ARG(r->config.target->shown));
    return connect_now(r, err) || failed(r, err);
}

uint64_t redis_connects(const struct redis *r)
{
    return r->connects;
}

bool redis_call(struct redis *r, const struct redis_command *commands, size_t n, struct arena *mem,
                struct redis_reply **ret, struct error *err)
{
    if (!redis_ready(r, err))
        return false;
    int64_t until_us = wire_now_us() + r->config.deadline_ms * 1000;
    if (!exchange(r, commands, n, until_us, mem, ret, err))
        return failed(r, err);
    r->failures = 0;
    r->retry_at_us = 0;
    return true;
}

/* True when there is data from Redis and `stop_fd` is not readable. */
static bool has_come(const struct redis *r, int stop_fd, int64_t wait_ms)
{
    struct pollfd fds[] = {{.fd = wire_fd(r->wire), .events = POLLIN},
                           {.fd = stop_fd, .events = POLLIN}};
    int n = wire_is_readable(r->wire) ? poll(&fds[1], 1, 0) : poll(fds, 2, (int)wait_ms);
    return n >= 0 && !fds[1].revents && wire_is_readable(r->wire);
}

bool redis_receive(struct redis *r, int stop_fd, int64_t wait_ms, struct arena *mem,
                   struct redis_reply **ret, struct error *err)
{
    void *reply = NULL;
    int64_t until_us = wire_now_us() + wait_ms * 1000;
    if (!r->wire)
        return error_set(err, ERR_UNAVAILABLE, "the connection to Redis was lost");
    r->reader->privdata = mem;
    for (size_t total = 0;;) {
        int64_t left_ms = (until_us - wire_now_us() + 999) / 1000;
        if (redisReaderGetReply(r->reader, &reply) != REDIS_OK) {
            error_set(err, ERR_UPSTREAM, "it does not answer like Redis; check REDIS_URL");
            return failed(r, err);
        }
        if (reply || left_ms <= 0 || !has_come(r, stop_fd, left_ms))
            break;
        if (!read_some(r, wire_now_us() + r->config.deadline_ms * 1000, &total, err))
            return failed(r, err);
    }
    *ret = reply;
    return true;
}

int64_t redis_pause_ms(const struct redis *r)
{
    int64_t left_us = r->wire ? 0 : r->retry_at_us - wire_now_us();
    return left_us > 0 ? left_us / 1000 + 1 : 0;
}

bool redis_new(const struct redis_config *config, struct redis **ret, struct error *err)
{
    struct tls_context *tls = NULL;
    if (config->target->is_tls && !tls_client_new(config->ca_file, &tls, err))
        return false;
    if (tls)
        tls_client_hints(tls, "set SSL_CERT_FILE", "REDIS_URL");
    struct redis *r = xcalloc(1, sizeof(*r));
    r->config = *config;
    r->tls = tls;
    if (r->config.deadline_ms == 0)
        r->config.deadline_ms = REDIS_DEADLINE_MS;
    if (r->config.connect_ms == 0)
        r->config.connect_ms = REDIS_CONNECT_MS;
    *ret = r;
    return true;
}

void redis_free(struct redis *r)
{
    if (!r)
        return;
    drop(r);
    tls_free(r->tls);
    free(r);
}
