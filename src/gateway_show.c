/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the person at the terminal.  Calls come from the publish point, after their outcome is
 * committed, so no call waits for its line.  At most LINES_PER_S are written in a second; the
 * others are counted.  The states of servers are looked at once in a while, because a state also
 * changes by time alone. */
#include "gateway_show.h"

#include "audit/publish.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway_impl.h"
#include "upstream/catalog.h"

#include <stdlib.h>

#define LOOK_MS 200
#define LINES_PER_S 50
#define SERVERS_SHOWN 20
#define NAME_COLUMNS 20

struct gateway_show {
    struct gateway *g;
    struct audit_subscriber subscriber;
    struct loop_timer *tick;
    struct map states; /* name → struct seen; of the servers that are shown */
    int64_t second;    /* in which `lines` were written */
    unsigned lines;
    uint64_t left_out;
};

struct seen {
    enum health_state state;
    char name[];
};

void show_cut(struct buf *out, struct str text, size_t columns, bool pad)
{
    char shown[512];
    size_t n = 0;
    const char *p = shown;

    log_escape_cut(shown, sizeof(shown), text);
    for (; *p; p++) {
        bool begins = ((unsigned char)*p & 0xc0) != 0x80;
        if (begins && n == columns - 1 && p[1] && strlen(p) > 1) {
            const char *q = p + 1;
            while (((unsigned char)*q & 0xc0) == 0x80)
                q++;
            if (*q) { /* more than one character is left for the last column */
                buf_addz(out, "…");
                n++;
                break;
            }
        }
        n += begins;
        buf_addc(out, *p);
    }
    for (; pad && n < columns; n++)
        buf_addc(out, ' ');
}

static void add_duration(struct buf *out, int64_t us)
{
    if (us < 0)
        return;
    if (us < 10000)
        buf_addf(out, "%7.1f ms", (double)us / 1000);
    else if (us < 10000000)
        buf_addf(out, "%7lld ms", (long long)(us / 1000));
    else
        buf_addf(out, "%7lld s", (long long)(us / 1000000));
}

static void add_outcome(struct buf *out, struct str outcome, bool colour)
{
    bool is_ok = str_eq(outcome, STR("ok")) || str_eq(outcome, STR("redelivered"));

    if (colour)
        buf_addz(out, is_ok ? "\033[32m" : "\033[31m");
    show_cut(out, outcome, 13, true);
    if (colour)
        buf_addz(out, "\033[0m");
}

bool show_call(struct buf *out, const struct event_row *e, struct str client, bool colour)
{
    bool ends = e->kind == EVENT_OUTCOME || e->kind == EVENT_RECORD || e->kind == EVENT_NOTE;
    char time[CLOCK_LOCAL_TEXT];
    struct buf what;

    if (!ends || (!e->tool.n && e->kind != EVENT_OUTCOME))
        return false;
    clock_format_local(e->at_ms, time);
    buf_addf(out, "%s  ", time);
    show_cut(out, client.n ? client : e->owner, 14, true);
    buf_addz(out, "  ");
    buf_init(&what, 8192);
    if (e->server.n)
        buf_addf(&what, "%.*s.", STR_ARG(str_cut(e->server, 200)));
    buf_addstr(&what, str_cut(e->tool.n ? e->tool : e->method, 300));
    show_cut(out, buf_str(&what), 27, true);
    buf_release(&what);
    buf_addz(out, "  ");
    add_outcome(out, e->outcome, colour);
    add_duration(out, e->duration_us);
    buf_addc(out, '\n');
    return true;
}

/* The servers. */

static void add_state(struct buf *out, struct upstream *u, const struct upstream_health *h)
{
    const struct catalog *known = upstream_known(u);

    if (h->state == HEALTH_UNKNOWN) {
        buf_addz(out, "starting"); /* every server is probed at the start */
    } else if (h->state == HEALTH_DOWN) {
        buf_addz(out, "failed: ");
        show_cut(out, str_of(h->last_error[0] ? h->last_error : h->reason), 200, false);
    } else if (known) {
        size_t n = known->lists[CATALOG_TOOLS].n;
        buf_addf(out, "%zu tool%s", n, n == 1 ? "" : "s");
        if (known->version.n) {
            buf_addz(out, ", ");
            show_cut(out, known->version, 16, false);
        }
        if (h->state == HEALTH_DEGRADED)
            buf_addf(out, "; %s", h->reason);
    } else {
        buf_addz(out, health_state_name(h->state));
    }
}

