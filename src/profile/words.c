/* SPDX-License-Identifier: Apache-2.0 */
/* Words: cutting, stemming, and the index of words_table.h.
 *
 * The index is three sorted arrays: the rows of a stem (stem → row), the marks of a word (hash →
 * marks; idle and asking words by spelling, the others by stem), and irregular forms (hash of the
 * spelling → word).  Stems of a row are adjacent, so the synonyms of a word are read from its rows
 * without a list of pairs, which would be ten times as long. */
#include "profile/words.h"

#include "base/unicode.h"
#include "base/utf8.h"

#include "profile/words_table.h"

#include <pthread.h>
#include <stdlib.h>

#define OF_STEM (WORD_WEAK | WORD_PARTICLE | WORD_DESTROYS)
#define WORD_MAX 48 /* bytes that count */

static const float strengths[WORDS_KINDS] = {
    [WORDS_FORM] = 0.9f, [WORDS_SAME] = 0.7f, [WORDS_NEAR] = 0.3f, [WORDS_IMPLIED] = 0.6f};

struct place {
    uint32_t stem, row;
};
struct mark {
    uint32_t hash, marks;
};
struct irregular {
    uint32_t hash;
    const char *word;
    bool whole; /* the word keeps its ending */
};
struct row {
    float strength;
    uint32_t first, n; /* range in book.stems: the meanings of the row's words */
};
static struct {
    pthread_once_t once;
    struct irregular *irregular;
    size_t n_irregular;
    struct mark *marks;
    size_t n_marks;
    struct place *places;
    size_t n_places;
    struct row *rows;
    size_t n_rows;
    uint32_t *stems;
    size_t n_stems;
} book = {.once = PTHREAD_ONCE_INIT};

/* Cutting. */

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the length of the character at `at` if it is part of a word, else 0.  A byte that is not
 * UTF-8 is. */
static size_t word_char(struct str s, size_t at)
{
    char c = s.p[at];
    uint32_t code;

    if ((unsigned char)c < 0x80)
        return is_upper(c) || is_lower(c) || is_digit(c);
    size_t n = utf8_decode(s.p + at, s.p + s.n, &code);
    return !n ? 1 : unicode_is_word(code) ? n : 0;
}

static size_t char_length(struct str s, size_t at)
{
    uint32_t code;
    size_t n = utf8_decode(s.p + at, s.p + s.n, &code);
    return n ? n : 1;
}

/* The end of a piece that begins with capitals: "HTTP|Server", "URLs", "EC2", "Send". */
static size_t end_of_capitals(struct str run)
{
    size_t n = 1;

    while (n < run.n && is_upper(run.p[n]))
        n++;
    if (n > 1 && n < run.n && is_lower(run.p[n])) {
        bool plural = run.p[n] == 's' && (n + 1 == run.n || !is_lower(run.p[n + 1]));
        return plural ? n + 1 : n - 1;
    }
    while (n < run.n && !is_upper(run.p[n]))
        n++;
    return n;
}

static size_t end_of_piece(struct str run)
{
    size_t n = 0;

    if (is_upper(run.p[0]))
        return end_of_capitals(run);
    while (n < run.n && !is_upper(run.p[n]))
        n++;
    return n;
}

static struct str next_run(struct str *rest)
{
    size_t from = 0, to, n;

    while (from < rest->n && !word_char(*rest, from))
        from += char_length(*rest, from);
    for (to = from; to < rest->n && (n = word_char(*rest, to)); to += n)
        continue;
    struct str run = to > from ? str_n(rest->p + from, to - from) : STR_NONE;
    *rest = str_n(rest->p + to, rest->n - to);
    return run;
}

/* "3pm" becomes "pm", "20km" becomes "km"; "3d" and "2024" stay. */
static struct str without_number(struct str word)
{
    size_t n = 0;

    while (n < word.n && is_digit(word.p[n]))
        n++;
    for (size_t i = n; i < word.n; i++)
        if (is_digit(word.p[i]))
            return word;
    return word.n - n >= 2 ? str_n(word.p + n, word.n - n) : word;
}

/* Stems. */

static uint32_t hash_bytes(const char *p, size_t n)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)p[i]) * 16777619u;
    return hash;
}

/* For a word beyond ASCII: also without accents, ligatures and the like.  0: it has no such form. */
static size_t search_form(struct str word, char ret[WORD_MAX])
{
    struct buf form;
    size_t n = 0;

    buf_init(&form, UNICODE_GROWTH * WORD_MAX);
    if (unicode_map(str_cut(word, WORD_MAX), UNICODE_SEARCH, &form)) {
        n = str_cut(buf_str(&form), WORD_MAX).n;
        memcpy(ret, form.p, n);
    }
    buf_release(&form);
    return n;
}

static size_t lower(struct str word, char ret[WORD_MAX])
{
    size_t n = unicode_is_ascii(word) ? 0 : search_form(word, ret);

    if (n)
        return n;
    n = word.n < WORD_MAX ? word.n : WORD_MAX;
    for (size_t i = 0; i < n; i++)
        ret[i] = is_upper(word.p[i]) ? (char)(word.p[i] + 32) : word.p[i];
    return n;
}

