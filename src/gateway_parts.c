/* SPDX-License-Identifier: Apache-2.0 */
/* Constructs and starts each part of the services from the configuration.  gateway.c holds the
 * order and the shutdown. */
#include "gateway_impl.h"

#include "audit/audit.h"
#include "audit/chain.h"
#include "base/clock.h"
#include "config/datadir.h"
#include "crypto/hash.h"
#include "crypto/key_file.h"
#include "delivery/delivery.h"
#include "api/api.h"
#include "api/plain.h"
#include "exchange/pipe.h"
#include "exchange/routes.h"
#include "exchange/sse2024.h"
#include "export/api/upload.h"
#include "erasure/erase.h"
#include "export/sign.h"
#include "feeds/api/watchers.h"
#include "replay/replay.h"
#include "servers/sample.h"
#include "servers/session.h"
#include "session/remote_changes.h"
#include "session/sharing.h"
#include "sinks/sinks.h"
#include "store/claim.h"
#include "store/redis_listen.h"
#include "trace/traces.h"
#include "upstream/pins.h"

#include <stdio.h>

/* Loads the undelivered results that an earlier process stored. */
bool gateway_open_undelivered(struct gateway *g, struct error *err)
{
    struct undelivered_config undelivered = {.loop = g->sv.loop,
                                             .store = storage_write_store(g->storage),
                                             .writer = storage_writer(g->storage)->number};
    chain_derive(storage_chain(g->storage), "undelivered", undelivered.key);
    bool opened = undelivered_open(&undelivered, &g->sv.undelivered, err);
    crypto_wipe(undelivered.key, sizeof(undelivered.key));
    return opened;
}

/* A resumed stream has sent the result to its client. */
static void on_undelivered_sent(void *undelivered, int64_t id)
{
    undelivered_drop(undelivered, id);
}

/* Starts streams, the hub of listeners, and the upstreams. */
void gateway_start_delivery(struct gateway *g)
{
    struct services *sv = &g->sv;
    struct chain *chain = storage_chain(g->storage);
    uint8_t key[32];

    struct streams_config streams = {.loop = sv->loop,
                                     .writer = storage_writer(g->storage)->number,
                                     .identity = sv->front->identity};
    chain_derive(chain, "streams", streams.key);
    sv->streams = streams_new(&streams);
    streams_on_undelivered_sent(sv->streams, on_undelivered_sent, sv->undelivered);
    sv->hub = hub_new(sv->loop, sv->streams);
    hub_set_visibility(sv->hub, listener_may_see, sv);
    deadline_class_init(&sv->slow_calls, sv->loop, EXCHANGE_SLOW_MS);
    deadline_class_init(&sv->quiet, sv->loop, EXCHANGE_QUIET_MS);
    chain_derive(chain, "request-state", key);
    sv->state_key = hmac_key_new(key, sizeof(key));
    chain_derive(chain, "profile-context", key);
    sv->context_key = hmac_key_new(key, sizeof(key));
    struct upstreams_config upstreams = {
        .loop = sv->loop,
        .keeper = g->keeper,
        .sink = delivery_sink(sv->hub),
        .quota = exchange_process_quota(sv),
        .guard = pins_guard(sv->pins),
        .eras_file = datadir_path(g->options.data_dir, "server-eras", g->mem),
    };
    builtin_register(&server_sample, NULL);
    g->session_server = (struct session_server){g->api.registry, g->api.sharing, &g->front.config};
    builtin_register(&server_session, &g->session_server);
    builtin_register(&server_docs, &g->docs);
    sv->upstreams = upstreams_new(&upstreams);
    pins_use(sv->pins, sv->lanes, sv->upstreams);
    hub_set_upstreams(sv->hub, sv->upstreams);
    sv->pipes = pipes_new(sv);
    sv->sse2024 = sse2024_new(sv);
}

/* link_key: "s:ROW-ID". */
static void forget_secrets(struct gateway *g, struct str link_key)
{
    secrets_forget(g->sv.secrets, str_n(link_key.p + 2, link_key.n - 2));
}

static void on_session_ended(void *arg, struct str link_key)
{
    struct gateway *g = arg;
    forget_secrets(g, link_key);
    upstreams_end_links(g->sv.upstreams, link_key, "its session was terminated");
}

