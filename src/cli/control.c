/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking HTTP client with one request per connection, because commands are short. */
#include "cli/control.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cli/remote.h"
#include "config/datadir.h"
#include "gateway_local.h"
#include "http/codec.h"
#include "io/address.h"
#include "json/read.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_MS 30000
#define LOCAL_DEADLINE_MS (INT64_C(24) * 3600 * 1000) /* the operation itself ends or fails */
#define MAX_ANSWER (64u * 1024 * 1024)

struct control {
    struct conn_address to;
    char host[300];
    int64_t deadline_ms;
    bool watches_output;
    const char *key;             /* or NULL */
    struct gateway_local *local; /* NULL: another process answers */
    struct remote *remote;       /* NULL: it is on this machine */
};

bool control_open_socket(struct str data_dir, struct control **ret, struct error *err)
{
    struct arena *mem = arena_new(64 * 1024);
    struct control *c = xcalloc(1, sizeof(*c));
    struct str socket;
    bool ok = datadir_socket(data_dir, mem, &socket, err) &&
              address_parse(arena_printf(mem, "unix:%.*s", STR_ARG(socket)), &c->to, err);

    memcpy(c->host, "localhost", 10);
    c->deadline_ms = DEADLINE_MS;
    arena_free(mem);
    if (!ok) {
        free(c);
        return false;
    }
    *ret = c;
    return true;
}

bool control_open_url(struct str url, const char *ca_file, struct control **ret, struct error *err)
{
    struct remote *remote;

    if (!remote_open(url, ca_file, &remote, err))
        return false;
    struct control *c = xcalloc(1, sizeof(*c));
    c->deadline_ms = DEADLINE_MS;
    c->remote = remote;
    snprintf(c->host, sizeof(c->host), "%s", remote_host(remote));
    *ret = c;
    return true;
}

bool control_is_clear(const struct control *c)
{
    return c->remote && remote_is_clear(c->remote);
}

struct control *control_open_local(struct gateway_local *local)
{
    struct control *c = xcalloc(1, sizeof(*c));

    c->local = local;
    c->deadline_ms = LOCAL_DEADLINE_MS;
    memcpy(c->host, "localhost", 10);
    return c;
}

void control_set_deadline(struct control *c, int64_t ms)
{
    c->deadline_ms = ms;
}

void control_watch_output(struct control *c, bool watches)
{
    c->watches_output = watches;
}

void control_close(struct control *c)
{
    if (c)
        remote_close(c->remote);
    free(c);
}

static bool wait_for(const struct control *c, int fd, short events, int64_t until_ms,
                     struct error *err)
{
    struct pollfd p[] = {{.fd = fd, .events = events},
                         {.fd = c->watches_output ? STDOUT_FILENO : -1}};
    int64_t left = until_ms - clock_mono_ms();
    int n = 0;

    /* The peer is in this process: it answers in a turn of its loop. */
    while (c->local && left > 0 && (n = poll(p, 1, 0)) == 0) {
        gateway_local_turn(c->local);
        left = until_ms - clock_mono_ms();
    }
    if (!c->local && left > 0)
        n = poll(p, countof(p), (int)left);
    if (n > 0 && p[1].revents && !p[0].revents)
        return error_set(err, ERR_UNREACHABLE, "nobody reads the output any more");
    if (n > 0 || (n < 0 && errno == EINTR))
        return true;
    return error_set(err, ERR_UNREACHABLE,
                     "Holdfast did not answer in time; is it stopped or overloaded?");
}

