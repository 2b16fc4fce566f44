/* SPDX-License-Identifier: Apache-2.0 */
/* The line front.
 *
 *   bytes ──> lines ──> an exchange each ──> answers as lines, in the order they are ready
 *
 * Nothing here knows an era: a line is an arrival like any other, and only two things are the
 * pipe's own.  Its transport: what `initialize` made last, for the legacy lines after it; lines
 * behind an initialize wait for its answer.  And its name: the session of lines that name none.
 *
 * The end comes in order: the client closes its side (or we stop) → lines that are there are still
 * served → their answers are written → the connection is closed.  A client that does not read makes
 * us stop reading; one that is gone loses its answers, not its calls.
 *
 * A pipe is freed when its connection and its last line are gone. */
#include "exchange/pipe.h"

#include "base/log.h"
#include "base/random.h"
#include "io/conn.h"

#include <stdlib.h>
#include <sys/socket.h>

#define MAX_MESSAGE (64u * 1024 * 1024)
#define LINE_MEMORY (64u * 1024 * 1024)

struct pipes {
    struct services *sv;
    struct list open;
    unsigned n;
    struct deadline_class grace;
    void (*on_empty)(void *arg);
    void *arg;
};

struct pipe {
    struct pipes *home; /* only while conn is there */
    struct services *sv;
    struct list node;
    struct conn *conn; /* NULL: the client is gone */
    struct arena *mem;
    struct principal who;
    struct str server, endpoint;
    char name[UUID_TEXT]; /* of its session, when no line names another */
    struct transport *transport;
    struct listener listener;
    /* input */
    struct buf in;   /* from `at` on: read, not yet taken */
    size_t at, seen; /* `seen` bytes of the line at `at` have no line end */
    size_t max_line;
    bool skipping; /* the rest of a line that was too long */
    bool ending;   /* no more input comes */
    bool hurried;  /* grace is over: calls were cancelled */
    /* lines under way */
    struct list lines;
    unsigned n_lines;
    size_t n_bytes;
    struct line *starting; /* inside its exchange_start() */
    struct line *holding;  /* an initialize, for which the lines behind it wait */
    struct deadline deadline;
    bool scheduled;
    struct loop_task later;
};

struct line {
    struct list node;
    struct pipe *pipe;
    struct arena *mem; /* this line is in it */
    struct exchange *x;
    size_t size;
    bool cancelled; /* nobody waits for its answer */
};

static const struct http_head no_head;

static void schedule(struct pipe *p)
{
    if (p->scheduled)
        return;
    p->scheduled = true;
    loop_defer(p->sv->loop, &p->later);
}

/* Output. */

/* A server may have put line ends between JSON tokens; inside of strings they are always escaped,
 * so blanks in their place change nothing. */
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
        (void)shutdown(conn_fd(p->conn), SHUT_RDWR); /* the end is seen from the loop */
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

static bool is_slow(const struct pipe *p)
{
    return p->conn && conn_queued(p->conn) > PIPE_MAX_DROPPABLE;
}

static void on_tell(struct listener *l, struct str json, bool droppable)
{
    struct pipe *p = container_of(l, struct pipe, listener);
    if (!droppable || !is_slow(p))
        write_line(p, json);
}

/* The outlet. */

static void line_begin(struct exchange *x)
{
    ((struct line *)x->door)->x = x;
}

static bool line_send(struct exchange *x, struct str json, enum outlet_weight weight)
{
    struct line *l = x->door;
    if (!l->pipe->conn || x->aborted)
        return false;
    if (!l->cancelled && (weight == OUTLET_MUST || !is_slow(l->pipe)))
        write_line(l->pipe, json);
    return true;
}

static void line_finish(struct exchange *x)
{
    struct line *l = x->door;
    struct pipe *p = l->pipe;

    if (x->out.n && x->msg.kind == MCP_REQUEST && !l->cancelled)
        write_line(p, buf_str(&x->out));
    buf_release(&x->out);
    list_remove(&l->node);
    p->n_lines--;
    p->n_bytes -= l->size;
    if (p->holding == l)
        p->holding = NULL;
    if (p->starting == l)
        p->starting = NULL;
    arena_free(l->mem); /* and with it l and x */
    schedule(p);
}

static void leave_transport(struct pipe *p)
{
    if (!p->transport)
        return;
    hub_unlisten(p->sv->hub, &p->listener);
    transport_unref(p->transport);
    p->transport = NULL;
}

static void line_initialized(struct exchange *x, struct transport *t)
{
    struct pipe *p = ((struct line *)x->door)->pipe;

    leave_transport(p);
    if (!p->conn)
        return;
    transport_ref(t);
    p->transport = t;
    p->listener.transport = t;
    hub_listen(p->sv->hub, &p->listener);
}

/* What would go on, or has no end of its own, is ended. */
static void quit(struct line *l, const char *why)
{
    if (l->x->listen)
        exchange_listen_gone(l->x);
    else if (l->x->has_call)
        call_cancel(&l->x->call, str_of(why));
}

/* initialize cannot be cancelled. */
static void line_cancel(struct exchange *x, struct str id)
{
    struct pipe *p = ((struct line *)x->door)->pipe;

    list_each(&p->lines, it)
    {
        struct line *l = list_entry(it, struct line, node);
        if (l == p->holding || !l->x || l->x == x || !l->x->id.p || !str_eq(l->x->id, id))
            continue;
        l->cancelled = true;
        quit(l, "client cancelled");
        return;
    }
    if (x->transport) { /* an item of a batch */
        struct call *c = calls_find(p->sv->calls, x->transport, id, x->mem);
        if (c)
            call_cancel(c, STR("client cancelled"));
    }
}

