/* SPDX-License-Identifier: Apache-2.0 */
/* Asks on the terminal without showing the answers, or reads a file. */
#include "cli/password.h"

#include "base/buf.h"
#include "cli/hidden_line.h"
#include "crypto/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
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

static bool ask_once(struct hidden_line *line, const char *prompt, struct password_text *ret,
                     struct error *err)
{
    struct buf text;

    buf_init_secret(&text, sizeof(ret->text));
    bool ok = hidden_line_ask(line, str_of(prompt), &text, err);
    if (!ok && err->code == ERR_TOO_LARGE)
        error_set(err, ERR_BAD_INPUT, "a password has at most %d bytes", PASSWORD_MAX);
    else if (ok && !text.n)
        ok = error_set(err, ERR_BAD_INPUT, "the password is empty; give one");
    ret->n = ok ? text.n : 0;
    if (ok)
        memcpy(ret->text, text.p, text.n);
    buf_release(&text);
    return ok;
}

static bool ask_twice(struct password_text *ret, struct error *err)
{
    struct password_text again = {.n = 0};
    struct hidden_line line;

    if (!hidden_line_open(&line, err))
        return error_set(err, ERR_BAD_INPUT, "there is no terminal to ask on; use --password-file");
    bool ok =
        ask_once(&line, "Password: ", ret, err) && ask_once(&line, "Once more: ", &again, err);
    hidden_line_close(&line);
    if (ok && (again.n != ret->n || memcmp(again.text, ret->text, ret->n) != 0))
        ok = error_set(err, ERR_BAD_INPUT, "the two passwords differ; try again");
    crypto_wipe(&again, sizeof(again));
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
    return ask_twice(ret, err);
}
