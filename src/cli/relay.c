/* SPDX-License-Identifier: Apache-2.0 */
/* One loop of poll(2), with directions that never wait for each other:
 *
 *   in ──up──> channel        channel ──down──> out        and beside them: logs ──> err
 *
 * Each direction has one buffer, and reads only when the buffer is empty, so a slow reader slows
 * down the other end.  The process that started us shares the client's descriptors, so their flags
 * are not changed.  They are read and written only when poll reports them ready, and written in
 * pieces that a ready descriptor of any kind takes without blocking (a pipe: PIPE_BUF bytes). */
#include "cli/relay.h"

#include "base/clock.h"
#include "cli/relay_talk.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER 65536
#define GIVE_UP_MS 5000

struct flow {
    char bytes[BUFFER];
    size_t at, n;  /* [at, n) waits to be written */
    bool finished; /* nothing more comes in */
};

struct relay {
    struct relay_ends ends;
    struct flow up, down;
    bool is_shut;     /* our side of the channel is shut down */
    bool is_cut;      /* the channel takes no more bytes */
    bool mute;        /* the reader of `out` is gone */
    int64_t wrote_ms; /* when `out` last took bytes, or no bytes were waiting */
};

static bool is_empty(const struct flow *f)
{
    return f->at == f->n;
}

