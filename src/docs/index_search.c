/* SPDX-License-Identifier: Apache-2.0 */
/* Search: translates a person's words to FTS5's query language, and ranked rows to hits.
 *
 * Every word is passed in quotes, so no input is read as syntax:
 *
 *   deploy "blue green" roll* -draft   ─>   ("deploy" "blue green" "roll"*) NOT ("draft") */
#include "docs/index_impl.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/unicode.h"
#include "base/utf8.h"

#define QUERY_MAX 1024
#define WORDS_MAX 64
#define LIMIT_DEFAULT 20
#define LIMIT_MAX 100
#define SEARCH_MS 2000
#define PROGRESS_STEPS 2000

struct term {
    struct str text;
    bool is_prefix, is_negative;
};

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* Whether the tokenizer would find a word. */
static bool has_word(struct str s)
{
    uint32_t c;

    for (size_t i = 0, n; i < s.n; i += n) {
        n = utf8_decode(s.p + i, s.p + s.n, &c);
        if (n == 0)
            n = 1;
        else if (unicode_is_word(c))
            return true;
    }
    return false;
}

/* The next term of *rest; false at the end.  An unclosed quote reaches to the end. */
static bool term_next(struct str *rest, struct term *ret)
{
    struct str s = *rest;
    size_t i = 0, n = 0;

    while (i < s.n && is_blank(s.p[i]))
        i++;
    if (i == s.n)
        return false;
    *ret = (struct term){.is_negative = s.p[i] == '-'};
    i += ret->is_negative;
    bool quoted = i < s.n && s.p[i] == '"';
    i += quoted;
    while (i + n < s.n && s.p[i + n] != '"' && (quoted || !is_blank(s.p[i + n])))
        n++;
    ret->text = str_n(s.p + i, n);
    ret->is_prefix = !quoted && n > 0 && s.p[i + n - 1] == '*';
    i += n + (quoted && i + n < s.n);
    *rest = str_n(s.p + i, s.n - i);
    return true;
}

static void add_term(struct buf *b, const struct term *t)
{
    buf_addz(b, b->n ? " \"" : "\"");
    for (size_t i = 0; i < t->text.n; i++)
        buf_addc(b, is_blank(t->text.p[i]) ? ' ' : t->text.p[i]);
    buf_addz(b, t->is_prefix ? "\"*" : "\"");
}

static size_t words_in(struct str s)
{
    size_t n = 0;
    bool inside = false;

    for (size_t i = 0; i < s.n; i++) {
        n += !inside && !is_blank(s.p[i]);
        inside = !is_blank(s.p[i]);
    }
    return n;
}

/* Terms side by side must all match.  FTS5 leaves out a term in which the tokenizer finds no word;
 * with AND between the terms it would not. */
static bool expression_of(struct str query, struct arena *mem, struct str *ret, struct error *err)
{
    struct buf wanted, unwanted;
    struct term t;

    if (query.n > QUERY_MAX)
        return error_set(err, ERR_BAD_INPUT, "The query is longer than 1,024 bytes; shorten it.");
    if (words_in(query) > WORDS_MAX)
        return error_set(err, ERR_BAD_INPUT,
                         "The query has more than 64 words; use the few that matter.");
    query = index_composed(query, mem);
    buf_init(&wanted, 16 * QUERY_MAX);
    buf_init(&unwanted, 16 * QUERY_MAX);
    while (term_next(&query, &t))
        if (has_word(t.text)) {
            if (t.is_negative && unwanted.n)
                buf_addz(&unwanted, " OR");
            add_term(t.is_negative ? &unwanted : &wanted, &t);
        }
    bool ok = wanted.n > 0;
    if (ok)
        *ret = unwanted.n ? arena_printf(mem, "(%s) NOT (%s)", wanted.p, unwanted.p)
                          : arena_dup(mem, buf_str(&wanted));
    buf_release(&wanted);
    buf_release(&unwanted);
    return ok ||
           error_set(err, ERR_BAD_INPUT, "The query has no word to look for; name at least one.");
}

struct wanted {
    const struct str *folders;
    size_t n_folders;
    unsigned limit;
    struct str expression;
};

