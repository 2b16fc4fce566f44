/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of the knowledge base: read once, sorted by name.  Whether the directory is there is not
 * asked here: it may be mounted later, and a configuration is checked on other machines too. */
#include "config/config_impl.h"

#include <stdlib.h>

#define FOLDERS_MAX 64

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct folder_config *)a)->name,
                   ((const struct folder_config *)b)->name);
}

static bool read_folder(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *key, struct folder_config *ret, struct error *err)
{
    struct str name;

    if (!value_name(b, f, key, &name, err))
        return false;
    if (name.p[0] == '.') /* it is the first part of its documents' paths */
        return js_bind_fault(b, key, err, "names in \"%s\" do not begin with a dot", f->name);
    js_bind_defaults(f->fields, ret, b->mem);
    ret->name = arena_dup(b->mem, name);
    return js_bind(b, js_value_of(key), f->fields, ret, err);
}

bool option_read_folders(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    const struct js_node *key;
    size_t n = 0;

    if (v->type != JS_OBJECT)
        return js_bind_fault(b, v, err, "\"%s\" must be an object of named objects", f->name);
    for (key = js_first(b->doc, v); key; key = js_next(b->doc, v, js_value_of(key)))
        n++;
    if (n > FOLDERS_MAX)
        return js_bind_fault(b, v, err, "\"%s\" names at most %d folders", f->name, FOLDERS_MAX);
    c->folders = arena_zalloc(b->mem, n * sizeof(*c->folders));
    c->n_folders = 0;
    for (key = js_first(b->doc, v); key; key = js_next(b->doc, v, js_value_of(key)))
        if (!read_folder(b, f, key, &c->folders[c->n_folders++], err))
            return false;
    qsort(c->folders, n, sizeof(*c->folders), by_name);
    return true;
}

bool option_read_directory(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err)
{
    const char *home = getenv("HOME");
    struct str path;

    if (!option_read_file(b, f, v, &path, err))
        return false;
    if (home && str_starts(path, STR("~/")))
        path = arena_printf(b->mem, "%s%.*s", home, (int)path.n - 1, path.p + 1);
    *(struct str *)place = path;
    return true;
}