/* The session ended or expired, perhaps in an earlier process. */
void gateway_on_link_over(void *arg, const struct link_row *row)
{
    struct gateway *g = arg;
    char key[64];

    snprintf(key, sizeof(key), "s:%.*s", STR_ARG(row->session_id));
    upstreams_session_over(g->sv.upstreams, row->server, str_of(key), row->remote_id,
                           row->writer == sessions_writer(g->sv.sessions));
}

/* Another node ended the session; its links on this node end too. */
static void on_ended_elsewhere(void *arg, struct str tenant unused_arg, struct str id)
{
    struct gateway *g = arg;
    char key[64];

    snprintf(key, sizeof(key), "s:%.*s", STR_ARG(id));
    on_session_ended(g, str_of(key));
}

/* Has the same effect as a DELETE on this node. */
static void on_transport_ended_elsewhere(void *arg, struct transport *t)
{
    struct gateway *g = arg;

    transport_ref(t);
    hub_transport_ended(g->sv.hub, t);
    streams_forget(g->sv.streams, t);
    transport_forget(t);
    transport_unref(t);
}

/* Its former owner gets no more messages of its servers, and lends them nothing. */
static void on_handed_over(void *arg, struct str link_key, bool had_secrets)
{
    struct gateway *g = arg;

    forget_secrets(g, link_key);
    hub_leave(g->sv.hub, link_key);
    if (had_secrets)
        upstreams_end_links(g->sv.upstreams, link_key,
                            "it was handed over without the credentials of its former owner");
}

/* The session's calls use the new toolsets from now on.  Its clients must list their tools
 * again. */
static void on_toolsets_changed_elsewhere(void *arg, struct session *s)
{
    struct gateway *g = arg;

    (void)!hub_tools_changed(g->sv.hub, s, NULL);
}

/* The session's links hold its old credentials. */
static void on_session_sealed(void *arg, struct str link_key)
{
    struct gateway *g = arg;
    forget_secrets(g, link_key);
    upstreams_end_links(g->sv.upstreams, link_key, "its credentials were changed");
}

/* Nodes with different keys could not decrypt each other's credentials. */
static bool claim_master(struct store *store, struct master *master, struct str path,
                         struct error *err)
{
    const struct key_claim claim = {
        .file = "master.key", .variable = "HOLDFAST_MASTER_KEY_FILE", .path = path};
    uint8_t prints[MASTER_KEYS_MAX][32];
    size_t n = master_fingerprints(master, prints);

    return claim_key(store, &claim, (const uint8_t(*)[32])prints, n, err);
}

/* Loads the master key.  The first start creates it.  It is never replaced while stored credentials
 * are sealed with an old key. */
bool gateway_keyring_new(struct storage *storage, struct loop *loop, struct str data_dir,
                         struct arena *mem, struct keyring **ret, struct str *ret_file,
                         struct error *err)
{
    struct store *store = storage_write_store(storage);
    struct master *master = NULL;
    bool is_ours = false, any = false;
    struct str path = master_path(data_dir, mem, &is_ours);

    if (!keyring_fits(store, NULL, &any, err) || !master_load(path, is_ours && !any, &master, err))
        return false;
    if (!keyring_fits(store, master, &any, err)) {
        master_free(master);
        return error_wrap(err, "%.*s", STR_ARG(path));
    }
    if (storage_is_shared(storage) && !claim_master(store, master, path, err)) {
        master_free(master);
        return false;
    }
    struct keyring_config config = {.loop = loop, .master = master, .path = path};
    *ret = keyring_new(&config);
    *ret_file = path;
    return true;
}

bool gateway_open_keyring(struct gateway *g, struct error *err)
{
    return gateway_keyring_new(g->storage, g->sv.loop, g->options.data_dir, g->mem, &g->sv.keyring,
                               &g->master_file, err);
}

/* Another node has changed rows that this node may hold in memory, or has recorded events. */
static void on_remote_news(void *arg, unsigned news)
{
    struct gateway *g = arg;

    if (news & REDIS_CHANGES)
        change_poller_nudge(g->poller);
    if (news & REDIS_EVENTS)
        feed_nudge(g->feed);
}

bool gateway_start_listening(struct gateway *g, struct error *err)
{
    struct redis_listen_config config = {.loop = g->sv.loop,
                                         .target = &g->options.redis,
                                         .channel = storage_channel(g->storage),
                                         .own = storage_events_text(g->storage),
                                         .on_message = on_remote_news,
                                         .arg = g};
    return !config.channel.p || redis_listen_new(&config, &g->listen, err);
}

