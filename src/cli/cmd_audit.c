/* SPDX-License-Identifier: Apache-2.0 */
/* holdfast audit tail|list|events|show|verify (audit_upkeep.c has the other verbs): reads the record of calls as a client of
 * /api/v1/audit.  Lists go to stdout as aligned columns or, with --json, as one object per
 * line.  verify reads the database itself, which is several times as fast.  A broken chain gives
 * exit status 8. */
#include "cli/cli.h"

#include "audit/chain.h"
#include "audit/checkpoint.h"
#include "audit/event_id.h"
#include "audit/event_json.h"
#include "audit/executions.h"
#include "base/clock.h"
#include "cli/audit_follow.h"
#include "cli/audit_list.h"
#include "cli/audit_poll.h"
#include "cli/audit_upkeep.h"
#include "cli/audit_view.h"
#include "cli/inventory.h"
#include "cli/source.h"
#include "cli/table.h"
#include "cli/when.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL_DEFAULT 20
#define LIST_DEFAULT 50
#define ROWS_MAX 1000000000

struct audit_cmd {
    struct cli *cli;
    bool json, colour, follows;
    int terminal; /* stdout, also behind a pager */
    struct source from;
    struct str data_dir; /* absent with --url */
    struct event_source *source;
    struct buf out;
    struct table table; /* of the list, story or events; columns == NULL: none yet */
    struct audit_when when;
    int64_t since_ms, until_ms; /* 0: any */
};

static bool open_source(struct audit_cmd *c, struct error *err)
{
    if (!source_open(c->cli, SOURCE_READS, &c->from, err))
        return false;
    c->data_dir = c->from.place.data_dir;
    c->source = event_source_of_daemon(control_get, c->from.control);
    return true;
}

/* Every value of event_row.outcome, and "open" for a call without an outcome. */
static const char *const outcomes[] = {
    "ok",      "tool_error",    "error",         "timeout",     "cancelled",
    "refused", "upstream_lost", "indeterminate", "redelivered", "open",
};

static bool check_outcome(struct str word, struct error *err)
{
    struct cli_nearest near = cli_nearest_to(word);

    for (size_t i = 0; i < countof(outcomes); i++) {
        if (str_eq(word, str_of(outcomes[i])))
            return true;
        cli_nearest_offer(&near, outcomes[i]);
    }
    if (near.name)
        return error_set(err, ERR_USAGE, "there is no outcome \"%.*s\"; did you mean \"%s\"?",
                         (int)(word.n < 100 ? word.n : 100), word.p, near.name);
    return error_set(err, ERR_USAGE,
                     "there is no outcome \"%.*s\"; it is ok, tool_error, error, timeout, "
                     "cancelled, refused, upstream_lost, indeterminate, redelivered or open",
                     (int)(word.n < 100 ? word.n : 100), word.p);
}

static enum event_walk note_found(void *arg, const struct event_row *e unused_arg,
                                  struct error *err unused_arg)
{
    *(bool *)arg = true;
    return EVENT_WALK_STOP;
}

/* Whether any event at all matches this filter. */
static bool is_on_record(struct audit_cmd *c, const struct event_filter *alone, bool *ret,
                         struct error *err)
{
    struct event_filter filter = *alone;

    filter.kind = -1;
    filter.newest_first = true;
    *ret = false;
    return event_source_walk(c->source, &filter, note_found, ret, err);
}

/* Called when nothing was found: an unknown server or tool is an error, not an empty answer. */
static bool check_names(struct audit_cmd *c, const struct audit_list_ask *ask, struct error *err)
{
    struct event_filter of_server = {.server = ask->server}, of_tool = {.tool = ask->tool};
    struct inventory all = {c->cli, &c->from};
    bool found = true;

    if (ask->server.p && !is_on_record(c, &of_server, &found, err))
        return false;
    if (!found && c->data_dir.p && !inventory_has_server(&all, ask->server, err))
        return false;
    if (!found && !c->data_dir.p)
        return error_set(
            err, ERR_NOT_FOUND,
            "no recorded call to a server \"%.*s\"; run `holdfast servers list` for the names",
            STR_ARG(ask->server));
    found = true;
    if (ask->tool.p && !is_on_record(c, &of_tool, &found, err))
        return false;
    if (!found && c->data_dir.p && !inventory_has_tool(&all, ask->tool, err))
        return false;
    if (!found && !c->data_dir.p)
        return error_set(err, ERR_NOT_FOUND,
                         "no recorded call of a tool \"%.*s\"; `holdfast audit list` shows the "
                         "tools that were called",
                         STR_ARG(ask->tool));
    return true;
}

