/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop order of the parts that a command needs.
 *
 *   to change: data directory → storage.c: store, writer, chain → lanes → audit → sessions →
 *              registry → identity
 *   to read:   read-only connections → lanes without a writer → identity */
#include "gateway_local.h"

#include "gateway_impl.h"

#include "api/api.h"
#include "audit/audit.h"
#include "audit/known.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/datadir.h"
#include "export/api/upload.h"
#include "erasure/erase.h"
#include "export/sign.h"
#include "front/front.h"
#include "http/server.h"
#include "identity/identity.h"
#include "session/registry.h"
#include "session/sharing.h"
#include "session/session.h"
#include "storage.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct gateway_local {
    struct gateway_local_options options;
    struct arena *mem;
    struct datadir *datadir;
    struct storage *storage; /* NULL: only reads */
    struct front front;
    struct api_services api;
    struct http_server *server;
    bool anchored;
    void (*on_pipe)(int signum); /* SIGPIPE as the command had it */
};

/* To end sessions.  Their servers run in no process here, so there are no links to close. */
static void start_sessions(struct gateway_local *g)
{
    struct api_services *sv = &g->api;
    const struct writer_row *writer = storage_writer(g->storage);
    struct sessions_config sessions = {.lanes = sv->lanes,
                                       .node = writer->node,
                                       .writer = writer->number,
                                       .max_resident = 1,
                                       .is_shared = storage_is_shared(g->storage)};

    sv->sessions = sessions_new(&sessions);
    struct registry_config registry = {.loop = sv->loop,
                                       .lanes = sv->lanes,
                                       .sessions = sv->sessions,
                                       .audit = sv->audit,
                                       .is_shared = sessions.is_shared};
    sv->registry = registry_new(&registry);
    struct sharing_config sharing = {
        .loop = sv->loop,
        .lanes = sv->lanes,
        .sessions = sv->sessions,
        .registry = sv->registry,
        .is_shared = sessions.is_shared,
    };
    sv->sharing = sharing_new(&sharing);
    sv->erasures = erasures_new(&(struct erasures_config){
        .loop = sv->loop,
        .lanes = sv->lanes,
        .registry = sv->registry,
        .config = (const struct config *const *)&g->front.config,
        .is_shared = sessions.is_shared,
    });
}

static bool open_for_changes(struct gateway_local *g, struct error *err)
{
    struct api_services *sv = &g->api;
    struct storage_config storage = {.database = g->options.database,
                                     .data_dir = g->options.data_dir,
                                     .patience_ms = STORAGE_NO_PATIENCE};

    if (!datadir_own(g->options.data_dir, &g->datadir, err))
        return false;
    sv->data_dir = g->options.data_dir;
    uploads_clear(sv->data_dir);
    clock_life_continue(datadir_path(g->options.data_dir, "life-clock", g->mem).p);
    if (!storage_open(&storage, &g->storage, err))
        return false;
    /* Only secrets need the keyring; other changes work without it. */
    struct str ignored;
    if (!gateway_keyring_new(g->storage, sv->loop, g->options.data_dir, g->mem, &sv->keyring,
                             &ignored, &sv->keyring_err))
        sv->keyring = NULL;
    sv->lanes = storage_run(g->storage, sv->loop);
    if (sv->keyring)
        keyring_use(sv->keyring, sv->lanes);
    struct audit_config audit = {
        .lanes = sv->lanes,
        .loop = sv->loop,
        .chain = storage_chain(g->storage),
        .writer = storage_writer(g->storage)->number,
        .spool = storage_spool(g->storage),
        .max_body = g->front.config->limit_audit_body,
        .anchor_file = datadir_path(g->options.data_dir, "audit-anchors.jsonl", g->mem),
    };
    g->api.audit = audit_new(&audit);
    g->api.export_key = gateway_export_key_new(storage_chain(g->storage));
    start_sessions(g);
    return true;
}