/* Nodes that share a database and a Redis share the counters of limits. */
bool gateway_start_quotas(struct gateway *g, struct error *err)
{
    struct quotas_config config = {
        .loop = g->sv.loop,
        .lanes = g->sv.lanes,
        .config = g->front.config,
        .redis =
            g->options.redis.shown.p && storage_is_shared(g->storage) ? &g->options.redis : NULL,
        .prefix = g->front.config->cache_prefix,
        .node = storage_writer(g->storage)->uuid,
    };
    chain_derive(storage_chain(g->storage), "limits", config.key);
    bool ok = quotas_new(&config, &g->front.quotas, err);
    crypto_wipe(config.key, sizeof(config.key));
    return ok;
}

void gateway_start_registry(struct gateway *g)
{
    struct services *sv = &g->sv;
    struct registry_config config = {
        .loop = sv->loop,
        .lanes = sv->lanes,
        .sessions = sv->sessions,
        .audit = sv->audit,
        .secrets = sv->secrets,
        .is_shared = storage_is_shared(g->storage),
        .on_ended = on_session_ended,
        .arg = g,
    };
    g->api.registry = sv->registry = registry_new(&config);
    struct sharing_config sharing = {
        .loop = sv->loop,
        .lanes = sv->lanes,
        .sessions = sv->sessions,
        .registry = sv->registry,
        .is_shared = storage_is_shared(g->storage),
    };
    g->api.sharing = sharing_new(&sharing);
}

struct export_key *gateway_export_key_new(struct chain *chain)
{
    uint8_t seed[32];

    chain_derive(chain, EXPORT_KEY_PURPOSE, seed);
    struct export_key *key = export_key_new(seed);
    crypto_wipe(seed, sizeof(seed));
    return key;
}

void gateway_add_routes(struct gateway *g)
{
    struct services *sv = &g->sv;

    g->api.front = sv->front;
    g->api.loop = sv->loop;
    g->api.lanes = sv->lanes;
    g->api.sessions = sv->sessions;
    g->api.keyring = sv->keyring;
    g->api.upstreams = sv->upstreams;
    g->api.pins = sv->pins;
    g->api.audit = sv->audit;
    g->api.export_key = gateway_export_key_new(storage_chain(g->storage));
    g->api.replays = replays_new(sv);
    g->api.erasures = erasures_new(&(struct erasures_config){
        .loop = sv->loop,
        .lanes = sv->lanes,
        .registry = g->api.registry,
        .config = (const struct config *const *)&sv->front->config,
        .is_shared = storage_is_shared(g->storage),
    });
    g->api.on_secret_changed = gateway_on_secret_changed;
    g->api.on_secret_changed_arg = g;
    g->api.database = g->database;
    g->api.data_dir = g->options.data_dir;
    uploads_clear(g->api.data_dir);
    g->api.started_ms = clock_wall_ms();
    operate_start(&g->api);
    exchange_add_routes(sv);
    plain_add_routes(&g->api);
    api_add_routes(&g->api);
    struct feed_config feed = {
        .loop = sv->loop,
        .lanes = sv->lanes,
        .audit = sv->audit,
        .writer = storage_writer(g->storage)->number,
        .is_shared = storage_is_shared(g->storage),
    };
    g->feed = feed_new(&feed);
    struct sinks_config sinks = {
        .loop = sv->loop,
        .lanes = sv->lanes,
        .feed = g->feed,
        .writer = storage_writer(g->storage)->number,
        .is_shared = storage_is_shared(g->storage),
        .node = storage_writer(g->storage)->node,
    };
    g->sinks = g->api.sinks = sinks_new(&sinks);
    sinks_apply(g->sinks, sv->front->config);
    struct watchers_config watchers = {
        .loop = sv->loop, .front = sv->front, .feed = g->feed, .quiet = &sv->quiet};
    g->api.watchers = watchers_new(&watchers);
}

/* Starts the knowledge base.  Its tools are registered with the other built-in servers. */
void gateway_start_docs(struct gateway *g)
{
    struct services *sv = &g->sv;
    struct docs_start start = {
        .loop = sv->loop, .lanes = sv->lanes, .data_dir = g->options.data_dir};

    g->api.docs = docs_new(&start);
    docs_apply(g->api.docs, sv->front->config);
    g->docs = (struct docs_server){g->api.docs, g->api.registry, sv->sessions, &sv->front->config};
}

