/* SPDX-License-Identifier: Apache-2.0 */
/* One socket or pipe end: the layer between the loop, which reports readiness, and the protocols,
 * which exchange bytes.  The steady state costs one read and one write per message: reading stays
 * armed, each readiness is one read into the loop's scratch buffer, and a write is tried at once.
 * Only bytes that the kernel does not take are copied to the queue.  The bytes may contain secrets,
 * so the scratch buffer, the queue and joined messages are wiped after use.
 *
 * Phases (enum phase):
 *
 *     dial ──▶ CONNECTING ──connected──▶ SHAKING ──tls done──▶ OPEN ──conn_close──▶ CLOSED
 *                  └──────────plain──────────────────────────▶─┘
 *     adopt ─▶ SHAKING with TLS, else OPEN
 *
 * CONNECTING and SHAKING: conn_write() only queues.  OPEN: bytes are read and written.  CLOSED: the
 * descriptor is closed, no callback comes, and the memory is freed at the end of the turn.
 * `is_broken` may be set in any phase before CLOSED; on_error is then pending or was called. */
#include "io/conn.h"

#include "io/address.h"
#include "io/outbox.h"
#include "io/tls_impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_MAX_QUEUE (8 * 1024 * 1024)
#define SMALL_MESSAGE 4096     /* joined up to this size: send(2) is cheaper than sendmsg(2) */
#define TLS_RECORD (16 * 1024) /* most bytes that one SSL_write() can seal at once */

enum phase { CONNECTING, SHAKING, OPEN, CLOSED };

/* The fields that every read and write touches are first, within one cache line: with many
 * connections, each line is cold. */
struct conn {
    struct loop *loop;
    const struct conn_events *events;
    void *arg;
    struct tls_session *tls;
    size_t queued; /* bytes of `queue` still to be written */
    uint64_t bytes_in, bytes_out;
    int fd;
    uint8_t phase; /* enum phase */
    bool is_socket : 1, can_read : 1;
    bool is_paused : 1, at_eof : 1, is_broken : 1, shut_wanted : 1;
    bool tls_read_needs_write : 1, tls_write_needs_read : 1;
    bool later_set : 1, owes_error : 1, owes_read : 1;
    bool is_held : 1; /* the outbox holds a message of this connection, and `queue` is empty */
    struct loop_fd *watch;
    struct buf queue;
    size_t queue_at; /* bytes of `queue` already written */
    size_t max_queue;
    struct loop_task later; /* this connection's task at the end of the turn */
    struct error *err;      /* set with is_broken */
};
static_assert(offsetof(struct conn, watch) <= 64, "the first line is full");

static void on_ready(void *arg, int events);

size_t conn_queued(const struct conn *c)
{
    return c->queued;
}

static void update_want(struct conn *c)
{
    int want = 0;

    if (!c->watch || c->phase == CLOSED)
        return;
    if (c->is_broken) {
        want = 0;
    } else if (c->phase == CONNECTING) {
        want = LOOP_WRITE;
    } else if (c->phase == SHAKING) {
        want = c->tls_read_needs_write ? LOOP_WRITE : LOOP_READ;
    } else {
        if ((!c->is_paused && !c->at_eof && c->can_read) || c->tls_write_needs_read)
            want |= LOOP_READ;
        if ((conn_queued(c) && !c->tls_write_needs_read) || c->tls_read_needs_write)
            want |= LOOP_WRITE;
    }
    loop_fd_want(c->watch, want);
}

static void run_errands(struct loop_task *task)
{
    struct conn *c = container_of(task, struct conn, later);

    c->later_set = false;
    if (c->phase == CLOSED) {
        buf_release(&c->queue);
        free(c->err);
        free(c);
    } else if (c->owes_error) {
        c->owes_error = false;
        c->events->on_error(c->arg, c->err);
    } else if (c->owes_read) {
        c->owes_read = false;
        on_ready(c, LOOP_READ);
    }
}

static void schedule(struct conn *c)
{
    if (c->later_set)
        return;
    c->later_set = true;
    loop_defer(c->loop, &c->later);
}

static void mark_broken(struct conn *c, const struct error *why)
{
    if (c->is_broken)
        return;
    c->is_broken = true;
    c->err = xmalloc(sizeof(*c->err));
    *c->err = *why;
    update_want(c);
}

/* For callbacks of the loop: reports the error at once. */
static void fail_now(struct conn *c, const struct error *why)
{
    if (c->is_broken)
        return;
    mark_broken(c, why);
    c->events->on_error(c->arg, c->err);
}