static bool open_fd(const struct control *c, int *ret, struct error *err)
{
    if (c->local)
        return gateway_local_connect(c->local, ret, err);
    *ret = socket(c->to.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return *ret >= 0 || error_sys(err, ERR_INTERNAL, errno, "cannot open a socket");
}

/* connect() to a unix socket with a full backlog fails with EAGAIN, and poll() cannot wait for
 * room, so connect() is retried. */
static bool reach(const struct control *c, int fd, int64_t until_ms, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    while (!c->local && connect(fd, (const struct sockaddr *)&c->to.sa, c->to.len) < 0 &&
           errno != EINPROGRESS) {
        if (errno != EAGAIN && errno != EINTR)
            return error_sys(err, ERR_UNREACHABLE, errno,
                             "cannot reach Holdfast; is it starting, or stopped?");
        if (clock_mono_ms() >= until_ms)
            return error_set(err, ERR_UNREACHABLE, "Holdfast has too many connections; try again");
        nanosleep(&pause, NULL);
    }
    return wait_for(c, fd, POLLOUT, until_ms, err);
}

static bool send_all(const struct control *c, int fd, struct str bytes, int64_t until_ms,
                     struct error *err)
{
    while (bytes.n) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return error_sys(err, ERR_UNREACHABLE, errno, "cannot send the request to Holdfast");
        if (n > 0)
            bytes = str_n(bytes.p + n, bytes.n - (size_t)n);
        else if (!wait_for(c, fd, POLLOUT, until_ms, err))
            return false;
    }
    return true;
}

static bool read_all(const struct control *c, int fd, struct buf *in, int64_t until_ms,
                     struct error *err)
{
    char scratch[65536];
    for (;;) {
        ssize_t n = recv(fd, scratch, sizeof(scratch), 0);
        if (n == 0)
            return true;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return error_sys(err, ERR_UNREACHABLE, errno, "Holdfast broke off its answer");
        if (n < 0 && !wait_for(c, fd, POLLIN, until_ms, err))
            return false;
        if (n > 0 && !buf_try_add(in, scratch, (size_t)n))
            return error_set(err, ERR_TOO_LARGE, "the answer is larger than 64 MiB; ask for less");
    }
}

static enum err_code code_of_status(int status)
{
    static const struct {
        int status;
        enum err_code code;
    } rows[] = {
        {401, ERR_UNAUTHENTICATED}, {403, ERR_DENIED}, {404, ERR_NOT_FOUND},   {409, ERR_CONFLICT},
        {413, ERR_TOO_LARGE},       {429, ERR_LIMIT},  {503, ERR_UNAVAILABLE}, {504, ERR_TIMEOUT},
    };
    for (size_t i = 0; i < countof(rows); i++)
        if (rows[i].status == status)
            return rows[i].code;
    return status >= 500 ? ERR_INTERNAL : ERR_BAD_INPUT;
}

/* The error of an answer other than 2xx, from its members `code`, and `detail` or `error`. */
static bool refuse(const struct control *c, int status, struct str body, struct arena *mem,
                   struct error *err)
{
    const struct error_info *info = NULL;
    struct str text = STR_NONE;
    struct js_doc doc;

    if (js_parse(body, &js_limits_upstream, mem, &doc, NULL)) {
        const struct js_node *root = js_root(&doc);
        struct str code = js_text(&doc, js_get(&doc, root, STR("code")), mem);
        text = js_text(&doc, js_get(&doc, root, STR("detail")), mem);
        if (!text.p)
            text = js_text(&doc, js_get(&doc, root, STR("error")), mem);
        info = code.p ? error_info_by_name(arena_dup(mem, code).p) : NULL;
    }
    if (!text.p)
        text = arena_printf(mem, "%s%s", http_reason(status),
                            status == 400 && c->remote && !remote_is_tls(c->remote)
                                ? "; perhaps this port wants https://"
                                : "");
    if (status == 401 && c->remote)
        text =
            arena_printf(mem, "%.*s (%s)", STR_ARG(text),
                         c->key ? "this was the key in HOLDFAST_KEY" : "HOLDFAST_KEY is not set");
    enum err_code code = info && info->code != ERR_NONE ? info->code : code_of_status(status);
    if (code == ERR_CONFIG || c->local)
        return error_set(err, code, "%.*s", STR_ARG(text));
    return error_set(err, code, "Holdfast answered %d: %.*s", status,
                     (int)(text.n < 300 ? text.n : 300), text.p);
}

