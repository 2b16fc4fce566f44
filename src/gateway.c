/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop order on one screen.
 *
 *   start: data directory → keeper (forked while there is one thread) → storage.c: store, writer,
 *          chain, spool drained, lost intents closed → lanes → audit → loop services → listeners →
 *          "ready"
 *   stop:  SIGTERM: no new connections, running calls finish (at most 25 s) → audit anchor →
 *          upstreams → keeper → lanes drained → store closed
 *
 * SIGHUP reloads the configuration, and so does a changed secret (gateway_reload.c): it swaps the
 * whole configuration, or logs the error and keeps the old one.  If the terminal of the process was
 * closed, SIGHUP stops the process like SIGTERM.  A SIGHUP during the start waits for the loop. */
#include "gateway_impl.h"

#include "audit/redact.h"
#include "audit/audit.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "config/datadir.h"
#include "exchange/pipe.h"
#include "exchange/sse2024.h"
#include "export/sign.h"
#include "feeds/api/watchers.h"
#include "identity/issuers.h"
#include "io/address.h"
#include "io/service.h"
#include "io/tls.h"
#include "front/front.h"
#include "erasure/erase.h"
#include "replay/replay.h"
#include "retention/retention.h"
#include "session/reaper.h"
#include "analytics/ages.h"
#include "session/remote_changes.h"
#include "session/session_gauges.h"
#include "session/session_metrics.h"
#include "session/share_store/verbs.h"
#include "session/sharing.h"
#include "sinks/sinks.h"
#include "store/redis_listen.h"
#include "trace/traces.h"
#include "upstream/health_store.h"
#include "upstream/keeper.h"
#include "upstream/pins.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define DRAIN_MS 25000
#define DRAIN_TICK_MS 20 /* the first one is the time for requests on connections just accepted */
#define FIRST_PIPE_MS 15000 /* time for the parent process to open the first pipe */
/* A client that ends its own server waits for it to exit. */
#define DRAIN_PIPES_MS (3 * PIPE_GRACE_MS)
#define FLUSH_MS 1000
#define MOST_SAID 20
#define FORGET_MS 60000 /* servers of an old configuration have 30 s to end */

static bool start_services(struct gateway *g, struct error *err)
{
    struct services *sv = &g->sv;
    struct storage_config storage = {.database = g->options.database,
                                     .data_dir = g->options.data_dir,
                                     .cache_prefix = sv->front->config->cache_prefix,
                                     .cache_ttl_ms = sv->front->config->cache_ttl_ms};
    if (g->options.redis.shown.p && sv->front->config->cache_enabled)
        storage.redis = &g->options.redis;

    int64_t after = 0;
    if (!storage_open(&storage, &g->storage, err) || !gateway_open_undelivered(g, err) ||
        !gateway_open_keyring(g, err) || !gateway_resolve(g, err) ||
        !gateway_open_token_key(g, err) ||
        (storage_is_shared(g->storage) &&
         !change_poller_position(storage_write_store(g->storage), &after, err)))
        return false;
    sv->pins = pins_new(sv->loop, storage_is_shared(g->storage));
    struct server_row *servers = NULL;
    size_t n_servers = 0;
    if (!pins_load(sv->pins, storage_write_store(g->storage), err) ||
        !store_has_bindings(storage_write_store(g->storage), &g->has_bindings, err) ||
        !health_load(storage_write_store(g->storage), g->mem, &servers, &n_servers, err))
        return false;
    list_init(&sv->before_call);
    sv->lanes = storage_run(g->storage, sv->loop);
    lanes_set_reserve(sv->lanes, (int64_t)sv->front->config->disk_reserve);
    g->database = storage_database(g->storage)->shown;
    if (!gateway_start_identity(g, err) || !gateway_start_quotas(g, err))
        return false;
    gateway_start_audit(g);
    gateway_start_sessions(g);
    if (storage_is_shared(g->storage))
        gateway_start_polling(g, after);
    if (!gateway_start_listening(g, err))
        return false;
    session_metrics_start();
    g->api.gauges = session_gauges_new(sv->loop, sv->lanes);
    gateway_start_registry(g);
    gateway_start_docs(g);
    gateway_start_delivery(g);
    g->health = health_new(sv->loop, sv->lanes, sv->upstreams, servers, n_servers);
    upstreams_apply(sv->upstreams, sv->front->config);
    upstreams_probe(sv->upstreams);
    g->reaper = reaper_new(sv->loop, sv->lanes, sv->sessions, sv->front->config);
    reaper_on_links(g->reaper, gateway_on_link_over, g);
    g->rollup_ages = rollup_ages_new(sv->loop, sv->lanes);
    g->retention = retention_new(sv->loop, sv->lanes, sv->audit, sv->front->config);
    gateway_add_routes(g);
    return true;
}

