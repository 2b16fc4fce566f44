/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites the entry of a server member by member; members that it does not know keep their bytes. */
#include "cli/add_entry.h"

#include "audit/redact.h"
#include "base/buf.h"
#include "config/config.h"
#include "json/read.h"
#include "json/write.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRETS_MAX 64
#define SECRET_KEY_MAX 120 /* bytes; the whole name has to fit CONFIG_SECRET_NAME_MAX */

static bool parse(struct str entry, struct arena *mem, struct js_doc *ret, struct error *err)
{
    if (js_parse(entry, &js_limits_request, mem, ret, NULL) && js_type_is(js_root(ret), JS_OBJECT))
        return true;
    return error_set(err, ERR_BAD_INPUT,
                     "the entry of a server is a JSON object with \"command\" or \"url\"");
}

static struct str finish(struct buf *out, struct arena *mem)
{
    struct str text = arena_dup(mem, buf_str(out));

    buf_release(out);
    return text;
}

/* The program. */

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The first program of this name in a list of directories; absent: there is none. */
static struct str find_program(struct str name, struct str path_env, struct arena *mem)
{
    while (path_env.n) {
        struct str dir = str_split(&path_env, ':');
        if (dir.n == 0 || dir.p[0] != '/')
            continue; /* a relative directory means another place elsewhere */
        struct str whole = arena_printf(mem, "%.*s/%.*s", STR_ARG(dir), STR_ARG(name));
        if (is_program(whole.p))
            return whole;
    }
    return STR_NONE;
}

static bool locate(struct str command, struct str path_env, struct arena *mem, struct str *ret,
                   struct error *err)
{
    char whole[PATH_MAX];

    if (str_find(command, '/') == command.n) {
        *ret = find_program(command, path_env, mem);
        return ret->p || error_set(err, ERR_BAD_INPUT,
                                   "there is no program \"%.*s\" in PATH; install it, or give its "
                                   "whole path",
                                   STR_ARG(command));
    }
    struct str path = command;
    if (str_starts(path, STR("~/")) && getenv("HOME"))
        path = arena_printf(mem, "%s%.*s", getenv("HOME"), (int)path.n - 1, path.p + 1);
    /* Not realpath() alone: the name of a link tells programs such as busybox what to do. */
    if (path.n && path.p[0] != '/' && getcwd(whole, sizeof(whole)))
        path = arena_printf(mem, "%s/%.*s", whole, STR_ARG(path));
    *ret = arena_dup(mem, path);
    return is_program(ret->p) || error_set(err, ERR_BAD_INPUT,
                                           "%.*s is not a program that can be started; check the "
                                           "path and its mode",
                                           STR_ARG(path));
}

static void write_env_with_path(struct js_writer *w, const struct js_doc *doc,
                                const struct js_node *env, struct str path_env)
{
    js_object(w);
    if (!js_get(doc, env, STR("PATH")))
        js_kv_string(w, "PATH", path_env);
    for (const struct js_node *k = env ? js_first(doc, env) : NULL; k;
         k = js_next(doc, env, js_value_of(k))) {
        js_key(w, js_text(doc, k, NULL));
        js_raw_value(w, js_raw(doc, js_value_of(k)));
    }
    js_object_end(w);
}

bool add_entry_locate(struct str entry, struct str path_env, struct arena *mem, struct str *ret,
                      struct str *ret_program, struct error *err)
{
    struct js_doc doc;
    struct js_writer w;
    struct buf out;
    bool has_env = false;

