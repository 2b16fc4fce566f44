/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants of the configuration: read once, sorted, asked for by name on every call.  A tenant that
 * is not named here may well exist; what holds for all holds for it. */
#include "config/config_impl.h"

#include <stdlib.h>

#define TENANTS_MAX 5000

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct tenant_config *)a)->name,
                   ((const struct tenant_config *)b)->name);
}

static bool read_tenant(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *key, struct tenant_config *ret, struct error *err)
{
    struct str name;

    if (!value_name(b, f, key, &name, err))
        return false;
    js_bind_defaults(f->fields, ret, b->mem);
    ret->max_sessions = -1;
    ret->name = arena_dup(b->mem, name);
    return js_bind(b, js_value_of(key), f->fields, ret, err);
}

bool option_read_tenants(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place unused_arg, struct error *err)
{
    struct config *c = reading_of(b)->config;
    const struct js_node *key;
    size_t n = 0;

    if (v->type != JS_OBJECT)
        return js_bind_fault(b, v, err, "\"%s\" must be an object of named objects", f->name);
    for (key = js_first(b->doc, v); key; key = js_next(b->doc, v, js_value_of(key)))
        n++;
    if (n > TENANTS_MAX)
        return js_bind_fault(b, v, err, "\"%s\" names at most %d tenants", f->name, TENANTS_MAX);
    c->tenants = arena_zalloc(b->mem, n * sizeof(*c->tenants));
    c->n_tenants = 0;
    for (key = js_first(b->doc, v); key; key = js_next(b->doc, v, js_value_of(key)))
        if (!read_tenant(b, f, key, &c->tenants[c->n_tenants++], err))
            return false;
    qsort(c->tenants, n, sizeof(*c->tenants), by_name);
    return true;
}

const struct tenant_config *config_tenant(const struct config *c, struct str name)
{
    struct tenant_config wanted = {.name = name};

    if (c->n_tenants == 0)
        return NULL;
    return bsearch(&wanted, c->tenants, c->n_tenants, sizeof(*c->tenants), by_name);
}

int64_t config_max_sessions(const struct config *c, struct str tenant)
{
    const struct tenant_config *t = config_tenant(c, tenant);
    return t && t->max_sessions >= 0 ? t->max_sessions : c->session_max_per_tenant;
}

int64_t config_default_ttl_ms(const struct config *c, struct str tenant)
{
    const struct tenant_config *t = config_tenant(c, tenant);
    return t && t->default_ttl_ms ? t->default_ttl_ms : c->session_default_ttl_ms;
}

int64_t config_idle_ms(const struct config *c, struct str tenant)
{
    const struct tenant_config *t = config_tenant(c, tenant);
    return t && t->idle_ms ? t->idle_ms : c->session_idle_ms;
}

bool config_has_sessions(const struct config *c, struct str tenant)
{
    const struct tenant_config *t = config_tenant(c, tenant);
    return !t || t->sessions;
}
