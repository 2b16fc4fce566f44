/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks of a configuration: receivers outside that get committed events. */
#ifndef HOLDFAST_CONFIG_SINKS_H
#define HOLDFAST_CONFIG_SINKS_H

#include "config/config.h"

#define CONFIG_SINKS_MAX 16
#define CONFIG_SINK_NAME_MAX 32
#define CONFIG_SINK_SECRET_MIN 16 /* bytes of a signing key */

enum sink_type { SINK_FILE, SINK_WEBHOOK, SINK_SYSLOG };
enum sink_from { SINK_FROM_NOW, SINK_FROM_START };

/* The members of "filter" as they are written; src/sinks checks the words. */
struct sink_words {
    struct str *items;
    size_t n; /* 0: every event passes */
};

struct sink_config {
    /* Of a server entry it has the name ("sinks.NAME"), url, headers, secret, tls_ca, the secrets,
     * their refusal, and the definition.  The first member: readers of server entries fill it. */
    struct server_config target;
    struct str name;
    enum sink_type type;
    enum sink_from from; /* where a sink begins that has no stored position */
    struct str path;     /* of a file sink */
    struct sink_words types, session, server, tool, outcome;
    struct str *tenants; /* the tenants whose events are sent; empty: all */
    size_t n_tenants;
    bool bodies;
    size_t max_size; /* of a file; then it is rotated */
    unsigned keep;   /* rotated files */
    struct str at;   /* "FILE:LINE:COLUMN" */
};

/* Whether both describe the same sink.  The digest of the target covers its secrets. */
bool sink_config_equal(const struct sink_config *a, const struct sink_config *b);

#endif
