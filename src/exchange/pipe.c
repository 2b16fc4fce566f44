/* SPDX-License-Identifier: Apache-2.0 */
/* The line front.
 *
 *   bytes ──> lines ──> an exchange each (client_channel.c) ──> answers as lines, as they are ready
 *
 * Lines behind an initialize wait for its answer.
 *
 * A pipe ends in this order: the client closes its side (or Holdfast stops) → lines already read
 * are served → their answers are written → the connection is closed.  If a client does not read,
 * its lines are not read either.  If a client is gone, its answers are lost, but its calls go on.
 *
 * A pipe is freed when its connection is closed and its last line is done. */
#include "exchange/pipe.h"

#include "base/log.h"
#include "base/random.h"
#include "exchange/client_channel.h"
#include "identity/scopes.h"
#include "io/conn.h"
#include "io/deadline.h"

#include <stdlib.h>
#include <sys/socket.h>

#define MAX_MESSAGE (64u * 1024 * 1024)

struct pipes {
    struct services *sv;
    struct list open;
    unsigned n;
    struct deadline_class grace;
    void (*on_empty)(void *arg);
    void *arg;
};

struct pipe {
    struct pipes *home; /* NULL once conn is NULL */
    struct loop *loop;
    struct list node;
    struct conn *conn; /* NULL: the client is gone */
    struct client_channel channel;
    struct identity_watch watch;
    struct arena *mem;
    char name[UUID_TEXT];
    /* input */
    struct buf in;   /* from `at` on: read, not yet taken */
    size_t at, seen; /* the first `seen` bytes of the line at `at` hold no line end */
    size_t max_line;
    bool skipping; /* drops the rest of a line that was too long */
    bool ending;   /* no more input comes */
    bool hurried;  /* the grace period is over: calls were cancelled */
    struct deadline deadline;
    bool scheduled;
    struct loop_task later;
};

static void schedule(struct pipe *p)
{
    if (p->scheduled)
        return;
    p->scheduled = true;
    loop_defer(p->loop, &p->later);
}

/* Output. */

/* A server may put line ends between JSON tokens.  Inside of strings they are always escaped, so
 * replacing them by blanks changes nothing. */
static void flatten(struct buf *line, struct str json)
{
    buf_addstr(line, json);
    for (size_t i = 0; i < line->n; i++)
        if (line->p[i] == '\n' || line->p[i] == '\r')
            line->p[i] = ' ';
}

static void write_line(struct pipe *p, struct str json)
{
    struct buf flat;

    if (!p->conn)
        return;
    buf_init(&flat, 2 * MAX_MESSAGE);
    if (memchr(json.p, '\n', json.n) || memchr(json.p, '\r', json.n)) {
        flatten(&flat, json);
        json = buf_str(&flat);
    }
    struct iovec parts[] = {{(char *)json.p, json.n}, {(char *)"\n", 1}};
    if (!conn_write(p->conn, parts, 2)) {
        log_warn("a pipe is closed: its client does not read what it asked for");
        (void)shutdown(conn_fd(p->conn), SHUT_RDWR); /* the loop then sees the end of input */
    }
    buf_release(&flat);
}

static void write_refusal(struct pipe *p, int code, const char *text)
{
    struct buf line;

    buf_init(&line, 4096);
    buf_addf(&line, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":%d,\"message\":\"%s\"}}",
             code, text);
    write_line(p, buf_str(&line));
    buf_release(&line);
}

static void on_write(struct client_channel *c, struct str json)
{
    write_line(container_of(c, struct pipe, channel), json);
}

static bool is_slow(const struct client_channel *c)
{
    const struct pipe *p = container_of(c, const struct pipe, channel);
    return p->conn && conn_queued(p->conn) > PIPE_MAX_DROPPABLE;
}

static void on_done(struct client_channel *c)
{
    schedule(container_of(c, struct pipe, channel));
}

/* Input. */

