/* SPDX-License-Identifier: Apache-2.0 */
/* Shows one suggestion at a time, in its surroundings.  Each decision is sent at once and is one
 * revision of the document.  Undo restores the revision before the decision, and only if the
 * document has not changed since.  After a decision, the suggestions of its document are listed
 * again, so that changes by others are shown. */
#include "docs/cli/review.h"

#include "base/clock.h"
#include "docs/cli/view.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <unistd.h>

#define UNDO_MAX 1000

enum count { ACCEPTED, REJECTED, EDITED, REPLIED, UNDONE, COUNTS };

struct step {
    struct str path, etag; /* of the document after the decision */
    int64_t before;        /* the revision that undo restores */
    struct str raw;        /* markup of the suggestion */
    enum count what;
    size_t n;
};
struct review {
    struct cli *cli;
    struct docs_client *c;
    struct str where;
    struct docs_item *items;
    size_t n, at;
    int64_t hidden;
    struct step steps[UNDO_MAX];
    size_t n_steps;
    size_t counts[COUNTS];
    bool colour, is_over, is_interrupted;
    struct error err; /* the error that ended the review */
};

struct key_row {
    const char *keys;
    int key; /* a KEY_… that does the same; 0: none */
    const char *shown;
    void (*run)(struct review *r);
};
static const struct key_row rows[];

/* Output. */

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static void print(struct buf *out)
{
    fwrite(out->p ? out->p : "", 1, out->n, stdout);
    fflush(stdout);
    buf_release(out);
}

/* Prints the error of a request.  An unreachable daemon or a refused credential ends the review. */
static void complain(struct review *r, const struct error *err)
{
    struct buf out;

    if (err->code == ERR_UNREACHABLE || err->code == ERR_UNAUTHENTICATED) {
        r->err = *err;
        r->is_over = true;
        return;
    }
    buf_init(&out, 64 * 1024);
    buf_addz(&out, "! ");
    docs_view_text(&out, str_of(err->text), "  ");
    buf_addc(&out, '\n');
    print(&out);
}

/* Shows the current suggestion and returns the key that is pressed. */
static int ask(const struct review *r)
{
    const struct docs_item *i = &r->items[r->at];
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    buf_addz(&out, "\n");
    docs_view_text(&out, i->path, "");
    buf_addf(&out, ":%lld  [%zu/%zu]  ", (long long)i->line, r->at + 1, r->n);
    docs_view_about(&out, i, clock_wall_ms());
    buf_addz(&out, "\n");
    docs_view_change(&out, i, "    ", r->colour);
    for (const struct key_row *k = rows; k->shown; k++)
        buf_addf(&out, "%s%s", k == rows ? "" : "  ", k->shown);
    buf_addz(&out, " > ");
    int key = terminal_key(buf_str(&out));
    buf_release(&out);
    return key;
}

/* The list. */

static bool load(struct review *r, struct error *err)
{
    return docs_client_suggestions(r->c, r->where, &r->items, &r->n, &r->hidden, err);
}

/* Replaces the entries of one document by a new list of its suggestions. */
static bool reload(struct review *r, struct str path, struct error *err)
{
    struct docs_item *fresh, *all;
    size_t n_fresh, first = 0, n_old = 0;
    int64_t hidden;

    if (!docs_client_suggestions(r->c, path, &fresh, &n_fresh, &hidden, err)) {
        if (err->code != ERR_NOT_FOUND)
            return false;
        fresh = NULL; /* the document is gone, and with it its suggestions */
        n_fresh = 0;
        hidden = 0;
    }
    while (first < r->n && !str_eq(r->items[first].path, path))
        first++;
    if (first == r->n) /* no entries left: insert them in the order of paths */
        for (first = 0; first < r->n && str_cmp(r->items[first].path, path) < 0;)
            first++;
    while (first + n_old < r->n && str_eq(r->items[first + n_old].path, path))
        n_old++;
    all = arena_zalloc(r->c->mem, (r->n - n_old + n_fresh + 1) * sizeof(*all));
    for (size_t i = 0; i < first; i++)
        all[i] = r->items[i];
    for (size_t i = 0; i < n_fresh; i++)
        all[first + i] = fresh[i];
    for (size_t i = first + n_old; i < r->n; i++)
        all[i - n_old + n_fresh] = r->items[i];
    r->items = all;
    r->n = r->n - n_old + n_fresh;
    if (r->at >= r->n)
        r->at = r->n ? r->n - 1 : 0;
    return true;
}