    if (!parse(entry, mem, &doc, err))
        return false;
    const struct js_node *root = js_root(&doc);
    struct str command = js_text(&doc, js_get(&doc, root, STR("command")), mem);
    *ret = entry;
    *ret_program = STR_NONE;
    if (!command.p || memmem(command.p, command.n, "${", 2))
        return true;
    if (!locate(command, path_env, mem, ret_program, err))
        return false;
    buf_init_secret(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    for (const struct js_node *k = js_first(&doc, root); k;
         k = js_next(&doc, root, js_value_of(k))) {
        const struct js_node *v = js_value_of(k);
        js_key(&w, js_text(&doc, k, mem));
        if (js_is(&doc, k, STR("command"))) {
            js_string(&w, *ret_program);
        } else if (js_is(&doc, k, STR("env")) && js_type_is(v, JS_OBJECT)) {
            write_env_with_path(&w, &doc, v, path_env);
            has_env = true;
        } else {
            js_raw_value(&w, js_raw(&doc, v));
        }
    }
    if (!has_env && !js_get(&doc, root, STR("env"))) {
        js_key(&w, STR("env"));
        write_env_with_path(&w, &doc, NULL, path_env);
    }
    js_object_end(&w);
    *ret = finish(&out, mem);
    return true;
}

/* Secrets. */

struct sealing {
    struct arena *mem;
    struct str server;
    const struct js_doc *doc;
    struct js_writer *w;
    struct add_secret *secrets;
    size_t n;
    bool has_too_many;
};

static bool is_reference(struct str value)
{
    return memmem(value.p, value.n, "${", 2) != NULL;
}

static bool has_token_shape(struct str value)
{
    struct buf out;

    buf_init_secret(&out, SIZE_MAX / 4);
    bool found = redact_unnamed(value, true, &out);
    buf_release(&out);
    return found;
}

/* A token, or a value behind a name that means a secret: JSON, the query of a URL. */
static bool has_secret_inside(struct str text)
{
    struct buf out;

    buf_init_secret(&out, SIZE_MAX / 4);
    bool found = redact_line(NULL, text, &out);
    buf_release(&out);
    return found;
}

static bool looks_secret(struct str name, struct str value)
{
    return value.n && !is_reference(value) && (credential_is_named(name) || has_token_shape(value));
}

/* Letters, digits and _ . - in a row.  Other text may be a secret, so no name is made from it. */
static bool is_identifier(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool is_plain = ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9');
        if (!is_plain && !strchr("_.-", c))
            return false;
    }
    return text.n > 0 && text.n <= SECRET_KEY_MAX && !has_token_shape(text);
}

/* "SERVER.KEY", with a number behind it if the name is taken by another value. */
static struct str secret_name(const struct sealing *s, struct str key, int number)
{
    if (!is_identifier(key))
        key = STR("value");
    return number > 1
               ? arena_printf(s->mem, "%.*s.%.*s.%d", STR_ARG(s->server), STR_ARG(key), number)
               : arena_printf(s->mem, "%.*s.%.*s", STR_ARG(s->server), STR_ARG(key));
}

static bool is_taken(const struct sealing *s, struct str name, struct str value)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->secrets[i].name, name) && !str_eq(s->secrets[i].value, value))
            return true;
    return false;
}

/* The name under which the value is stored. */
static struct str keep_secret(struct sealing *s, struct str key, struct str value)
{
    int number = 1;
    struct str name = secret_name(s, key, number);

    while (is_taken(s, name, value))
        name = secret_name(s, key, ++number);
    if (s->n == SECRETS_MAX)
        s->has_too_many = true;
    else
        s->secrets[s->n++] = (struct add_secret){name, arena_dup(s->mem, value)};
    return name;
}

/* Writes prefix${secret:NAME}. */
static void write_reference(struct sealing *s, struct str prefix, struct str key, struct str value)
{
    struct str name = keep_secret(s, key, value);

    js_string(s->w, arena_printf(s->mem, "%.*s${secret:%.*s}", STR_ARG(prefix), STR_ARG(name)));
}

/* The length of "Bearer ", "Basic " and the like, which is no secret. */
static size_t scheme_length(struct str value)
{
    size_t space = str_find(value, ' ');

    for (size_t i = 0; i < space; i++)
        if (!((value.p[i] | 32) >= 'a' && (value.p[i] | 32) <= 'z'))
            return 0;
    return space < value.n && space <= 16 ? space + 1 : 0;
}

