/* SPDX-License-Identifier: Apache-2.0 */
/* Reads objects of named objects: tenants, folders, profiles, toolsets.  Each becomes an array
 * sorted by name, for lookups by name. */
#include "config/config_impl.h"

#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static bool count(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                  const struct named_list *l, size_t *ret, struct error *err)
{
    size_t n = 0;

    if (v->type != JS_OBJECT)
        return js_bind_fault(b, v, err, "\"%s\" must be an object of named objects", f->name);
    for (const struct js_node *key = js_first(b->doc, v); key;
         key = js_next(b->doc, v, js_value_of(key)))
        n++;
    if (n > l->max)
        return js_bind_fault(b, v, err, "\"%s\" names at most %zu %s", f->name, l->max, l->what);
    *ret = n;
    return true;
}

static bool read_one(const struct js_binding *b, const struct js_field *f,
                     const struct js_node *key, const struct named_list *l, void *ret,
                     struct error *err)
{
    struct str name;

    if (!value_name(b, f, key, &name, err) || (l->check && !l->check(b, f, key, name, err)))
        return false;
    if (l->blank)
        memcpy(ret, l->blank, l->size);
    js_bind_defaults(f->fields, ret, b->mem);
    *(struct str *)ret = arena_dup(b->mem, name);
    return js_bind(b, js_value_of(key), f->fields, ret, err);
}

bool named_list_read(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     struct named_list *l, struct error *err)
{
    size_t n = 0;

    if (!count(b, f, v, l, &n, err))
        return false;
    char *items = arena_zalloc(b->mem, n * l->size);
    char *next = items;
    for (const struct js_node *key = js_first(b->doc, v); key;
         key = js_next(b->doc, v, js_value_of(key)), next += l->size)
        if (!read_one(b, f, key, l, next, err))
            return false;
    qsort(items, n, l->size, by_name);
    l->items = items;
    l->n = n;
    return true;
}

const void *named_list_find(const void *items, size_t n, size_t size, struct str name)
{
    return n ? bsearch(&name, items, n, size, by_name) : NULL;
}