/* For calls of the user: the loop reports the error later. */
static void fail_later(struct conn *c, const struct error *why)
{
    if (c->is_broken)
        return;
    mark_broken(c, why);
    c->owes_error = true;
    schedule(c);
}

static void sys_error(struct error *err, int errnum)
{
    error_sys(err, ERR_UNREACHABLE, errnum, "the connection broke off");
}

static bool would_block(int errnum)
{
    return errnum == EAGAIN || errnum == EWOULDBLOCK || errnum == EINTR;
}

/* Tries once.  *ret_n is the number of bytes taken, 0 when the kernel takes none now. */
static bool write_plain(struct conn *c, const struct iovec *parts, int n, size_t *ret_n,
                        struct error *err)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};
    ssize_t done;

    if (!c->is_socket)
        done = writev(c->fd, parts, n);
    else if (n == 1)
        done = send(c->fd, parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL);
    else
        done = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
    if (done < 0 && !would_block(errno)) {
        sys_error(err, errno);
        return false;
    }
    *ret_n = done > 0 ? (size_t)done : 0;
    c->bytes_out += *ret_n;
    return true;
}

static bool write_tls(struct conn *c, const struct iovec *part, size_t *ret_n, struct error *err)
{
    size_t all = 0;

    c->tls_write_needs_read = false;
    while (all < part->iov_len) {
        size_t done = 0;
        enum tls_step step = tls_session_write(c->tls, (const char *)part->iov_base + all,
                                               part->iov_len - all, &done, err);
        if (step == TLS_FAILED || step == TLS_EOF)
            return step == TLS_EOF ? error_set(err, ERR_UNREACHABLE, "the other side closed TLS")
                                   : false;
        c->tls_write_needs_read = step == TLS_WANT_READ;
        if (step != TLS_OK)
            break;
        all += done;
        c->bytes_out += done;
    }
    *ret_n = all;
    return true;
}

/* A separate function, to keep its large stack frame out of the others. */
static bool write_joined(struct conn *c, const struct iovec *parts, int n, size_t total,
                         size_t *ret_n, struct error *err)
{
    char joined[TLS_RECORD], *end = joined;
    struct iovec one = {joined, total};

    for (int i = 0; i < n; i++) {
        memcpy(end, parts[i].iov_base, parts[i].iov_len);
        end += parts[i].iov_len;
    }
    bool ok = c->tls ? write_tls(c, &one, ret_n, err) : write_plain(c, &one, 1, ret_n, err);
    explicit_bzero(joined, total);
    return ok;
}

static bool write_direct(struct conn *c, const struct iovec *parts, int n, size_t total,
                         size_t *ret_n, struct error *err)
{
    if (c->tls && n == 1)
        return write_tls(c, parts, ret_n, err);
    if (c->tls && total <= TLS_RECORD)
        return write_joined(c, parts, n, total, ret_n, err);
    if (c->tls) { /* long and in parts: goes through the queue, in full records */
        *ret_n = 0;
        return true;
    }
    if (n > 1 && total <= SMALL_MESSAGE)
        return write_joined(c, parts, n, total, ret_n, err);
    return write_plain(c, parts, n, ret_n, err);
}

static void queue_rest(struct conn *c, const struct iovec *parts, int n, size_t skip)
{
    if (c->queue_at && c->queue_at >= c->queue.n / 2) {
        buf_consume(&c->queue, c->queue_at);
        c->queue_at = 0;
    }
    for (int i = 0; i < n; i++) {
        if (skip >= parts[i].iov_len) {
            skip -= parts[i].iov_len;
            continue;
        }
        buf_add(&c->queue, (const char *)parts[i].iov_base + skip, parts[i].iov_len - skip);
        skip = 0;
    }
    c->queued = c->queue.n - c->queue_at;
}

