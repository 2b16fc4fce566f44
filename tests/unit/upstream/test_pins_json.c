/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "crypto/hash.h"
#include "json/read.h"
#include "upstream/pins_diff.h"
#include "upstream/pins_json.h"

#include <stdlib.h>

static struct tool_row row_of(char digest, char approved, bool gone)
{
    struct tool_row row = {.server = STR("files"), .name = STR("read"), .gone_ms = gone};
    memset(row.digest, digest, sizeof(row.digest));
    memset(row.approved, approved, sizeof(row.approved));
    return row;
}

static const char *state_of(char digest, char approved, bool gone)
{
    struct tool_row row = row_of(digest, approved, gone);
    return tool_state(&row);
}

TEST(test_tool_state__says_how_it_stands_to_what_was_approved)
{
    assert_string_equal(state_of(1, 1, false), "approved");
    assert_string_equal(state_of(1, 2, false), "changed");
    assert_string_equal(state_of(1, 0, false), "new");
    assert_string_equal(state_of(1, 1, true), "gone");
}

/* The diff that is written of a new tool, in *ret. */
static void write_diff(struct str definition, struct buf *ret)
{
    struct tool_row row = row_of(1, 0, false);
    struct arena *mem = arena_new(64u << 20);
    struct js_doc doc;
    struct buf out;
    buf_init(&out, 8u << 20);
    row.definition = definition;
    tool_diff_write(&out, &row);
    assert_true(js_parse(buf_str(&out), &js_limits_upstream, mem, &doc, NULL));
    buf_addstr(ret, js_text(&doc, js_get(&doc, js_root(&doc), STR("diff")), mem));
    buf_release(&out);
    arena_free(mem);
}

/* An array of so many numbers is so many lines of "+  1,". */
static bool is_shown_whole(size_t numbers)
{
    struct buf text, diff;
    buf_init(&text, 1u << 20);
    buf_init(&diff, 1u << 20);
    for (size_t i = 0; i < numbers; i++)
        buf_addz(&text, i ? ",1" : "[1");
    buf_addc(&text, ']');
    write_diff(buf_str(&text), &diff);
    bool cut = memmem(diff.p, diff.n, "read the rest at the server", 27) != NULL;
    assert_true(diff.n <= TOOL_SHOWN_DIFF + 64 * cut);
    buf_release(&text);
    buf_release(&diff);
    return !cut;
}

TEST(test_tool_diff_write__shows_all_up_to_its_limit_and_says_when_there_is_more)
{
    /* "+[" and "+]" with their line ends, and the last number without a comma. */
    size_t fits = (TOOL_SHOWN_DIFF - sizeof(TOOL_DIFF_MORE) - 2 * 3 + 1) / 6;
    assert_true(is_shown_whole(fits));
    assert_false(is_shown_whole(fits + 1));
}

TEST(test_tool_diff_write__of_one_that_is_not_kept_says_where_to_read_it)
{
    struct buf diff;
    buf_init(&diff, 1u << 20);
    write_diff(STR_NONE, &diff);
    assert_non_null(memmem(diff.p, diff.n, "at the server itself", 20));
    buf_release(&diff);
}
