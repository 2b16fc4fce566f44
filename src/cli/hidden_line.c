/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal is not in canonical mode, because that mode cuts a line at 4,095 bytes.  So this file
 * does the editing of the line.  Signals are blocked and read from a descriptor while echo is off. */
#include "cli/hidden_line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int caught_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

enum answer { ANSWER_BYTE, ANSWER_END, ANSWER_AGAIN, ANSWER_FAILED };

static void say(int tty, struct str text)
{
    if (write(tty, text.p, text.n) < 0)
        return; /* a prompt that cannot be written is left out */
}

bool hidden_line_open(struct hidden_line *ret, struct error *err)
{
    struct hidden_line h = {.tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};

    if (h.tty < 0 || tcgetattr(h.tty, &h.before) != 0) {
        if (h.tty >= 0)
            close(h.tty);
        return error_set(err, ERR_BAD_INPUT, "there is no terminal to ask on");
    }
    sigemptyset(&h.caught);
    for (size_t i = 0; i < countof(caught_signals); i++)
        sigaddset(&h.caught, caught_signals[i]);
    h.signals = signalfd(-1, &h.caught, SFD_CLOEXEC | SFD_NONBLOCK);
    if (h.signals < 0) {
        error_sys(err, ERR_BAD_INPUT, errno, "the terminal cannot be set up");
        close(h.tty);
        return false;
    }
    sigprocmask(SIG_BLOCK, &h.caught, &h.mask_before);
    h.quiet = h.before;
    h.quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
    h.quiet.c_cc[VMIN] = 1;
    h.quiet.c_cc[VTIME] = 0;
    tcsetattr(h.tty, TCSAFLUSH, &h.quiet);
    *ret = h;
    return true;
}

void hidden_line_close(struct hidden_line *h)
{
    tcsetattr(h->tty, TCSAFLUSH, &h->before);
    sigprocmask(SIG_SETMASK, &h->mask_before, NULL);
    close(h->signals);
    close(h->tty);
}

/* Lets the signal take effect with the terminal as it was.  Returns if it did not end the process:
 * it was ignored, or the process was stopped and goes on. */
static void pass_on(struct hidden_line *h, int signum)
{
    sigset_t one;

    tcsetattr(h->tty, TCSADRAIN, &h->before);
    say(h->tty, STR("\n"));
    sigemptyset(&one);
    sigaddset(&one, signum);
    raise(signum);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    sigprocmask(SIG_BLOCK, &one, NULL);
    tcsetattr(h->tty, TCSAFLUSH, &h->quiet);
}

/* ANSWER_AGAIN: a signal interrupted the line. */
static enum answer read_byte(struct hidden_line *h, char *ret)
{
    struct pollfd polled[] = {{.fd = h->tty, .events = POLLIN},
                              {.fd = h->signals, .events = POLLIN}};
    struct signalfd_siginfo info;

    for (;;) {
        if (poll(polled, countof(polled), -1) < 0 && errno != EINTR)
            return ANSWER_FAILED;
        if (read(h->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
            pass_on(h, (int)info.ssi_signo);
            return ANSWER_AGAIN;
        }
        if (!polled[0].revents)
            continue;
        ssize_t n = read(h->tty, ret, 1);
        if (n < 0 && errno == EINTR)
            continue;
        return n == 1 ? ANSWER_BYTE : n == 0 ? ANSWER_END : ANSWER_FAILED;
    }
}

static bool is_key(const struct hidden_line *h, char byte, int which)
{
    cc_t key = h->before.c_cc[which];

    return key != _POSIX_VDISABLE && (cc_t)byte == key;
}

static void cut(struct buf *out, size_t n)
{
    if (out->n > n) {
        explicit_bzero(out->p + n, out->n - n);
        out->n = n;
    }
}

/* Removes the last character, which may have several bytes of UTF-8. */
static void erase(struct buf *out, size_t start)
{
    size_t n = out->n;

    while (n > start + 1 && ((unsigned char)out->p[n - 1] & 0xc0) == 0x80)
        n--;
    if (n > start)
        cut(out, n - 1);
}

bool hidden_line_ask(struct hidden_line *h, struct str prompt, struct buf *out, struct error *err)
{
    size_t start = out->n;
    bool fits = true;
    char byte = 0;

    say(h->tty, prompt);
    for (;;) {
        enum answer answer = read_byte(h, &byte);
        if (answer == ANSWER_FAILED)
            return error_sys(err, ERR_BAD_INPUT, errno, "the terminal cannot be read");
        if (answer == ANSWER_AGAIN) {
            cut(out, start);
            fits = true;
            say(h->tty, prompt);
        } else if (answer == ANSWER_END || byte == '\n' || is_key(h, byte, VEOF)) {
            break;
        } else if (is_key(h, byte, VERASE)) {
            erase(out, start);
        } else if (is_key(h, byte, VKILL) || is_key(h, byte, VWERASE)) {
            cut(out, start);
            fits = true;
        } else if (fits) {
            fits =
                buf_try_add(out, &byte, 1); /* to the end of the line, which is not ours to leave */
        }
    }
    say(h->tty, STR("\n"));
    return fits || error_set(err, ERR_TOO_LARGE, "the line is too long; shorten it");
}
