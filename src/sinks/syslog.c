/* SPDX-License-Identifier: Apache-2.0 */
/* A sink to a syslog server: messages of RFC 5424, counted by octets (RFC 6587, 5425), over TLS or, to
 * this machine alone, over TCP.
 *
 *   <110>1 2026-11-19T09:02:03.456Z NODE holdfast WRITER outcome - {"id":"7.120",…}
 *
 * Syslog has no acknowledgement.  A batch counts as taken when the system of the receiver has
 * acknowledged its bytes.  A receiver that ends before it has read them breaks the connection, so what
 * was sent last is kept, and sent again on the next connection. */
#include "sinks/out.h"

#include "audit/event_id.h"
#include "audit/event_json.h"
#include "base/clock.h"
#include "io/address.h"
#include "io/conn.h"
#include "io/tls.h"
#include "sinks/syslog.h"

#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define FACILITY 13 /* log audit */
#define LATE_MS 10000
#define ACKNOWLEDGED_POLL_MS 5
#define RECENT_MAX ((size_t)256 << 10) /* and at least one batch */

enum severity { SEVERITY_WARNING = 4, SEVERITY_NOTICE, SEVERITY_INFO };

struct syslog_out {
    struct sink_out out;
    struct sink_out_config config;
    char *host, *node;
    uint16_t port;
    struct tls_context *tls; /* NULL: TCP */
    struct address_lookup *lookup;
    struct conn *conn; /* NULL: not connected */
    bool is_open;
    const struct sink_batch *batch; /* on its way; NULL: none */
    bool is_written;
    struct buf recent; /* what was sent last */
    bool resends;      /* the connection that carried `recent` is lost */
    struct loop_timer *poll, *late;
};

bool syslog_url_parse(struct str url, struct str *ret_host, uint16_t *ret_port)
{
    struct str rest = str_n(url.p + strlen("tls://"), url.n - strlen("tls://"));
    size_t colon = rest.n;
    uint64_t port;

    while (colon > 0 && rest.p[colon - 1] != ':')
        colon--;
    if (colon < 2 || !str_to_u64(str_n(rest.p + colon, rest.n - colon), 65535, &port))
        return false;
    *ret_host = str_n(rest.p, colon - 1);
    *ret_port = (uint16_t)port;
    return true;
}

static bool is_plain(struct str url)
{
    return str_starts(url, STR("tcp://"));
}

/* Other machines could read the events on the way. */
bool syslog_url_check(struct str url, struct error *err)
{
    struct conn_address address;
    struct error not_numeric;

    if (!is_plain(url) || (address_parse(str_n(url.p + strlen("tcp://"), url.n - strlen("tcp://")),
                                         &address, &not_numeric) &&
                           address_is_loopback(&address)))
        return true;
    return error_set(err, ERR_CONFIG,
                     "tcp:// is for a receiver on this machine (localhost, 127.0.0.1 or [::1]); "
                     "use tls:// for another one");
}

static void disconnect(struct syslog_out *o)
{
    address_resolve_cancel(o->lookup);
    o->lookup = NULL;
    conn_close(o->conn);
    o->conn = NULL;
    o->is_open = false;
    o->resends = o->recent.n > 0;
    loop_timer_stop(o->poll);
    loop_timer_stop(o->late);
}

static void syslog_free(struct sink_out *out)
{
    struct syslog_out *o = container_of(out, struct syslog_out, out);

    disconnect(o);
    loop_timer_free(o->poll);
    loop_timer_free(o->late);
    tls_free(o->tls);
    buf_release(&o->recent);
    free(o->host);
    free(o->node);
    free(o);
}

/* Messages. */

static enum severity severity_of(const struct event_row *e)
{
    if (!e)
        return SEVERITY_WARNING;
    if (e->outcome.n && !str_eq(e->outcome, STR("ok")) && !str_eq(e->outcome, STR("redelivered")))
        return SEVERITY_WARNING;
    return e->kind == EVENT_SYSTEM ? SEVERITY_NOTICE : SEVERITY_INFO;
}

static void syslog_add(struct sink_out *out, const struct sink_item *item, struct buf *to)
{
    struct syslog_out *o = container_of(out, struct syslog_out, out);
    const struct event_row *e = item->row;
    const char *kind = e ? event_kind_name((int)e->kind) : "removed";
    struct buf message;
    char time[CLOCK_TEXT], writer[24] = "-";

    clock_format(e ? e->at_ms : item->at_ms, time);
    if (e)
        snprintf(writer, sizeof(writer), "%lld", (long long)event_id_writer(e->id));
    buf_init(&message, SIZE_MAX);
    buf_addf(&message, "<%d>1 %s %s holdfast %s %s - ", FACILITY * 8 + (int)severity_of(e), time,
             *o->node ? o->node : "-", writer, kind ? kind : "-");
    sink_item_write(item, &message);
    buf_addf(to, "%zu ", message.n);
    buf_addstr(to, buf_str(&message));
    buf_release(&message);
}