static bool gather_chunks(struct str bytes, struct arena *mem, struct str *ret, struct error *err)
{
    struct http_chunks chunks;
    struct http_fault fault;
    char *body = arena_alloc(mem, bytes.n + 1);
    size_t n = 0;
    enum http_parse verdict = HTTP_PARSE_MORE;

    http_chunks_init(&chunks);
    while (bytes.n && verdict == HTTP_PARSE_MORE) {
        size_t used;
        struct str data;
        verdict = http_chunks_feed(&chunks, bytes, &used, &data, &fault);
        if (verdict == HTTP_PARSE_BAD)
            break;
        if (data.n)
            memcpy(body + n, data.p, data.n);
        n += data.n;
        bytes = str_n(bytes.p + used, bytes.n - used);
    }
    if (verdict != HTTP_PARSE_OK || bytes.n)
        return error_set(err, ERR_UNREACHABLE, "Holdfast broke off its answer; try again");
    body[n] = '\0';
    *ret = str_n(body, n);
    return true;
}

static bool take_answer(const struct control *c, struct str in, struct arena *mem,
                        struct str *ret_body, struct error *err)
{
    struct http_head *head = arena_new_of(mem, struct http_head);
    struct http_fault fault;
    size_t used;

    do {
        if (http_parse_response(in, false, head, &used, &fault) != HTTP_PARSE_OK)
            return error_set(err, ERR_UNREACHABLE,
                             "the answer is not HTTP; is Holdfast listening at that address?");
        in = str_n(in.p + used, in.n - used);
    } while (head->status < 200);
    struct str body = STR("");
    if (head->framing == HTTP_CHUNKED && !gather_chunks(in, mem, &body, err))
        return false;
    if (head->framing == HTTP_LENGTH && in.n != head->content_length)
        return error_set(err, ERR_UNREACHABLE, "Holdfast broke off its answer; try again");
    if (head->framing == HTTP_LENGTH || head->framing == HTTP_UNTIL_CLOSE)
        body = in;
    if (head->status < 200 || head->status > 299)
        return refuse(c, head->status, body, mem, err);
    *ret_body = arena_dup(mem, body);
    return true;
}

void control_set_key(struct control *c, const char *key)
{
    c->key = key;
}

/* A request's head and body, which may have bytes of any kind. */
static struct str request_of(const struct control *c, const struct control_request *r,
                             struct arena *mem)
{
    struct str key = c->key ? arena_printf(mem, "Authorization: Bearer %s\r\n", c->key) : STR("");
    struct str length = strcmp(r->method, "GET") == 0
                            ? STR("")
                            : arena_printf(mem, "Content-Length: %zu\r\n", r->body.n);

    struct str type = r->body.n || r->type ? arena_printf(mem, "Content-Type: %s\r\n",
                                                          r->type ? r->type : "application/json")
                                           : STR("");

    struct str head = arena_printf(
        mem, "%s %.*s HTTP/1.1\r\nHost: %s\r\n%.*s%.*s%.*s%.*sConnection: close\r\n\r\n", r->method,
        STR_ARG(r->path), c->host, STR_ARG(key), STR_ARG(r->headers), STR_ARG(type),
        STR_ARG(length));
    if (!r->body.n)
        return head;
    char *whole = arena_alloc(mem, head.n + r->body.n);
    memcpy(whole, head.p, head.n);
    memcpy(whole + head.n, r->body.p, r->body.n);
    return str_n(whole, head.n + r->body.n);
}

bool control_get(void *c, struct str path, struct arena *mem, struct str *ret_body,
                 struct error *err)
{
    return control_ask(c, "GET", path, STR_NONE, mem, ret_body, err);
}

bool control_ask(struct control *c, const char *method, struct str path, struct str body,
                 struct arena *mem, struct str *ret_body, struct error *err)
{
    struct control_request r = {.method = method, .path = path, .body = body};
    return control_send(c, &r, mem, ret_body, err);
}