/* The same check for a session; the flag holds the beginning of its id. */
static bool check_session(struct audit_cmd *c, struct str session, struct error *err)
{
    struct audit_list_ask ask = {.session = session, .limit = 1};
    struct execution *rows;
    size_t n;

    if (!session.p)
        return true;
    if (!audit_list(c->from.control, &ask, c->cli->mem, &rows, &n, err))
        return false;
    return n ||
           error_set(err, ERR_NOT_FOUND,
                     "no recorded call of a session \"%.*s\"; `holdfast audit list` shows the ids",
                     (int)(session.n < 100 ? session.n : 100), session.p);
}

/* A time flag in the form of the API, in mem; absent without the flag. */
static bool time_flag(const struct audit_cmd *c, const char *name, int64_t *ret_ms, struct str *ret,
                      struct error *err)
{
    struct str text = str_of(cli_flag(c->cli, name));
    char time[CLOCK_TEXT];

    *ret_ms = 0;
    if (!text.p)
        return true;
    if (!when_parse(text, c->when.now_ms, c->when.utc, ret_ms))
        return error_set(err, ERR_USAGE,
                         "%s takes a duration such as 30m, 24h or 7d, a time such as 2026-11-17 or "
                         "\"2026-11-17 14:00\", today or yesterday",
                         name);
    clock_format(*ret_ms, time);
    *ret = arena_dup(c->cli->mem, str_of(time));
    return true;
}

static bool read_ask(struct audit_cmd *c, struct audit_list_ask *ret, struct error *err)
{
    const struct cli *cli = c->cli;

    *ret = (struct audit_list_ask){
        .server = str_of(cli_flag(cli, "--server")),
        .tool = str_of(cli_flag(cli, "--tool")),
        .session = str_of(cli_flag(cli, "--session")),
        .outcome = str_of(cli_flag(cli, "--outcome")),
        .user = str_of(cli_flag(cli, "--user")),
        .errors = cli_flag(cli, "--errors") != NULL,
    };
    return time_flag(c, "--since", &c->since_ms, &ret->since, err) &&
           time_flag(c, "--until", &c->until_ms, &ret->until, err) &&
           (!ret->outcome.p || check_outcome(ret->outcome, err));
}

/* The same for events, which are not joined to executions. */
static struct event_filter events_asked(const struct audit_cmd *c, const struct audit_list_ask *ask)
{
    return (struct event_filter){
        .kind = -1, .server = ask->server, .tool = ask->tool, .since_ms = c->since_ms};
}

static void add_json_rows(struct audit_cmd *c, const struct execution *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct js_writer w;
        js_begin(&w, &c->out);
        execution_to_json(&rows[i], &w);
        buf_addc(&c->out, '\n');
    }
}

static void begin_table(struct audit_cmd *c, enum audit_view_kind kind)
{
    if (!c->table.columns)
        audit_view_begin(&c->table, kind, table_terminal_width(c->terminal), c->colour);
}

static bool print_rows(struct audit_cmd *c, const struct execution *rows, size_t n,
                       enum audit_view_kind kind)
{
    if (c->json) {
        add_json_rows(c, rows, n);
        return cli_write_part(&c->out);
    }
    begin_table(c, kind);
    c->when.now_ms = clock_wall_ms();
    for (size_t i = 0; i < n; i++) {
        if (kind == AUDIT_VIEW_LIST)
            audit_view_list_row(&c->table, &rows[i], c->when);
        else
            audit_view_story_row(&c->table, &rows[i], c->when);
    }
    table_print(&c->table, &c->out);
    return cli_write_part(&c->out);
}

