/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking HTTP client of one request per connection: commands are short. */
#include "cli/control.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cli/datadir.h"
#include "http/client.h"
#include "http/codec.h"
#include "io/address.h"
#include "json/read.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEADLINE_MS 30000
#define MAX_ANSWER (64u * 1024 * 1024)

struct control {
    struct conn_address to;
    char host[300];
};

bool control_open_socket(struct str data_dir, struct control **ret, struct error *err)
{
    struct arena *mem = arena_new(64 * 1024);
    struct control *c = xcalloc(1, sizeof(*c));
    struct str socket;
    bool ok = datadir_socket(data_dir, mem, &socket, err) &&
              address_parse(arena_printf(mem, "unix:%.*s", STR_ARG(socket)), &c->to, err);

    memcpy(c->host, "localhost", 10);
    arena_free(mem);
    if (!ok) {
        free(c);
        return false;
    }
    *ret = c;
    return true;
}

bool control_open_url(struct str url, struct control **ret, struct error *err)
{
    struct control *c = xcalloc(1, sizeof(*c));
    struct http_url parts;

    if (!http_url_parse(url, &parts, err)) {
        free(c);
        return false;
    }
    snprintf(c->host, sizeof(c->host), "%.*s:%u", STR_ARG(parts.host), parts.port);
    if (parts.is_tls || !address_parse(str_of(c->host), &c->to, err)) {
        free(c);
        return error_set(err, ERR_USAGE, "--url takes http:// and a numeric host or localhost");
    }
    *ret = c;
    return true;
}

void control_close(struct control *c)
{
    free(c);
}

static bool wait_for(int fd, short events, int64_t until_ms, struct error *err)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left = until_ms - clock_mono_ms();
    int n = left > 0 ? poll(&p, 1, (int)left) : 0;
    if (n > 0 || (n < 0 && errno == EINTR))
        return true;
    return error_set(err, ERR_UNREACHABLE, "Holdfast did not answer within 30 s; is it stopped or overloaded?");
}

static bool send_all(int fd, struct str bytes, int64_t until_ms, struct error *err)
{
    while (bytes.n) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return error_sys(err, ERR_UNREACHABLE, errno, "cannot ask Holdfast");
        if (n > 0)
            bytes = str_n(bytes.p + n, bytes.n - (size_t)n);
        else if (!wait_for(fd, POLLOUT, until_ms, err))
            return false;
    }
    return true;
}

static bool read_all(int fd, struct buf *in, int64_t until_ms, struct error *err)
{
    char scratch[65536];
    for (;;) {
        ssize_t n = recv(fd, scratch, sizeof(scratch), 0);
        if (n == 0)
            return true;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return error_sys(err, ERR_UNREACHABLE, errno, "Holdfast broke off its answer");
        if (n < 0 && !wait_for(fd, POLLIN, until_ms, err))
            return false;
        if (n > 0 && !buf_try_add(in, scratch, (size_t)n))
            return error_set(err, ERR_TOO_LARGE, "the answer is larger than 64 MiB; ask for less");
    }
}

/* An answer that is no 200 carries {"error": "…"}. */
static bool refuse(const struct http_head *head, struct str body, struct arena *mem, struct error *err)
{
    struct js_doc doc;
    struct str text = STR_NONE;
    enum err_code code = head->status == 401 || head->status == 403 ? ERR_UNAUTHENTICATED : ERR_BAD_INPUT;
    if (js_parse(body, &js_limits_upstream, mem, &doc, NULL))
        text = js_text(&doc, js_get(&doc, js_root(&doc), STR("error")), mem);
    return error_set(err, code, "Holdfast answered %d: %.*s", head->status, (int)(text.n < 300 ? text.n : 300),
                     text.p ? text.p : "");
}

static bool take_answer(struct buf *in, struct arena *mem, struct str *ret_body, struct error *err)
{
    struct http_head *head = arena_new_of(mem, struct http_head);
    struct http_fault fault;
    size_t used;

    if (http_parse_response(buf_str(in), false, head, &used, &fault) != HTTP_PARSE_OK)
        return error_set(err, ERR_UNREACHABLE, "what answered does not speak HTTP; is that Holdfast?");
    struct str body = str_n(in->p + used, in->n - used);
    if (head->framing == HTTP_LENGTH && body.n != head->content_length)
        return error_set(err, ERR_UNREACHABLE, "Holdfast broke off its answer; try again");
    if (head->status != 200)
        return refuse(head, body, mem, err);
    *ret_body = arena_dup(mem, body);
    return true;
}

bool control_get(void *arg, struct str path, struct arena *mem, struct str *ret_body, struct error *err)
{
    struct control *c = arg;
    int64_t until = clock_mono_ms() + DEADLINE_MS;
    int fd = socket(c->to.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct buf in;
    bool ok;

    if (fd < 0)
        return error_sys(err, ERR_INTERNAL, errno, "cannot open a socket");
    if (connect(fd, (struct sockaddr *)&c->to.sa, c->to.len) < 0 && errno != EINPROGRESS) {
        int reason = errno;
        close(fd);
        return error_sys(err, ERR_UNREACHABLE, reason, "cannot reach Holdfast");
    }
    buf_init(&in, MAX_ANSWER);
    struct str request = arena_printf(mem, "GET %.*s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                                      STR_ARG(path), c->host);
    ok = wait_for(fd, POLLOUT, until, err) && send_all(fd, request, until, err) &&
         read_all(fd, &in, until, err) && take_answer(&in, mem, ret_body, err);
    buf_release(&in);
    close(fd);
    return ok;
}
