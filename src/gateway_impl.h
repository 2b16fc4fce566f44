/* SPDX-License-Identifier: Apache-2.0 */
/* What gateway.c (the order) and gateway_parts.c (what each part is made of) share. */
#ifndef HOLDFAST_GATEWAY_IMPL_H
#define HOLDFAST_GATEWAY_IMPL_H

#include "exchange/exchange.h"
#include "gateway.h"
#include "servers/docs/docs.h"
#include "storage.h"

struct health;
struct gateway {
    struct gateway_options options;
    struct arena *mem;
    struct datadir *datadir;
    struct keeper *keeper;
    struct health *health;
    struct storage *storage;
    struct services sv;
    struct http_server *server;
    struct tls_context *tls;
    struct reaper *reaper;
    struct remote_changes *remote_changes; /* NULL: nobody shares the store */
    struct redis_listen *listen;
    struct loop_timer *drain, *first_pipe;
    struct loop_timer *forget; /* secrets of the configuration before; NULL: never reloaded */
    int64_t drain_until_ms;
    bool anchoring;
    int terminal; /* we were started on; -1: none */
    struct own_tokens *own_tokens;
    struct docs_server docs; /* what the tools reach documents by */
};

/* Parts of the services, in the order they are started; each needs those before it. */
must_check bool gateway_open_undelivered(struct gateway *g, struct error *err);
void gateway_start_delivery(struct gateway *g);
/* A link whose session is over was deleted from the store: for reaper_tell_links(). */
void gateway_on_link_over(void *arg, const struct link_row *row);
must_check bool gateway_open_keyring(struct gateway *g, struct error *err);
must_check bool gateway_start_listening(struct gateway *g, struct error *err);
must_check bool gateway_start_quotas(struct gateway *g, struct error *err);
void gateway_start_registry(struct gateway *g);
void gateway_start_docs(struct gateway *g);
must_check bool gateway_open_token_key(struct gateway *g, struct error *err);
must_check bool gateway_start_identity(struct gateway *g, struct error *err);
void gateway_start_audit(struct gateway *g);
void gateway_start_sessions(struct gateway *g, int64_t ended);

#endif