static bool takes_ending(char *word, size_t *n, const char *ending, const char *with, size_t least)
{
    size_t e = strlen(ending), w = strlen(with);

    if (*n < e + least || memcmp(word + *n - e, ending, e) != 0)
        return false;
    memcpy(word + *n - e, with, w);
    *n += w - e;
    return true;
}

/* Removes grammatical endings: "queries", "querying" → "query". */
static size_t strip_endings(char *word, size_t n)
{
    if (!takes_ending(word, &n, "ies", "y", 2) && !takes_ending(word, &n, "sses", "ss", 1) &&
        !(n > 2 && (word[n - 2] == 's' || word[n - 2] == 'u')))
        (void)takes_ending(word, &n, "s", "", 3);
    if (!takes_ending(word, &n, "ied", "y", 2) && !takes_ending(word, &n, "ing", "", 3))
        (void)takes_ending(word, &n, "ed", "", 3);
    if (!takes_ending(word, &n, "tion", "t", 4)) /* "creation" like "create" */
        (void)takes_ending(word, &n, "ment", "", 5);
    (void)takes_ending(word, &n, "e", "", 3);
    if (n > 3 && word[n - 1] == word[n - 2] && word[n - 1] != 's' && word[n - 1] != 'l')
        n--; /* "getting" */
    if (n > 3 && word[n - 1] == 'i')
        word[n - 1] = 'y'; /* "movie" like "movies" */
    return n;
}

