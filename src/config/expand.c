/* SPDX-License-Identifier: Apache-2.0 */
/* Expands variables in string values:
 *
 *   ${VAR}, ${env:VAR}          an environment variable
 *   ${VAR:-default}             the default is used when VAR is unset or empty
 *   ${workspaceFolder}          directory of the configuration; its parent when the directory is
 *                               .vscode, .cursor or the like
 *   ${workspaceFolderBasename}, ${userHome}, ${pathSeparator}, ${/}
 *                               predefined, as in editors
 *   ${credential:NAME}          content of a credential (credential.c)
 *   ${secret:NAME}, ${input:NAME}
 *                               stays as it is, until config_resolve() (secret.c)
 *   ${context:KEY}              stays a placeholder (context.c)
 *   $${                         a literal ${
 *
 * A reading for an edit leaves variables and credentials as they are written.
 *
 * Values are not expanded again, so a value cannot name another variable.  An unset variable is an
 * error: starting a server with half of its credentials is worse than not starting it. */
#include "config/config_impl.h"

#include "base/log.h"

#include <stdlib.h>

#define VARIABLE_MAX 128
#define CREDENTIAL_PREFIX "credential:"
#define CONTEXT_PREFIX "context:"

struct variable {
    struct str name;
    struct str fallback; /* absent: no default */
};

static bool is_variable_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.n > 0 && s.n <= VARIABLE_MAX;
}

/* `inside` is the text between the braces. */
static bool parse_variable(struct str inside, struct variable *ret)
{
    size_t name_end = 0;

    *ret = (struct variable){0};
    if (str_starts(inside, STR("env:")))
        inside = str_n(inside.p + 4, inside.n - 4);
    name_end = str_find(inside, ':');
    ret->name = str_n(inside.p, name_end);
    if (name_end < inside.n) {
        struct str rest = str_n(inside.p + name_end, inside.n - name_end);
        if (!str_starts(rest, STR(":-")))
            return false;
        ret->fallback = str_n(rest.p + 2, rest.n - 2);
    }
    return is_variable_name(ret->name);
}

static bool fault(const struct js_binding *b, const struct js_node *v, struct error *err,
                  const char *what, struct str about)
{
    struct str server = reading_of(b)->server;
    struct buf shown;

    buf_init(&shown, SIZE_MAX);
    log_escape(&shown, about, VARIABLE_MAX);
    if (server.p && reading_of(b)->is_outward)
        js_bind_fault(b, v, err, "\"%.*s\": %.*s %s", STR_ARG(server), STR_ARG(buf_str(&shown)),
                      what);
    else if (server.p)
        js_bind_fault(b, v, err, "server \"%.*s\": %.*s %s", STR_ARG(server),
                      STR_ARG(buf_str(&shown)), what);
    else
        js_bind_fault(b, v, err, "%.*s %s", STR_ARG(buf_str(&shown)), what);
    buf_release(&shown);
    return false;
}

static bool too_long(const struct js_binding *b, const struct js_node *v, struct error *err)
{
    return fault(b, v, err, "makes the value too long; set it to something shorter",
                 STR("a variable"));
}

static bool leave_unexpanded(const struct js_binding *b, const struct js_node *v, struct str text,
                             struct buf *out, struct error *err)
{
    reading_of(b)->unexpanded = v;
    return buf_try_add(out, text.p, text.n) || too_long(b, v, err);
}

/* `whole`: with the braces. */
static bool expand_credential(const struct js_binding *b, const struct js_node *v, struct str whole,
                              struct str name, struct buf *out, struct error *err)
{
    if (reading_of(b)->is_for_edit && credential_is_name(name))
        return leave_unexpanded(b, v, whole, out, err);
    const char *wrong = credential_add(name, out);

    return !wrong ||
           fault(b, v, err, wrong, arena_printf(b->mem, "the credential %.*s", STR_ARG(name)));
}

/* Subdirectories of a project where editors and agents store their configuration. */
static const char *const tool_dirs[] = {".vscode", ".cursor",   ".gemini", ".claude",
                                        ".kiro",   ".roo",      ".cline",  ".amp",
                                        ".codex",  ".windsurf", ".github"};

static struct str parent_of(struct str path)
{
    size_t n = path.n;

    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return str_n(path.p, n > 1 ? n - 1 : n);
}

static struct str base_of(struct str path)
{
    size_t n = path.n;

    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return str_n(path.p + n, path.n - n);
}

/* Absent when the text does not come from a file. */
static struct str workspace_folder(const struct js_binding *b)
{
    char *whole = b->file.p ? realpath(arena_dup(b->mem, b->file).p, NULL) : NULL;
    struct str dir = whole ? parent_of(str_of(arena_dup(b->mem, str_of(whole)).p)) : STR_NONE;

    free(whole);
    for (size_t i = 0; i < countof(tool_dirs); i++)
        if (str_eq(base_of(dir), str_of(tool_dirs[i])))
            return parent_of(dir);
    return dir;
}

