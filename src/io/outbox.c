/* SPDX-License-Identifier: Apache-2.0 */
/* A task at the end of the turn empties the box.  Messages added during that are written at once,
 * so a turn always ends. */
#include "io/outbox.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGES 16 /* enough to keep a receiver awake, few enough that the first is not delayed */
#define BYTES (16 * 1024)
#define MESSAGE_MAX 4096

struct held {
    struct conn *conn; /* NULL: dropped */
    uint32_t at, n;
};

struct outbox {
    struct loop *loop;
    struct loop_task task;
    bool task_set, is_emptied;
    size_t n, used;
    struct held held[MESSAGES];
    char bytes[BYTES];
};

static void on_turn_end(struct loop_task *task)
{
    struct outbox *o = container_of(task, struct outbox, task);
    o->task_set = false;
    outbox_empty(o);
}

struct outbox *outbox_new(struct loop *loop)
{
    struct outbox *o = xcalloc(1, sizeof(*o));
    o->loop = loop;
    o->task.fn = on_turn_end;
    return o;
}

void outbox_free(struct outbox *o)
{
    free(o);
}

bool outbox_add(struct outbox *o, struct conn *c, const struct iovec *parts, int n, size_t total)
{
    if (total > MESSAGE_MAX || o->is_emptied)
        return false;
    if (o->n == MESSAGES || o->used + total > BYTES) {
        outbox_empty(o); /* this connection may have a queue now */
        return false;
    }
    o->held[o->n++] = (struct held){c, (uint32_t)o->used, (uint32_t)total};
    for (int i = 0; i < n; i++) {
        memcpy(o->bytes + o->used, parts[i].iov_base, parts[i].iov_len);
        o->used += parts[i].iov_len;
    }
    if (!o->task_set) {
        o->task_set = true;
        loop_defer(o->loop, &o->task);
    }
    return true;
}

void outbox_empty(struct outbox *o)
{
    if (o->is_emptied)
        return;
    o->is_emptied = true;
    for (size_t i = 0; i < o->n; i++) {
        struct held *h = &o->held[i];
        if (h->conn)
            conn_write_held(h->conn, str_n(o->bytes + h->at, h->n));
    }
    explicit_bzero(o->bytes, o->used); /* requests carry credentials */
    o->n = o->used = 0;
    o->is_emptied = false;
}

void outbox_forget(struct outbox *o, const struct conn *c)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->held[i].conn == c)
            o->held[i].conn = NULL;
}
