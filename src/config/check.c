/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the programs, working directories and folders of documents that a configuration names.
 * Parsing does not check them, because a configuration is also parsed on machines where Holdfast
 * does not run.  `holdfast config check` and the start of Holdfast do. */
#include "config/config_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM_MAX 4096
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin" /* the search path of a child without a PATH */
#define WORDS_SHOWN 16

struct findings {
    struct arena *mem;
    struct config_finding *list;
    size_t n, room;
};

static void add(struct findings *f, bool is_error, struct str at, struct str text)
{
    if (f->n == f->room) {
        size_t room = f->room ? 2 * f->room : 16;
        struct config_finding *list = arena_zalloc(f->mem, room * sizeof(*list));
        if (f->n)
            memcpy(list, f->list, f->n * sizeof(*list));
        f->list = list;
        f->room = room;
    }
    f->list[f->n++] = (struct config_finding){
        is_error, at.p ? arena_printf(f->mem, "%.*s: %.*s", STR_ARG(at), STR_ARG(text)) : text};
}

/* NULL when `path` is a directory that can be accessed with `mode`; otherwise the reason. */
static const char *directory_complaint(const char *path, int mode)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return strerror(errno);
    if (!S_ISDIR(st.st_mode))
        return strerror(ENOTDIR);
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0 ? NULL : strerror(errno);
}

static bool is_program(const char *file)
{
    struct stat st;

    return stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
           faccessat(AT_FDCWD, file, X_OK, AT_EACCESS) == 0;
}

/* The PATH of the server's process; absent when it depends on the context of a session. */
static struct str path_of(const struct server_config *s)
{
    const char *ours = getenv("PATH");

    for (size_t i = 0; i < s->n_env; i++)
        if (str_eq(s->env[i].name, STR("PATH")))
            return s->env[i].n_placeholders ? STR_NONE : s->env[i].value;
    return str_of(ours ? ours : PATH_DEFAULT);
}

/* Searches as the child does: an empty element does not mean the current directory. */
static bool is_in_path(struct str command, struct str path)
{
    char file[PROGRAM_MAX];

    while (path.n) {
        struct str dir = str_split(&path, ':');
        int n = snprintf(file, sizeof(file), "%.*s/%.*s", STR_ARG(dir), STR_ARG(command));
        if (dir.n && n < (int)sizeof(file) && is_program(file))
            return true;
    }
    return false;
}

/* A relative command that contains a slash is resolved from the server's working directory. */
static bool is_found(const struct server_config *s, struct str path)
{
    char file[PROGRAM_MAX];
    bool from_cwd = s->cwd.n && s->command.p[0] != '/';
    int n;

    if (str_find(s->command, '/') == s->command.n)
        return is_in_path(s->command, path);
    n = snprintf(file, sizeof(file), "%.*s%s%.*s", from_cwd ? (int)s->cwd.n : 0,
                 from_cwd ? s->cwd.p : "", from_cwd ? "/" : "", STR_ARG(s->command));
    return n < (int)sizeof(file) && is_program(file);
}

/* Turns "npx -y foo" into "command" and "args", for the error message. */
static struct str as_args(struct str line, struct arena *mem)
{
    struct str rest = str_trim(line), first = str_split(&rest, ' ');
    const char *before = "";
    struct buf out;

    buf_init(&out, SIZE_MAX);
    buf_addf(&out, "\"command\": \"%.*s\", \"args\": [", STR_ARG(first));
    for (int i = 0; rest.n && i < WORDS_SHOWN; i++) {
        struct str word = str_split(&rest, ' ');
        if (!word.n)
            continue;
        buf_addf(&out, "%s\"%.*s\"", before, STR_ARG(word));
        before = ", ";
    }
    buf_addz(&out, rest.n ? ", …]" : "]");
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

static void check_command(struct findings *f, const struct server_config *s)
{
    struct str path = path_of(s);

    if (!path.p || is_found(s, path))
        return;
    if (str_find(str_trim(s->command), ' ') < str_trim(s->command).n)
        add(f, true, s->command_at,
            arena_printf(f->mem,
                         "server \"%.*s\": there is no program \"%.*s\"; no shell splits a "
                         "command, so write %.*s",
                         STR_ARG(s->name), STR_ARG(s->command),
                         STR_ARG(as_args(s->command, f->mem))));
    else if (str_find(s->command, '/') < s->command.n)
        add(f, true, s->command_at,
            arena_printf(f->mem,
                         "server \"%.*s\": there is no program %.*s, or it may not be run; correct "
                         "\"command\"",
                         STR_ARG(s->name), STR_ARG(s->command)));
    else
        add(f, false, s->command_at,
            arena_printf(f->mem,
                         "server \"%.*s\": %.*s is not in PATH (%.*s); install it, or give its "
                         "whole path in \"command\"",
                         STR_ARG(s->name), STR_ARG(s->command), STR_ARG(path)));
}

static void check_server(struct findings *f, const struct server_config *s)
{
    const char *wrong = s->cwd.n ? directory_complaint(s->cwd.p, X_OK) : NULL;

    if (s->kind != SERVER_STDIO)
        return;
    if (wrong)
        add(f, true, s->cwd_at,
            arena_printf(f->mem,
                         "server \"%.*s\": it cannot start in %.*s: %s; make the directory, or "
                         "correct \"cwd\"",
                         STR_ARG(s->name), STR_ARG(s->cwd), wrong));
    if (!wrong || s->command.p[0] == '/' || str_find(s->command, '/') == s->command.n)
        check_command(f, s);
}

static void check_folder(struct findings *f, const struct folder_config *d)
{
    const char *wrong = directory_complaint(d->path.p, R_OK | X_OK);

    if (wrong)
        add(f, true, d->at,
            arena_printf(f->mem,
                         "the folder \"%.*s\" of documents, %.*s, cannot be read: %s; make it, or "
                         "correct \"path\"",
                         STR_ARG(d->name), STR_ARG(d->path), wrong));
}

size_t config_check_machine(const struct config *c, bool with_folders, struct arena *mem,
                            struct config_finding **ret)
{
    struct findings f = {.mem = mem};

    for (size_t i = 0; i < c->n_servers; i++)
        check_server(&f, &c->servers[i]);
    for (size_t i = 0; with_folders && i < c->n_folders; i++)
        check_folder(&f, &c->folders[i]);
    *ret = f.list;
    return f.n;
}