/* Certificates. */

/* *ret is the TLS context of the listener, or NULL without TLS.  The authorities of upstreams are
 * loaded only to report errors early; each upstream loads its own at first use. */
static bool load_tls(const struct config *c, struct tls_context **ret, struct error *err)
{
    struct tls_context *own = NULL, *tried;

    if (c->tls_cert.p && !tls_server_new(c->tls_cert.p, c->tls_key.p, &own, err))
        return c->tls_at.p ? error_wrap(err, "%.*s: holdfast.tls", STR_ARG(c->tls_at))
                           : error_wrap(err, "holdfast.tls");
    for (size_t i = 0; i < c->n_servers; i++) {
        if (!c->servers[i].tls_ca.p)
            continue;
        if (!tls_client_new(c->servers[i].tls_ca.p, &tried, err)) {
            tls_free(own);
            struct str at = c->servers[i].tls_at;
            return error_wrap(err, "%.*s%smcpServers.%.*s.tls", STR_ARG(at), at.p ? ": " : "",
                              STR_ARG(c->servers[i].name));
        }
        tls_free(tried);
    }
    *ret = own;
    return true;
}

bool gateway_check_files(const struct config *config, struct error *err)
{
    struct tls_context *tls = NULL;

    if (!issuers_try(config, err) || !sinks_check(config, err) || !load_tls(config, &tls, err))
        return false;
    tls_free(tls);
    return true;
}

/* Without TLS there is no metric: 0 would read as a certificate that has expired. */
static void tell_certificate(const struct gateway *g)
{
    char until[TLS_DATE_TEXT];
    if (!g->tls)
        return;
    struct metric *expiry = metric_register(
        METRIC_GAUGE, "holdfast_certificate_expires_timestamp_seconds",
        "When the certificate of the listener expires, in seconds since 1970.", "", 1);

    metric_set(metric_cell(expiry, NULL, 0), tls_server_until_s(g->tls));
    tls_server_until(g->tls, until);
    log_info("serving TLS", LS("certificate", g->front.config->tls_cert), LZ("until", until));
}

/* Open connections keep the context they began with. */
static void swap_tls(struct gateway *g, struct tls_context *fresh)
{
    if (!fresh != !g->tls) {
        log_warn("\"tls\" is turned on or off only with a restart");
        tls_free(fresh);
        return;
    }
    if (!fresh)
        return;
    http_server_set_tls(g->server, fresh);
    tls_free(g->tls);
    g->tls = fresh;
    tell_certificate(g);
}

/* Listeners. */

/* Logs the URLs for clients. */
static void log_endpoints(const struct gateway *g, const char *address)
{
    const char *scheme = g->tls ? "https" : "http";

    if (g->front.config->n_servers > 1)
        log_info("serving all servers on one endpoint",
                 LS("url", arena_printf(g->mem, "%s://%s/mcp", scheme, address)));
    for (size_t i = 0; i < g->front.config->n_servers && i < MOST_SAID; i++) {
        struct str name = g->front.config->servers[i].name;
        struct str url = arena_printf(g->mem, "%s://%s/mcp/%.*s", scheme, address, STR_ARG(name));
        log_info("serving", LS("server", name), LS("url", url));
    }
    if (g->front.config->n_folders > 0)
        log_info("serving documents",
                 LS("url", arena_printf(g->mem, "%s://%s/mcp/docs", scheme, address)),
                 LI("folders", g->front.config->n_folders));
}

