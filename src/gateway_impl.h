/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by gateway.c (start and stop order) and gateway_parts.c (construction of each part). */
#ifndef HOLDFAST_GATEWAY_IMPL_H
#define HOLDFAST_GATEWAY_IMPL_H

#include "api/services.h"
#include "docs/server/server.h"
#include "exchange/exchange.h"
#include "feeds/feed.h"
#include "gateway.h"
#include "gateway_show.h"
#include "identity/logins.h"
#include "servers/session.h"
#include "session/session_gauges.h"
#include "storage.h"

struct health;
/* The secrets of the configuration, as they were last read from the store. */
struct gateway_secrets {
    struct arena *mem; /* NULL: not read yet */
    struct config_secret *list;
    size_t n;
};
struct gateway {
    struct gateway_options options;
    struct arena *mem;
    struct datadir *datadir;
    struct keeper *keeper;
    struct health *health;
    struct storage *storage;
    bool has_bindings; /* the store had bindings of carriers (session/session.h) at the start */
    struct front front;
    struct services sv; /* for exchanges */
    struct feed *feed;
    struct sinks *sinks;
    struct api_services api; /* the same parts, and those for the API alone */
    struct str database;     /* name of the database in use, for people */
    struct http_server *server;
    struct tls_context *tls;
    struct reaper *reaper;
    struct rollup_ages *rollup_ages;
    struct retention *retention;
    struct change_poller *poller; /* NULL, as the next: the store is not shared with other nodes */
    struct remote_changes *remote_changes;
    struct redis_listen *listen;
    struct loop_timer *drain, *first_pipe;
    /* Ends redaction of the previous configuration's secrets; NULL: never reloaded. */
    struct loop_timer *forget;
    /* A reload reads the secrets first, on a lane. */
    struct read_job secrets_read;
    struct gateway_secrets secrets, fresh_secrets;
    struct str master_file;
    bool reloading, reload_again;
    int64_t drain_until_ms;
    struct loop_timer *status; /* tells the service manager; NULL: there is none */
    struct gauges_wait sessions;
    bool counts_sessions; /* `sessions` waits */
    bool anchoring, anchored;
    int64_t flush_until_ms;    /* while anchoring */
    int terminal;              /* the terminal the process was started on; -1: none */
    struct gateway_show *show; /* NULL: nothing is shown */
    struct own_tokens *own_tokens;
    struct session_server session_server;
    struct docs_server docs; /* gives the docs tools access to documents */
};

/* Parts of the services.  gateway.c calls them in the order of their dependencies. */
must_check bool gateway_open_undelivered(struct gateway *g, struct error *err);
void gateway_start_delivery(struct gateway *g);
/* For reaper_on_links(): the store has deleted a link of a session that ended or expired. */
void gateway_on_link_over(void *arg, const struct link_row *row);
must_check bool gateway_open_keyring(struct gateway *g, struct error *err);
/* The same for a command: *ret_file is the file of the master key, in mem. */
must_check bool gateway_keyring_new(struct storage *storage, struct loop *loop, struct str data_dir,
                                    struct arena *mem, struct keyring **ret, struct str *ret_file,
                                    struct error *err);
/* The key that signs exported sessions. */
struct export_key *gateway_export_key_new(struct chain *chain) must_check;
/* gateway_reload.c */
/* Fills the secrets into the configuration, before the lanes run. */
must_check bool gateway_resolve(struct gateway *g, struct error *err);
/* Reads the secrets, then calls reload() of gateway.c with them in g->secrets.  A second request
 * meanwhile leads to one more reload. */
void gateway_reload_soon(struct gateway *g);
void gateway_reload(struct gateway *g); /* gateway.c */
void gateway_secrets_free(struct gateway *g);
/* For change_poller_add() and api_services: a secret was changed, elsewhere or here. */
void gateway_on_change(void *arg, const struct change_row *row);
void gateway_on_secret_changed(void *arg);
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
/* gateway_status.c: tells the service manager that Holdfast is ready, and its state from then on. */
void gateway_start_status(struct gateway *g);
void gateway_stop_status(struct gateway *g); /* before lanes_free() */
/* Follows the changes that other nodes make after the change `after`. */
void gateway_start_polling(struct gateway *g, int64_t after);

#endif
