/* SPDX-License-Identifier: Apache-2.0 */
/* The files that import reads are those of the user, not of a project.  A client resolves a
 * relative path in them against the folder in which it runs, which differs from window to
 * window. */
#include "cli/import_entry.h"

#include "json/read.h"
#include "json/write.h"

#include <unistd.h>

#define SHOWN_MAX 100 /* bytes of a path */

static const char *const workspace[] = {"${workspaceFolder", "${workspaceRoot", "${file",
                                        "${relativeFile", "${CLAUDE_PROJECT_DIR"};

static bool has_workspace(struct str text)
{
    for (size_t i = 0; i < countof(workspace); i++)
        if (memmem(text.p, text.n, workspace[i], strlen(workspace[i])))
            return true;
    return false;
}

/* "./x", "../x", and for a path also "x/y". */
static bool is_relative(struct str text, bool is_path)
{
    if (str_starts(text, STR("./")) || str_starts(text, STR("../")) || str_eq(text, STR(".")) ||
        str_eq(text, STR("..")))
        return true;
    return is_path && text.n && text.p[0] != '/' && text.p[0] != '~' &&
           !str_starts(text, STR("${"));
}

/* Whether the member is a path that needs a folder; a command without a slash is found by PATH. */
static bool needs_folder(const struct js_doc *d, const struct js_node *v, const char *name,
                         struct arena *mem, struct str *ret)
{
    bool is_command = strcmp(name, "command") == 0;

    *ret = js_text(d, v, mem);
    return ret->p && is_relative(*ret, !is_command || str_find(*ret, '/') < ret->n);
}

static bool find_relative(const struct js_doc *d, struct arena *mem, const char **ret_name,
                          struct str *ret)
{
    static const char *const names[] = {"command", "cwd", "envFile"};
    const struct js_node *args = js_get(d, js_root(d), STR("args"));

    for (size_t i = 0; i < countof(names); i++) {
        *ret_name = names[i];
        if (needs_folder(d, js_get(d, js_root(d), str_of(names[i])), names[i], mem, ret))
            return true;
    }
    *ret_name = "args";
    for (const struct js_node *v = js_type_is(args, JS_ARRAY) ? js_first(d, args) : NULL; v;
         v = js_next(d, args, v)) {
        *ret = js_text(d, v, mem);
        if (ret->p && is_relative(*ret, false))
            return true;
    }
    return false;
}

static struct str why_not(const struct client *client, const struct js_doc *d, struct arena *mem)
{
    const char *name;
    struct str path;

    if (has_workspace(js_raw(d, js_root(d))))
        return arena_printf(mem,
                            "it names a folder of the editor (${workspaceFolder}), which differs "
                            "from window to window; write the path instead in the file of %s and "
                            "import again",
                            client->title);
    path = js_text(d, js_get(d, js_root(d), STR("command")), mem);
    if (path.p && str_find(path, ' ') < path.n && access(arena_dup(mem, path).p, F_OK) != 0)
        return arena_printf(mem,
                            "its \"command\" has blanks and is no file; write the program there "
                            "and the rest in \"args\", in the file of %s, and import again",
                            client->title);
    if (!find_relative(d, mem, &name, &path))
        return STR_NONE;
    return arena_printf(
        mem,
        "it has the relative path \"%.*s\" in \"%s\", which %s reads from the folder "
        "where it runs; write an absolute path in its file and import again",
        STR_ARG(str_cut(path, SHOWN_MAX)), name, client->title);
}

/* "$NAME", the whole value. */
static bool is_bare_variable(struct str value)
{
    if (value.n < 2 || value.p[0] != '$')
        return false;
    for (size_t i = 1; i < value.n; i++) {
        char c = value.p[i];
        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return true;
}

static void write_pairs(struct js_writer *w, const struct js_doc *d, const struct js_node *pairs,
                        struct arena *mem)
{
    js_object(w);
    for (const struct js_node *k = js_first(d, pairs); k; k = js_next(d, pairs, js_value_of(k))) {
        struct str value = js_text(d, js_value_of(k), mem);
        js_key(w, js_text(d, k, mem));
        if (value.p && is_bare_variable(value))
            js_string(w, arena_printf(mem, "${%.*s}", (int)value.n - 1, value.p + 1));
        else
            js_raw_value(w, js_raw(d, js_value_of(k)));
    }
    js_object_end(w);
}

static struct str with_braces(const struct js_doc *d, struct arena *mem)
{
    struct js_writer w;
    struct buf out;

    buf_init_secret(&out, SIZE_MAX / 4);
    js_begin(&w, &out);
    js_object(&w);
    for (const struct js_node *k = js_first(d, js_root(d)); k;
         k = js_next(d, js_root(d), js_value_of(k))) {
        const struct js_node *v = js_value_of(k);
        js_key(&w, js_text(d, k, mem));
        if (v->type == JS_OBJECT && (js_is(d, k, STR("env")) || js_is(d, k, STR("headers"))))
            write_pairs(&w, d, v, mem);
        else
            js_raw_value(&w, js_raw(d, v));
    }
    js_object_end(&w);
    struct str text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return text;
}

bool import_entry(const struct client *client, struct str entry, struct arena *mem, struct str *ret,
                  struct str *ret_why, struct error *err)
{
    struct js_doc doc;

    if (!js_parse(entry, &js_limits_config, mem, &doc, NULL) ||
        !js_type_is(js_root(&doc), JS_OBJECT))
        return error_set(err, ERR_BAD_INPUT, "the entry of a server is a JSON object");
    *ret_why = why_not(client, &doc, mem);
    *ret = client->has_bare_variables ? with_braces(&doc, mem) : entry;
    return true;
}
