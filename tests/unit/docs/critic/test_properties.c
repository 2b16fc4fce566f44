/* SPDX-License-Identifier: Apache-2.0 */
/* Random documents, made of words, code and marks whole and broken, each edited several times:
 * every promise of critic.h holds after each edit.  The seed is printed; HOLDFAST_SEED repeats it.
 */
#include "critic_check.h"
#include "test.h"

#include "base/random.h"

#include <stdio.h>

#define DOCUMENTS 7000
#define EDITS 3

static uint64_t dice_state;

static unsigned below(unsigned n)
{
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((dice_state >> 33) % n);
}

static const char *const words[] = {"a",  "bb", "quick", "fox", " ",    " ",        " ",
                                    "\n", ".",  "  ",    "1",   "\r\n", "\xc3\xa9", "\n\n"};
static const char *const changes[] = {
    "{++new++}",
    "{~~old~>new~~}",
    "{==high==}",
    "{++{\"author\":\"A's AI\",\"time\":3}@@ins ++}",
    "{--{\"author\":\"A's AI\",\"time\":3}@@a b--}{++{\"author\":\"A's AI\",\"time\":3}@@c d++}",
    "{--{\"author\":\"A's AI\",\"time\":4}@@old--}",
    "{~~{\"author\":\"A's AI\"}@@old~>new~~}",
    "{--{\"author\":\"B's AI\",\"timestamp\":3000}@@gone--}",
};
static const char *const notes[] = {"{>>note<<}", "{>>{\"author\":\"Zed's AI\"}@@mine<<}",
                                    "{>>{\"author\":\"A\"}@@his<<}"};
static const char *const code[] = {"`",       "``",    "`x y`",   "```\n",
                                   "\n```\n", "~~~\n", "\n~~~\n", "```c\nint a {++b++};\n```\n",
                                   "\\"};
static const char *const broken[] = {"{++", "++}", "{--", "--}", "{~~",        "~~}",
                                     "~>",  "{==", "==}", "{>>", "<<}",        "{",
                                     "}",   "-",   "+",   "@@",  "{\"a\":1}@@"};

#define PICK(table) (table)[below(countof(table))]

/* What kinds a document may hold: some promises are stricter where there is no code. */
enum { WITH_NOTES = 1, WITH_CODE = 2, WITH_BROKEN = 4 };

static void compose(struct buf *out, unsigned parts, unsigned kinds, bool is_fresh)
{
    buf_reset(out);
    for (unsigned i = 0; i < parts; i++) {
        unsigned dice = below(20);

        if (dice < 3 && !is_fresh)
            buf_addz(out, PICK(changes));
        else if (dice == 3 && (kinds & WITH_NOTES))
            buf_addz(out, PICK(notes));
        else if (dice < 7 && (kinds & WITH_CODE))
            buf_addz(out, PICK(code));
        else if (dice < 9 && (kinds & WITH_BROKEN))
            buf_addz(out, PICK(broken));
        else
            buf_addz(out, PICK(words));
    }
}

static size_t char_border(struct str s, size_t at)
{
    while (at > 0 && at < s.n && (s.p[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static struct critic_edit random_edit(struct str accepted, struct buf *fresh, unsigned kinds)
{
    size_t from = char_border(accepted, below((unsigned)accepted.n + 1));
    size_t most = accepted.n - from < 20 ? accepted.n - from : 20;
    size_t to = char_border(accepted, from + below((unsigned)most + 1));

    compose(fresh, below(6), kinds, true);
    if (to > from && below(3) == 0) /* keep most of the old */
        buf_add(fresh, accepted.p + from, to - from);
    return (struct critic_edit){from, to > from ? to - from : 0, buf_str(fresh), check_author};
}

static void explain(unsigned document, struct str source, const struct critic_edit *e,
                    struct str after, const char *what)
{
    print_error(
        "document %u: not so: %s\nsource: <%.*s>\nedit: at %zu, %zu, <%.*s>\nafter: <%.*s>\n",
        document, what, STR_ARG(source), e->at, e->n, STR_ARG(e->fresh), STR_ARG(after));
    fail();
}

static unsigned try_document(unsigned number)
{
    unsigned kinds = below(8), written = 0;
    struct arena *mem = arena_new(SIZE_MAX);
    struct buf text, fresh;
    struct str source;

    buf_init(&text, SIZE_MAX);
    buf_init(&fresh, SIZE_MAX);
    compose(&text, 1 + below(14), kinds, false);
    source = arena_dup(mem, buf_str(&text));
    for (unsigned i = 0; i < EDITS; i++) {
        struct critic_edit edit = {0};
        struct str after = STR_NONE;
        struct critic c;
        const char *what = check_document(source, mem);

        critic_parse(source, mem, &c);
        if (!what) {
            edit = random_edit(critic_accepted(&c, mem), &fresh, kinds);
            what = check_edit(source, &edit, mem, &after);
        }
        if (what)
            explain(number, source, &edit, after, what);
        if (after.p) {
            source = after;
            written++;
        }
    }
    buf_release(&text);
    buf_release(&fresh);
    arena_free(mem);
    return written;
}

TEST(test_properties__hold_for_random_documents_and_edits)
{
    const char *given = getenv("HOLDFAST_SEED");
    unsigned written = 0;

    if (given)
        dice_state = strtoull(given, NULL, 10);
    else
        random_bytes(&dice_state, sizeof dice_state);
    print_message("HOLDFAST_SEED=%llu\n", (unsigned long long)dice_state);
    for (unsigned i = 0; i < DOCUMENTS; i++)
        written += try_document(i);
    print_message("%u of %u edits written\n", written, DOCUMENTS * EDITS);
    assert_true(written > DOCUMENTS * EDITS * 6 / 10);
}
