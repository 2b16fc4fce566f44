/* SPDX-License-Identifier: Apache-2.0 */
/* "envFile" of a server: a file of variables in the format of editors and dotenv.
 *
 *   # a comment
 *   export TOKEN=abc        # the value ends before " #"
 *   TEXT="two\nlines"       # \n \r \t \" \\ \$ mean the same as in a shell
 *   PLAIN='$HOME \n'        # taken literally
 *
 * Variables inside of values are not expanded.  "env" overrides the file.  A missing or malformed
 * file is an error: a server without its keys would fail later with a less clear message. */
#include "config/config_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct lines {
    const struct js_binding *b;
    const struct js_node *at; /* value of the option, for error messages */
    const char *path;
    struct str rest;
    unsigned line;
    struct config_pair *pairs;
    size_t n;
};

static bool bad_line(const struct lines *l, unsigned line, const char *what, struct error *err)
{
    return js_bind_fault(l->b, l->at, err, "\"envFile\": %s:%u: %s", l->path, line, what);
}

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c <= ' ' || c >= 0x7f || strchr("=\"'`$\\", c))
            return false;
    }
    return name.n > 0;
}

/* Takes the rest of the current line, without the line ending. */
static struct str take_line(struct lines *l)
{
    struct str line = str_split(&l->rest, '\n');

    l->line++;
    return line.n && line.p[line.n - 1] == '\r' ? str_n(line.p, line.n - 1) : line;
}

static char unescaped(char c)
{
    return (char)(c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c);
}

/* Takes the quoted text at the start of l->rest.  It may span several lines. */
static bool take_quoted(struct lines *l, struct buf *out, struct error *err)
{
    char quote = l->rest.p[0];
    unsigned began = l->line;
    size_t i = 1;

    for (; i < l->rest.n && l->rest.p[i] != quote; i++) {
        bool escape = quote == '"' && l->rest.p[i] == '\\' && i + 1 < l->rest.n &&
                      strchr("nrt\"\\$", l->rest.p[i + 1]);
        l->line += l->rest.p[i] == '\n';
        buf_addc(out, escape ? unescaped(l->rest.p[++i]) : l->rest.p[i]);
    }
    if (i == l->rest.n)
        return bad_line(l, began, "this quote is not closed", err);
    l->rest = str_n(l->rest.p + i + 1, l->rest.n - i - 1);
    struct str behind = str_trim(take_line(l));
    return !behind.n || behind.p[0] == '#' ||
           bad_line(l, began, "there is text after the closing quote; remove it", err);
}

static void take_plain(struct lines *l, struct buf *out)
{
    struct str value = take_line(l);

    for (size_t i = 0; i + 1 < value.n; i++)
        if ((value.p[i] == ' ' || value.p[i] == '\t') && value.p[i + 1] == '#')
            value = str_n(value.p, i);
    if (value.n && value.p[0] == '#')
        value = str_n(value.p, 0);
    buf_addstr(out, str_trim(value));
}

/* l->rest begins with the variable's name. */
static bool take_pair(struct lines *l, struct error *err)
{
    size_t equals = str_find(l->rest, '='), end = str_find(l->rest, '\n');
    struct str name = str_trim(str_n(l->rest.p, equals < end ? equals : end));
    struct buf value;
    bool ok = true;

    if (equals > end || equals == l->rest.n)
        return bad_line(l, l->line, "this line is not NAME=VALUE", err);
    if (str_starts(name, STR("export ")))
        name = str_trim(str_n(name.p + 7, name.n - 7));
    if (!is_name(name))
        return bad_line(l, l->line, "this is not the name of a variable", err);
    if (l->n == CONFIG_PAIRS_MAX)
        return bad_line(l, l->line, "there are more variables than 256; take some out", err);
    l->rest = str_n(l->rest.p + equals + 1, l->rest.n - equals - 1);
    while (l->rest.n && (l->rest.p[0] == ' ' || l->rest.p[0] == '\t'))
        l->rest = str_n(l->rest.p + 1, l->rest.n - 1);
    buf_init_secret(&value, CONFIG_ENV_FILE_MAX + 1);
    if (l->rest.n && (l->rest.p[0] == '"' || l->rest.p[0] == '\''))
        ok = take_quoted(l, &value, err);
    else
        take_plain(l, &value);
    if (ok)
        l->pairs[l->n++] = (struct config_pair){.name = arena_dup(l->b->mem, name),
                                                .value = arena_dup(l->b->mem, buf_str(&value)),
                                                .is_from_file = true};
    buf_release(&value);
    return ok;
}