static void refresh(struct review *r, struct str path)
{
    struct error err;

    if (!reload(r, path, &err))
        complain(r, &err);
}

/* Decisions. */

static void remember(struct review *r, const struct docs_item *i, const struct docs_outcome *o,
                     enum count what)
{
    if (r->n_steps == UNDO_MAX) {
        memmove(r->steps, r->steps + 1, (UNDO_MAX - 1) * sizeof(*r->steps));
        r->n_steps--;
    }
    r->steps[r->n_steps++] = (struct step){
        .path = i->path,
        .etag = o->etag,
        .before = o->revision - 1,
        .raw = i->raw,
        .what = what,
        .n = o->applied,
    };
}

static bool decide(struct review *r, const struct docs_decision *d, enum count what)
{
    const struct docs_item *first = &d->items[0];
    struct docs_outcome o;
    struct error err;

    if (!docs_client_decide(r->c, d, &o, &err)) {
        complain(r, &err);
        return false;
    }
    if (o.failed)
        printf("! %.*s\n", STR_ARG(o.reason));
    if (o.applied) {
        r->counts[what] += o.applied;
        remember(r, first, &o, what);
    }
    refresh(r, first->path);
    return o.applied > 0;
}

static void decide_one(struct review *r, const char *action, enum count what)
{
    struct docs_decision d = {.action = action, .items = &r->items[r->at], .n = 1};
    bool ok = decide(r, &d, what);

    if (ok)
        say(action);
}

static void on_accept(struct review *r)
{
    decide_one(r, "accept", ACCEPTED);
}

static void on_reject(struct review *r)
{
    decide_one(r, "reject", REJECTED);
}

/* Accepts the changes of this document from the current one on. */
static void on_accept_rest(struct review *r)
{
    struct docs_item *some = arena_zalloc(r->c->mem, r->n * sizeof(*some));
    struct docs_decision d = {.action = "accept", .items = some};

    for (size_t i = r->at; i < r->n && str_eq(r->items[i].path, r->items[r->at].path); i++)
        if (docs_item_is_change(&r->items[i]))
            some[d.n++] = r->items[i];
    if (d.n == 0)
        say("only comments are left here; a or x removes one");
    else if (d.n > 200)
        say("these are more than 200 suggestions; use `holdfast docs accept PATH --all`");
    else if (decide(r, &d, ACCEPTED))
        say("accept");
}

static void on_edit(struct review *r)
{
    const struct docs_item *i = &r->items[r->at];
    struct docs_decision d = {.action = "accept", .items = i, .n = 1};
    struct str had = i->fresh.p ? i->fresh : STR("");
    struct error err;

    if (!docs_item_is_change(i)) {
        say("a comment cannot be edited; c answers it, a or x removes it");
        return;
    }
    if (!terminal_edit(had, r->c->mem, &d.text, &err)) {
        complain(r, &err);
        return;
    }
    if (str_eq(had, d.text))
        say("the text was not edited; a accepts the suggestion as it is");
    else if (decide(r, &d, EDITED))
        say("accepted as edited");
}

static void on_reply(struct review *r)
{
    struct docs_decision d = {.action = "reply", .items = &r->items[r->at], .n = 1};

    d.text = terminal_line("reply: ", r->c->mem);
    if (!d.text.p || !str_trim(d.text).n)
        say("the comment is empty; nothing was added");
    else if (decide(r, &d, REPLIED))
        say("replied");
}

static void go_to(struct review *r, struct str path, struct str raw)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->items[i].path, path) && str_eq(r->items[i].raw, raw)) {
            r->at = i;
            return;
        }
}