static bool listen_on(struct gateway *g, struct str where, bool is_unix, struct error *err)
{
    struct conn_address address;
    char text[160];
    int fd;

    if (!address_parse(where, &address, err))
        return false;
    fd = is_unix ? -1 : service_take_socket(g->options.service);
    if (fd < 0 && !address_listen(&address, &fd, err)) {
        struct str at = g->front.config->listen_at;
        err->code = ERR_CONFIG; /* any error of the kernel is a refused start */
        return !is_unix && at.p ? error_wrap(err, "%.*s", STR_ARG(at)) : false;
    }
    if (!is_unix) {
        address.len = sizeof(address.sa);
        if (getsockname(fd, (struct sockaddr *)&address.sa, &address.len) < 0)
            return error_set(err, ERR_INTERNAL,
                             "the address of the listening socket cannot be read");
        address_format(&address, text, sizeof(text));
        g->api.url = arena_printf(g->mem, "%s://%s", g->tls ? "https" : "http", text);
        if (!g->options.is_shown) {
            log_info("listening", LZ("address", text));
            log_endpoints(g, text);
        }
    }
    http_server_listen(g->server, fd, is_unix ? NULL : g->tls, is_unix);
    return true;
}

static bool start_listeners(struct gateway *g, struct error *err)
{
    struct http_server_config config = http_server_defaults;
    struct config *c = g->front.config;
    struct str socket;

    config.max_body = c->limit_body;
    if (!load_tls(c, &g->tls, err))
        return false;
    tell_certificate(g);
    g->server = http_server_new(g->sv.loop, &config, front_gate, front_handle, &g->front);
    if (!datadir_socket(g->options.data_dir, g->mem, &socket, err))
        return false;
    unlink(socket.p); /* no other process uses it: we hold the lock */
    return listen_on(g, arena_printf(g->mem, "unix:%.*s", STR_ARG(socket)), true, err) &&
           (g->options.only_control_socket || listen_on(g, c->listen, false, err));
}

/* Folders of documents are not checked here: src/docs opens them and reports errors. */
static void log_findings(const struct config *c)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct config_finding *found;
    size_t n = config_check_machine(c, false, mem, &found);

    for (size_t i = 0; i < n; i++)
        log_warn("configuration", LS("warning", found[i].text));
    arena_free(mem);
}

static void log_notes(const struct config *c)
{
    if (c->warning.p)
        log_warn("configuration", LS("warning", c->warning));
    for (size_t i = 0; i < c->n_notes; i++)
        log_info("configuration", LS("note", c->notes[i]));
    log_findings(c);
}

/* An event that the person at the terminal sees too, although the level for people is warn. */
static void log_notice(const struct gateway *g, const char *message, const char *key,
                       int64_t number)
{
    struct log_field field = LI(key, number);

    if (g->options.is_shown || log_threshold <= LOG_INFO)
        log_line(LOG_INFO, message, &field, 1);
}

/* Signals. */

/* The servers of the old configuration have ended, so redaction stops looking for its secrets. */
static void on_forget(void *arg)
{
    struct gateway *g = arg;

    known_publish(known_of_config(g->front.config, NULL));
}

static void publish_secrets(struct gateway *g, const struct config *fresh)
{
    known_publish(known_of_config(fresh, g->front.config));
    if (!g->forget)
        g->forget = loop_timer_new(g->sv.loop, on_forget, g);
    loop_timer_start(g->forget, FORGET_MS, 0);
}