static void refuse_long(struct pipe *p)
{
    write_refusal(p, -32600,
                  "this line is longer than the limit on messages (4 MiB unless "
                  "configured); send less in one message");
}

static void take_line(struct pipe *p, struct str line)
{
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (line.n > p->max_line)
        refuse_long(p);
    else if (str_trim(line).n)
        client_channel_take(&p->channel, line, NULL);
}

/* False when the input holds no whole line. */
static bool next_line(struct pipe *p)
{
    struct str rest = str_n(p->in.p + p->at, p->in.n - p->at);
    const char *end = rest.n > p->seen ? memchr(rest.p + p->seen, '\n', rest.n - p->seen) : NULL;

    if (end) {
        size_t n = (size_t)(end - rest.p);
        bool whole = !p->skipping;
        p->at += n + 1;
        p->seen = 0;
        p->skipping = false;
        if (whole)
            take_line(p, str_n(rest.p, n));
        return true;
    }
    p->seen = rest.n;
    if (!p->skipping && rest.n > p->max_line + 1) { /* the extra byte may be a CR */
        refuse_long(p);
        p->skipping = true;
    }
    if (p->skipping) {
        p->at = p->in.n;
        p->seen = 0;
    }
    return false;
}

static bool is_full(const struct pipe *p)
{
    const struct client_channel *c = &p->channel;
    return c->initializing || client_channel_busy(c) >= PIPE_MAX_LINES ||
           c->n_bytes > PIPE_MAX_BYTES || conn_queued(p->conn) > PIPE_MAX_QUEUE;
}

static void take_input(struct pipe *p)
{
    while (!is_full(p) && next_line(p))
        ;
    buf_consume(&p->in, p->at);
    p->at = 0;
    if (p->in.n == 0)
        buf_release(&p->in); /* an idle pipe keeps no buffer */
    conn_pause(p->conn, p->ending || is_full(p));
}

/* The end. */

static void lose(struct pipe *p)
{
    struct pipes *home = p->home;

    if (!p->conn)
        return;
    conn_close(p->conn);
    p->conn = NULL;
    deadline_clear(&p->deadline);
    identity_unwatch(&p->watch);
    list_remove(&p->node);
    p->home = NULL;
    schedule(p);
    client_channel_close(&p->channel);
    home->n--;
    log_debug("a pipe has ended", LI("pipes", home->n));
    if (home->n == 0 && home->on_empty)
        home->on_empty(home->arg);
}

/* Its calls go on to their end, but their answers are dropped. */
static void on_revoked(struct identity_watch *w)
{
    lose(container_of(w, struct pipe, watch));
}

static void on_later(struct loop_task *task)
{
    struct pipe *p = container_of(task, struct pipe, later);

    p->scheduled = false;
    if (p->conn) {
        take_input(p);
        if (p->ending && p->channel.n == 0 && p->in.n == 0 && conn_queued(p->conn) == 0)
            lose(p);
        return;
    }
    if (p->channel.n)
        return;
    buf_release(&p->in);
    arena_free(p->mem);
    free(p);
}

static void end_soon(struct pipe *p)
{
    if (p->ending)
        return;
    p->ending = true;
    deadline_set(&p->home->grace, &p->deadline);
    client_channel_end_listening(&p->channel);
    schedule(p);
}

/* The first timeout cancels calls under way; the second closes the pipe. */
static void on_grace_over(struct deadline *d)
{
    struct pipe *p = container_of(d, struct pipe, deadline);

    if (p->hurried || p->channel.n == 0) {
        lose(p);
        return;
    }
    p->hurried = true;
    buf_reset(&p->in);
    p->at = p->seen = 0;
    deadline_set(&p->home->grace, &p->deadline);
    client_channel_cancel_all(&p->channel);
    schedule(p);
}

static void on_bytes(void *arg, struct str bytes)
{
    struct pipe *p = arg;

    if (p->ending)
        return;
    if (!buf_try_add(&p->in, bytes.p, bytes.n)) {
        lose(p); /* not reached: a full pipe is paused */
        return;
    }
    take_input(p);
}

