/* SPDX-License-Identifier: Apache-2.0 */
/* The routes outside of /api/v1. */
#include "api/plain.h"

#include "api/landing.h"

static const char *metrics_are_off(const struct caller *c)
{
    return c->config->metrics ? NULL : "metrics are switched off; set \"metrics\": true";
}

static const struct need metrics = {
    .access = ACCESS_WATCH,
    .off = metrics_are_off,
    .denied = "metrics are for the roles admin and auditor; make a key with --role auditor",
};

static const struct front_route routes[] = {
    {"GET", "/", landing_page, "A page for browsers; the paths as JSON for other clients.",
     ROUTE_HEAD, &need_open},
    {"GET", "/favicon.ico", landing_favicon, "Empty: the page has an icon of its own.", ROUTE_HEAD,
     &need_open},
    {"GET", "/healthz", operate_healthz, "Tells whether the process is alive.", ROUTE_HEAD,
     &need_open},
    {"GET", "/readyz", operate_readyz,
     "Tells whether the store can be written and the server is not stopping.", ROUTE_HEAD,
     &need_open},
    {"GET", "/metrics", operate_metrics, "Prometheus text.", ROUTE_HEAD, &metrics},
};

void plain_add_routes(struct api_services *sv)
{
    front_add(sv->front, NULL, routes, countof(routes), sv);
}