struct list_out {
    struct audit_cmd *cmd;
    bool any;
};

static bool list_some(void *arg, const struct execution *rows, size_t n)
{
    struct list_out *l = arg;
    l->any = true;
    return print_rows(l->cmd, rows, n, AUDIT_VIEW_LIST);
}

static bool run_list(struct audit_cmd *c, struct error *err)
{
    struct list_out out = {.cmd = c};
    struct audit_list_ask ask;
    struct execution *rows;
    size_t n;
    if (!read_ask(c, &ask, err) ||
        !cli_number_flag(c->cli, "--limit", LIST_DEFAULT, ROWS_MAX, &ask.limit, err))
        return false;
    ask.each = list_some;
    ask.arg = &out;
    if (!audit_list(c->from.control, &ask, c->cli->mem, &rows, &n, err))
        return false;
    if (n == 0 && (!check_names(c, &ask, err) || !check_session(c, ask.session, err)))
        return false;
    if (n == 0 && !c->json)
        fprintf(stderr, "no calls match; widen the search with a longer --since or fewer flags\n");
    return true;
}

/* Events that are not calls (EVENT_SYSTEM), such as changed tools, approvals and new keys. */
struct event_list {
    struct audit_cmd *cmd;
    unsigned left;
    bool any;
};

static enum event_walk add_event(void *arg, const struct event_row *e, struct error *err unused_arg)
{
    struct event_list *l = arg;
    struct js_writer w;

    if (l->cmd->until_ms && e->at_ms >= l->cmd->until_ms)
        return EVENT_WALK_ON;
    if (l->cmd->json) {
        js_begin(&w, &l->cmd->out);
        event_to_json(e, &w);
        buf_addc(&l->cmd->out, '\n');
    } else {
        begin_table(l->cmd, AUDIT_VIEW_EVENTS);
        audit_view_event(&l->cmd->table, e, l->cmd->when);
    }
    l->any = true;
    return --l->left && cli_write_part(&l->cmd->out) ? EVENT_WALK_ON : EVENT_WALK_STOP;
}

static bool run_events(struct audit_cmd *c, struct error *err)
{
    struct event_list l = {.cmd = c};
    struct audit_list_ask ask;

    if (!read_ask(c, &ask, err) ||
        !cli_number_flag(c->cli, "--limit", LIST_DEFAULT, ROWS_MAX, &l.left, err))
        return false;
    struct event_filter filter = events_asked(c, &ask);
    filter.kind = EVENT_SYSTEM;
    filter.newest_first = true;
    filter.with_bodies = c->json;
    if (!event_source_walk(c->source, &filter, add_event, &l, err) ||
        (!l.any && !check_names(c, &ask, err)))
        return false;
    if (l.any && !c->json)
        table_print(&c->table, &c->out);
    cli_write_part(&c->out);
    if (!l.any && !c->json)
        fprintf(stderr, "no events match; widen the search with a longer --since or fewer flags\n");
    return true;
}

/* An execution made from its outcome, note or record alone: each repeats the fields of the intent.
 * false: `e` is another event, or the filter excludes it. */
static bool ended_execution(const struct event_row *e, const struct audit_list_ask *ask,
                            struct execution *ret)
{
    if (e->kind != EVENT_OUTCOME && e->kind != EVENT_NOTE && e->kind != EVENT_RECORD)
        return false;
    *ret = (struct execution){
        .event = *e, .outcome = e->outcome, .error = e->error, .duration_us = e->duration_us};
    ret->event.id = e->exec;
    if (e->kind != EVENT_RECORD)
        ret->event.at_ms = e->at_ms - e->duration_us / 1000;
    return (!ask->outcome.p || str_eq(ask->outcome, e->outcome)) &&
           (!ask->errors || execution_failed(e->outcome)) &&
           (!ask->session.p || str_starts(e->session_id, ask->session));
}

