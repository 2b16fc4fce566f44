/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: one head on the stack, the caller's bytes beside it, one write.  The final answer frees
 * the request.  If the client is gone, the answer is dropped and the request is freed in the same
 * way. */
#include "http/server.h"
#include "http/server_impl.h"

#include "base/clock.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_HEAD_FIXED 512 /* status line, Date, Content-Type, Content-Length */
#define MAX_TYPE 256

static struct server_request *request_of(const struct http_request *r)
{
    return container_of(r, struct server_request, pub);
}

static char *put(char *to, const char *from, size_t n)
{
    memcpy(to, from, n);
    return to + n;
}
#define PUT(to, literal) put((to), "" literal, sizeof(literal) - 1)

static char *put_decimal(char *to, uint64_t value)
{
    char digits[20];
    size_t n = 0;

    do
        digits[sizeof(digits) - ++n] = (char)('0' + value % 10);
    while (value /= 10);
    return put(to, digits + sizeof(digits) - n, n);
}

/* The header changes once a second, so the date is computed once a second. */
static char *put_date(char *to, struct http_server *s)
{
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t now_s = loop_now_ms(s->loop) / 1000;
    time_t wall;
    struct tm t;

    if (now_s != s->date_s) {
        wall = (time_t)(clock_wall_ms() / 1000);
        gmtime_r(&wall, &t);
        snprintf(s->date, sizeof(s->date), "Date: %.3s, %02u %.3s %04u %02u:%02u:%02u GMT\r\n",
                 days + 3 * t.tm_wday, (unsigned)t.tm_mday % 100, months + 3 * t.tm_mon,
                 (unsigned)(t.tm_year + 1900) % 10000, (unsigned)t.tm_hour % 100,
                 (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
        s->date_s = now_s;
    }
    return put(to, s->date, SERVER_DATE_TEXT);
}

static char *put_status(char *to, int status)
{
    const char *reason;

    if (likely(status == 200))
        return PUT(to, "HTTP/1.1 200 OK\r\n");
    reason = http_reason(status);
    to = PUT(to, "HTTP/1.1 ");
    to = put_decimal(to, (uint64_t)status);
    *to++ = ' ';
    to = put(to, reason, strlen(reason));
    return PUT(to, "\r\n");
}

static char *put_type(char *to, const char *type)
{
    size_t n = strlen(type);

    assert(n <= MAX_TYPE);
    to = PUT(to, "Content-Type: ");
    to = put(to, type, n);
    return PUT(to, "\r\n");
}

/* The end of the head, after the caller's own lines. */
static struct iovec head_end(const struct server_conn *c, bool closes)
{
    static const char close_end[] = "Connection: close\r\n\r\n",
                      keep_end[] = "Connection: keep-alive\r\n\r\n", end[] = "\r\n";

    if (closes)
        return (struct iovec){(char *)close_end, sizeof(close_end) - 1};
    if (c->req && c->is_old)
        return (struct iovec){(char *)keep_end, sizeof(keep_end) - 1};
    return (struct iovec){(char *)end, sizeof(end) - 1};
}

static bool has_no_body(int status)
{
    return status == 202 || status == 204 || status == 304;
}

void server_write_answer(struct server_conn *c, const struct server_answer *a, bool closes)
{
    char head[MAX_HEAD_FIXED + MAX_TYPE], *end = head;
    struct iovec iov[CONN_MAX_PARTS];
    uint64_t length = 0;
    int n = 0, n_parts = has_no_body(a->status) ? 0 : a->n_parts;

    assert(n_parts + 4 <= CONN_MAX_PARTS);
    for (int i = 0; i < n_parts; i++)
        length += a->parts[i].iov_len;
    end = put_status(end, a->status);
    end = put_date(end, c->server);
    if (a->type && !has_no_body(a->status))
        end = put_type(end, a->type);
    if (a->status != 204 && a->status != 304) {
        end = PUT(end, "Content-Length: ");
        end = put_decimal(end, length);
        end = PUT(end, "\r\n");
    }
    iov[n++] = (struct iovec){head, (size_t)(end - head)};
    if (a->headers.n)
        iov[n++] = (struct iovec){(char *)a->headers.p, a->headers.n};
    if (c->req && c->req->pub.extra.n)
        iov[n++] = (struct iovec){(char *)c->req->pub.extra.p, c->req->pub.extra.n};
    iov[n++] = head_end(c, closes);
    for (int i = 0; i < n_parts && !c->is_mute; i++)
        iov[n++] = a->parts[i];
    /* Only a stream has a bounded queue, and it ends before the next answer begins. */
    if (!conn_write(c->conn, iov, n))
        assert(!"the write queue of an answer is unbounded");
}

void http_reply_parts(struct http_request *pub, int status, const char *type, struct str headers,
                      const struct iovec *parts, int n)
{
    struct server_request *r = request_of(pub);
    struct server_conn *c = r->conn;
    struct server_answer a = {status, type, headers, parts, n};

    if (!c) {
        server_request_free(r);
        return;
    }
    assert(c->state == SERVER_WAITING);
    c->closes |= c->server->is_draining;
    server_write_answer(c, &a, c->closes);
    server_conn_answered(c);
}

void http_reply(struct http_request *pub, int status, const char *type, struct str headers,
                struct str body)
{
    struct iovec part = {(char *)body.p, body.n};

    http_reply_parts(pub, status, type, headers, &part, body.n ? 1 : 0);
}

void http_stream_begin(struct http_request *pub, int status, const char *type, struct str headers,
                       size_t max_queue)
{
    struct server_request *r = request_of(pub);
    struct server_conn *c = r->conn;
    char head[MAX_HEAD_FIXED + MAX_TYPE], *end = head;
    struct iovec iov[4];
    int n = 0;

    if (!c)
        return;
    assert(c->state == SERVER_WAITING);
    c->is_raw_stream = c->is_old;
    c->closes |= c->is_raw_stream || c->server->is_draining;
    end = put_status(end, status);
    end = put_date(end, c->server);
    if (type)
        end = put_type(end, type);
    if (!c->is_raw_stream)
        end = PUT(end, "Transfer-Encoding: chunked\r\n");
    iov[n++] = (struct iovec){head, (size_t)(end - head)};
    if (headers.n)
        iov[n++] = (struct iovec){(char *)headers.p, headers.n};
    if (pub->extra.n)
        iov[n++] = (struct iovec){(char *)pub->extra.p, pub->extra.n};
    iov[n++] = head_end(c, c->closes);
    if (!conn_write(c->conn, iov, n))
        assert(!"the write queue of an answer is unbounded");
    conn_set_max_queue(c->conn, max_queue);
    server_conn_streams(c);
    server_conn_watch_writing(c);
}

bool http_upgrade(struct http_request *pub, struct str headers, size_t max_queue)
{
    struct server_request *r = request_of(pub);
    struct server_conn *c = r->conn;
    struct iovec iov[4];
    char head[MAX_HEAD_FIXED];
    int n = 0;

    if (!c || c->is_old)
        return false;
    assert(c->state == SERVER_WAITING && pub->on_bytes);
    c->is_raw_stream = c->closes = c->lingers = true;
    iov[n++] = (struct iovec){head, (size_t)(put_date(put_status(head, 101), c->server) - head)};
    iov[n++] = (struct iovec){(char *)headers.p, headers.n};
    if (pub->extra.n)
        iov[n++] = (struct iovec){(char *)pub->extra.p, pub->extra.n};
    iov[n++] = (struct iovec){(char *)"\r\n", 2};
    if (!conn_write(c->conn, iov, n))
        assert(!"the write queue of an answer is unbounded");
    conn_set_max_queue(c->conn, max_queue);
    server_conn_upgraded(c);
    server_conn_watch_writing(c);
    return true;
}

bool http_stream_write(struct http_request *pub, struct str bytes)
{
    struct server_conn *c = request_of(pub)->conn;
    char size[20];
    struct iovec chunk[3] = {{size, 0}, {(char *)bytes.p, bytes.n}, {(char *)"\r\n", 2}};
    bool taken;

    if (!c)
        return false;
    assert(c->state == SERVER_STREAMING);
    if (bytes.n == 0 || c->is_mute)
        return true;
    chunk[0].iov_len = (size_t)snprintf(size, sizeof(size), "%zx\r\n", bytes.n);
    taken = c->is_raw_stream ? conn_write(c->conn, chunk + 1, 1) : conn_write(c->conn, chunk, 3);
    server_conn_watch_writing(c);
    return taken;
}

void http_stream_end(struct http_request *pub)
{
    struct server_request *r = request_of(pub);
    struct server_conn *c = r->conn;
    struct iovec last = {(char *)"0\r\n\r\n", 5};

    if (!c) {
        server_request_free(r);
        return;
    }
    assert(c->state == SERVER_STREAMING);
    c->closes |= c->server->is_draining;
    conn_set_max_queue(c->conn, SIZE_MAX);
    if (!c->is_raw_stream && !c->is_mute && !conn_write(c->conn, &last, 1))
        assert(!"the write queue of an answer is unbounded");
    server_conn_answered(c);
}

void http_stream_abort(struct http_request *pub)
{
    struct server_request *r = request_of(pub);
    struct server_conn *c = r->conn;

    if (c) {
        r->conn = NULL;
        c->req = NULL; /* no answer is pending: on_abort is not called */
        server_conn_close(c);
    }
    server_request_free(r);
}

void http_stream_patient(struct http_request *pub, unsigned times)
{
    struct server_conn *c = request_of(pub)->conn;

    if (c)
        c->patience = times;
}

void http_stream_slim(struct http_request *pub)
{
    struct server_request *r = request_of(pub);

    server_uncount_body(r);
    buf_release(&r->chunked);
    arena_free(pub->mem);
    free(pub->head);
    pub->mem = NULL;
    pub->head = NULL;
    pub->route = NULL;
    pub->body = STR("");
}

void http_request_take_memory(struct http_request *pub, struct http_request_memory *ret)
{
    struct server_request *r = request_of(pub);

    server_uncount_body(r);
    *ret = (struct http_request_memory){.mem = pub->mem, .head = pub->head, .chunked = r->chunked};
    buf_init(&r->chunked, 0);
    pub->mem = NULL;
    pub->head = NULL;
    pub->route = NULL;
    pub->body = STR("");
}

void http_request_memory_release(struct http_request_memory *m)
{
    struct http_request_memory memory = *m; /* *m may lie in its own mem */
    buf_release(&memory.chunked);
    free(memory.head);
    arena_free(memory.mem);
}

void server_stream_drained(struct server_conn *c)
{
    struct http_request *pub = &c->req->pub;

    deadline_clear(&c->deadline);
    if (pub->on_drained)
        pub->on_drained(pub);
}

int http_request_detach(struct http_request *pub)
{
    struct server_request *r = request_of(pub);
    struct server_conn *c = r->conn;
    int fd;

    if (!c || c->is_tls || c->in.n || conn_queued(c->conn) || conn_is_broken(c->conn))
        return -1;
    assert(c->state == SERVER_WAITING);
    fd = fcntl(conn_fd(c->conn), F_DUPFD_CLOEXEC, 0);
    if (fd >= 0)
        http_stream_abort(pub); /* closes only its own descriptor, not the duplicate */
    return fd;
}

size_t http_stream_queued(const struct http_request *pub)
{
    const struct server_conn *c = request_of(pub)->conn;

    return c ? conn_queued(c->conn) : 0;
}

bool http_request_aborted(const struct http_request *pub)
{
    return request_of(pub)->conn == NULL;
}

const char *http_request_tls_version(const struct http_request *pub)
{
    const struct server_request *r = request_of(pub);
    return r->conn ? conn_tls_version(r->conn->conn) : "none";
}

void http_request_done(struct http_request *pub)
{
    struct server_request *r = request_of(pub);

    assert(!r->conn);
    server_request_free(r);
}