static void on_undo(struct review *r)
{
    struct docs_outcome o;
    struct error err;

    if (r->n_steps == 0) {
        say("there is nothing to undo");
        return;
    }
    const struct step *s = &r->steps[r->n_steps - 1];
    if (!docs_client_restore(r->c, s->path, s->before, s->etag, STR("undone in review"), &o,
                             &err)) {
        if (err.code == ERR_PRECONDITION_FAILED)
            say("! the document has changed since then; see `holdfast docs log` and `holdfast docs "
                "restore`");
        else
            complain(r, &err);
        return;
    }
    r->counts[s->what] -= s->n;
    r->counts[UNDONE]++;
    r->n_steps--;
    refresh(r, s->path);
    go_to(r, s->path, s->raw);
    say("undone");
}

static void on_next(struct review *r)
{
    if (r->at + 1 < r->n)
        r->at++;
    else
        say("that was the last one");
}

static void on_previous(struct review *r)
{
    if (r->at > 0)
        r->at--;
    else
        say("that was the first one");
}

static void on_quit(struct review *r)
{
    r->is_over = true;
}

static void on_interrupt(struct review *r)
{
    r->is_over = r->is_interrupted = true;
}

/* Rows with a NULL `shown` come last: ask() stops at the first of them. */
static const struct key_row rows[] = {
    {"nj ", KEY_NEXT, "[n]ext", on_next}, {"pk", KEY_PREVIOUS, "[p]revious", on_previous},
    {"ay", 0, "[a]ccept", on_accept},     {"xr", 0, "[x] reject", on_reject},
    {"e", 0, "[e]dit", on_edit},          {"c", 0, "[c] reply", on_reply},
    {"u", 0, "[u]ndo", on_undo},          {"A", 0, "[A]ll of this document", on_accept_rest},
    {"q", KEY_END, "[q]uit", on_quit},    {"", KEY_INTERRUPT, NULL, on_interrupt},
};

static const struct key_row *row_of(int key)
{
    for (size_t i = 0; i < countof(rows); i++)
        if (key == rows[i].key || (key > 0 && key < 0x80 && strchr(rows[i].keys, key)))
            return &rows[i];
    return NULL;
}

static void sum_up(const struct review *r)
{
    static const char *const words[] = {[ACCEPTED] = "accepted",
                                        [REJECTED] = "rejected",
                                        [EDITED] = "edited",
                                        [REPLIED] = "replied to",
                                        [UNDONE] = "undone"};
    const char *gap = "\n";

    for (size_t i = 0; i < COUNTS; i++)
        if (r->counts[i]) {
            printf("%s%zu %s", gap, r->counts[i], words[i]);
            gap = ", ";
        }
    printf("%s%lld left\n", gap, (long long)r->n + (long long)r->hidden);
}

static void walk(struct review *r)
{
    while (!r->is_over && (r->n > 0 || r->n_steps > 0)) {
        int key = r->n > 0 ? ask(r)
                           : terminal_key(STR("\nall suggestions are decided: [u]ndo  [q]uit > "));
        const struct key_row *row = row_of(key);
        printf("\n");
        if (r->n == 0 && row && row->run != on_undo)
            row = row->run == on_interrupt ? row : row_of('q');
        if (row)
            row->run(r);
        else
            say("this key has no function here");
    }
}

int docs_review(struct cli *cli, struct docs_client *c, struct str where)
{
    struct review *r = arena_new_of(c->mem, struct review);
    struct error err;

    if (!terminal_is_there())
        return cli_usage(cli, "review needs a terminal; without one use docs suggestions, docs "
                              "accept and docs reject");
    r->cli = cli;
    r->c = c;
    r->where = where;
    r->colour = cli_colour(STDOUT_FILENO);
    if (!load(r, &err))
        return cli_fail(cli, &err);
    if (r->n == 0) {
        say("nothing waits for review");
        return 0;
    }
    walk(r);
    sum_up(r);
    if (r->err.code != ERR_NONE)
        return cli_fail(cli, &r->err);
    return r->is_interrupted ? error_info(ERR_INTERRUPTED)->exit_status : 0;
}