static bool again(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static void fill(struct flow *f, int fd)
{
    ssize_t n = read(fd, f->bytes, sizeof(f->bytes));

    if (n < 0 && again())
        return;
    f->at = 0;
    f->n = n > 0 ? (size_t)n : 0;
    f->finished = n <= 0;
}

/* false: `fd` will never take more. */
static bool drain(struct flow *f, int fd, size_t most)
{
    size_t left = f->n - f->at;
    ssize_t n = write(fd, f->bytes + f->at, left < most ? left : most);

    if (n < 0)
        return again();
    f->at += (size_t)n;
    return true;
}

static void discard(struct flow *f)
{
    f->at = f->n = 0;
}

/* Log lines of the gateway that we started, beside the messages.  If `err` is not read, the gateway
 * drops lines. */
static struct flow words;

static void watch_words(struct pollfd fds[2], int logs, int err)
{
    bool reads = logs >= 0 && !words.finished && is_empty(&words);
    fds[0] = (struct pollfd){.fd = reads ? logs : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = is_empty(&words) ? -1 : err, .events = POLLOUT};
}

static void move_words(const struct pollfd fds[2], int logs, int err)
{
    if (fds[0].revents)
        fill(&words, logs);
    if (fds[1].revents && !drain(&words, err, PIPE_BUF))
        discard(&words);
}

void relay_logs(int logs, int err, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;
    struct pollfd fds[2];

    while (!words.finished || !is_empty(&words)) {
        int64_t left = until - clock_mono_ms();
        if (left <= 0)
            break;
        watch_words(fds, logs, err);
        if (poll(fds, 2, (int)left) > 0)
            move_words(fds, logs, err);
    }
    if (is_empty(&words))
        words.finished = false; /* for the log of the next gateway */
}

enum { IN, STOP, CHANNEL, OUT, LOGS, ERR, COUNT };

static void wait_for_any(struct relay *r, struct pollfd fds[COUNT])
{
    bool reads_in = !r->up.finished && is_empty(&r->up);
    bool reads_channel = !r->down.finished && is_empty(&r->down);
    bool patient = is_empty(&r->down) || !(r->is_shut || r->down.finished);
    int64_t left = r->wrote_ms + GIVE_UP_MS - clock_mono_ms();

    fds[IN] = (struct pollfd){.fd = reads_in ? r->ends.in : -1, .events = POLLIN};
    fds[STOP] = (struct pollfd){.fd = r->up.finished ? -1 : r->ends.stop, .events = POLLIN};
    bool writes_channel = !is_empty(&r->up) && !r->is_cut;
    fds[CHANNEL].fd = reads_channel || writes_channel ? r->ends.channel : -1;
    fds[CHANNEL].events = (short)((reads_channel ? POLLIN : 0) | (writes_channel ? POLLOUT : 0));
    fds[OUT] = (struct pollfd){.fd = is_empty(&r->down) ? -1 : r->ends.out, .events = POLLOUT};
    watch_words(&fds[LOGS], r->ends.logs, r->ends.err);
    fds[CHANNEL].revents = 0;
    if (poll(fds, COUNT, patient ? -1 : left > 0 ? (int)left : 0) < 0)
        for (int i = 0; i < COUNT; i++)
            fds[i].revents = 0;
}

static void drain_up(struct relay *r)
{
    size_t before = r->up.at;

    if (!drain(&r->up, r->ends.channel, BUFFER))
        r->is_cut = true; /* the gateway has ended; bytes it sent before are still read */
    if (r->ends.talk)
        relay_talk_sent(r->ends.talk, str_n(r->up.bytes + before, r->up.at - before));
}

static void fill_down(struct relay *r)
{
    fill(&r->down, r->ends.channel);
    if (r->ends.talk)
        relay_talk_received(r->ends.talk, str_n(r->down.bytes, r->down.n));
}

static void move(struct relay *r, const struct pollfd fds[COUNT])
{
    if (fds[IN].revents)
        fill(&r->up, r->ends.in);
    if (fds[STOP].revents)
        r->up.finished = true;
    if (fds[CHANNEL].revents && !is_empty(&r->up) && !r->is_cut)
        drain_up(r);
    if (fds[CHANNEL].revents & (POLLIN | POLLHUP | POLLERR) && is_empty(&r->down) &&
        !r->down.finished)
        fill_down(r);
    if (fds[OUT].revents && !is_empty(&r->down) && !drain(&r->down, r->ends.out, PIPE_BUF))
        r->mute = true;
    move_words(&fds[LOGS], r->ends.logs, r->ends.err);
    if (r->mute) { /* the client is gone: handled like the end of `in` */
        discard(&r->down);
        r->up.finished = true;
    }
}

static struct relay r; /* static, because it is large and there is one client */

enum relay_end relay_run(const struct relay_ends *ends)
{
    struct pollfd fds[COUNT];
    bool ended_here = false;

    r.ends = *ends;
    r.down = (struct flow){0};
    if (!ends->talk) /* with a talk, lines of the client that were not sent yet stay */
        r.up = (struct flow){0};
    r.is_shut = r.is_cut = r.mute = false;
    r.wrote_ms = clock_mono_ms();
    while (!r.down.finished || !is_empty(&r.down)) {
        size_t before = r.down.at;
        bool idle = is_empty(&r.down);
        wait_for_any(&r, fds);
        move(&r, fds);
        if (r.up.finished && (is_empty(&r.up) || r.is_cut) && !r.is_shut) {
            r.is_shut = true;
            (void)shutdown(ends->channel, SHUT_WR);
        }
        ended_here = ended_here || (r.up.finished && !r.down.finished);
        if (idle || r.down.at != before || !(r.is_shut || r.down.finished))
            r.wrote_ms = clock_mono_ms();
        else if (clock_mono_ms() >= r.wrote_ms + GIVE_UP_MS)
            break;
    }
    return ended_here ? RELAY_ENDED : RELAY_LOST;
}

bool relay_client_left(const struct relay_ends *ends)
{
    struct pollfd fds[] = {{.fd = ends->stop, .events = POLLIN}, {.fd = ends->in}};

    if (r.up.finished)
        return true;
    if (poll(fds, countof(fds), 0) <= 0)
        return false;
    /* A pipe without a writer may still hold lines; if it holds none, the client has left. */
    struct pollfd rest = {.fd = ends->in, .events = POLLIN};
    bool has_more = !is_empty(&r.up) || (poll(&rest, 1, 0) > 0 && rest.revents & POLLIN);
    return fds[0].revents || (fds[1].revents & (POLLHUP | POLLERR) && !has_more);
}

bool relay_drop_cut_line(const struct relay_ends *ends)
{
    int64_t until = clock_mono_ms() + GIVE_UP_MS;
    struct pollfd fds[2];

    while (ends->talk->up.is_mid_line) {
        if (is_empty(&r.up)) {
            int64_t left = until - clock_mono_ms();
            fds[0] = (struct pollfd){.fd = ends->in, .events = POLLIN};
            fds[1] = (struct pollfd){.fd = ends->stop, .events = POLLIN};
            if (left <= 0 || poll(fds, 2, (int)left) <= 0 || fds[1].revents)
                return false;
            fill(&r.up, ends->in);
            if (r.up.finished)
                return false;
        }
        struct str rest = str_n(r.up.bytes + r.up.at, r.up.n - r.up.at);
        size_t n = str_find(rest, '\n');
        n += n < rest.n;
        relay_talk_sent(ends->talk, str_n(rest.p, n));
        r.up.at += n;
    }
    return true;
}

bool relay_send(const struct relay_ends *ends, struct str text)
{
    while (text.n) {
        struct pollfd out = {.fd = ends->out, .events = POLLOUT};
        if (poll(&out, 1, GIVE_UP_MS) <= 0)
            return false;
        ssize_t n = write(ends->out, text.p, text.n < PIPE_BUF ? text.n : PIPE_BUF);
        if (n < 0 && !again())
            return false;
        if (n > 0)
            text = str_n(text.p + n, text.n - (size_t)n);
    }
    return true;
}