static void replace_config(struct gateway *g)
{
    struct tls_context *tls = NULL;
    struct config *fresh = NULL;
    struct error err;

    if (!config_load(&g->options.source, &fresh, &err)) {
        log_error("the configuration was not reloaded; the old one stays", LZ("why", err.text));
        return;
    }
    if (!str_eq(fresh->listen, g->front.config->listen))
        log_warn("\"listen\" changes only with a restart", LS("now", g->front.config->listen));
    if (!config_keep_listener(fresh, g->front.config, &err) || !issuers_try(fresh, &err) ||
        !sinks_check(fresh, &err) || !load_tls(fresh, &tls, &err)) {
        log_error("the configuration was not reloaded; the old one stays", LZ("why", err.text));
        config_unref(fresh);
        return;
    }
    config_resolve(fresh, g->secrets.list, g->secrets.n);
    log_notes(fresh);
    if (!identity_apply(g->front.identity, fresh, &err)) {
        log_error("the configuration was not reloaded; the old one stays", LZ("why", err.text));
        tls_free(tls);
        config_unref(fresh);
        return;
    }
    publish_secrets(g, fresh);
    docs_apply(g->api.docs, fresh);
    upstreams_apply(g->sv.upstreams, fresh);
    upstreams_probe(g->sv.upstreams);
    reaper_apply(g->reaper, fresh);
    retention_apply(g->retention, fresh);
    quotas_apply(g->front.quotas, fresh);
    traces_apply(g->sv.traces, fresh->otlp);
    sinks_apply(g->sinks, fresh);
    undelivered_set_life(g->sv.undelivered, fresh->undelivered_ms);
    lanes_set_reserve(g->sv.lanes, (int64_t)fresh->disk_reserve);
    config_unref(g->front.config);
    g->front.config = fresh;
    swap_tls(g, tls);
    log_notice(g, "configuration reloaded", "servers", (int64_t)fresh->n_servers);
}

void gateway_reload(struct gateway *g)
{
    service_reloading(g->options.service);
    replace_config(g);
    service_notify(g->options.service, "READY=1");
}

static void on_anchored(void *arg)
{
    struct gateway *g = arg;
    g->anchored = true;
}

/* What still waits for receivers outside gets a moment, but none that do not answer. */
static bool is_flushed(const struct gateway *g)
{
    return (traces_are_flushed(g->sv.traces) && sinks_are_flushed(g->sinks)) ||
           clock_mono_ms() >= g->flush_until_ms;
}

/* While calls are running, an orderly shutdown is impossible.  It is also unnecessary: acknowledged
 * results are committed, the keeper kills every child when this process ends, and the next start
 * closes the open intents as indeterminate. */
static never_returns void leave_now(int status)
{
    log_stop();
    _exit(status);
}

/* Stops when no request is running and every reply has been flushed, or when the time is up. */
static void on_drain_tick(void *arg)
{
    struct gateway *g = arg;
    bool late = clock_mono_ms() >= g->drain_until_ms;

    if (g->anchored && is_flushed(g))
        loop_stop(g->sv.loop);
    if (!g->anchoring)
        http_server_drain(g->server); /* closes connections that became idle since */
    unsigned calls = calls_in_flight(g->sv.calls);
    bool busy = g->front.under_way > 0 || calls > 0 || http_server_flushing(g->server) > 0 ||
                pipes_count(g->sv.pipes) > 0;
    if (g->anchoring || (busy && !late))
        return;
    if (g->front.under_way > 0 || calls > 0) {
        log_warn("stopping with requests still under way", LI("requests", g->front.under_way),
                 LI("calls", calls));
        leave_now(1);
    }
    g->flush_until_ms = clock_mono_ms() + FLUSH_MS;
    traces_flush(g->sv.traces);
    sinks_flush(g->sinks);
    g->anchoring = g->front.closing = true;
    audit_anchor(g->sv.audit, on_anchored, g);
}