/* Without the key of the audit, exports are not signed. */
static void load_export_key(struct gateway_local *g)
{
    struct chain *chain;
    struct error ignored;
    bool is_own;
    struct str path = datadir_audit_key(g->options.data_dir, g->mem, &is_own);

    if (!chain_open(path, false, 0, &chain, &ignored))
        return;
    g->api.export_key = gateway_export_key_new(chain);
    chain_free(chain);
}

static bool open_for_reads(struct gateway_local *g, struct error *err)
{
    struct store_config how = {.read_only = true};
    struct lanes_config lanes = {0};

    if (!g->options.has_database)
        return true;
    if (!database_open(&g->options.database, how, &lanes.lookup, err))
        return false;
    if (!database_open(&g->options.database, how, &lanes.query, err)) {
        store_close(lanes.lookup);
        return false;
    }
    g->api.lanes = lanes_new(g->api.loop, &lanes);
    load_export_key(g);
    return true;
}

static bool start(struct gateway_local *g, struct error *err)
{
    struct api_services *sv = &g->api;
    struct http_server_config server = http_server_defaults;

    sv->loop = loop_new();
    sv->database = g->options.database.shown;
    sv->data_dir = g->options.data_dir;
    if (!(g->options.writes ? open_for_changes(g, err) : open_for_reads(g, err)))
        return false;
    struct identity_config identity = {.loop = sv->loop, .lanes = sv->lanes};
    if (!identity_new(&identity, g->front.config, &g->front.identity, err))
        return false;
    api_add_routes(sv);
    g->server = http_server_new(sv->loop, &server, front_gate, front_handle, &g->front);
    return true;
}

bool gateway_local_open(const struct gateway_local_options *options, struct gateway_local **ret,
                        struct error *err)
{
    struct gateway_local *g = xcalloc(1, sizeof(*g));

    g->options = *options;
    g->mem = arena_new(64 * 1024);
    g->front.config = config_ref(options->config);
    g->api.front = &g->front;
    g->on_pipe = signal(SIGPIPE, SIG_IGN);
    if (log_threshold < LOG_ERROR) /* the command itself says what was done */
        log_threshold = LOG_ERROR;
    known_publish(known_of_config(g->front.config, NULL));
    if (!start(g, err)) {
        gateway_local_close(g);
        return false;
    }
    *ret = g;
    return true;
}

bool gateway_local_connect(struct gateway_local *g, int *ret_fd, struct error *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return error_sys(err, ERR_INTERNAL, errno, "cannot open a socket");
    http_server_adopt(g->server, ends[1], true);
    *ret_fd = ends[0];
    return true;
}

void gateway_local_turn(struct gateway_local *g)
{
    loop_turn(g->api.loop);
}

static void on_anchored(void *arg)
{
    ((struct gateway_local *)arg)->anchored = true;
}

/* The audit of a command is short-lived, so the chain ends with an anchor. */
static void write_anchor(struct gateway_local *g)
{
    audit_anchor(g->api.audit, on_anchored, g);
    while (!g->anchored)
        loop_turn(g->api.loop);
}

void gateway_local_close(struct gateway_local *g)
{
    if (!g)
        return;
    if (g->api.audit && g->server)
        write_anchor(g);
    http_server_free(g->server);
    storage_stop(g->storage);
    if (g->front.identity)
        identity_stop(g->front.identity);
    erasures_stop(g->api.erasures);
    sharing_stop(g->api.sharing);
    lanes_free(g->api.lanes);
    erasures_free(g->api.erasures);
    registry_free(g->api.registry);
    sharing_free(g->api.sharing);
    export_key_free(g->api.export_key);
    if (g->api.sessions)
        sessions_free(g->api.sessions);
    identity_free(g->front.identity);
    keyring_free(g->api.keyring);
    if (g->api.audit)
        audit_free(g->api.audit);
    if (g->api.loop)
        loop_free(g->api.loop);
    storage_close(g->storage);
    front_release(&g->front);
    config_unref(g->front.config);
    known_publish(NULL);
    datadir_release(g->datadir);
    signal(SIGPIPE, g->on_pipe);
    arena_free(g->mem);
    free(g);
}