/* The last line may lack its line end. */
static void on_eof(void *arg)
{
    struct pipe *p = arg;

    if (!p->ending && p->in.n && !buf_try_add(&p->in, "\n", 1))
        p->at = p->in.n;
    end_soon(p);
}

static void on_drained(void *arg)
{
    schedule(arg);
}

static void on_error(void *arg, const struct error *e unused_arg)
{
    lose(arg);
}

static const struct conn_events events = {
    .on_bytes = on_bytes,
    .on_eof = on_eof,
    .on_drained = on_drained,
    .on_error = on_error,
};

static struct str endpoint_of(const struct pipe_target *to, struct arena *mem)
{
    if (to->profile.p)
        return arena_printf(mem, "/mcp/p/%.*s", STR_ARG(to->profile));
    return to->server.p ? arena_printf(mem, "/mcp/%.*s", STR_ARG(to->server)) : STR("/mcp");
}

void pipe_open(struct pipes *home, int fd, const struct principal *who,
               const struct pipe_target *to, struct str greeting)
{
    struct pipe *p = xcalloc(1, sizeof(*p));
    struct iovec part = {(char *)greeting.p, greeting.n};

    p->home = home;
    p->loop = home->sv->loop;
    p->mem = arena_new(64 * 1024);
    p->later.fn = on_later;
    p->max_line = home->sv->front->config->limit_body;
    if (to->name.n == sizeof(p->name) - 1)
        memcpy(p->name, to->name.p, to->name.n);
    else
        random_uuid7(p->name);
    p->channel = (struct client_channel){
        .sv = home->sv,
        .who = principal_dup(who, p->mem),
        .server = arena_dup(p->mem, to->server),
        .profile = arena_dup(p->mem, to->profile),
        .endpoint = endpoint_of(to, p->mem),
        .name = str_of(p->name),
        .resumes = to->name.n == sizeof(p->name) - 1,
        .write = on_write,
        .is_slow = is_slow,
        .on_done = on_done,
    };
    client_channel_open(&p->channel);
    p->watch.on_revoked = on_revoked;
    identity_watch(home->sv->front->identity, &p->watch, who);
    buf_init(&p->in, p->max_line + 4 * LOOP_SCRATCH);
    deadline_init(&p->deadline, on_grace_over);
    p->conn = conn_adopt(p->loop, fd, NULL, &events, p);
    conn_set_max_queue(p->conn, 2 * MAX_MESSAGE);
    list_push(&home->open, &p->node);
    home->n++;
    log_debug("a pipe has begun", LI("pipes", home->n));
    if (greeting.n && !conn_write(p->conn, &part, 1))
        log_debug("a pipe could not be greeted");
}

/* All pipes. */

struct pipes *pipes_new(struct services *sv)
{
    struct pipes *pipes = xcalloc(1, sizeof(*pipes));
    pipes->sv = sv;
    list_init(&pipes->open);
    deadline_class_init(&pipes->grace, sv->loop, PIPE_GRACE_MS);
    return pipes;
}

void pipes_free(struct pipes *pipes)
{
    if (!pipes)
        return;
    pipes->on_empty = NULL;
    list_each(&pipes->open, it)
    {
        lose(list_entry(it, struct pipe, node));
    }
    deadline_class_release(&pipes->grace);
    free(pipes);
}

unsigned pipes_count(const struct pipes *pipes)
{
    return pipes->n;
}

void pipes_on_empty(struct pipes *pipes, void (*fn)(void *arg), void *arg)
{
    pipes->on_empty = fn;
    pipes->arg = arg;
}

void pipes_stop(struct pipes *pipes)
{
    list_each(&pipes->open, it)
    {
        struct pipe *p = list_entry(it, struct pipe, node);
        buf_reset(&p->in);
        p->at = p->seen = 0;
        end_soon(p);
    }
}