static void begin_stop(struct gateway *g)
{
    service_notify(g->options.service, "STOPPING=1\nSTATUS=finishing the calls under way");
    g->front.draining = true;
    g->drain_until_ms = clock_mono_ms() + (g->options.ends_with_pipes ? DRAIN_PIPES_MS : DRAIN_MS);
    http_server_stop_listening(g->server);
    streams_drain(g->sv.streams);
    hub_end_subscribers(g->sv.hub);
    http_server_drain(g->server);
    hub_end_asks(g->sv.hub);
    pipes_stop(g->sv.pipes);
    sse2024_stop(g->sv.sse2024);
    watchers_stop(g->api.watchers);
    g->drain = loop_timer_new(g->sv.loop, on_drain_tick, g);
    loop_timer_start(g->drain, DRAIN_TICK_MS, DRAIN_TICK_MS);
}

static void on_last_pipe(void *arg)
{
    struct gateway *g = arg;
    if (!g->front.draining)
        begin_stop(g);
}

/* Stops when no pipe was opened in time: the parent process is gone. */
static void on_first_pipe(void *arg)
{
    struct gateway *g = arg;
    if (pipes_count(g->sv.pipes) == 0)
        on_last_pipe(g);
}

static void on_terminate(void *arg, int signum)
{
    struct gateway *g = arg;

    if (g->front.draining) {
        log_warn("second signal: stopping at once", LI("signal", signum));
        leave_now(signum == SIGINT ? 130 : 1);
    }
    log_notice(g, "stopping: finishing what is under way", "requests", g->front.under_way);
    begin_stop(g);
}

static int own_terminal(void)
{
    return isatty(STDERR_FILENO) ? STDERR_FILENO : isatty(STDIN_FILENO) ? STDIN_FILENO : -1;
}

/* SIGHUP means that the terminal was closed, which ends the process, or that the configuration is
 * to be reloaded.  The kernel hangs up a terminal before its processes receive the signal. */
static void on_hangup(void *arg, int signum)
{
    struct gateway *g = arg;
    bool is_closed = g->terminal >= 0 && !isatty(g->terminal);

    if (!is_closed && !g->options.has_no_file)
        gateway_reload_soon(g);
    else if (!g->front.draining) /* the shell and the kernel may both send SIGHUP */
        on_terminate(g, signum);
}

static void harden(void)
{
    struct rlimit files, none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    signal(SIGPIPE, SIG_IGN);
}

/* Log lines are redacted by the same rules as the audit. */
static bool clean_text(struct str text, struct buf *out)
{
    return redact_line(NULL, text, out);
}

static void block_hangup(int how)
{
    sigset_t hangup;

    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    sigprocmask(how, &hangup, NULL);
}

static bool start(struct gateway *g, struct error *err)
{
    block_hangup(SIG_BLOCK); /* the lock names this process to those who ask for a reload */
    g->datadir = g->options.datadir;
    if ((!g->datadir && !datadir_own(g->options.data_dir, &g->datadir, err)) ||
        !keeper_start(&g->keeper, err))
        return false;
    known_publish(known_of_config(g->front.config, NULL));
    log_set_filter(clean_text);
    log_start();
    clock_life_continue(datadir_path(g->options.data_dir, "life-clock", g->mem).p);
    g->sv.loop = loop_new();
    loop_on_signal(g->sv.loop, SIGHUP, on_hangup, g);
    block_hangup(SIG_UNBLOCK);
    keeper_attach(g->keeper, g->sv.loop);
    if (!start_services(g, err) || !start_listeners(g, err))
        return false;
    loop_on_signal(g->sv.loop, SIGTERM, on_terminate, g);
    loop_on_signal(g->sv.loop, SIGINT, on_terminate, g);
    if (g->options.ends_with_pipes) {
        pipes_on_empty(g->sv.pipes, on_last_pipe, g);
        g->first_pipe = loop_timer_new(g->sv.loop, on_first_pipe, g);
        loop_timer_start(g->first_pipe, FIRST_PIPE_MS, 0);
    }
    return true;
}

static void free_keys(struct services *sv)
{
    hmac_key_free(sv->state_key);
    hmac_key_free(sv->context_key);
}

