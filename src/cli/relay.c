/* SPDX-License-Identifier: Apache-2.0 */
/* One loop of poll(2), directions that never wait for each other:
 *
 *   in ──up──> channel        channel ──down──> out        and beside them: logs ──> err
 *
 * Each direction holds at most one buffer, and reads only when it is empty: whoever does not read
 * is felt at the other end.  The descriptors of the client are shared with whoever started us, so
 * their flags stay as they are: they are read and written only when poll says so, and written in
 * pieces that then fit whatever they are (a pipe takes PIPE_BUF bytes). */
#include "cli/relay.h"

#include "base/clock.h"

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
    bool told;        /* the channel knows that our side has ended */
    bool mute;        /* nobody reads `out` any more */
    int64_t wrote_ms; /* when `out` last took something, or had nothing to take */
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

/* false: it will never take more. */
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

/* Beside the messages: what a gateway of ours says.  Whoever does not read it makes it drop lines.
 */
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
        words.finished = false; /* for the next one's */
}

enum { IN, STOP, CHANNEL, OUT, LOGS, ERR, COUNT };

static void wait_for_any(struct relay *r, struct pollfd fds[COUNT])
{
    bool reads_in = !r->up.finished && is_empty(&r->up);
    bool reads_channel = !r->down.finished && is_empty(&r->down);
    bool patient = is_empty(&r->down) || !(r->told || r->down.finished);
    int64_t left = r->wrote_ms + GIVE_UP_MS - clock_mono_ms();

    fds[IN] = (struct pollfd){.fd = reads_in ? r->ends.in : -1, .events = POLLIN};
    fds[STOP] = (struct pollfd){.fd = r->up.finished ? -1 : r->ends.stop, .events = POLLIN};
    fds[CHANNEL].fd = reads_channel || !is_empty(&r->up) ? r->ends.channel : -1;
    fds[CHANNEL].events = (short)((reads_channel ? POLLIN : 0) | (is_empty(&r->up) ? 0 : POLLOUT));
    fds[OUT] = (struct pollfd){.fd = is_empty(&r->down) ? -1 : r->ends.out, .events = POLLOUT};
    watch_words(&fds[LOGS], r->ends.logs, r->ends.err);
    fds[CHANNEL].revents = 0;
    if (poll(fds, COUNT, patient ? -1 : left > 0 ? (int)left : 0) < 0)
        for (int i = 0; i < COUNT; i++)
            fds[i].revents = 0;
}

static void move(struct relay *r, const struct pollfd fds[COUNT])
{
    if (fds[IN].revents)
        fill(&r->up, r->ends.in);
    if (fds[STOP].revents)
        r->up.finished = true;
    if (fds[CHANNEL].revents && !is_empty(&r->up) && !drain(&r->up, r->ends.channel, BUFFER))
        discard(&r->up); /* it has ended: what it said before is still read */
    if (fds[CHANNEL].revents & (POLLIN | POLLHUP | POLLERR) && is_empty(&r->down) &&
        !r->down.finished)
        fill(&r->down, r->ends.channel);
    if (fds[OUT].revents && !is_empty(&r->down) && !drain(&r->down, r->ends.out, PIPE_BUF))
        r->mute = true;
    move_words(&fds[LOGS], r->ends.logs, r->ends.err);
    if (r->mute) { /* no client: as if it had said all it had to say */
        discard(&r->down);
        r->up.finished = true;
    }
}

enum relay_end relay_run(const struct relay_ends *ends)
{
    static struct relay r; /* large, and there is one client */
    struct pollfd fds[COUNT];
    bool ended_here = false;

    r = (struct relay){.ends = *ends, .wrote_ms = clock_mono_ms()};
    while (!r.down.finished || !is_empty(&r.down)) {
        size_t before = r.down.at;
        bool idle = is_empty(&r.down);
        wait_for_any(&r, fds);
        move(&r, fds);
        if (r.up.finished && is_empty(&r.up) && !r.told) {
            r.told = true;
            (void)shutdown(ends->channel, SHUT_WR);
        }
        ended_here = ended_here || (r.up.finished && !r.down.finished);
        if (idle || r.down.at != before || !(r.told || r.down.finished))
            r.wrote_ms = clock_mono_ms();
        else if (clock_mono_ms() >= r.wrote_ms + GIVE_UP_MS)
            break;
    }
    return ended_here ? RELAY_ENDED : RELAY_LOST;
}
