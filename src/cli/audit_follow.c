/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the stream of events: JSON lines in HTTP chunks. */
#include "cli/audit_follow.h"
#include "cli/cli.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "base/buf.h"
#include "http/codec.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1u << 20)
#define SILENCE_MS 60000 /* Holdfast sends an empty line every 15 seconds */
#define AGAIN_MS 500

struct follow {
    int64_t *after;
    bool (*each)(void *arg, const struct event_row *e);
    void *arg;
    struct http_chunks chunks;
    struct buf line;
    bool is_enough;
};

/* False ends the stream: the line is no event, or the caller wants no more. */
static bool take_line(struct follow *f, struct str line)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    struct event_row e;
    struct error err;
    bool ok = js_parse(line, &js_limits_upstream, mem, &doc, NULL) &&
              event_from_json(&doc, js_root(&doc), mem, &e, &err) && e.id > 0;

    if (ok && e.id > *f->after) {
        *f->after = e.id;
        ok = f->each(f->arg, &e);
        f->is_enough = !ok;
    }
    arena_free(mem);
    return ok;
}

static bool take_data(struct follow *f, struct str data)
{
    for (size_t end; (end = str_find(data, '\n')) < data.n;) {
        if (!buf_try_add(&f->line, data.p, end))
            return false;
        bool ok = f->line.n == 0 || take_line(f, buf_str(&f->line));
        buf_reset(&f->line);
        if (!ok)
            return false;
        data = str_n(data.p + end + 1, data.n - end - 1);
    }
    return buf_try_add(&f->line, data.p, data.n);
}

static bool take_bytes(struct follow *f, struct str bytes)
{
    while (bytes.n) {
        size_t used;
        struct str data;
        struct http_fault fault;
        if (http_chunks_feed(&f->chunks, bytes, &used, &data, &fault) == HTTP_PARSE_BAD ||
            (data.n && !take_data(f, data)) || used == 0)
            return false;
        bytes = str_n(bytes.p + used, bytes.n - used);
    }
    return true;
}

static void read_stream(struct follow *f, int fd)
{
    char scratch[65536];
    for (;;) {
        struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = STDOUT_FILENO}};
        ssize_t n = recv(fd, scratch, sizeof(scratch), 0);
        if (n > 0 && !take_bytes(f, str_n(scratch, (size_t)n)))
            return;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return;
        if (n < 0 && poll(p, countof(p), SILENCE_MS) == 0)
            return;
        if (n < 0 && p[1].revents) { /* the reader of our output has gone */
            f->is_enough = true;
            return;
        }
    }
}

/* One connection.  False: it could not be made; *err says why. */
static bool follow_once(struct control *c, struct follow *f, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    char id[EVENT_ID_TEXT];
    int fd;
    struct str path = arena_printf(mem, "/control/follow?after=%s", event_id_format(*f->after, id));
    bool ok = control_stream(c, path, mem, &fd, err);

    arena_free(mem);
    if (!ok)
        return false;
    http_chunks_init(&f->chunks);
    buf_init(&f->line, LINE_MAX_BYTES);
    read_stream(f, fd);
    buf_release(&f->line);
    close(fd);
    return true;
}

bool audit_follow(struct control *c, int64_t *after,
                  bool (*each)(void *arg, const struct event_row *e), void *arg)
{
    struct follow f = {.after = after, .each = each, .arg = arg};
    bool is_waiting = false;

    while (!f.is_enough) {
        struct error err;
        int64_t before = *after;
        bool ok = follow_once(c, &f, &err);
        if (!ok && err.code != ERR_UNREACHABLE && err.code != ERR_UNAVAILABLE)
            return false;
        if (!ok && !is_waiting)
            fprintf(stderr, "holdfast: no Holdfast answers there; waiting for it to come back\n");
        is_waiting = !ok;
        if (!f.is_enough && *after == before)
            f.is_enough = !cli_pause(AGAIN_MS);
    }
    return true;
}