/* Sending. */

static void fail(struct syslog_out *o, const char *why)
{
    struct sink_answer a = {.result = SINK_LATER, .why = why};
    bool waits = o->batch != NULL;

    o->batch = NULL;
    disconnect(o);
    if (waits)
        o->config.done(o->config.arg, &a);
}

static void remember(struct syslog_out *o)
{
    if (o->recent.n + o->batch->bytes.n > RECENT_MAX)
        buf_reset(&o->recent);
    buf_addstr(&o->recent, buf_str(&o->batch->bytes));
}

static void on_poll(void *arg)
{
    struct syslog_out *o = arg;
    struct sink_answer a = {.result = SINK_TAKEN};
    int left = 0;

    if (!o->batch || !o->is_written || conn_queued(o->conn))
        return;
    if (ioctl(conn_fd(o->conn), SIOCOUTQ, &left) == 0 && left > 0)
        return;
    loop_timer_stop(o->poll);
    loop_timer_stop(o->late);
    remember(o);
    o->batch = NULL;
    o->config.done(o->config.arg, &a);
}

static void on_late(void *arg)
{
    struct syslog_out *o = arg;

    fail(o, o->is_open ? "it did not take the events within 10 s"
                       : "it could not be reached within 10 s");
}

static void write_batch(struct syslog_out *o)
{
    struct iovec parts[] = {{o->recent.p, o->resends ? o->recent.n : 0},
                            {o->batch->bytes.p, o->batch->bytes.n}};
    bool has_recent = parts[0].iov_len > 0;

    o->resends = false;
    /* The queue has no bound, so nothing is refused. */
    o->is_written = conn_write(o->conn, has_recent ? parts : parts + 1, has_recent ? 2 : 1);
    loop_timer_start(o->poll, 1, ACKNOWLEDGED_POLL_MS);
}

static void on_open(void *arg)
{
    struct syslog_out *o = arg;

    o->is_open = true;
    if (o->batch)
        write_batch(o);
}

static void on_bytes(void *arg unused_arg, struct str bytes unused_arg)
{
    /* A receiver has nothing to say. */
}

static void on_eof(void *arg)
{
    fail(arg, "it closed the connection");
}

static void on_error(void *arg, const struct error *e)
{
    fail(arg, e->text);
}

static const struct conn_events events = {
    .on_open = on_open, .on_bytes = on_bytes, .on_eof = on_eof, .on_error = on_error};

static void on_resolved(void *arg, const struct conn_address *a, const struct error *e)
{
    struct syslog_out *o = arg;
    char name[256];
    size_t n = strlen(o->host);

    o->lookup = NULL;
    if (e) {
        fail(o, e->text);
        return;
    }
    bool is_v6 = o->host[0] == '[' && n > 2;
    snprintf(name, sizeof(name), "%.*s", (int)(is_v6 ? n - 2 : n), o->host + is_v6);
    o->conn = conn_dial(o->config.loop, a, o->tls, name, &events, o);
    conn_set_max_queue(o->conn, SIZE_MAX / 2); /* a batch and `recent` bound it */
}

static void syslog_send(struct sink_out *out, const struct sink_batch *b)
{
    struct syslog_out *o = container_of(out, struct syslog_out, out);

    o->batch = b;
    o->is_written = false;
    loop_timer_start(o->late, LATE_MS, 0);
    if (o->is_open)
        write_batch(o);
    else if (!o->conn && !o->lookup)
        o->lookup = address_resolve(o->config.loop, str_of(o->host), o->port, on_resolved, o);
}

static bool syslog_make(const struct sink_out_config *c, struct sink_out **ret, struct error *err)
{
    const struct server_config *to = &c->config->target;
    struct tls_context *tls = NULL;
    struct str host, node = c->node;
    uint16_t port;

    if (to->refusal.p)
        return error_set(err, ERR_CONFIG, "%.*s", STR_ARG(to->refusal));
    if (!syslog_url_parse(to->url, &host, &port))
        return error_set(err, ERR_CONFIG, "\"url\" is not tls://HOST:PORT");
    if (!syslog_url_check(to->url, err) ||
        (!is_plain(to->url) && !tls_client_new(to->tls_ca.p, &tls, err)))
        return false;
    struct syslog_out *o = xcalloc(1, sizeof(*o));
    o->out.type = &sink_syslog;
    o->config = *c;
    o->config.config = NULL;
    o->host = strndup(host.p, host.n);
    o->node = strndup(node.p, node.n < 255 ? node.n : 255);
    o->port = port;
    o->tls = tls;
    for (char *p = o->node; *p; p++)
        *p = *p > ' ' && *p < 0x7f ? *p : '_';
    buf_init(&o->recent, SIZE_MAX);
    o->late = loop_timer_new(c->loop, on_late, o);
    o->poll = loop_timer_new(c->loop, on_poll, o);
    *ret = &o->out;
    return true;
}

const struct sink_out_type sink_syslog = {syslog_make, syslog_add, syslog_send, syslog_free};
