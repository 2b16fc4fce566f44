/* SPDX-License-Identifier: Apache-2.0 */
/* Asks on /dev/tty with echo off, and restores the terminal afterwards. */
#include "cli/password.h"

#include "crypto/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Reads one line without its end, byte by byte, so that no byte after the line is taken. */
static bool read_line(int fd, struct password_text *ret, struct error *err)
{
    ret->n = 0;
    for (;;) {
        char byte;
        ssize_t got = read(fd, &byte, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_sys(err, ERR_BAD_INPUT, errno, "the password cannot be read");
        if (got == 0 || byte == '\n')
            break;
        if (ret->n == sizeof(ret->text))
            return error_set(err, ERR_BAD_INPUT, "a password has at most %d bytes", PASSWORD_MAX);
        ret->text[ret->n++] = byte;
    }
    if (ret->n && ret->text[ret->n - 1] == '\r')
        ret->n--;
    return ret->n || error_set(err, ERR_BAD_INPUT, "the password is empty; give one");
}

static void say(int tty, const char *text)
{
    if (write(tty, text, strlen(text)) < 0)
        return; /* a prompt that cannot be written is left out */
}

static bool ask_twice(int tty, struct password_text *ret, struct error *err)
{
    struct password_text again;

    say(tty, "Password: ");
    if (!read_line(tty, ret, err))
        return false;
    say(tty, "\nOnce more: ");
    bool ok = read_line(tty, &again, err);
    say(tty, "\n");
    if (ok && (again.n != ret->n || memcmp(again.text, ret->text, ret->n) != 0))
        ok = error_set(err, ERR_BAD_INPUT, "the two passwords differ; try again");
    crypto_wipe(&again, sizeof(again));
    return ok;
}

static bool ask_terminal(int tty, struct password_text *ret, struct error *err)
{
    struct termios before, quiet;

    if (tcgetattr(tty, &before) != 0)
        return error_sys(err, ERR_BAD_INPUT, errno, "the terminal cannot be set up");
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    if (tcsetattr(tty, TCSAFLUSH, &quiet) != 0)
        return error_sys(err, ERR_BAD_INPUT, errno, "the terminal cannot be set up");
    bool ok = ask_twice(tty, ret, err);
    tcsetattr(tty, TCSAFLUSH, &before);
    return ok;
}

static bool read_file(const char *file, struct password_text *ret, struct error *err)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return error_sys(err, ERR_BAD_INPUT, errno, "%s cannot be opened", file);
    bool ok = read_line(fd, ret, err);
    close(fd);
    return ok;
}

bool password_read(const char *file, struct password_text *ret, struct error *err)
{
    if (file && strcmp(file, "-") != 0)
        return read_file(file, ret, err);
    if (file || !isatty(STDIN_FILENO))
        return read_line(STDIN_FILENO, ret, err);
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (tty < 0)
        return error_sys(err, ERR_BAD_INPUT, errno,
                         "there is no terminal to ask on; use --password-file");
    bool ok = ask_terminal(tty, ret, err);
    close(tty);
    return ok;
}