static bool is_shown(const struct gateway_show *s, struct upstream *u)
{
    const struct config *c = s->g->front.config;

    for (size_t i = 0; i < c->n_builtins; i++)
        if (str_eq(c->builtins[i].name, upstream_name(u)))
            return c->n_servers == 0 && str_eq(upstream_name(u), STR("sample"));
    return true;
}

static struct seen *seen_of(struct gateway_show *s, struct str name)
{
    struct seen *seen = map_get(&s->states, name);

    if (seen)
        return seen;
    seen = xcalloc(1, sizeof(*seen) + name.n + 1);
    memcpy(seen->name, name.p, name.n);
    map_put(&s->states, str_n(seen->name, name.n), seen);
    return seen;
}

struct server_lines {
    struct gateway_show *show;
    struct buf *out;
    size_t n;
};

static void add_server(void *arg, struct upstream *u)
{
    struct server_lines *l = arg;
    struct upstream_health h = upstream_health(u);

    if (!is_shown(l->show, u) || l->n++ >= SERVERS_SHOWN)
        return;
    seen_of(l->show, upstream_name(u))->state = h.state;
    buf_addz(l->out, l->n == 1 ? "  servers   " : "            ");
    show_cut(l->out, upstream_name(u), NAME_COLUMNS, true);
    buf_addz(l->out, "  ");
    add_state(l->out, u, &h);
    buf_addc(l->out, '\n');
}

/* A changed state is one line.  The log already has a line for each failed start. */
static void look_at(void *arg, struct upstream *u)
{
    struct gateway_show *s = arg;
    struct upstream_health h = upstream_health(u);
    struct seen *seen;
    char time[CLOCK_LOCAL_TEXT];
    struct buf out;

    if (!is_shown(s, u) || (seen = seen_of(s, upstream_name(u)))->state == h.state)
        return;
    bool was_down = seen->state == HEALTH_DOWN;
    seen->state = h.state;
    if (h.state == HEALTH_UNKNOWN || (h.state == HEALTH_DOWN && upstream_has_failed_start(u)))
        return;
    buf_init(&out, 8192);
    clock_format_local(clock_wall_ms(), time);
    buf_addf(&out, "%s  ", time);
    show_cut(&out, upstream_name(u), NAME_COLUMNS, false);
    buf_addz(&out, h.state == HEALTH_DOWN ? " " : was_down ? " is up again: " : " is up: ");
    add_state(&out, u, &h);
    buf_addc(&out, '\n');
    log_show(buf_str(&out));
    buf_release(&out);
}

/* Calls. */

static void show_left_out(struct gateway_show *s)
{
    struct buf out;

    if (!s->left_out)
        return;
    buf_init(&out, 256);
    buf_addf(&out, "          and %llu more calls; holdfast audit list shows all of them\n",
             (unsigned long long)s->left_out);
    s->left_out = 0;
    log_show(buf_str(&out));
    buf_release(&out);
}

static void on_tick(void *arg)
{
    struct gateway_show *s = arg;

    upstreams_each(s->g->sv.upstreams, look_at, s);
    if (clock_mono_ms() / 1000 != s->second)
        show_left_out(s);
}

static bool has_room(struct gateway_show *s)
{
    int64_t second = clock_mono_ms() / 1000;

    if (second != s->second) {
        show_left_out(s);
        s->second = second;
        s->lines = 0;
    }
    return s->lines < LINES_PER_S;
}

static void show_event(struct gateway_show *s, const struct event_row *e)
{
    const struct session *session =
        e->session_id.n ? sessions_by_id(s->g->sv.sessions, e->tenant, e->session_id) : NULL;
    bool room = has_room(s);
    struct buf out;

    buf_init(&out, 8192);
    if (show_call(&out, e, session ? session->client_name : STR_NONE, log_in_colour())) {
        if (room)
            log_show(buf_str(&out));
        s->lines += room;
        s->left_out += !room;
    }
    buf_release(&out);
}