/* The index of the first member whose hash is not less than `hash`; members begin with a hash. */
static size_t lower_bound(const void *array, size_t n, size_t size, uint32_t hash)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        uint32_t at;
        memcpy(&at, (const char *)array + middle * size, sizeof(at));
        if (at < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t stem_of(char *text, size_t n)
{
    uint32_t hash = hash_bytes(text, n);
    size_t at = lower_bound(book.irregular, book.n_irregular, sizeof(*book.irregular), hash);

    if (at < book.n_irregular && book.irregular[at].hash == hash) {
        n = lower(str_of(book.irregular[at].word), text);
        if (book.irregular[at].whole)
            return hash_bytes(text, n);
    }
    return hash_bytes(text, strip_endings(text, n));
}

static uint32_t mix(uint32_t first, uint32_t second)
{
    return (first * 16777619u) ^ (second + 0x9e3779b9u + (first << 6));
}

/* The index. */

static struct str next_of_list(const char **list)
{
    *list += strspn(*list, " ");
    struct str word = str_n(*list, strcspn(*list, " "));
    *list += word.n;
    return word;
}

static uint32_t stem_of_word(struct str word)
{
    char text[WORD_MAX];
    return stem_of(text, lower(word, text));
}

static void add_mark(uint32_t hash, uint32_t marks)
{
    book.marks[book.n_marks++] = (struct mark){hash, marks};
}

/* The stem of a word or phrase of a row; marks a phrase as such. */
static uint32_t stem_of_entry(struct str entry)
{
    struct str first = str_split(&entry, '+');
    uint32_t one = stem_of_word(first);

    if (!entry.p)
        return one;
    uint32_t phrase = mix(one, stem_of_word(entry));
    add_mark(phrase, WORD_PHRASE);
    return phrase;
}

static void read_row(const struct words_row *from)
{
    struct row *row = &book.rows[book.n_rows];
    const char *list = from->words;

    *row = (struct row){strengths[from->kind], (uint32_t)book.n_stems, 0};
    for (struct str w = next_of_list(&list); w.n; w = next_of_list(&list)) {
        uint32_t said = stem_of_entry(w);
        book.places[book.n_places++] = (struct place){said, (uint32_t)book.n_rows};
        if (!from->implied)
            book.stems[book.n_stems++] = said;
    }
    list = from->implied ? from->implied : "";
    for (struct str w = next_of_list(&list); w.n; w = next_of_list(&list))
        book.stems[book.n_stems++] = stem_of_entry(w);
    row->n = (uint32_t)book.n_stems - row->first;
    book.n_rows++;
}

static int by_hash(const void *a, const void *b)
{
    uint32_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

static void mark_list(const char *list, bool as_stem, uint32_t marks)
{
    for (struct str w = next_of_list(&list); w.n; w = next_of_list(&list))
        add_mark(as_stem ? stem_of_word(w) : hash_bytes(w.p, w.n), marks);
}

static size_t bytes_of(const struct words_row *rows, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += strlen(rows[i].words) + (rows[i].implied ? strlen(rows[i].implied) : 0) + 2;
    return bytes;
}

/* At least one byte separates two words, so half the number of bytes is enough room for all
 * words. */
static void make_room(void)
{
    size_t bytes = bytes_of(words_deeds, words_n_deeds) + bytes_of(words_things, words_n_things) +
                   bytes_of(words_forms, words_n_forms);
    size_t listed = strlen(words_idle) + strlen(words_weak) + strlen(words_asking) +
                    strlen(words_particles) + strlen(words_destroying);

    book.irregular = xcalloc(words_n_irregular, sizeof(*book.irregular));
    book.rows = xcalloc(words_n_deeds + words_n_things + words_n_forms, sizeof(*book.rows));
    book.places = xcalloc(bytes / 2, sizeof(*book.places));
    book.stems = xcalloc(bytes / 2, sizeof(*book.stems));
    book.marks = xcalloc((bytes + listed) / 2 + 4, sizeof(*book.marks));
}

static void merge_marks(void)
{
    size_t n = 0;

    qsort(book.marks, book.n_marks, sizeof(*book.marks), by_hash);
    for (size_t i = 0; i < book.n_marks; i++)
        if (n && book.marks[n - 1].hash == book.marks[i].hash)
            book.marks[n - 1].marks |= book.marks[i].marks;
        else
            book.marks[n++] = book.marks[i];
    book.n_marks = n;
}

static bool keeps_ending(const char *word)
{
    for (size_t i = 0; i < words_n_irregular; i++)
        if (strcmp(words_irregular[i][0], word) == 0)
            return strcmp(words_irregular[i][1], word) == 0;
    return false;
}

static void read_irregular(void)
{
    for (size_t i = 0; i < words_n_irregular; i++) {
        const char *form = words_irregular[i][0], *word = words_irregular[i][1];
        book.irregular[i] =
            (struct irregular){hash_bytes(form, strlen(form)), word, keeps_ending(word)};
    }
    qsort(book.irregular, words_n_irregular, sizeof(*book.irregular), by_hash);
    book.n_irregular = words_n_irregular;
}

static void make_book(void)
{
    make_room();
    read_irregular();
    for (size_t i = 0; i < words_n_deeds; i++)
        read_row(&words_deeds[i]);
    for (size_t i = 0; i < words_n_things; i++)
        read_row(&words_things[i]);
    for (size_t i = 0; i < words_n_forms; i++)
        read_row(&words_forms[i]);
    qsort(book.places, book.n_places, sizeof(*book.places), by_hash);
    mark_list(words_idle, false, WORD_IDLE);
    mark_list(words_asking, false, WORD_ASKS);
    mark_list(words_weak, true, WORD_WEAK);
    mark_list(words_particles, true, WORD_PARTICLE);
    mark_list(words_destroying, true, WORD_DESTROYS);
    merge_marks();
}

static void open_book(void)
{
    if (pthread_once(&book.once, make_book) != 0)
        abort();
}

static uint32_t marks_of(uint32_t hash)
{
    size_t at = lower_bound(book.marks, book.n_marks, sizeof(*book.marks), hash);

    return at < book.n_marks && book.marks[at].hash == hash ? book.marks[at].marks : 0;
}

/* Queries. */

static struct word read_word(struct str piece)
{
    char text[WORD_MAX];
    size_t n = lower(without_number(piece), text);
    bool number = true;

    for (size_t i = 0; i < n; i++)
        number = number && is_digit(text[i]);
    uint32_t written = marks_of(hash_bytes(text, n)) & (WORD_IDLE | WORD_ASKS);
    struct word word = {.stem = stem_of(text, n)};
    word.marks = written | (marks_of(word.stem) & OF_STEM);
    if (number || n == 1)
        word.marks |= WORD_IDLE;
    return word;
}

size_t words_cut(struct str text, struct word *ret, size_t max)
{
    size_t n = 0;

    open_book();
    for (struct str run = next_run(&text); run.p && n < max; run = next_run(&text)) {
        struct str rest = run;
        while (rest.n && n < max) {
            size_t end = end_of_piece(rest);
            ret[n++] = read_word(str_n(rest.p, end));
            rest = str_n(rest.p + end, rest.n - end);
            if (!rest.n && end < run.n && n < max)
                ret[n++] = read_word(run);
        }
    }
    return n;
}

struct word words_of(const char *word)
{
    open_book();
    return read_word(str_of(word));
}

uint32_t words_marks(uint32_t stem)
{
    open_book();
    return marks_of(stem) & OF_STEM;
}

uint32_t words_phrase(uint32_t first, uint32_t second)
{
    open_book();
    uint32_t phrase = mix(first, second);
    return marks_of(phrase) & WORD_PHRASE ? phrase : 0;
}

static size_t add_other(struct word_other *others, size_t n, size_t max, uint32_t stem,
                        float strength)
{
    for (size_t i = 0; i < n; i++)
        if (others[i].stem == stem) {
            others[i].strength = others[i].strength > strength ? others[i].strength : strength;
            return n;
        }
    if (n < max)
        others[n++] = (struct word_other){stem, strength};
    return n;
}

size_t words_others(uint32_t stem, struct word_other *ret, size_t max)
{
    size_t n = 0;

    open_book();
    for (size_t at = lower_bound(book.places, book.n_places, sizeof(*book.places), stem);
         at < book.n_places && book.places[at].stem == stem; at++) {
        const struct row *row = &book.rows[book.places[at].row];
        for (uint32_t i = row->first; i < row->first + row->n; i++)
            if (book.stems[i] != stem)
                n = add_other(ret, n, max, book.stems[i], row->strength);
    }
    return n;
}
