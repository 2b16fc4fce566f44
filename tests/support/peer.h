/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of a connection, scripted: says bytes, gathers what comes, on the same loop.  And
 * a loopback listener whose accepted connections are such peers. */
#ifndef HOLDFAST_TESTS_PEER_H
#define HOLDFAST_TESTS_PEER_H

#include "test.h"

#include "base/buf.h"
#include "io/address.h"
#include "io/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct peer {
    struct loop *loop;
    struct conn *conn;
    struct buf in;
    bool opened, eof, broken;
    struct error err; /* with broken */
};

static inline void peer_on_open(void *arg)
{
    ((struct peer *)arg)->opened = true;
}
static inline void peer_on_bytes(void *arg, struct str bytes)
{
    buf_addstr(&((struct peer *)arg)->in, bytes);
}
static inline void peer_on_eof(void *arg)
{
    ((struct peer *)arg)->eof = true;
}
static inline void peer_on_error(void *arg, const struct error *e)
{
    ((struct peer *)arg)->err = *e;
    ((struct peer *)arg)->broken = true;
}
static const struct conn_events peer_events = {.on_open = peer_on_open,
                                               .on_bytes = peer_on_bytes,
                                               .on_eof = peer_on_eof,
                                               .on_error = peer_on_error};

static inline void peer_init(struct peer *p, struct loop *loop)
{
    memset(p, 0, sizeof(*p));
    p->loop = loop;
    buf_init(&p->in, 64 * 1024 * 1024);
}
static inline void peer_dial(struct peer *p, struct loop *loop, const struct conn_address *to)
{
    peer_init(p, loop);
    p->conn = conn_dial(loop, to, NULL, NULL, &peer_events, p);
}
static inline void peer_dial_tls(struct peer *p, struct loop *loop, const struct conn_address *to,
                                 struct tls_context *tls, const char *name)
{
    peer_init(p, loop);
    p->conn = conn_dial(loop, to, tls, name, &peer_events, p);
}
static inline void peer_adopt(struct peer *p, struct loop *loop, int fd, struct tls_context *tls)
{
    peer_init(p, loop);
    p->conn = conn_adopt(loop, fd, tls, &peer_events, p);
}
static inline void peer_close(struct peer *p)
{
    conn_close(p->conn);
    p->conn = NULL;
    buf_release(&p->in);
}
static inline void peer_say_n(struct peer *p, const void *bytes, size_t n)
{
    struct iovec part = {(void *)bytes, n};
    assert_true(conn_write(p->conn, &part, 1));
}
static inline void peer_say(struct peer *p, const char *text)
{
    peer_say_n(p, text, strlen(text));
}
static inline bool peer_has(const struct peer *p, const char *text)
{
    return memmem(buf_str(&p->in).p, p->in.n, text, strlen(text)) != NULL;
}
static inline unsigned peer_count(const struct peer *p, const char *text)
{
    unsigned n = 0;
    struct str rest = buf_str(&p->in);
    const char *at;
    while ((at = memmem(rest.p, rest.n, text, strlen(text)))) {
        n++;
        rest = str_n(at + 1, rest.n - (size_t)(at - rest.p) - 1);
    }
    return n;
}
/* Turns the loop until `text` has come; fails when the connection ends before. */
static inline void peer_wait(struct peer *p, const char *text)
{
    while (!peer_has(p, text)) {
        if (p->eof || p->broken)
            fail_msg("the connection ended before '%s'; it said '%.*s'", text,
                     STR_ARG(buf_str(&p->in)));
        loop_turn(p->loop);
    }
}
static inline void peer_wait_end(struct peer *p)
{
    while (!p->eof && !p->broken)
        loop_turn(p->loop);
}

/* A listening socket on a free port of 127.0.0.1; `ret` is where to dial. */
static inline int peer_listen(struct conn_address *ret)
{
    struct error err;
    int fd = -1;
    assert_true(address_parse(STR("127.0.0.1:0"), ret, &err));
    assert_true(address_listen(ret, &fd, &err));
    ret->len = sizeof(ret->sa);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&ret->sa, &ret->len), 0);
    return fd;
}

#endif