static void on_events(struct audit_subscriber *subscriber, const struct event_row *rows, size_t n)
{
    struct gateway_show *s = container_of(subscriber, struct gateway_show, subscriber);

    for (size_t i = 0; i < n; i++)
        show_event(s, &rows[i]);
}

/* The start. */

static bool is_usual(struct str data_dir)
{
    struct arena *mem = arena_new(4096);
    struct str usual;
    struct error err;
    bool same = config_data_dir(STR_NONE, mem, &usual, &err) && str_eq(usual, data_dir);

    arena_free(mem);
    return same;
}

void show_connect(struct buf *out, struct str url, bool auth_required, struct str data_dir,
                  const char *indent)
{
    buf_addz(out, auth_required ? "holdfast key create" : "holdfast connect claude-code");
    if (!is_usual(data_dir)) {
        buf_addz(out, " --data ");
        show_cut(out, data_dir, 400, false);
    }
    buf_addf(out, "\n%s", indent);
    buf_addf(out, "claude mcp add --transport http holdfast %.*s/mcp", STR_ARG(url));
    if (auth_required)
        buf_addf(out, " \\\n%s  --header \"Authorization: Bearer KEY\"", indent);
    buf_addc(out, '\n');
}

static void add_addresses(struct buf *out, const struct gateway *g)
{
    const struct config *c = g->front.config;

    buf_addf(out, "  address   %.*s/mcp\n", STR_ARG(g->api.url));
    for (size_t i = 0; i < c->n_servers && i < SERVERS_SHOWN; i++)
        buf_addf(out, "            %.*s/mcp/%.*s\n", STR_ARG(g->api.url),
                 STR_ARG(c->servers[i].name));
    if (c->n_servers > SERVERS_SHOWN)
        buf_addf(out, "            and %zu more\n", c->n_servers - SERVERS_SHOWN);
    if (c->n_folders)
        buf_addf(out, "            %.*s/mcp/docs\n", STR_ARG(g->api.url));
}

static void add_path(struct buf *out, const char *name, struct str path)
{
    buf_addf(out, "  %-8s  ", name);
    show_cut(out, path, 400, false);
    buf_addc(out, '\n');
}

static void add_start(struct buf *out, struct gateway_show *s)
{
    const struct gateway *g = s->g;
    const struct config *c = g->front.config;
    struct server_lines lines = {.show = s, .out = out};

    buf_addf(out, "Holdfast %s is ready.  Ctrl-C stops it.\n\n", HOLDFAST_VERSION);
    add_addresses(out, g);
    upstreams_each(g->sv.upstreams, add_server, &lines);
    if (lines.n > SERVERS_SHOWN)
        buf_addf(out, "            and %zu more; see holdfast servers list\n",
                 lines.n - SERVERS_SHOWN);
    buf_addz(out, "  connect   ");
    show_connect(out, g->api.url, c->auth_required, g->options.data_dir, "            ");
    add_path(out, "data", g->options.data_dir);
    add_path(out, "config", c->file.p ? c->file : STR("none; holdfast.json would be used"));
    buf_addc(out, '\n');
}

struct gateway_show *gateway_show_start(struct gateway *g)
{
    struct gateway_show *s = xcalloc(1, sizeof(*s));
    struct buf out;

    s->g = g;
    buf_init(&out, 256 * 1024);
    add_start(&out, s);
    struct str rest = buf_str(&out);
    while (rest.n) { /* a line at a time, as all other lines */
        size_t n = str_find(rest, '\n');
        n += n < rest.n;
        log_show(str_n(rest.p, n));
        rest = str_n(rest.p + n, rest.n - n);
    }
    buf_release(&out);
    s->subscriber.on_events = on_events;
    audit_subscribe(g->sv.audit, &s->subscriber);
    s->tick = loop_timer_new(g->sv.loop, on_tick, s);
    loop_timer_start(s->tick, LOOK_MS, LOOK_MS);
    return s;
}

void gateway_show_stop(struct gateway_show *s)
{
    struct str name;
    void *seen;

    if (!s)
        return;
    audit_unsubscribe(s->g->sv.audit, &s->subscriber);
    loop_timer_free(s->tick);
    for (size_t at = 0; map_next(&s->states, &at, &name, &seen);)
        free(seen);
    map_release(&s->states);
    free(s);
}
