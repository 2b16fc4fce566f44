/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the listener is safe.  A listener on loopback needs nothing.  Any other listener
 * needs authentication and an encrypted connection, by its own TLS or a trusted proxy (threats
 * K1). */
#include "config/config_impl.h"

bool exposure_check(const struct config *c, struct error *err)
{
    if (c->listens_on_loopback)
        return true;
    if (!c->auth_required)
        return error_set(err, ERR_CONFIG,
                         "\"listen\" is %.*s, which others can reach: that needs \"auth\": "
                         "\"required\" and a key from `holdfast key create`; or listen on "
                         "127.0.0.1",
                         STR_ARG(c->listen));
    if (!c->tls_cert.p && !c->n_trusted_proxies)
        return error_set(err, ERR_CONFIG,
                         "\"listen\" is %.*s, which others can reach: that needs \"tls\" with a "
                         "certificate, or \"trusted_proxies\" with the proxy that has one",
                         STR_ARG(c->listen));
    return true;
}

bool config_keep_listener(struct config *fresh, const struct config *open, struct error *err)
{
    if (str_eq(fresh->listen, open->listen))
        return true;
    fresh->listen = arena_dup(fresh->mem, open->listen);
    fresh->listens_on_loopback = open->listens_on_loopback;
    return exposure_check(fresh, err) ||
           error_wrap(err, "\"listen\" changes only with a restart, and the open listener stays");
}
