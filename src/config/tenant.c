/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants of the configuration: sorted once, and looked up by name on every call.  Tenants without
 * an entry may exist too.  The options of all tenants apply to them. */
#include "config/config_impl.h"

#define TENANTS_MAX 5000

bool option_read_tenants(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place unused_arg, struct error *err)
{
    static const struct tenant_config blank = {.max_sessions = -1};
    struct config *c = reading_of(b)->config;
    struct named_list l = {
        .size = sizeof(blank), .max = TENANTS_MAX, .what = "tenants", .blank = &blank};

    if (!named_list_read(b, f, v, &l, err))
        return false;
    c->tenants = l.items;
    c->n_tenants = l.n;
    return true;
}

const struct tenant_config *config_tenant(const struct config *c, struct str name)
{
    return named_list_find(c->tenants, c->n_tenants, sizeof(*c->tenants), name);
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

struct audit_keep config_audit_keep(const struct config *c, struct str tenant)
{
    const struct tenant_config *t = config_tenant(c, tenant);
    struct audit_keep keep = c->audit;
    if (t && t->audit.keep_ms)
        keep.keep_ms = t->audit.keep_ms;
    if (t && t->audit.bodies_ms)
        keep.bodies_ms = t->audit.bodies_ms;
    if (t && t->audit.max_size)
        keep.max_size = t->audit.max_size;
    return keep;
}

bool config_has_sessions(const struct config *c, struct str tenant)
{
    const struct tenant_config *t = config_tenant(c, tenant);
    return !t || t->sessions;
}
