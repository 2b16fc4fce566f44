/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a document in the index, and its title: its first heading, else its file's name. */
#include "docs/index_impl.h"

#include "base/unicode.h"
#include "docs/text.h"

#define TITLE_MAX 200
#define INDENT_MAX 3

/* Whether the line opens or closes a code fence; lines inside a fence are not headings. */
static bool is_fence(struct str line)
{
    return str_starts(line, STR("```")) || str_starts(line, STR("~~~"));
}

/* "## Title ##" is "Title"; absent when the line is not a heading. */
static struct str heading_of(struct str line)
{
    size_t level = 0;

    while (level < line.n && line.p[level] == '#')
        level++;
    if (level == 0 || level > 6 || level == line.n ||
        (line.p[level] != ' ' && line.p[level] != '\t'))
        return STR_NONE;
    struct str title = str_trim(str_n(line.p + level, line.n - level));
    size_t end = title.n;
    while (end > 0 && title.p[end - 1] == '#')
        end--;
    if (end == 0 || title.p[end - 1] == ' ')
        title = str_trim(str_n(title.p, end));
    return title.n ? title : STR_NONE;
}

/* FTS5 removes accents, but it knows neither decomposed Hangul nor decomposed kana. */
struct str index_composed(struct str text, struct arena *mem)
{
    struct str composed = unicode_mapped(text, UNICODE_NFC, mem);
    return composed.p ? composed : text;
}

struct str index_title(struct str path, struct str accepted)
{
    struct str line;
    size_t at = 0;
    char fence = 0;

    while (text_line_next(accepted, &at, &line)) {
        for (int i = 0; i < INDENT_MAX && line.n && line.p[0] == ' '; i++)
            line = str_n(line.p + 1, line.n - 1);
        if (is_fence(line) && (!fence || fence == line.p[0]))
            fence = fence ? 0 : line.p[0];
        struct str title = fence ? STR_NONE : heading_of(line);
        if (title.p)
            return str_cut(title, TITLE_MAX);
    }
    size_t name = path.n;
    while (name > 0 && path.p[name - 1] != '/')
        name--;
    struct str file = str_n(path.p + name, path.n - name);
    if (file.n > 3 && str_ieq(str_n(file.p + file.n - 3, 3), STR(".md")))
        file.n -= 3;
    return str_cut(file, TITLE_MAX);
}