struct following {
    struct audit_cmd *cmd;
    const struct audit_list_ask *ask;
    const struct execution *shown; /* the list before the first new call */
    size_t n_shown;
};

static bool passes(struct str wanted, struct str has)
{
    return !wanted.p || str_eq(wanted, has);
}

/* The stream has neither names nor arguments, so they are asked for.  A call that cannot be
 * read any more is shown without them. */
static void add_names(struct audit_cmd *c, struct execution *x, struct arena *mem)
{
    struct event_row *events;
    struct execution full;
    struct error err;
    struct str body;
    size_t n;

    if (audit_get(c->from.control, x->event.id, mem, &body, &err) &&
        audit_read_execution(body, mem, &full, &events, &n, &err)) {
        x->user = full.user;
        x->key = full.key;
        x->client = full.client;
        x->arguments = full.arguments;
        x->event.at_ms = full.event.at_ms;
    }
}

static bool has_user(const struct execution *x, struct str wanted)
{
    struct str rest = x->event.owner;

    str_split(&rest, ':');
    return !wanted.p || str_eq(wanted, x->user) || str_eq(wanted, x->key) ||
           str_eq(wanted, rest.p ? rest : x->event.owner);
}

/* False when stdout is closed.  The cursors are older than the list, so a call may be in both. */
static bool show_followed(void *arg, const struct event_row *e)
{
    struct following *f = arg;
    struct execution x;
    if (!passes(f->ask->server, e->server) || !passes(f->ask->tool, e->tool) ||
        !ended_execution(e, f->ask, &x))
        return true;
    for (size_t i = 0; i < f->n_shown; i++)
        if (f->shown[i].event.id == x.event.id && !str_eq(f->shown[i].outcome, STR("open")))
            return true;
    struct arena *mem = arena_new(SIZE_MAX / 4);
    add_names(f->cmd, &x, mem);
    bool ok = !has_user(&x, f->ask->user) || print_rows(f->cmd, &x, 1, AUDIT_VIEW_STORY);
    arena_free(mem);
    return ok;
}

/* Where --follow begins: read before the list, so that no call is missed between the two. */
struct tail_start {
    bool streams; /* a running Holdfast sends its events as they commit; else pages are read */
    struct position at;
    struct audit_cursors cursors; /* of pages */
};

/* Pages are read when no Holdfast runs; only PostgreSQL has several live writers then. */
static bool begin_follow(const struct audit_cmd *c, struct tail_start *ret, struct error *err)
{
    size_t max = c->from.place.database.is_postgres ? AUDIT_POLL_WRITERS : 1;

    *ret = (struct tail_start){.streams = !c->from.local &&
                                          audit_follow_now(c->from.control, &ret->at, err)};
    if (ret->streams)
        return true;
    if (!audit_cursors_read(c->source, c->from.local ? max : AUDIT_POLL_WRITERS, &ret->cursors,
                            err))
        return false;
    for (size_t i = ret->cursors.n; i-- > 0;)
        position_advance(&ret->at, ret->cursors.last[i]);
    return true;
}

static struct str filters_asked(const struct audit_cmd *c, const struct audit_list_ask *ask)
{
    struct arena *mem = c->cli->mem;
    struct str text = STR("types=outcome,note,record");

    if (ask->server.p)
        text = arena_printf(mem, "%.*s&server=%.*s", STR_ARG(text),
                            STR_ARG(source_encoded(ask->server, mem)));
    if (ask->tool.p)
        text = arena_printf(mem, "%.*s&tool=%.*s", STR_ARG(text),
                            STR_ARG(source_encoded(ask->tool, mem)));
    return text;
}

/* Ends only with an error, with a closed stdout, or by a signal. */
static bool follow(struct following *f, struct tail_start *from, struct error *err)
{
    struct audit_cmd *c = f->cmd;
    struct event_filter events = events_asked(c, f->ask);

    signal(SIGINT, SIG_DFL); /* a shell starts background commands with SIGINT ignored */
    if (from->streams)
        return audit_follow(c->from.control, filters_asked(c, f->ask), &from->at, show_followed, f,
                            err);
    return audit_poll(c->source, &events, &from->cursors, show_followed, f, err);
}

