/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the folders of the knowledge base, sorted by name.  Does not check that the directory
 * exists: it may be mounted later, and a configuration is also checked on other machines. */
#include "config/config_impl.h"

#include <stdlib.h>

#define FOLDERS_MAX 64

/* The name is the first part of the documents' paths. */
static bool check_name(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *key, struct str name, struct error *err)
{
    return name.p[0] != '.' ||
           js_bind_fault(b, key, err, "names in \"%s\" do not begin with a dot", f->name);
}

bool option_read_folders(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    struct named_list l = {
        .size = sizeof(*c->folders), .max = FOLDERS_MAX, .what = "folders", .check = check_name};

    if (!named_list_read(b, f, v, &l, err))
        return false;
    c->folders = l.items;
    c->n_folders = l.n;
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
    ((struct folder_config *)(void *)((char *)place - f->offset))->at = value_place(b, v);
    return true;
}
