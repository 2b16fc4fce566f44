/* SPDX-License-Identifier: Apache-2.0 */
/* The names of enums that backends and readers share. */
#include "store/rows.h"

static const char *const status_names[] = {
    [SESSION_ACTIVE] = "active",
    [SESSION_IDLE] = "idle",
    [SESSION_EXPIRED] = "expired",
    [SESSION_TERMINATED] = "terminated",
};
static const char *const origin_names[] = {
    [ORIGIN_REST] = "rest",       [ORIGIN_TOOL] = "tool",   [ORIGIN_TRANSPORT] = "transport",
    [ORIGIN_DERIVED] = "derived", [ORIGIN_KEYED] = "keyed", [ORIGIN_INJECTED] = "injected",
};

const char *session_status_name(enum session_status status)
{
    return status_names[status];
}

const char *session_origin_name(enum session_origin origin)
{
    return origin_names[origin];
}

bool session_status_parse(struct str name, enum session_status *ret)
{
    for (size_t i = 0; i < countof(status_names); i++)
        if (str_eq(name, str_of(status_names[i]))) {
            *ret = (enum session_status)i;
            return true;
        }
    return false;
}

bool session_origin_parse(struct str name, enum session_origin *ret)
{
    for (size_t i = 0; i < countof(origin_names); i++)
        if (str_eq(name, str_of(origin_names[i]))) {
            *ret = (enum session_origin)i;
            return true;
        }
    return false;
}