static void seal_pairs(struct sealing *s, const struct js_node *pairs, bool are_headers)
{
    const struct js_doc *doc = s->doc;

    js_object(s->w);
    for (const struct js_node *k = js_first(doc, pairs); k;
         k = js_next(doc, pairs, js_value_of(k))) {
        struct str name = js_text(doc, k, s->mem), value = js_text(doc, js_value_of(k), s->mem);
        js_key(s->w, name);
        if (!value.p || !looks_secret(name, value)) {
            js_raw_value(s->w, js_raw(doc, js_value_of(k)));
            continue;
        }
        size_t scheme = are_headers ? scheme_length(value) : 0;
        write_reference(s, str_n(value.p, scheme), name, str_n(value.p + scheme, value.n - scheme));
    }
    js_object_end(s->w);
}

/* "--api-key" gives "api-key". */
static struct str without_dashes(struct str arg)
{
    while (arg.n && arg.p[0] == '-')
        arg = str_n(arg.p + 1, arg.n - 1);
    return arg;
}

/* A flag whose value is a header: curl, mcp-remote and others. */
static bool is_header_flag(struct str arg)
{
    return str_eq(arg, STR("-H")) || str_eq(arg, STR("--header")) || str_eq(arg, STR("--headers"));
}

static struct str behind(struct str text, size_t n)
{
    return str_n(text.p + n, text.n - n);
}

/* "NAME: VALUE" from byte `at` of the argument; without `is_surely_header` the blank is required,
 * because a:b is often a port or a path.  false: it is no header with a secret. */
static bool seal_header(struct sealing *s, struct str arg, size_t at, bool is_surely_header)
{
    struct str header = behind(arg, at);
    size_t colon = str_find(header, ':'), start = colon + 1;
    struct str name = str_n(header.p, colon);

    while (start < header.n && header.p[start] == ' ')
        start++;
    if (colon == header.n || !is_identifier(name) || (!is_surely_header && start == colon + 1))
        return false;
    struct str value = behind(header, start);
    if (!looks_secret(name, value))
        return false;
    start += scheme_length(value);
    write_reference(s, str_n(arg.p, at + start), name, behind(header, start));
    return true;
}

/* "--NAME=VALUE" and "NAME=VALUE" from byte `at` of the argument.  VALUE may be a header or another
 * assignment (--env=NAME=VALUE).  false: the argument has another form, or no secret.  The = that
 * ends base64 is no such form. */
static bool seal_assignment(struct sealing *s, struct str arg, size_t at)
{
    size_t equals = at + str_find(behind(arg, at), '=');
    struct str flag = str_n(arg.p + at, equals - at), name = without_dashes(flag);

    if (equals == arg.n || !is_identifier(name))
        return false;
    struct str value = behind(arg, equals + 1);
    if (!value.n || value.p[0] == '=')
        return false;
    if (seal_header(s, arg, equals + 1, is_header_flag(flag)))
        return true;
    if (!looks_secret(name, value))
        return seal_assignment(s, arg, equals + 1);
    write_reference(s, str_n(arg.p, equals + 1), name, value);
    return true;
}

/* `before` is the argument in front of this one, if that is a flag without a value; else absent. */
static bool seal_arg(struct sealing *s, struct str arg, struct str before, int at)
{
    bool is_attached = str_starts(arg, STR("-H")) && arg.n > 2;
    struct str flag = without_dashes(before);

    if (!arg.n || is_reference(arg))
        return false;
    if (is_header_flag(before) && seal_header(s, arg, 0, true))
        return true;
    if ((is_attached && seal_header(s, arg, 2, true)) || seal_header(s, arg, 0, false) ||
        seal_assignment(s, arg, 0))
        return true;
    bool is_value = before.p && arg.p[0] != '-' && is_identifier(flag) && looks_secret(flag, arg);
    if (!is_value && !has_secret_inside(arg))
        return false;
    write_reference(s, STR(""), is_value ? flag : arena_printf(s->mem, "arg%d", at), arg);
    return true;
}