/* Drops calls that began after the start and are still open: --follow shows them when they end. */
static size_t drop_new_open(struct execution *rows, size_t n, const struct position *start)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!position_is_before(start, rows[i].event.id) || !str_eq(rows[i].outcome, STR("open")))
            rows[kept++] = rows[i];
    return kept;
}

static bool run_tail(struct audit_cmd *c, struct error *err)
{
    struct audit_list_ask ask;
    struct execution *rows;
    size_t n;
    struct tail_start start;
    bool follows = !cli_flag(c->cli, "--until") &&
                   (c->follows || cli_flag(c->cli, "--follow") || cli_flag(c->cli, "-f"));
    if (!read_ask(c, &ask, err) ||
        !cli_number_flag(c->cli, "-n", TAIL_DEFAULT, ROWS_MAX, &ask.limit, err) ||
        (follows && !begin_follow(c, &start, err)))
        return false;
    if (!audit_list(c->from.control, &ask, c->cli->mem, &rows, &n, err) ||
        (n == 0 && !check_names(c, &ask, err)))
        return false;
    if (follows)
        n = drop_new_open(rows, n, &start.at);
    for (size_t i = 0; i < n / 2; i++) {
        struct execution x = rows[i];
        rows[i] = rows[n - 1 - i];
        rows[n - 1 - i] = x;
    }
    struct following f = {c, &ask, rows, n};
    return !print_rows(c, rows, n, AUDIT_VIEW_STORY) || !follows || follow(&f, &start, err);
}

static bool run_show(struct audit_cmd *c, struct error *err)
{
    struct event_row *events;
    struct execution x;
    struct str body;
    int64_t id;
    size_t n;
    if (c->cli->n_args != 2 || !event_id_parse(str_of(c->cli->args[1]), &id))
        return error_set(err, ERR_USAGE,
                         "audit show needs the id of a call, such as audit show 3.1234; `holdfast "
                         "audit list` shows the ids");
    if (!audit_get(c->from.control, id, c->cli->mem, &body, err))
        return false;
    if (c->json) {
        buf_addstr(&c->out, body);
        buf_addc(&c->out, '\n');
    } else if (audit_read_execution(body, c->cli->mem, &x, &events, &n, err)) {
        audit_view_execution(&c->out, &x, events, n, c->colour);
    } else {
        return false;
    }
    cli_write_part(&c->out);
    return true;
}

/* Maps the file of anchors as it is now; absent when there is no such file. */
static bool map_anchors(struct audit_cmd *c, struct str *ret, struct error *err)
{
    struct str path = datadir_path(c->data_dir, "audit-anchors.jsonl", c->cli->mem);
    struct stat st;
    int fd = open(path.p, O_RDONLY | O_CLOEXEC);
    *ret = STR_NONE;
    if (fd < 0 && errno == ENOENT)
        return true;
    bool ok = fd >= 0 && fstat(fd, &st) == 0;
    if (ok && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = p != MAP_FAILED;
        if (ok)
            *ret = str_n(p, (size_t)st.st_size);
    }
    int saved = errno;
    if (fd >= 0)
        close(fd);
    return ok || error_sys(err, ERR_CONFIG, saved,
                           "the anchor file %s cannot be read; run this as its owner", path.p);
}

static enum event_walk verify_event(void *arg, const struct event_row *e, struct error *err)
{
    return chain_verify_event(arg, e, err) ? EVENT_WALK_ON : EVENT_WALK_FAIL;
}