/* Loads the key of access tokens.  Nodes on one store share this key. */
bool gateway_open_token_key(struct gateway *g, struct error *err)
{
    static const struct key_file words = {.name = "the key of access tokens",
                                          .or_move = "away: users then sign in again"};
    uint8_t seed[KEY_FILE_BYTES], print[1][32];
    bool is_own;

    struct str path = datadir_token_key(g->options.data_dir, g->mem, &is_own);
    if (!key_file_load(&words, path, is_own, seed, err))
        return false;
    const struct key_claim claim = {
        .file = "token.key", .variable = "HOLDFAST_TOKEN_KEY_FILE", .path = path};
    g->own_tokens = own_tokens_new(seed);
    crypto_wipe(seed, sizeof(seed));
    own_tokens_fingerprint(g->own_tokens, print[0]);
    return !storage_is_shared(g->storage) ||
           claim_key(storage_write_store(g->storage), &claim, (const uint8_t(*)[32])print, 1, err);
}

bool gateway_start_identity(struct gateway *g, struct error *err)
{
    struct services *sv = &g->sv;
    struct identity_config identity = {
        .loop = sv->loop,
        .lanes = sv->lanes,
        .own = g->own_tokens,
    };
    if (!identity_new(&identity, sv->front->config, &sv->front->identity, err))
        return false;
    struct logins_config logins = {.loop = sv->loop,
                                   .lanes = sv->lanes,
                                   .identity = sv->front->identity,
                                   .own = g->own_tokens};
    g->api.logins = logins_new(&logins);
    return true;
}

/* Starts the audit and the calls. */
void gateway_start_audit(struct gateway *g)
{
    struct services *sv = &g->sv;
    struct audit_config audit = {
        .lanes = sv->lanes,
        .loop = sv->loop,
        .chain = storage_chain(g->storage),
        .writer = storage_writer(g->storage)->number,
        .spool = storage_spool(g->storage),
        .max_body = sv->front->config->limit_audit_body,
        .anchor_file = datadir_path(g->options.data_dir, "audit-anchors.jsonl", g->mem),
    };
    sv->audit = audit_new(&audit);
    const struct writer_row *writer = storage_writer(g->storage);
    sv->traces = traces_new(sv->loop, arena_printf(g->mem, "%.*s/%lld", STR_ARG(writer->node),
                                                   (long long)writer->number));
    traces_apply(sv->traces, sv->front->config->otlp);
    g->api.traces = sv->traces;
    undelivered_use(sv->undelivered, sv->lanes);
    undelivered_set_life(sv->undelivered, sv->front->config->undelivered_ms);
    keyring_use(sv->keyring, sv->lanes);
    sv->secrets = secrets_new(sv->keyring);
    struct calls_config calls = {
        .loop = sv->loop,
        .audit = sv->audit,
        .lanes = sv->lanes,
        .keyring = sv->keyring,
        .undelivered = sv->undelivered,
        .traces = sv->traces,
        .config = &sv->front->config,
    };
    sv->calls = calls_new(&calls);
}

void gateway_start_sessions(struct gateway *g)
{
    struct services *sv = &g->sv;
    const struct writer_row *writer = storage_writer(g->storage);
    struct sessions_config sessions = {
        .has_bindings = g->has_bindings,
        .lanes = sv->lanes,
        .node = writer->node,
        .writer = writer->number,
        .max_resident = 10000,
        .is_shared = storage_is_shared(g->storage),
    };
    sv->sessions = sessions_new(&sessions);
    sessions_on_sealed(sv->sessions, on_session_sealed, g);
    sessions_on_handed_over(sv->sessions, on_handed_over, g);
}

static void on_identity_change(void *arg, const struct change_row *row)
{
    struct gateway *g = arg;

    identity_changed_elsewhere(g->front.identity, row);
}

void gateway_start_polling(struct gateway *g, int64_t after)
{
    struct services *sv = &g->sv;
    struct change_poller_config poller = {.loop = sv->loop, .lanes = sv->lanes, .after = after};
    struct change_listener identity = {.take = on_identity_change, .arg = g};

    g->poller = change_poller_new(&poller);
    change_poller_add(g->poller, &identity);
    change_poller_add(g->poller, &(struct change_listener){.take = gateway_on_change, .arg = g});
    struct remote_changes_config changes = {
        .lanes = sv->lanes,
        .sessions = sv->sessions,
        .poller = g->poller,
        .ended = on_ended_elsewhere,
        .transport_ended = on_transport_ended_elsewhere,
        .toolsets_changed = on_toolsets_changed_elsewhere,
        .arg = g,
    };
    g->remote_changes = remote_changes_new(&changes);
}
