/* SPDX-License-Identifier: Apache-2.0 */
/* bench_upstream [PORT]: the MCP server behind every subject of the benchmark, as cheap as one can
 * be.
 *
 * One thread, epoll, keep-alive, JSON answers; it prints "listening PORT".  It trusts its peers
 * (they are ours, on loopback) and so looks only for what it needs: the length of the body, the
 * method and the id.  tools/call is answered with the text of the request and a body as long, so
 * that --body and --text of bench_load set both directions.  It speaks both eras, each request being answered in its own;
 * a call of the tool `change` says that the list of tools has changed before its result. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_REQUEST (256 * 1024)
#define MAX_EVENTS 512

struct conn {
    int fd;
    size_t n;
    char in[MAX_REQUEST + 1];
};

static unsigned long sessions;

static bool write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t wrote = send(fd, data, n, MSG_NOSIGNAL);
        if (wrote < 0 && (errno == EAGAIN || errno == EINTR))
            continue; /* a peer of ours always reads: spinning is short and keeps this simple */
        if (wrote <= 0)
            return false;
        data += wrote;
        n -= (size_t)wrote;
    }
    return true;
}

/* The text of the id, cut out of the body; "null" when there is none. */
static void find_id(const char *body, char *ret_id, size_t max)
{
    const char *at = strstr(body, "\"id\":");
    size_t n = 0;
    if (at) {
        at += 5;
        n = at[0] == '"' ? (size_t)(strchr(at + 1, '"') - at + 1) : strspn(at, "-0123456789");
    }
    if (n == 0 || n >= max)
        snprintf(ret_id, max, "null");
    else
        snprintf(ret_id, max, "%.*s", (int)n, at);
}

static bool reply_as(int fd, const char *type, const char *extra, const char *body, size_t n)
{
    static char out[MAX_REQUEST + 4096];
    int head =
        snprintf(out, 4096, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %zu\r\n\r\n",
                 type, extra, n);
    memcpy(out + head, body, n);
    return write_all(fd, out, (size_t)head + n);
}

static bool reply(int fd, const char *extra, const char *body, size_t n)
{
    return reply_as(fd, "application/json", extra, body, n);
}

static bool reply_change(int fd, const char *id)
{
    char body[512];
    int n =
        snprintf(body, sizeof body,
                 "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
                 "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n",
                 id);
    return reply_as(fd, "text/event-stream", "", body, (size_t)n);
}

/* The text of the request again, without what closes it there, and filled up where that is short. */
static bool reply_call(int fd, const char *id, const char *request, size_t wanted, bool is_modern)
{
    static const char closing[] = "\"}}}";
    const char *text = strstr(request, "\"text\":\"");
    size_t have = text ? wanted - (size_t)(text + 8 - request) - (sizeof closing - 1) : 0;
    static char body[MAX_REQUEST];
    static const char tail[] = "\"}],\"isError\":false}}";
    int head = snprintf(body, 512,
                        "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s\"content\":[{\"type\":"
                        "\"text\",\"text\":\"",
                        id, is_modern ? "\"resultType\":\"complete\"," : "");
    size_t fixed = (size_t)head + sizeof tail - 1;
    size_t pad = wanted > fixed ? wanted - fixed : 0;
    have = have < pad ? have : pad;
    if (text)
        memcpy(body + head, text + 8, have);
    memset(body + head + have, 'r', pad - have);
    memcpy(body + head + pad, tail, sizeof tail - 1);
    return reply(fd, "", body, fixed + pad);
}

static bool reply_text(int fd, const char *extra, const char *id, const char *rest)
{
    char body[1024];
    int n = snprintf(body, sizeof body, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}", id, rest);
    return reply(fd, extra, body, (size_t)n);
}

#define TOOLS                                                                                      \
    "\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":" \
    "{"                                                                                            \
    "\"type\":\"string\"}}}},{\"name\":\"change\",\"inputSchema\":{\"type\":\"object\"}}]"
#define LASTING "\"resultType\":\"complete\",\"ttlMs\":60000,\"cacheScope\":\"private\","

static bool answer_modern(int fd, const char *id, const char *body)
{
    if (strstr(body, "\"server/discover\""))
        return reply_text(fd, "", id,
                          "\"result\":{" LASTING "\"supportedVersions\":[\"2026-07-28\"],"
                          "\"capabilities\":{\"tools\":{}}}");
    if (strstr(body, "\"tools/list\""))
        return reply_text(fd, "", id, "\"result\":{" LASTING TOOLS "}");
    return reply_text(fd, "", id, "\"error\":{\"code\":-32601,\"message\":\"Method not found\"}");
}

static bool answer(int fd, const char *body, size_t n)
{
    char id[128], extra[64];
    find_id(body, id, sizeof id);
    bool is_modern = strstr(body, "\"io.modelcontextprotocol/protocolVersion\"") != NULL;
    if (strstr(body, "\"tools/call\""))
        return strstr(body, "\"name\":\"change\"") ? reply_change(fd, id)
                                                   : reply_call(fd, id, body, n, is_modern);
    if (is_modern)
        return answer_modern(fd, id, body);
    if (strstr(body, "\"initialize\"")) {
        snprintf(extra, sizeof extra, "Mcp-Session-Id: bench-%lu\r\n", ++sessions);
        return reply_text(
            fd, extra, id,
            "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{"
            "\"listChanged\":true}},\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}");
    }
    if (strstr(body, "\"tools/list\""))
        return reply_text(fd, "", id, "\"result\":{" TOOLS "}");
    if (strstr(body, "\"ping\""))
        return reply_text(fd, "", id, "\"result\":{}");
    if (strcmp(id, "null") == 0) {
        static const char accepted[] = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
        return write_all(fd, accepted, sizeof accepted - 1);
    }
    return reply_text(fd, "", id, "\"error\":{\"code\":-32601,\"message\":\"Method not found\"}");
}

/* Serves every whole request in the buffer; false: the connection is over. */
static bool serve(struct conn *c)
{
    for (;;) {
        c->in[c->n] = '\0';
        char *end = strstr(c->in, "\r\n\r\n");
        if (!end)
            return c->n < MAX_REQUEST;
        size_t head = (size_t)(end - c->in) + 4, length = 0;
        *end = '\0';
        const char *field = strcasestr(c->in, "\r\ncontent-length:");
        if (field)
            length = strtoul(field + 17, NULL, 10);
        *end = '\r';
        if (head + length > MAX_REQUEST)
            return false;
        if (c->n < head + length)
            return true;
        char *body = c->in + head, after = body[length];
        body[length] = '\0';
        bool is_post = strncmp(c->in, "POST ", 5) == 0;
        static const char refused[] =
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";
        if (is_post ? !answer(c->fd, body, length) : !write_all(c->fd, refused, sizeof refused - 1))
            return false;
        body[length] = after;
        c->n -= head + length;
        memmove(c->in, body + length, c->n);
    }
}

static void on_readable(struct conn *c)
{
    ssize_t got = recv(c->fd, c->in + c->n, MAX_REQUEST - c->n, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        c->n += (size_t)got;
        if (serve(c))
            return;
    }
    close(c->fd);
    free(c);
}

static void on_connect(int epoll, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct conn *c = malloc(sizeof *c);
    if (!c)
        abort();
    c->fd = fd;
    c->n = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int listen_on(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0) {
        perror("listen");
        exit(1);
    }
    getsockname(fd, (struct sockaddr *)&address, &size);
    printf("listening %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    int listener = listen_on(argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[MAX_EVENTS];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, MAX_EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr)
                on_readable(events[i].data.ptr);
            else
                on_connect(epoll, listener);
        }
    }
}