static bool is_wanted(const struct wanted *w, sqlite3_stmt *st)
{
    struct str folder =
        str_n((const char *)sqlite3_column_text(st, 1), (size_t)sqlite3_column_bytes(st, 1));

    for (size_t i = 0; i < w->n_folders; i++)
        if (str_eq(folder, w->folders[i]))
            return true;
    return w->n_folders == 0;
}

/* Snippets are read afterwards, only for the hits returned. */
static bool hits_read(struct index *x, struct index_side *side, const struct wanted *w,
                      struct arena *mem, struct index_hit *hits, int64_t *ids, size_t *ret_n,
                      bool *ret_more, struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, INDEX_SEARCH, err);
    size_t n = 0;
    bool row, more = false;

    if (!st)
        return false;
    index_bind(st, 1, w->expression);
    for (;;) {
        if (!index_step(x, side, st, &row, err))
            return false;
        if (!row)
            break;
        if (!is_wanted(w, st))
            continue;
        more = n == w->limit;
        if (more)
            break;
        ids[n] = sqlite3_column_int64(st, 0);
        hits[n++] = (struct index_hit){.folder = index_column(st, 1, mem),
                                       .path = index_column(st, 2, mem),
                                       .title = index_column(st, 3, mem),
                                       .score = -sqlite3_column_double(st, 4)};
    }
    sqlite3_reset(st);
    *ret_n = n;
    *ret_more = more;
    return true;
}

/* Line ends and runs of blanks become one blank. */
static struct str one_line(struct str s, struct arena *mem)
{
    char *out = arena_alloc(mem, s.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        if (!is_blank(s.p[i]))
            out[n++] = s.p[i];
        else if (n > 0 && out[n - 1] != ' ')
            out[n++] = ' ';
    while (n > 0 && out[n - 1] == ' ')
        n--;
    return str_n(out, n);
}

static bool snippet_read(struct index *x, struct index_side *side, struct str expression,
                         int64_t id, struct arena *mem, struct str *ret, struct error *err)
{
    sqlite3_stmt *st = index_prepare(x, side, INDEX_SNIPPET, err);
    bool row;

    if (!st)
        return false;
    index_bind(st, 1, expression);
    sqlite3_bind_int64(st, 2, id);
    if (!index_step(x, side, st, &row, err))
        return false;
    *ret = row ? one_line(index_column(st, 0, mem), mem) : STR("");
    sqlite3_reset(st);
    return true;
}

static int on_progress(void *arg)
{
    return clock_mono_ms() >= *(const int64_t *)arg;
}

static bool search(struct index *x, struct index_side *side, const struct wanted *w,
                   struct arena *mem, struct index_hit *hits, size_t *ret_n, bool *ret_more,
                   struct error *err)
{
    int64_t ids[LIMIT_MAX], deadline_ms = clock_mono_ms() + SEARCH_MS;
    size_t n = 0;

    sqlite3_progress_handler(side->db, PROGRESS_STEPS, on_progress, &deadline_ms);
    bool ok = hits_read(x, side, w, mem, hits, ids, &n, ret_more, err);
    for (size_t i = 0; ok && i < n; i++)
        ok = snippet_read(x, side, w->expression, ids[i], mem, &hits[i].snippet, err);
    sqlite3_progress_handler(side->db, 0, NULL, NULL);
    if (ok)
        *ret_n = n;
    return ok;
}

bool index_search(struct index *x, struct str query, const struct str *folders, size_t n_folders,
                  unsigned limit, struct arena *mem, struct index_hit **ret, size_t *ret_n,
                  bool *ret_more, struct error *err)
{
    struct wanted w = {.folders = folders,
                       .n_folders = n_folders,
                       .limit = limit == 0          ? LIMIT_DEFAULT
                                : limit > LIMIT_MAX ? LIMIT_MAX
                                                    : limit};
    struct index_side *side;

    if (!expression_of(query, mem, &w.expression, err) || !index_enter_reader(x, &side, err))
        return false;
    struct index_hit *hits = arena_zalloc(mem, w.limit * sizeof *hits);
    bool ok = search(x, side, &w, mem, hits, ret_n, ret_more, err);
    index_leave(side);
    if (ok)
        *ret = hits;
    return ok;
}