/* Returns false when editors do not predefine this variable.  *ret absent: it has no value here. */
static bool predefined(const struct js_binding *b, struct str name, struct str *ret)
{
    if (str_eq(name, STR("workspaceFolder")))
        *ret = workspace_folder(b);
    else if (str_eq(name, STR("workspaceFolderBasename")))
        *ret = base_of(workspace_folder(b));
    else if (str_eq(name, STR("userHome")))
        *ret = str_of(getenv("HOME"));
    else if (str_eq(name, STR("pathSeparator")) || str_eq(name, STR("/")))
        *ret = STR("/");
    else
        return false;
    return true;
}

/* Prefixes of variables of other programs, and the advice for the error message. */
static const struct {
    const char *prefix, *words;
} foreign[] = {
    {"command:", "is a command of an editor; write its result, or ${env:NAME}"},
    {"config:", "is a setting of an editor; write its value, or ${env:NAME}"},
    {"workspaceFolder:", "names a folder of an editor; write its path"},
};

static const char *foreign_words(struct str inside)
{
    for (size_t i = 0; i < countof(foreign); i++)
        if (str_starts(inside, str_of(foreign[i].prefix)))
            return foreign[i].words;
    return "is not the name of an environment variable; write ${NAME} or ${NAME:-default}, or $${ "
           "for a plain ${";
}

/* Appends the value of the variable at the start of *rest and moves *rest past the variable. */
static bool expand_one(const struct js_binding *b, const struct js_node *v, struct str *rest,
                       struct buf *out, struct error *err)
{
    size_t end = str_find(*rest, '}');
    char name[VARIABLE_MAX + 1];
    struct variable var;
    struct str value;

    if (end == rest->n)
        return fault(b, v, err, "has no closing brace; write $${ for a plain ${", *rest);
    struct str inside = str_n(rest->p + 2, end - 2), whole = *rest;
    if (str_starts(inside, STR(CREDENTIAL_PREFIX))) {
        *rest = str_n(whole.p + end + 1, whole.n - end - 1);
        return expand_credential(b, v, str_n(whole.p, end + 1),
                                 str_n(inside.p + sizeof(CREDENTIAL_PREFIX) - 1,
                                       inside.n - (sizeof(CREDENTIAL_PREFIX) - 1)),
                                 out, err);
    }
    if (str_starts(inside, STR(CONTEXT_PREFIX))) {
        const char *wrong = context_placeholder_add(
            b, str_n(inside.p + sizeof(CONTEXT_PREFIX) - 1, inside.n - sizeof(CONTEXT_PREFIX) + 1),
            out->n);
        *rest = str_n(whole.p + end + 1, whole.n - end - 1);
        return !wrong || fault(b, v, err, wrong, str_n(whole.p, end + 1));
    }
    if (secret_is_reference(inside)) {
        const char *wrong = secret_note(b, v, inside);
        *rest = str_n(whole.p + end + 1, whole.n - end - 1);
        if (wrong)
            return fault(b, v, err, wrong, str_n(whole.p, end + 1));
        return buf_try_add(out, whole.p, end + 1) || too_long(b, v, err);
    }
    if (predefined(b, inside, &value)) {
        *rest = str_n(whole.p + end + 1, whole.n - end - 1);
        if (!value.p)
            return fault(b, v, err, "has no value in Holdfast; write the path",
                         str_n(whole.p, end + 1));
        return buf_try_add(out, value.p, value.n) || too_long(b, v, err);
    }
    if (!parse_variable(inside, &var))
        return fault(b, v, err, foreign_words(inside), str_n(rest->p, end + 1));
    if (reading_of(b)->is_for_edit) {
        *rest = str_n(whole.p + end + 1, whole.n - end - 1);
        return leave_unexpanded(b, v, str_n(whole.p, end + 1), out, err);
    }
    memcpy(name, var.name.p, var.name.n);
    name[var.name.n] = '\0';
    value = str_of(getenv(name));
    if (var.fallback.p && value.n == 0)
        value = var.fallback;
    if (!value.p)
        return fault(b, v, err, "is not set in the environment; set it, or write ${NAME:-default}",
                     var.name);
    *rest = str_n(rest->p + end + 1, rest->n - end - 1);
    return buf_try_add(out, value.p, value.n) || too_long(b, v, err);
}

static bool expand_all(const struct js_binding *b, const struct js_node *v, struct str rest,
                       struct buf *out, struct error *err)
{
    while (rest.n > 0) {
        size_t skip = 1;
        if (str_starts(rest, STR("${"))) {
            if (!expand_one(b, v, &rest, out, err))
                return false;
            continue;
        }
        if (str_starts(rest, STR("$${")))
            rest = str_n(rest.p + 1, rest.n - 1), skip = 2;
        if (!buf_try_add(out, rest.p, skip))
            return too_long(b, v, err);
        rest = str_n(rest.p + skip, rest.n - skip);
    }
    return true;
}

bool expand_text(const struct js_binding *b, const struct js_node *v, struct str *text,
                 struct error *err)
{
    struct reading *r = reading_of(b);
    struct buf out;
    bool ok;

    if (!memmem(text->p, text->n, "${", 2))
        return true;
    buf_init_secret(&out, CONFIG_EXPANDED_ONE_MAX);
    ok = expand_all(b, v, *text, &out, err);
    r->expanded += out.n;
    if (ok && r->expanded > CONFIG_EXPANDED_ALL_MAX)
        ok = too_long(b, v, err);
    if (ok)
        *text = arena_dup(b->mem, buf_str(&out));
    buf_release(&out);
    return ok;
}