/* One line for each tenant and rule: "12000 events of tenant default up to … were removed by …". */
static void add_removed(struct audit_cmd *c, const struct removed_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char newest[CLOCK_TEXT], at[CLOCK_TEXT];
        int64_t events = 0, newest_ms = 0;
        const struct removed_row *last = &rows[i];
        bool is_told = false;
        for (size_t k = 0; k < i; k++)
            is_told |= str_eq(rows[k].tenant, rows[i].tenant);
        for (size_t k = i; !is_told && k < n; k++) {
            if (!str_eq(rows[k].tenant, rows[i].tenant))
                continue;
            events += rows[k].last_seq - rows[k].first_seq + 1;
            newest_ms = rows[k].newest_ms > newest_ms ? rows[k].newest_ms : newest_ms;
            last = rows[k].removed_ms > last->removed_ms ? &rows[k] : last;
        }
        if (is_told)
            continue;
        clock_format(newest_ms, newest);
        clock_format(last->removed_ms, at);
        buf_addf(
            &c->out,
            "%lld events of tenant %.*s, written up to %s, were removed by retention; the last "
            "of them on %s by %.*s\n",
            (long long)events, STR_ARG(last->tenant), newest, at, STR_ARG(last->rule));
    }
}

static void add_report(struct audit_cmd *c, const struct chain_report *r,
                       const struct removed_row *removed, size_t n_removed)
{
    char time[CLOCK_TEXT] = "";
    struct js_writer w;
    if (r->last_anchor_ms)
        clock_format(r->last_anchor_ms, time);
    if (c->json) {
        js_begin(&w, &c->out);
        js_object(&w);
        js_kv_bool(&w, "ok", true);
        js_kv_int(&w, "events", (int64_t)r->events);
        js_kv_int(&w, "writers", (int64_t)r->writers);
        js_kv_int(&w, "anchors", (int64_t)r->anchors);
        js_kv_int(&w, "bodies_deleted", (int64_t)r->bodies_deleted);
        js_kv_string(&w, "last_anchor", r->last_anchor_ms ? str_of(time) : STR_NONE);
        js_kv_int(&w, "unproven", (int64_t)r->unproven);
        js_kv_int(&w, "removed", (int64_t)r->removed);
        js_key(&w, STR("checkpoints"));
        js_array(&w);
        for (size_t i = 0; i < n_removed; i++)
            checkpoint_write(&w, &removed[i]);
        js_array_end(&w);
        js_object_end(&w);
    } else {
        buf_addf(&c->out, "chain ok: %zu events, %zu writers, ", r->events, r->writers);
        buf_addf(&c->out, r->last_anchor_ms ? "last anchor %s" : "no anchor yet%s", time);
        if (r->bodies_deleted)
            buf_addf(&c->out, ", %zu bodies deleted", r->bodies_deleted);
        buf_addz(&c->out, "\n");
        add_removed(c, removed, n_removed);
        if (r->last_anchor_ms)
            buf_addf(&c->out,
                     "no event is missing up to the last anchor; %zu events came after it, and it "
                     "cannot be proved yet that these are all",
                     r->unproven);
        else
            buf_addf(&c->out, "it cannot be proved yet that the last events are all there: "
                              "Holdfast writes an anchor once a second while it runs");
    }
    buf_addc(&c->out, '\n');
}

/* Opens the database itself: its pages as JSON take several times as long.  Without access to the
 * database the daemon reads it for us, and *ret is NULL. */
static bool read_directly(struct audit_cmd *c, struct store **ret, struct error *err)
{
    struct store_config how = {.read_only = true};

    *ret = NULL;
    if (!database_open(&c->from.place.database, how, ret, err))
        return c->from.local == NULL;
    event_source_close(c->source);
    c->source = event_source_of_store(*ret);
    return true;
}

/* Reads the anchors before the events.  An anchor is written after the events it covers, so no
 * anchor covers an event that the walk does not reach. */
