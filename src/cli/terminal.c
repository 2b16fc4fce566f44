/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical mode and echo are off only while the program waits for a key, so that a process that is
 * killed at another time leaves a working terminal. */
#include "cli/terminal.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4000
#define TEXT_MAX (4u * 1024 * 1024)
#define ESCAPE_MS 50 /* the bytes of an arrow key arrive within this time */
#define EDITOR_ARGS 16

bool terminal_is_there(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static bool read_byte(unsigned char *ret)
{
    ssize_t n;

    do
        n = read(STDIN_FILENO, ret, 1);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

static bool follows(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&p, 1, ESCAPE_MS) > 0;
}

/* ESC [ A … D, or ESC O A … D. */
static int read_arrow(void)
{
    unsigned char bracket = 0, letter = 0;

    if (!follows() || !read_byte(&bracket) || (bracket != '[' && bracket != 'O') || !follows() ||
        !read_byte(&letter))
        return '\033';
    return letter == 'B' || letter == 'C'   ? KEY_NEXT
           : letter == 'A' || letter == 'D' ? KEY_PREVIOUS
                                            : '\033';
}

int terminal_key(struct str prompt)
{
    struct termios before, raw;
    unsigned char byte = 0;
    int key;

    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return KEY_END;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    fwrite(prompt.p, 1, prompt.n, stdout);
    fflush(stdout);
    if (!read_byte(&byte))
        key = KEY_END;
    else
        key = byte == '\033' ? read_arrow()
              : byte == 3    ? KEY_INTERRUPT
              : byte == 4    ? KEY_END
                             : byte;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return key;
}

struct str terminal_line(const char *prompt, struct arena *mem)
{
    char text[LINE_MAX_BYTES];
    unsigned char byte = 0;
    size_t n = 0;
    bool any = false;

    printf("%s", prompt);
    fflush(stdout);
    while (read_byte(&byte) && byte != '\n') {
        any = true;
        if (n < sizeof(text))
            text[n++] = (char)byte;
    }
    return any || byte == '\n' ? arena_dup(mem, str_n(text, n)) : STR_NONE;
}

/* The editor. */

static bool write_text(int fd, struct str text, struct error *err)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno != EINTR)
            return error_sys(err, ERR_INTERNAL, errno, "cannot write the file to edit");
        if (n > 0)
            text = str_n(text.p + n, text.n - (size_t)n);
    }
    return true;
}

static bool read_text(const char *path, struct arena *mem, struct str *ret, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char scratch[16384];
    struct buf text;
    bool ok = true;
    ssize_t n;

    if (fd < 0)
        return error_sys(err, ERR_CANCELLED, errno, "the edited file does not exist any more");
    buf_init(&text, TEXT_MAX);
    while (ok && (n = read(fd, scratch, sizeof(scratch))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            ok = error_sys(err, ERR_INTERNAL, errno, "the edited file cannot be read");
        else if (!buf_try_add(&text, scratch, (size_t)n))
            ok = error_set(err, ERR_BAD_INPUT, "the edited file is larger than 4 MiB; shorten it");
    }
    if (ok)
        *ret = arena_dup(mem, buf_str(&text));
    buf_release(&text);
    close(fd);
    return ok;
}

/* The editor's argv: $VISUAL or $EDITOR ("code --wait") split at blanks, then the file. */
static const char **editor_of(const char *file, struct arena *mem)
{
    const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");
    struct str rest = str_of(visual && *visual ? visual : editor && *editor ? editor : "vi");
    const char **argv = arena_zalloc(mem, (EDITOR_ARGS + 2) * sizeof(*argv));
    size_t n = 0;

    while (rest.p && n < EDITOR_ARGS) {
        struct str word = str_split(&rest, ' ');
        if (word.n)
            argv[n++] = arena_dup(mem, word).p;
    }
    argv[n] = file;
    return argv;
}

static bool run_editor(const char *file, struct arena *mem, struct error *err)
{
    const char **argv = editor_of(file, mem);
    int status = 0;

    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        return error_sys(err, ERR_INTERNAL, errno, "cannot start an editor");
    if (child == 0) {
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return error_set(err, ERR_CANCELLED,
                         "the editor %s cannot be started; set VISUAL or EDITOR", argv[0]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(err, ERR_CANCELLED, "the editor failed; nothing was changed");
    return true;
}

static bool ends_with_line(struct str text)
{
    return text.n && text.p[text.n - 1] == '\n';
}

bool terminal_edit(struct str text, struct arena *mem, struct str *ret, struct error *err)
{
    const char *dir = getenv("TMPDIR");
    struct str path = arena_printf(mem, "%s/holdfast-XXXXXX.md", dir && *dir ? dir : "/tmp");
    int fd = mkostemps((char *)path.p, 3, O_CLOEXEC);
    struct str fresh = STR_NONE;

    if (fd < 0)
        return error_sys(err, ERR_INTERNAL, errno, "cannot make a file to edit");
    bool ok = write_text(fd, text, err);
    close(fd);
    ok = ok && run_editor(path.p, mem, err) && read_text(path.p, mem, &fresh, err);
    unlink(path.p);
    if (!ok)
        return false;
    if (ends_with_line(fresh) && !ends_with_line(text))
        fresh.n--;
    *ret = fresh;
    return true;
}
