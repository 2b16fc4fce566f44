/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by gateway.c (start and stop order) and gateway_parts.c (construction of each part). */
#ifndef HOLDFAST_GATEWAY_IMPL_H
#define HOLDFAST_GATEWAY_IMPL_H

#include "api/services.h"
#include "docs/server/server.h"
#include "exchange/exchange.h"
#include "feeds/feeds.h"
#include "gateway.h"
#include "identity/logins.h"
#include "storage.h"

struct health;
struct gateway {
    struct gateway_options options;
    struct arena *mem;
    struct datadir *datadir;
    struct keeper *keeper;
    struct health *health;
    struct storage *storage;
    struct front front;
    struct services sv; /* for exchanges */
    struct feeds feeds;
    struct api_services api; /* the same parts, and those for the API alone */
    struct str database;     /* name of the database in use, for people */
    struct http_server *server;
    struct tls_context *tls;
    struct reaper *reaper;
    struct change_poller *poller; /* NULL, as the next: the store is not shared with other nodes */
    struct remote_changes *remote_changes;
    struct redis_listen *listen;
    struct loop_timer *drain, *first_pipe;
    /* Ends redaction of the previous configuration's secrets; NULL: never reloaded. */
    struct loop_timer *forget;
    int64_t drain_until_ms;
    bool anchoring;
    int terminal; /* the terminal the process was started on; -1: none */
    struct own_tokens *own_tokens;
    struct docs_server docs; /* gives the docs tools access to documents */
};

/* Parts of the services.  gateway.c calls them in the order of their dependencies. */
must_check bool gateway_open_undelivered(struct gateway *g, struct error *err);
void gateway_start_delivery(struct gateway *g);
/* For reaper_on_links(): the store has deleted a link of a session that ended or expired. */
void gateway_on_link_over(void *arg, const struct link_row *row);
must_check bool gateway_open_keyring(struct gateway *g, struct error *err);
must_check bool gateway_start_listening(struct gateway *g, struct error *err);
must_check bool gateway_start_quotas(struct gateway *g, struct error *err);
void gateway_start_registry(struct gateway *g);
/* The last part: gives the API its services, and adds all routes to the front. */
void gateway_add_routes(struct gateway *g);
void gateway_start_docs(struct gateway *g);
must_check bool gateway_open_token_key(struct gateway *g, struct error *err);
must_check bool gateway_start_identity(struct gateway *g, struct error *err);
void gateway_start_audit(struct gateway *g);
void gateway_start_sessions(struct gateway *g);
/* Follows the changes that other nodes make after the change `after`. */
void gateway_start_polling(struct gateway *g, int64_t after);

#endif