static bool exchange(const struct control *c, struct str request, struct buf *in, struct error *err)
{
    int64_t until = clock_mono_ms() + c->deadline_ms;
    int fd;

    if (!open_fd(c, &fd, err))
        return false;
    bool ok = reach(c, fd, until, err) && send_all(c, fd, request, until, err) &&
              read_all(c, fd, in, until, err);
    close(fd);
    return ok;
}

bool control_send(struct control *c, const struct control_request *r, struct arena *mem,
                  struct str *ret_body, struct error *err)
{
    struct str request = request_of(c, r, mem);
    struct buf in;

    buf_init(&in, MAX_ANSWER);
    bool ok = (c->remote ? remote_exchange(c->remote, request, c->deadline_ms, &in, err)
                         : exchange(c, request, &in, err)) &&
              take_answer(c, buf_str(&in), mem, ret_body, err);
    buf_release(&in);
    return ok;
}

/* An answer that is read as it comes.  A refusal is gathered whole in `in`. */
struct download {
    const struct control *from;
    struct arena *mem;
    struct buf in; /* the head, until it is complete */
    struct http_head head;
    struct http_chunks chunks;
    bool has_head, is_complete;
    uint64_t left; /* of a body with a length */
    bool (*take)(void *arg, struct str bytes, struct error *err);
    void *arg;
};

static bool broke_off(struct error *err)
{
    return error_set(err, ERR_UNREACHABLE,
                     "Holdfast broke off its answer, and what came is not complete; try again");
}

static bool download_body(struct download *d, struct str bytes, struct error *err)
{
    struct http_fault fault;

    while (bytes.n && d->head.framing == HTTP_CHUNKED && !d->is_complete) {
        struct str data;
        size_t used;
        enum http_parse verdict = http_chunks_feed(&d->chunks, bytes, &used, &data, &fault);
        if (verdict == HTTP_PARSE_BAD)
            return broke_off(err);
        if (data.n && !d->take(d->arg, data, err))
            return false;
        d->is_complete = verdict == HTTP_PARSE_OK;
        bytes = str_n(bytes.p + used, bytes.n - used);
    }
    if (d->head.framing == HTTP_CHUNKED || !bytes.n)
        return true;
    d->left -= bytes.n < d->left ? bytes.n : d->left;
    d->is_complete = d->head.framing == HTTP_LENGTH && !d->left;
    return d->take(d->arg, bytes, err);
}

static bool download_head(struct download *d, struct error *err)
{
    struct http_fault fault;
    size_t used;

    enum http_parse verdict = http_parse_response(buf_str(&d->in), false, &d->head, &used, &fault);
    if (verdict == HTTP_PARSE_MORE)
        return true;
    if (verdict != HTTP_PARSE_OK)
        return error_set(err, ERR_UNREACHABLE,
                         "the answer is not HTTP; is Holdfast listening at that address?");
    if (d->head.status < 200) {
        buf_consume(&d->in, used);
        return download_head(d, err);
    }
    d->has_head = true;
    d->is_complete = d->head.framing == HTTP_NO_BODY;
    if (d->head.status > 299) /* the rest is gathered behind the head */
        return true;
    http_chunks_init(&d->chunks);
    d->left = d->head.content_length;
    return download_body(d, str_n(d->in.p + used, d->in.n - used), err);
}

static bool download_bytes(void *arg, struct str bytes, struct error *err)
{
    struct download *d = arg;

    if (d->has_head && d->head.status <= 299)
        return download_body(d, bytes, err);
    if (!buf_try_add(&d->in, bytes.p, bytes.n))
        return error_set(err, ERR_TOO_LARGE, "the head of the answer is too long");
    return d->has_head || download_head(d, err);
}

/* Over a connection of this machine. */
static bool read_stream(const struct control *c, struct str request, struct download *d,
                        struct error *err)
{
    char scratch[65536];
    ssize_t n = -1;
    int fd;