static void drop_fd(struct conn *c)
{
    loop_fd_free(c->watch);
    c->watch = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static void shut_if_wanted(struct conn *c)
{
    if (!c->shut_wanted || conn_queued(c) || c->phase != OPEN || c->is_broken)
        return;
    c->shut_wanted = false;
    if (c->tls)
        tls_session_close_write(c->tls);
    if (c->is_socket)
        shutdown(c->fd, SHUT_WR);
    else if (!c->can_read) /* a pipe signals the end by closing */
        drop_fd(c);
}

/* Writes from the queue; *ret_empty says whether it became empty. */
static bool flush(struct conn *c, struct error *err, bool *ret_empty)
{
    struct iovec part = {c->queue.p + c->queue_at, conn_queued(c)};
    size_t done = 0;
    bool ok = c->tls ? write_tls(c, &part, &done, err) : write_plain(c, &part, 1, &done, err);

    if (!ok)
        return false;
    c->queue_at += done;
    c->queued -= done;
    *ret_empty = c->queued == 0;
    if (*ret_empty) {
        buf_release(&c->queue);
        c->queue_at = 0;
        shut_if_wanted(c);
    }
    return true;
}

/* Holds the message until the end of the turn.  If it cannot be held but an earlier message of this
 * connection is, writes the held messages first, so that the order stays. */
static bool hold(struct conn *c, const struct iovec *parts, int n, size_t total)
{
    struct outbox *box = loop_outbox(c->loop);

    if (!c->tls && c->is_socket && outbox_add(box, c, parts, n, total)) {
        c->is_held = true;
        return true;
    }
    if (c->is_held)
        outbox_empty(box);
    return false;
}

void conn_write_held(struct conn *c, struct str message)
{
    const struct iovec part = {(char *)message.p, message.n};
    struct error err;
    size_t done = 0;

    if (c->phase == CLOSED) /* closed by a callback of the previous held message */
        return;
    c->is_held = false;
    if (conn_queued(c) == 0 && !c->is_broken && !write_plain(c, &part, 1, &done, &err))
        mark_broken(c, &err);
    if (c->is_broken) {
        c->events->on_returned(c->arg, message);
    } else if (done < message.n) {
        queue_rest(c, &part, 1, done);
        update_want(c);
    }
}

bool conn_write(struct conn *c, const struct iovec *parts, int n)
{
    struct error err;
    size_t total = 0, done = 0;
    bool empty;

    assert(n <= CONN_MAX_PARTS);
    for (int i = 0; i < n; i++)
        total += parts[i].iov_len;
    if (conn_queued(c) && (total > c->max_queue || conn_queued(c) > c->max_queue - total))
        return false;
    if (unlikely(total == 0 || c->is_broken || c->phase == CLOSED))
        return true;
    if (c->events->on_returned && c->phase == OPEN && !conn_queued(c) && hold(c, parts, n, total))
        return true;
    if (unlikely(c->is_broken || c->phase == CLOSED)) /* broken or closed by a held message that was
                                                       * written first */
        return true;
    if (likely(c->phase == OPEN && !conn_queued(c))) {
        if (unlikely(!write_direct(c, parts, n, total, &done, &err))) {
            fail_later(c, &err);
            return true;
        }
        if (likely(done == total))
            return true;
    }
    queue_rest(c, parts, n, done);
    if (c->tls && c->phase == OPEN && done == 0 && !flush(c, &err, &empty))
        fail_later(c, &err);
    update_want(c);
    return true;
}

static void read_plain(struct conn *c, int events)
{
    char *scratch = loop_scratch(c->loop);
    ssize_t n =
        c->is_socket ? recv(c->fd, scratch, LOOP_SCRATCH, 0) : read(c->fd, scratch, LOOP_SCRATCH);
    struct error err;

    if (likely(n > 0)) {
        c->bytes_in += (size_t)n;
        c->events->on_bytes(c->arg, str_n(scratch, (size_t)n));
        explicit_bzero(scratch, (size_t)n);
        if (unlikely(n == LOOP_SCRATCH || (events & LOOP_LAST)) && c->watch)
            loop_fd_rearm(c->watch); /* more bytes, or the end, may follow */
    } else if (n == 0) {
        c->at_eof = true;
        update_want(c);
        c->events->on_eof(c->arg);
    } else if (errno == EINTR) {
        loop_fd_rearm(c->watch);
    } else if (!would_block(errno)) {
        sys_error(&err, errno);
        fail_now(c, &err);
    }
}

/* Reads up to `room` bytes into the scratch buffer and passes them on. */
static enum tls_step read_tls_once(struct conn *c, size_t room, struct error *err)
{
    char *scratch = loop_scratch(c->loop);
    enum tls_step step = TLS_OK;
    size_t all = 0, n;

    while (all < room && step == TLS_OK) {
        step = tls_session_read(c->tls, scratch + all, room - all, &n, err);
        all += step == TLS_OK ? n : 0;
    }
    c->tls_read_needs_write = step == TLS_WANT_WRITE;
    c->at_eof = step == TLS_EOF;
    c->bytes_in += all;
    if (all)
        c->events->on_bytes(c->arg, str_n(scratch, all));
    explicit_bzero(scratch, all);
    return step;
}

/* Reads one scratch buffer per readiness, as without TLS, so that a fast sender does not delay
 * other connections.  OpenSSL may still hold bytes of a record that it has read from the
 * descriptor.  The kernel does not report these again, so they are read at once, or after
 * conn_pause(false). */
static void read_tls(struct conn *c)
{
    struct error err;
    enum tls_step step = read_tls_once(c, LOOP_SCRATCH, &err);
    size_t held;

    while (step == TLS_OK && c->phase == OPEN && !c->is_paused && !c->is_broken &&
           (held = tls_session_pending(c->tls)) > 0)
        step = read_tls_once(c, held < LOOP_SCRATCH ? held : LOOP_SCRATCH, &err);
    if (c->phase != OPEN)
        return;
    update_want(c);
    if (step == TLS_EOF)
        c->events->on_eof(c->arg);
    else if (step == TLS_FAILED)
        fail_now(c, &err);
}

static void opened(struct conn *c)
{
    struct error err;
    bool empty;

    c->phase = OPEN;
    c->tls_read_needs_write = false;
    update_want(c);
    if (c->events->on_open)
        c->events->on_open(c->arg);
    if (c->phase != OPEN || c->is_broken)
        return;
    if (conn_queued(c) && !flush(c, &err, &empty))
        fail_now(c, &err);
    shut_if_wanted(c);
    update_want(c);
    if (c->tls && c->phase == OPEN && !c->is_broken) { /* bytes may have come with the handshake */
        c->owes_read = true;
        schedule(c);
    }
}

static void shake(struct conn *c)
{
    struct error err;
    enum tls_step step = tls_session_shake(c->tls, &err);

    if (step == TLS_OK) {
        opened(c);
    } else if (step == TLS_FAILED) {
        fail_now(c, &err);
    } else {
        c->tls_read_needs_write = step == TLS_WANT_WRITE;
        update_want(c);
    }
}

static void finish_connect(struct conn *c)
{
    struct error err;
    int code = 0;
    socklen_t len = sizeof(code);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
        code = errno;
    if (code) {
        error_sys(&err, ERR_UNREACHABLE, code,
                  "cannot connect: check that the server runs and the address is right");
        fail_now(c, &err);
    } else if (c->tls) {
        c->phase = SHAKING;
        shake(c);
    } else {
        opened(c);
    }
}

static void on_writable(struct conn *c)
{
    struct error err;
    bool empty = false;

    if (!flush(c, &err, &empty)) {
        fail_now(c, &err);
        return;
    }
    update_want(c);
    if (empty && c->events->on_drained)
        c->events->on_drained(c->arg);
}

static void on_ready(void *arg, int events)
{
    struct conn *c = arg;

    if (unlikely(c->is_held)) /* write the held request before its reply is read */
        outbox_empty(loop_outbox(c->loop));
    if (unlikely(c->phase == CLOSED || c->is_broken))
        return;
    if (unlikely(c->phase == CONNECTING)) {
        finish_connect(c);
        return;
    }
    if (unlikely(c->phase == SHAKING)) {
        shake(c);
        return;
    }
    if (unlikely(conn_queued(c)) && ((events & LOOP_WRITE) || c->tls_write_needs_read))
        on_writable(c);
    if (c->phase != OPEN || c->is_broken || c->is_paused || c->at_eof || !c->can_read) {
        update_want(c);
        return;
    }
    if (unlikely(c->tls))
        read_tls(c);
    else if (events & LOOP_READ)
        read_plain(c, events);
}

static struct conn *conn_new(struct loop *loop, int fd, const struct conn_events *events, void *arg)
{
    struct conn *c = xcalloc_line(sizeof(*c));

    c->loop = loop;
    c->fd = fd;
    c->events = events;
    c->arg = arg;
    c->max_queue = DEFAULT_MAX_QUEUE;
    c->can_read = c->is_socket = true;
    c->later.fn = run_errands;
    buf_init_secret(&c->queue, SIZE_MAX);
    return c;
}

static bool watch(struct conn *c, bool is_stream, struct error *err)
{
    c->watch = loop_fd_new(c->loop, c->fd, on_ready, c);
    if (!c->watch)
        return error_set(err, ERR_INTERNAL,
                         "a descriptor that cannot be polled was given as a connection");
    if (is_stream)
        loop_fd_edge_triggered(c->watch);
    return true;
}

static void set_no_delay(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* fails on unix sockets: fine */
}

struct conn *conn_adopt(struct loop *loop, int fd, struct tls_context *tls,
                        const struct conn_events *events, void *arg)
{
    struct conn *c = conn_new(loop, fd, events, arg);
    struct error err;
    int type = 0, flags = fcntl(fd, F_GETFL);
    socklen_t len = sizeof(type);

    c->is_socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
    c->can_read = (flags & O_ACCMODE) != O_WRONLY;
    if (!(flags & O_NONBLOCK))
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    if (c->is_socket)
        set_no_delay(fd);
    c->phase = tls ? SHAKING : OPEN;
    /* Edge-triggered only for plain streams: OpenSSL stops reading at the end of a record, and
     * other sockets at the end of a message. */
    if (!watch(c, type == SOCK_STREAM && !tls, &err) ||
        (tls && !tls_session_new(tls, fd, NULL, &c->tls, &err)))
        fail_later(c, &err);
    update_want(c);
    return c;
}

struct conn *conn_dial(struct loop *loop, const struct conn_address *to, struct tls_context *tls,
                       const char *server_name, const struct conn_events *events, void *arg)
{
    int fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct conn *c = conn_new(loop, fd, events, arg);
    struct error err;

    c->phase = CONNECTING;
    if (fd < 0) {
        error_sys(&err, ERR_UNREACHABLE, errno,
                  "cannot make a socket: raise the limit of open files");
        fail_later(c, &err);
        return c;
    }
    set_no_delay(fd);
    if (connect(fd, (const struct sockaddr *)&to->sa, to->len) < 0 && errno != EINPROGRESS) {
        error_sys(&err, ERR_UNREACHABLE, errno,
                  "cannot connect: check that the server runs and the address is right");
        fail_later(c, &err);
    } else if (!watch(c, !tls, &err) ||
               (tls && !tls_session_new(tls, fd, server_name, &c->tls, &err))) {
        fail_later(c, &err);
    }
    update_want(c);
    return c;
}

void conn_close(struct conn *c)
{
    if (!c || c->phase == CLOSED)
        return;
    if (c->is_held) /* drop the message that was not written yet */
        outbox_forget(loop_outbox(c->loop), c);
    tls_session_free(c->tls);
    c->tls = NULL;
    c->phase = CLOSED;
    drop_fd(c);
    schedule(c);
}

void conn_set_max_queue(struct conn *c, size_t bytes)
{
    c->max_queue = bytes;
}

void conn_pause(struct conn *c, bool paused)
{
    if (c->is_paused == paused)
        return;
    c->is_paused = paused;
    if (!paused && c->tls && c->phase == OPEN && tls_session_has_pending(c->tls)) {
        c->owes_read = true;
        schedule(c);
    }
    update_want(c);
}

void conn_shutdown_write(struct conn *c)
{
    if (c->is_held)
        outbox_empty(loop_outbox(c->loop));
    c->shut_wanted = true;
    shut_if_wanted(c);
}

bool conn_is_broken(const struct conn *c)
{
    return c->is_broken;
}

bool conn_is_reached(const struct conn *c)
{
    return c->phase == SHAKING || c->phase == OPEN;
}

bool conn_is_tls(const struct conn *c)
{
    return c->tls != NULL;
}

const char *conn_tls_version(const struct conn *c)
{
    return c->tls ? tls_session_version(c->tls) : "none";
}

/* Discards received bytes first: if a socket is closed with unread bytes, the kernel sends a reset,
 * and the reset destroys the text on its way. */
void conn_tell_plain_http(struct conn *c, struct str text)
{
    char *scratch = loop_scratch(c->loop);

    if (c->phase != SHAKING || !c->is_broken || !c->tls || !tls_session_met_http(c->tls))
        return;
    for (int i = 0; i < 4 && recv(c->fd, scratch, LOOP_SCRATCH, MSG_DONTWAIT) > 0; i++)
        ;
    if (send(c->fd, text.p, text.n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        shutdown(c->fd, SHUT_WR);
}

int conn_fd(const struct conn *c)
{
    return c->fd;
}

uint64_t conn_bytes_in(const struct conn *c)
{
    return c->bytes_in;
}

uint64_t conn_bytes_out(const struct conn *c)
{
    return c->bytes_out;
}
