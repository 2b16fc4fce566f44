/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the CriticMarkup reader: every input is a document, and what critic.h promises of
 * documents must hold; what is listed must be where it is said to be, and places map both ways. */
#include "critic_check.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_places(const struct critic *c, struct str accepted)
{
    size_t at = 0;

    for (size_t i = 0; i < c->n && i < 64; i++) {
        size_t width = check_width(c, i);
        check(critic_accepted_offset(c, i) == at);
        check(!width || critic_span_at(c, at) == i);
        at += width;
    }
    check(at <= accepted.n);
}

static void check_list(const struct critic *c, struct arena *mem)
{
    struct critic_suggestion *list;
    size_t n = critic_suggestions(c, mem, &list), end = 0, line = 1;

    for (size_t i = 0; i < n; i++) {
        check(list[i].from >= end && list[i].to <= c->source.n && list[i].line >= line);
        check(list[i].raw.p == c->source.p + list[i].from);
        check(list[i].raw.n == list[i].to - list[i].from);
        check(list[i].context_before.n <= 60 && list[i].context_after.n <= 60);
        end = list[i].to;
        line = list[i].line;
    }
}

static void check_input(struct str text, struct arena *mem)
{
    struct str stamped = critic_stamp(text, &check_author, mem);

    check(str_eq(critic_stamp(stamped, &check_author, mem), stamped));
    check(critic_forbidden(text).p || !critic_forbidden(stamped).p);
    check(critic_author_name(text, mem).n <= 80);
}

static void check_comment(const struct critic *c, struct arena *mem)
{
    struct str after;
    struct critic again;
    struct error err;

    for (size_t at = 0; at < 8; at++) {
        if (!critic_comment(c, at * c->source.n / 8, STR("n"), &check_author, mem, &after, &err))
            continue;
        critic_parse(after, mem, &again);
        check(str_eq(check_drop_comments(c, false, mem), check_drop_comments(&again, false, mem)));
        check(str_eq(check_drop_comments(c, true, mem), check_drop_comments(&again, true, mem)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *mem = arena_new(SIZE_MAX);
    struct str text = {(const char *)data, size};
    struct critic c;

    check(!check_document(text, mem));
    critic_parse(text, mem, &c);
    check_places(&c, critic_accepted(&c, mem));
    check_list(&c, mem);
    check_input(text, mem);
    check_comment(&c, mem);
    arena_free(mem);
    return 0;
}