static void seal_args(struct sealing *s, const struct js_node *args)
{
    const struct js_doc *doc = s->doc;
    struct str before = STR_NONE;
    int at = 0;

    js_array(s->w);
    for (const struct js_node *v = js_first(doc, args); v; v = js_next(doc, args, v), at++) {
        struct str arg = js_text(doc, v, s->mem);
        if (!arg.p || !seal_arg(s, arg, before, at))
            js_raw_value(s->w, js_raw(doc, v));
        bool is_flag = arg.n && arg.p[0] == '-' && str_find(arg, '=') == arg.n;
        before = is_flag ? arg : STR_NONE;
    }
    js_array_end(s->w);
}

static void add_reference(struct sealing *s, struct buf *out, struct str key, struct str value)
{
    struct str name = keep_secret(s, key, value);

    buf_addf(out, "${secret:%.*s}", STR_ARG(name));
}

/* Values of the query by their names; the part before it by its shape, whole. */
static void seal_url(struct sealing *s, const struct js_node *v)
{
    struct str url = js_text(s->doc, v, s->mem), rest = url;
    struct buf out;

    if (!url.p || is_reference(url)) {
        js_raw_value(s->w, js_raw(s->doc, v));
        return;
    }
    buf_init_secret(&out, SIZE_MAX / 4);
    struct str head = str_split(&rest, '?');
    if (has_token_shape(head))
        add_reference(s, &out, STR("url"), head);
    else
        buf_addstr(&out, head);
    for (char mark = '?'; rest.p; mark = '&') {
        struct str value = str_split(&rest, '&'), name = str_split(&value, '=');
        buf_addf(&out, "%c%.*s%s", mark, STR_ARG(name), value.p ? "=" : "");
        if (value.p && looks_secret(name, value))
            add_reference(s, &out, name, value);
        else if (value.p)
            buf_addstr(&out, value);
    }
    js_string(s->w, buf_str(&out));
    buf_release(&out);
}

bool add_entry_seal(struct str entry, struct str server, struct arena *mem, struct str *ret,
                    struct add_secret **ret_secrets, size_t *ret_n, struct error *err)
{
    struct js_doc doc;
    struct js_writer w;
    struct buf out;

    if (!parse(entry, mem, &doc, err))
        return false;
    struct sealing s = {.mem = mem,
                        .server = server,
                        .doc = &doc,
                        .w = &w,
                        .secrets = arena_alloc(mem, SECRETS_MAX * sizeof(struct add_secret))};
    const struct js_node *root = js_root(&doc);
    buf_init_secret(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    for (const struct js_node *k = js_first(&doc, root); k;
         k = js_next(&doc, root, js_value_of(k))) {
        const struct js_node *v = js_value_of(k);
        bool is_object = js_type_is(v, JS_OBJECT);
        js_key(&w, js_text(&doc, k, mem));
        if (is_object && (js_is(&doc, k, STR("env")) || js_is(&doc, k, STR("headers"))))
            seal_pairs(&s, v, js_is(&doc, k, STR("headers")));
        else if (js_type_is(v, JS_ARRAY) && js_is(&doc, k, STR("args")))
            seal_args(&s, v);
        else if (js_is(&doc, k, STR("url")) || js_is(&doc, k, STR("serverUrl")) ||
                 js_is(&doc, k, STR("httpUrl")))
            seal_url(&s, v);
        else
            js_raw_value(&w, js_raw(&doc, v));
    }
    js_object_end(&w);
    *ret = finish(&out, mem);
    *ret_secrets = s.secrets;
    *ret_n = s.n;
    return !s.has_too_many || error_set(err, ERR_BAD_INPUT,
                                        "the entry has more than %d secrets; store them with "
                                        "`holdfast secret set` and write ${secret:NAME}",
                                        SECRETS_MAX);
}