    if (!open_fd(c, &fd, err))
        return false;
    int64_t until = clock_mono_ms() + c->deadline_ms;
    bool ok = reach(c, fd, until, err) && send_all(c, fd, request, until, err);
    while (ok && n != 0) {
        n = recv(fd, scratch, sizeof(scratch), 0);
        if (n > 0)
            ok = download_bytes(d, str_n(scratch, (size_t)n), err);
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            ok = error_sys(err, ERR_UNREACHABLE, errno, "Holdfast broke off its answer");
        else if (n < 0)
            ok = wait_for(c, fd, POLLIN, clock_mono_ms() + c->deadline_ms, err);
    }
    close(fd);
    return ok;
}

bool control_receive(struct control *c, const struct control_request *r, struct arena *mem,
                     bool (*take)(void *arg, struct str bytes, struct error *err), void *arg,
                     struct error *err)
{
    struct download d = {.from = c, .mem = mem, .take = take, .arg = arg};
    struct str request = request_of(c, r, mem), ignored;

    buf_init(&d.in, MAX_ANSWER);
    bool ok = c->remote ? remote_stream(c->remote, request, c->deadline_ms, download_bytes, &d, err)
                        : read_stream(c, request, &d, err);
    if (ok && d.has_head && d.head.status > 299)
        ok = take_answer(c, buf_str(&d.in), mem, &ignored, err);
    else if (ok && !d.is_complete)
        ok = broke_off(err);
    buf_release(&d.in);
    return ok;
}

bool control_download(struct control *c, struct str path, struct arena *mem,
                      bool (*take)(void *arg, struct str bytes, struct error *err), void *arg,
                      struct error *err)
{
    return control_receive(c, &(struct control_request){.method = "GET", .path = path}, mem, take,
                           arg, err);
}

/* Reads the head byte by byte, so that no byte of the lines after it is taken. */
static bool read_head(const struct control *c, int fd, struct buf *in, int64_t until_ms,
                      struct error *err)
{
    char byte;

    while (in->n < 4 || memcmp(in->p + in->n - 4, "\r\n\r\n", 4) != 0) {
        ssize_t n = recv(fd, &byte, 1, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return error_set(err, ERR_UNREACHABLE, "Holdfast broke off its answer; try again");
        if (n < 0 && !wait_for(c, fd, POLLIN, until_ms, err))
            return false;
        if (n > 0 && !buf_try_add(in, &byte, 1))
            return error_set(err, ERR_UNREACHABLE,
                             "the answer is not HTTP; is Holdfast listening at that address?");
    }
    return true;
}

/* Whether this is the head of a 101 answer; then *ret_config is its Holdfast-Config. */
static bool take_switch(struct str in, struct arena *mem, struct str *ret_config)
{
    struct http_head *head = arena_new_of(mem, struct http_head);
    struct http_fault fault;
    size_t used;

    if (http_parse_response(in, false, head, &used, &fault) != HTTP_PARSE_OK || head->status != 101)
        return false;
    *ret_config = arena_dup(mem, http_header_get(head, STR("holdfast-config")));
    return true;
}

bool control_lines(struct control *c, struct str path, struct arena *mem, int *ret_fd,
                   struct str *ret_config, struct error *err)
{
    int64_t until = clock_mono_ms() + c->deadline_ms;
    struct str ignored;
    struct buf in;
    int fd;

    if (!open_fd(c, &fd, err))
        return false;
    buf_init(&in, MAX_ANSWER);
    struct control_request post = {.method = "POST", .path = path};
    struct str request = request_of(c, &post, mem);
    bool ok = reach(c, fd, until, err) && send_all(c, fd, request, until, err) &&
              read_head(c, fd, &in, until, err);
    if (ok && !take_switch(buf_str(&in), mem, ret_config)) {
        ok = false;
        if (read_all(c, fd, &in, until, err) && take_answer(c, buf_str(&in), mem, &ignored, err))
            error_set(err, ERR_UNREACHABLE,
                      "this Holdfast has no endpoint for pipes; is it an older version?");
    }
    buf_release(&in);
    if (ok)
        *ret_fd = fd;
    else
        close(fd);
    return ok;
}