static bool run_verify(struct audit_cmd *c, struct error *err)
{
    struct event_filter filter = {.kind = -1, .with_bodies = true};
    struct store *store;
    struct chain *chain;
    struct str anchors;
    if (!c->data_dir.p)
        return error_set(err, ERR_USAGE,
                         "audit verify needs the audit key, which is not available over --url; run "
                         "it on that machine with --data DIR");
    if (!read_directly(c, &store, err) ||
        !chain_open(datadir_audit_key(c->data_dir, c->cli->mem, NULL), false, 0, &chain, err))
        return false;
    if ((store && c->from.place.database.is_postgres &&
         !chain_claim(chain, store, true, STR_NONE, err)) ||
        !map_anchors(c, &anchors, err)) {
        chain_free(chain);
        return false;
    }
    struct chain_verifier *v = chain_verifier_new(chain);
    chain_verifier_store(v, store);
    bool ok = event_source_walk(c->source, &filter, verify_event, v, err) &&
              chain_verify_end(v, anchors, err);
    if (ok) {
        struct chain_report report = chain_verified(v);
        size_t n = 0;
        const struct removed_row *removed = chain_verified_removed(v, &n);
        add_report(c, &report, removed, n);
        cli_write_part(&c->out);
    }
    if (anchors.p)
        munmap((void *)anchors.p, anchors.n);
    chain_verifier_free(v);
    chain_free(chain);
    return ok;
}

#define WHERE "--data", "--url", "--json"
#define CALLS                                                                                      \
    "--session", "--server", "--tool", "--outcome", "--user", "--errors", "--since", "--until",    \
        "--utc", "--limit", WHERE
static const struct {
    const char *name;
    bool (*run)(struct audit_cmd *c, struct error *err);
    const char *flags[16];
} verbs[] = {
    {"tail", run_tail, {CALLS, "--follow", "-f"}},
    {"list", run_list, {CALLS}},
    {"events", run_events, {"--server", "--tool", "--since", "--until", "--utc", "--limit", WHERE}},
    {"show", run_show, {WHERE}},
    {"verify", run_verify, {WHERE}},
};

static int run(struct audit_cmd *c, bool (*verb)(struct audit_cmd *c, struct error *err),
               bool pages)
{
    struct error err;

    c->json = cli_flag(c->cli, "--json") != NULL;
    c->colour = cli_colour(STDOUT_FILENO);
    c->terminal = dup(STDOUT_FILENO);
    c->when = (struct audit_when){clock_wall_ms(), cli_flag(c->cli, "--utc") != NULL};
    buf_init(&c->out, SIZE_MAX / 4);
    bool ok = open_source(c, &err);
    if (ok && pages && !c->json)
        pager_begin();
    ok = ok && verb(c, &err);
    pager_end();
    event_source_close(c->source);
    source_close(&c->from);
    if (c->table.columns)
        table_release(&c->table);
    buf_release(&c->out);
    close(c->terminal);
    return ok ? 0 : cli_refuse(c->cli, &err);
}

int cmd_audit(struct cli *cli)
{
    struct audit_cmd c = {.cli = cli};
    size_t i = 0;
    if (audit_is_upkeep(cli))
        return audit_upkeep(cli);
    while (i < countof(verbs) && (cli->n_args == 0 || strcmp(cli->args[0], verbs[i].name) != 0))
        i++;
    if (i == countof(verbs)) {
        struct cli_nearest near = cli_nearest_to(str_of(cli->n_args ? cli->args[0] : ""));
        for (i = 0; i < countof(verbs); i++)
            cli_nearest_offer(&near, verbs[i].name);
        audit_upkeep_offer(&near);
        return cli_unknown_verb(cli, &near,
                                "audit needs one of tail, list, events, show ID, verify, hold, "
                                "holds or release ID");
    }
    if (cli->n_args > 1 && verbs[i].run != run_show)
        return cli_usage(cli, "audit %s takes flags only", verbs[i].name);
    const char *flag = cli_flag_beyond(cli, verbs[i].flags, countof(verbs[i].flags));
    if (flag)
        return cli_usage(cli, "audit %s does not take %s", verbs[i].name, flag);
    return run(&c, verbs[i].run, verbs[i].run != run_tail && verbs[i].run != run_verify);
}

int cmd_tail(struct cli *cli)
{
    struct audit_cmd c = {.cli = cli, .follows = true};

    if (cli->n_args)
        return cli_usage(cli, "tail takes flags only; for one session say --session ID");
    return run(&c, run_tail, false);
}
