/* SPDX-License-Identifier: Apache-2.0 */
/* Finds suggestions again, and decides all that were found at once. */
#include "docs/decide.h"

#include <stdlib.h>

#define COMMENT_MAX 4000 /* bytes */

const char *decide_reason(enum decide_result result)
{
    static const char *const reasons[] = {
        [DECIDE_DONE] = "done",
        [DECIDE_GONE] = "suggestion no longer found in document",
        [DECIDE_TWICE] = "suggestion overlaps another suggestion in this batch",
        [DECIDE_TOGETHER] =
            ("decided alone, this would turn a suggestion beside it into code, or code "
             "into a suggestion; decide them together, or all at once"),
    };
    return reasons[result];
}

static bool is_comment_text(struct str text)
{
    return str_trim(text).n > 0 && text.n <= COMMENT_MAX && !critic_forbidden(text).p &&
           !memmem(text.p, text.n, "{>>", 3) && !memmem(text.p, text.n, "<<}", 3);
}

bool decide_check(const struct decide_request *r, struct error *err)
{
    if (r->n == 0 || r->n > DECIDE_ITEMS_MAX)
        return error_set(err, ERR_BAD_INPUT, "name 1 to %d suggestions", DECIDE_ITEMS_MAX);
    if ((r->text.p || r->action == DECIDE_REPLY) && r->n != 1)
        return error_set(err, ERR_BAD_INPUT,
                         "a text goes with one suggestion; send them one by one");
    if (r->action == DECIDE_REJECT && r->text.p)
        return error_set(err, ERR_BAD_INPUT,
                         "a rejection takes no text; accept with a text, or reply");
    if (r->action == DECIDE_REPLY && !(r->text.p && is_comment_text(r->text)))
        return error_set(err, ERR_BAD_INPUT,
                         "a comment is a text of at most %d bytes without CriticMarkup in it",
                         COMMENT_MAX);
    return true;
}

/* Finding. */

struct found {
    const struct critic_suggestion *list;
    size_t n;
};

static bool is_same(const struct critic_suggestion *s, const struct decide_item *item)
{
    return str_eq(s->raw, item->raw);
}

static bool has_context(const struct critic_suggestion *s, const struct decide_item *item)
{
    return item->before.p && item->after.p && str_eq(s->context_before, item->before) &&
           str_eq(s->context_after, item->after);
}

/* Suggestions are sorted by `from`. */
static const struct critic_suggestion *at_place(const struct found *f, int64_t from)
{
    size_t low = 0, high = f->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((int64_t)f->list[mid].from < from)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->n && (int64_t)f->list[low].from == from ? &f->list[low] : NULL;
}

static const struct critic_suggestion *find(const struct found *f, const struct decide_item *item)
{
    const struct critic_suggestion *s = at_place(f, item->from), *same = NULL, *fitting = NULL;
    size_t n_same = 0, n_fitting = 0;

    if (s && is_same(s, item))
        return s;
    for (size_t i = 0; i < f->n; i++) {
        if (!is_same(&f->list[i], item))
            continue;
        same = &f->list[i];
        n_same++;
        if (has_context(same, item)) {
            fitting = same;
            n_fitting++;
        }
    }
    /* If several match equally, none is chosen. */
    if (n_fitting == 1)
        return fitting;
    return n_same == 1 ? same : NULL;
}

/* Deciding. */

/* Adds the reply after the suggestion and the comments that follow it directly: its thread. */
static struct str reply(const struct decide_request *r, const struct critic *c, size_t span,
                        struct arena *mem)
{
    struct str comment =
        critic_stamp(arena_printf(mem, "{>>%.*s<<}", STR_ARG(r->text)), &r->author, mem);
    struct buf out;
    size_t end = span + 1;

    while (end < c->n && c->spans[end].kind == CRITIC_COMMENT)
        end++;
    buf_init(&out, SIZE_MAX / 4);
    for (size_t i = 0; i < c->n; i++) {
        if (i == end)
            buf_addstr(&out, comment);
        buf_addstr(&out, c->spans[i].raw);
    }
    if (end == c->n)
        buf_addstr(&out, comment);
    struct str fresh = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return fresh;
}

struct str suggestions_decide(const struct decide_request *r, struct str source, struct arena *mem,
                              enum decide_result *results)
{
    struct critic_suggestion *list;
    struct critic c;

    critic_parse(source, mem, &c);
    struct found f = {.n = critic_suggestions(&c, mem, &list)};
    f.list = list;
    bool *taken = arena_zalloc(mem, c.n + 1);
    size_t *spans = arena_alloc(mem, r->n * sizeof(*spans)), n = 0;
    enum critic_verdict *verdicts = arena_alloc(mem, r->n * sizeof(*verdicts));

    for (size_t i = 0; i < r->n; i++) {
        const struct critic_suggestion *s = find(&f, &r->items[i]);
        results[i] = !s ? DECIDE_GONE : taken[s->span] ? DECIDE_TWICE : DECIDE_DONE;
        if (results[i] != DECIDE_DONE)
            continue;
        taken[s->span] = true;
        spans[n] = s->span;
        verdicts[n++] = r->action == DECIDE_REJECT ? CRITIC_REJECT : CRITIC_ACCEPT;
    }
    if (n == 0)
        return source;
    if (r->action == DECIDE_REPLY)
        return reply(r, &c, spans[0], mem);
    if (!critic_decides_cleanly(&c, spans, verdicts, n, r->text)) {
        for (size_t i = 0; i < r->n; i++)
            if (results[i] == DECIDE_DONE)
                results[i] = DECIDE_TOGETHER;
        return source;
    }
    if (r->text.p)
        return critic_decide_as(&c, spans[0], r->text, mem);
    return critic_decide(&c, spans, verdicts, n, mem);
}

/* As a change. */

struct decide_change {
    struct docs_change base;
    struct arena *mem;
    struct decide_request request;
    enum decide_result *results;
};

static bool run(struct docs_change *base, struct str bytes, struct arena *mem, struct str *ret,
                struct error *err unused_arg)
{
    struct decide_change *c = container_of(base, struct decide_change, base);

    *ret = suggestions_decide(&c->request, bytes, mem, c->results);
    return true;
}

static void change_free(struct docs_change *base)
{
    arena_free(container_of(base, struct decide_change, base)->mem);
}

struct docs_change *decide_change_new(const struct decide_request *r)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct decide_change *c = arena_new_of(mem, struct decide_change);
    struct decide_item *items = arena_alloc(mem, r->n * sizeof(*items));

    for (size_t i = 0; i < r->n; i++)
        items[i] = (struct decide_item){
            .raw = arena_dup(mem, r->items[i].raw),
            .from = r->items[i].from,
            .before = arena_dup(mem, r->items[i].before),
            .after = arena_dup(mem, r->items[i].after),
        };
    c->base = (struct docs_change){.run = run, .free = change_free};
    c->mem = mem;
    c->request = *r;
    c->request.items = items;
    c->request.text = arena_dup(mem, r->text);
    c->request.author.name = arena_dup(mem, r->author.name);
    c->results = arena_zalloc(mem, r->n * sizeof(*c->results));
    return &c->base;
}

const enum decide_result *decide_change_results(const struct docs_change *base)
{
    return container_of(base, struct decide_change, base)->results;
}