static bool take_all(struct lines *l, struct error *err)
{
    if (str_find(l->rest, '\0') != l->rest.n)
        return js_bind_fault(l->b, l->at, err, "\"envFile\": %s is not a text file", l->path);
    if (str_starts(l->rest, STR("\xef\xbb\xbf")))
        l->rest = str_n(l->rest.p + 3, l->rest.n - 3);
    while (l->rest.n) {
        char c = l->rest.p[0];
        if (c == '\n' || c == '#') {
            take_line(l);
        } else if (c == ' ' || c == '\t' || c == '\r') {
            l->rest = str_n(l->rest.p + 1, l->rest.n - 1);
        } else if (!take_pair(l, err)) {
            return false;
        }
    }
    return true;
}

/* Reads the whole file; reads one byte more than the maximum if the file is longer. */
static bool read_file(struct lines *l, struct buf *out, struct error *err)
{
    int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    ssize_t n = 1;

    if (fd < 0)
        return js_bind_fault(l->b, l->at, err,
                             "\"envFile\": cannot open %s: %s; make it, or take "
                             "the option out",
                             l->path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return js_bind_fault(l->b, l->at, err, "\"envFile\": %s is not a regular file", l->path);
    }
    while (n != 0 && out->n <= CONFIG_ENV_FILE_MAX) {
        size_t room = CONFIG_ENV_FILE_MAX + 1 - out->n;
        n = read(fd, buf_room(out, room), room);
        if (n > 0)
            buf_grown(out, (size_t)n);
        else if (n < 0 && errno != EINTR)
            break;
    }
    close(fd);
    if (n < 0)
        return js_bind_fault(l->b, l->at, err, "\"envFile\": cannot read %s", l->path);
    return out->n <= CONFIG_ENV_FILE_MAX ||
           js_bind_fault(l->b, l->at, err, "\"envFile\": %s is larger than %u KiB; shorten it",
                         l->path, CONFIG_ENV_FILE_MAX >> 10);
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct config_pair *)a)->name, ((const struct config_pair *)b)->name);
}

/* A later line overrides an earlier line of the same name.  "env" overrides both. */
static bool merge(struct lines *l, struct server_config *s, struct error *err)
{
    struct config_pair *all = arena_zalloc(l->b->mem, (s->n_env + l->n) * sizeof(*all));
    size_t n = s->n_env;

    if (n)
        memcpy(all, s->env, n * sizeof(*all));
    for (size_t i = 0; i < l->n; i++) {
        size_t k = 0;
        while (k < n && !str_eq(all[k].name, l->pairs[i].name))
            k++;
        if (k == n)
            all[n++] = l->pairs[i];
        else if (all[k].is_from_file)
            all[k] = l->pairs[i];
    }
    if (n > CONFIG_PAIRS_MAX)
        return js_bind_fault(l->b, l->at, err,
                             "\"env\" and \"envFile\" have %zu variables; at most %d are taken", n,
                             CONFIG_PAIRS_MAX);
    if (n > 1)
        qsort(all, n, sizeof(*all), by_name);
    s->env = all;
    s->n_env = n;
    return true;
}

bool env_file_read(const struct js_binding *b, const struct js_node *at, struct server_config *s,
                   struct error *err)
{
    struct lines l = {.b = b, .at = at, .line = 1};
    struct buf text;

    l.path = s->env_file.p;
    if (s->env_file.p[0] != '/' && b->file.p) {
        size_t slash = b->file.n;
        while (slash > 0 && b->file.p[slash - 1] != '/')
            slash--;
        l.path = arena_printf(b->mem, "%.*s%.*s", (int)slash, b->file.p, STR_ARG(s->env_file)).p;
    }
    l.pairs = arena_zalloc(b->mem, CONFIG_PAIRS_MAX * sizeof(*l.pairs));
    buf_init_secret(&text, CONFIG_ENV_FILE_MAX + 65536);
    bool ok = read_file(&l, &text, err);
    l.rest = buf_str(&text);
    ok = ok && take_all(&l, err) && merge(&l, s, err);
    buf_release(&text);
    return ok;
}
