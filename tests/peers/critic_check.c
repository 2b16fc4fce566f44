/* SPDX-License-Identifier: Apache-2.0 */
/* Driver for the property run of CriticMarkup: what agents write and people decide, by the code
 * that the docs server and the REST API call.  Requests on stdin, each a letter and its fields; a
 * field is its length as four bytes, big end first, and its bytes.
 *
 *   's' source at n fresh        suggest, as "Zed's AI"
 *   'w' source at n fresh        write without review
 *   'c' source at text           comment
 *   'd' source verdict chosen    decide: 'a' or 'r', and a '1' for each listed suggestion it is for
 *   'l' source                   list suggestions: "from to" lines
 *   'v' source                   the accepted view
 *
 * An answer is '1' and a field with the result, or '0' and a field that says why not. */
#include "docs/decide.h"

#include <stdio.h>
#include <stdlib.h>

#define LONGEST (64u << 20)

static const struct critic_author author = {{"Zed's AI", 8}, 1794700000};

static struct str read_field(struct arena *mem)
{
    unsigned char head[4];
    uint32_t n;
    char *text;

    if (fread(head, 1, sizeof(head), stdin) != sizeof(head))
        die("a field is cut off; send four bytes of length, big end first");
    n = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
    if (n > LONGEST)
        die("a field is too long");
    text = arena_alloc(mem, n + 1);
    if (fread(text, 1, n, stdin) != n)
        die("a field is cut off; send as many bytes as its length says");
    return str_n(text, n);
}

static size_t read_number(struct arena *mem)
{
    struct str field = read_field(mem);

    return strtoull(arena_printf(mem, "%.*s", STR_ARG(field)).p, NULL, 10);
}

static void answer(bool ok, struct str text)
{
    const unsigned char head[5] = {ok ? '1' : '0', (unsigned char)(text.n >> 24),
                                   (unsigned char)(text.n >> 16), (unsigned char)(text.n >> 8),
                                   (unsigned char)text.n};

    fwrite(head, 1, sizeof(head), stdout);
    if (text.n)
        fwrite(text.p, 1, text.n, stdout);
    fflush(stdout);
}

static void edit(const struct critic *c, bool writes, struct arena *mem)
{
    struct critic_edit edit = {.author = author};
    struct error err;
    struct str result;
    bool ok;

    edit.at = read_number(mem);
    edit.n = read_number(mem);
    edit.fresh = read_field(mem);
    ok = writes ? critic_apply(c, &edit, mem, &result, &err)
                : critic_suggest(c, &edit, mem, &result, &err);
    answer(ok, ok ? result : str_of(err.text));
}

static void comment(const struct critic *c, struct arena *mem)
{
    size_t at = read_number(mem);
    struct str text = read_field(mem), result;
    struct error err;
    bool ok = critic_comment(c, at, text, &author, mem, &result, &err);

    answer(ok, ok ? result : str_of(err.text));
}

static void decide(const struct critic *c, struct arena *mem)
{
    struct decide_request r = {.action =
                                   read_field(mem).p[0] == 'a' ? DECIDE_ACCEPT : DECIDE_REJECT};
    struct str chosen = read_field(mem), result;
    struct critic_suggestion *list;
    size_t n = critic_suggestions(c, mem, &list);
    struct decide_item *items = arena_alloc(mem, (n + 1) * sizeof(*items));
    enum decide_result *results = arena_alloc(mem, (n + 1) * sizeof(*results));

    for (size_t i = 0; i < n && i < chosen.n; i++)
        if (chosen.p[i] == '1')
            items[r.n++] = (struct decide_item){list[i].raw, (int64_t)list[i].from,
                                                list[i].context_before, list[i].context_after};
    r.items = items;
    result = r.n ? suggestions_decide(&r, c->source, mem, results) : c->source;
    for (size_t i = 0; i < r.n; i++)
        if (results[i] != DECIDE_DONE) {
            answer(false, str_of(decide_reason(results[i])));
            return;
        }
    answer(true, result);
}

static void list(const struct critic *c, struct arena *mem)
{
    struct critic_suggestion *all;
    size_t n = critic_suggestions(c, mem, &all);
    struct buf out;

    buf_init(&out, SIZE_MAX);
    for (size_t i = 0; i < n; i++)
        buf_addf(&out, "%zu %zu\n", all[i].from, all[i].to);
    answer(true, buf_str(&out));
    buf_release(&out);
}

int main(void)
{
    int letter;

    while ((letter = getchar()) != EOF) {
        struct arena *mem = arena_new(SIZE_MAX / 4);
        struct critic c;

        critic_parse(read_field(mem), mem, &c);
        switch (letter) {
        case 's':
        case 'w':
            edit(&c, letter == 'w', mem);
            break;
        case 'c':
            comment(&c, mem);
            break;
        case 'd':
            decide(&c, mem);
            break;
        case 'l':
            list(&c, mem);
            break;
        default:
            answer(true, critic_accepted(&c, mem));
        }
        arena_free(mem);
    }
    return 0;
}