static const struct outlet outlet_pipe = {
    .name = "pipe",
    .begin = line_begin,
    .send = line_send,
    .finish = line_finish,
    .initialized = line_initialized,
    .cancel = line_cancel,
};

/* Input. */

static void start_line(struct pipe *p, struct str text)
{
    struct arena *mem = arena_new(LINE_MEMORY);
    struct line *l = arena_new_of(mem, struct line);

    *l = (struct line){.pipe = p, .mem = mem, .size = text.n};
    list_push(&p->lines, &l->node);
    p->n_lines++;
    p->n_bytes += text.n;
    p->starting = l;
    struct arrival a = {
        .outlet = &outlet_pipe,
        .door = l,
        .head = &no_head,
        .mem = mem,
        .verb = STR("POST"),
        .body = arena_dup(mem, text),
        .server = p->server,
        .endpoint = p->endpoint,
        .who = &p->who,
        .transport = p->transport,
        .channel = str_of(p->name),
    };
    exchange_start(p->sv, &a);
    if (p->starting && l->x->method && l->x->method->service == SERVE_INITIALIZE)
        p->holding = l;
    p->starting = NULL;
}

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
        start_line(p, line);
}

/* false: there is no whole line. */
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
    if (!p->skipping && rest.n > p->max_line + 1) { /* one may be the CR of its end */
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
    return p->holding || p->n_lines >= PIPE_MAX_LINES || p->n_bytes > PIPE_MAX_BYTES ||
           conn_queued(p->conn) > PIPE_MAX_QUEUE;
}

static void take_input(struct pipe *p)
{
    while (!is_full(p) && next_line(p))
        ;
    buf_consume(&p->in, p->at);
    p->at = 0;
    if (p->in.n == 0)
        buf_release(&p->in); /* a pipe that rests keeps nothing */
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
    leave_transport(p);
    list_remove(&p->node);
    p->home = NULL;
    schedule(p);
    list_each(&p->lines, it)
    {
        struct line *l = list_entry(it, struct line, node);
        if (l->x)
            exchange_gone(l->x);
    }
    home->n--;
    log_debug("a pipe has ended", LI("pipes", home->n));
    if (home->n == 0 && home->on_empty)
        home->on_empty(home->arg);
}

static void on_later(struct loop_task *task)
{
    struct pipe *p = container_of(task, struct pipe, later);

    p->scheduled = false;
    if (p->conn) {
        take_input(p);
        if (p->ending && p->n_lines == 0 && p->in.n == 0 && conn_queued(p->conn) == 0)
            lose(p);
        return;
    }
    if (p->n_lines)
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
    list_each(&p->lines, it)
    {
        struct line *l = list_entry(it, struct line, node);
        if (l->x && l->x->listen)
            quit(l, "client disconnected");
    }
    schedule(p);
}

/* Once for what is under way, once more for its answers. */
static void on_grace_over(struct deadline *d)
{
    struct pipe *p = container_of(d, struct pipe, deadline);

    if (p->hurried) {
        lose(p);
        return;
    }
    p->hurried = true;
    buf_reset(&p->in);
    p->at = p->seen = 0;
    deadline_set(&p->home->grace, &p->deadline);
    list_each(&p->lines, it)
    {
        struct line *l = list_entry(it, struct line, node);
        if (l->x)
            quit(l, "client disconnected");
    }
    schedule(p);
}

static void on_bytes(void *arg, struct str bytes)
{
    struct pipe *p = arg;

    if (p->ending)
        return;
    if (!buf_try_add(&p->in, bytes.p, bytes.n)) {
        lose(p); /* it was told to wait, by not being read: not reached */
        return;
    }
    take_input(p);
}

/* A last line may lack its end. */
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

void pipe_open(struct pipes *home, int fd, const struct principal *who, struct str server,
               struct str greeting)
{
    struct pipe *p = xcalloc(1, sizeof(*p));
    struct iovec part = {(char *)greeting.p, greeting.n};

    p->home = home;
    p->sv = home->sv;
    p->mem = arena_new(64 * 1024);
    p->who = *who;
    p->who.tenant = arena_dup(p->mem, who->tenant);
    p->who.owner = arena_dup(p->mem, who->owner);
    p->server = arena_dup(p->mem, server);
    p->endpoint = server.p ? arena_printf(p->mem, "/mcp/%.*s", STR_ARG(p->server)) : STR("/mcp");
    p->listener.tell = on_tell;
    p->later.fn = on_later;
    p->max_line = p->sv->config->limit_body;
    random_uuid7(p->name);
    list_init(&p->lines);
    buf_init(&p->in, p->max_line + 4 * LOOP_SCRATCH);
    deadline_init(&p->deadline, on_grace_over);
    p->conn = conn_adopt(p->sv->loop, fd, NULL, &events, p);
    conn_set_max_queue(p->conn, 2 * MAX_MESSAGE);
    list_push(&home->open, &p->node);
    home->n++;
    log_debug("a pipe has begun", LI("pipes", home->n));
    if (greeting.n && !conn_write(p->conn, &part, 1))
        log_debug("a pipe could not be greeted");
}

/* All of them. */

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