static void stop(struct gateway *g)
{
    struct services *sv = &g->sv;

    gateway_show_stop(g->show);
    gateway_stop_status(g);
    pipes_free(sv->pipes);
    sse2024_free(sv->sse2024);
    if (sv->streams)
        streams_free(sv->streams);
    if (g->server)
        http_server_free(g->server);
    loop_timer_free(g->drain);
    loop_timer_free(g->first_pipe);
    loop_timer_free(g->forget);
    storage_stop(g->storage);
    redis_listen_free(g->listen);
    change_poller_stop(g->poller);
    remote_changes_stop(g->remote_changes);
    if (sv->hub)
        hub_drain(sv->hub);
    health_stop(g->health);
    pins_stop(sv->pins);
    if (sv->upstreams)
        upstreams_free(sv->upstreams);
    if (sv->hub) {
        hub_free(sv->hub);
        deadline_class_release(&sv->slow_calls);
        deadline_class_release(&sv->quiet);
        free_keys(sv);
    }
    if (g->keeper)
        keeper_stop(g->keeper);
    if (sv->front->identity)
        identity_stop(sv->front->identity);
    logins_stop(g->api.logins);
    replays_stop(g->api.replays);
    sharing_stop(g->api.sharing);
    erasures_stop(g->api.erasures);
    docs_stop(g->api.docs);
    sinks_stop(g->sinks);
    retention_stop(g->retention);
    if (sv->lanes)
        lanes_free(sv->lanes);
    gateway_secrets_free(g);
    docs_free(g->api.docs);
    pins_free(sv->pins);
    health_free(g->health);
    logins_free(g->api.logins);
    replays_free(g->api.replays);
    erasures_free(g->api.erasures);
    identity_free(sv->front->identity);
    secrets_free(sv->secrets);
    keyring_free(sv->keyring);
    own_tokens_free(g->own_tokens);
    undelivered_free(sv->undelivered);
    reaper_free(g->reaper);
    rollup_ages_free(g->rollup_ages);
    retention_free(g->retention);
    remote_changes_free(g->remote_changes);
    change_poller_free(g->poller);
    session_gauges_free(g->api.gauges);
    registry_free(g->api.registry);
    sharing_free(g->api.sharing);
    export_key_free(g->api.export_key);
    if (sv->sessions)
        sessions_free(sv->sessions);
    if (sv->calls)
        calls_free(sv->calls);
    traces_free(sv->traces);
    quotas_free(sv->front->quotas);
    sinks_free(g->sinks);
    watchers_free(g->api.watchers);
    feed_free(g->feed);
    if (sv->audit)
        audit_free(sv->audit);
    if (sv->loop)
        loop_free(sv->loop);
    storage_close(g->storage);
    tls_free(g->tls);
    front_release(&g->front);
    config_unref(sv->front->config);
    log_stop();
    log_set_filter(NULL);
    known_publish(NULL);
    datadir_release(g->datadir);
    arena_free(g->mem);
}

int gateway_run(const struct gateway_options *options)
{
    struct gateway g = {
        .options = *options, .mem = arena_new(1024 * 1024), .terminal = own_terminal()};
    struct error err = {.code = ERR_NONE};

    g.front.config = options->config;
    g.sv.front = &g.front;
    if (options->config->file.p) { /* reload requires the same file to exist */
        g.options.source.file = arena_dup(g.mem, options->config->file);
        g.options.source.must_exist = true;
    }
    harden();
    log_notes(options->config);
    if (start(&g, &err)) {
        if (options->is_shown)
            g.show = gateway_show_start(&g);
        else if (options->on_ready)
            options->on_ready(options->ready_arg, g.api.url);
        else
            log_info("ready", LI("servers", g.front.config->n_servers),
                     LS("data", options->data_dir), LS("database", g.database),
                     LZ("version", HOLDFAST_VERSION));
        gateway_start_status(&g);
        loop_run(g.sv.loop);
    } else {
        log_error("cannot start", LZ("why", err.text));
    }
    stop(&g);
    return error_info(err.code)->exit_status;
}
