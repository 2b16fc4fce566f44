/* SPDX-License-Identifier: Apache-2.0 */
/* Ranking.  Each word of a query is looked up in the index of each catalog, together with all its
 * synonyms; a tool gets the BM25 value of the one that matches best.  The score is a fraction of
 * the highest possible value of the query, so that scores of different queries and sets of tools
 * are comparable.
 *
 * The worth of a word is the geometric mean of two rarities among the tools: of the word itself,
 * and of the word with its synonyms.  If one tool says "photo" and twenty say "image", "photo" is
 * worth something between the two.  docs/decisions explains why this is not an embedding. */
#include "profile/rank.h"

#include "base/unicode.h"
#include "profile/rank_index.h"
#include "profile/words.h"

#include <math.h>
#include <stdlib.h>

#define QUERIES_MAX 8
#define SATURATION 0.9
#define LENGTH_PART 0.3
#define WEAK_WORD 0.5     /* factor for a word with WORD_WEAK */
#define UNKNOWN_WORD 0.15 /* factor of log(1 + tools) for a word that no tool has */
#define UNASKED 0.7       /* factor for a destructive tool if the query does not ask for one */
#define GAP_MAX 3         /* words between the two of a phrase */
#define SERVER_WORDS_MAX 8

/* A word of a query. */
struct term {
    uint32_t stem;
    bool weak;
};
struct query {
    struct str text;   /* without the name of the server */
    struct str server; /* absent: any server */
    struct term terms[RANK_TERMS_MAX];
    unsigned n;
    bool destroys;
};
/* The candidates of one server. */
struct group {
    struct str server;
    struct catalog *catalog;
    const struct catalog_words *words;
    struct word names[SERVER_WORDS_MAX]; /* words of the server's name */
    size_t n_names;
    uint32_t *candidates; /* per tool of the catalog: 1 + index of its candidate, or 0 */
};
/* One ranking.  The arrays have one member per candidate. */
struct ranking {
    const struct rank_candidate *candidates;
    size_t n;
    struct group *groups;
    size_t n_groups;
    double *norms, *scores;
    double *found;            /* weight of the current word; 0 between words */
    double *best, *strongest; /* of one word and its synonyms */
    uint32_t *touched;
    double total; /* highest possible value of all words */
};

/* Reading a query. */

/* Whether the word means 'delete', or is a synonym of such a word. */
static bool destroys(uint32_t stem)
{
    struct word_other others[WORDS_OTHERS_MAX];
    size_t n = words_others(stem, others, countof(others));
    bool found = words_marks(stem) & WORD_DESTROYS;

    for (size_t i = 0; i < n && !found; i++)
        found = words_marks(others[i].stem) & WORD_DESTROYS;
    return found;
}

static void add_term(struct query *w, uint32_t stem, bool weak)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->terms[i].stem == stem)
            return;
    if (w->n < RANK_TERMS_MAX)
        w->terms[w->n++] = (struct term){stem, weak};
    w->destroys = w->destroys || destroys(stem);
}

/* The index of the word that forms a phrase with words[at], or 0.  It is the next word, not
 * counting idle ones, or a particle. */
static size_t end_of_phrase(const struct word *words, const bool *taken, size_t n, size_t at)
{
    bool only_idle = true;

    for (size_t i = at + 1; i < n && i <= at + 1 + GAP_MAX; i++) {
        bool reached =
            i == at + 1 || (words[i].marks & WORD_PARTICLE) || (only_idle && i <= at + GAP_MAX);
        if (!taken[i] && reached && words_phrase(words[at].stem, words[i].stem))
            return i;
        only_idle = only_idle && (words[i].marks & WORD_IDLE);
    }
    return 0;
}

static void read_terms(struct query *w, const struct word *words, size_t n, bool with_idle)
{
    bool taken[RANK_QUERY_WORDS] = {false};

    for (size_t i = 0; i < n; i++) {
        if (taken[i])
            continue;
        size_t end = end_of_phrase(words, taken, n, i);
        if (end) {
            taken[end] = true;
            add_term(w, words_phrase(words[i].stem, words[end].stem), false);
        } else if (with_idle || !(words[i].marks & WORD_IDLE)) {
            add_term(w, words[i].stem, words[i].marks & WORD_WEAK);
        }
    }
}

static bool is_server(const struct rank_candidate *candidates, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_ieq(candidates[i].server, name))
            return true;
    return false;
}

static void read_query(struct query *w, struct str text, const struct rank_candidate *candidates,
                       size_t n)
{
    size_t colon = str_find(text, ':');
    struct str before = str_trim(str_n(text.p, colon));
    struct word words[RANK_QUERY_WORDS];

    *w = (struct query){.text = text};
    if (is_server(candidates, n, before)) {
        w->server = before;
        w->text = colon < text.n ? str_n(text.p + colon + 1, text.n - colon - 1) : STR("");
    }
    size_t n_words = words_cut(w->text, words, countof(words));
    read_terms(w, words, n_words, false);
    if (!w->n)
        read_terms(w, words, n_words, true);
    else if (words[0].marks & WORD_ASKS) /* "is it raining" asks to read, as "what" does */
        add_term(w, words_of("what").stem, true);
}

/* The candidates by server. */

static struct group *group_of(struct ranking *r, const struct rank_candidate *c, struct arena *mem)
{
    for (size_t i = r->n_groups; i > 0; i--)
        if (r->groups[i - 1].catalog == c->catalog && str_eq(r->groups[i - 1].server, c->server))
            return &r->groups[i - 1];
    struct group *g = &r->groups[r->n_groups++];
    *g = (struct group){c->server, c->catalog, rank_index_of(c->catalog), {{0}}, 0, NULL};
    g->n_names = words_cut(c->server, g->names, countof(g->names));
    g->candidates =
        arena_zalloc(mem, (c->catalog->lists[CATALOG_TOOLS].n + 1) * sizeof(*g->candidates));
    return g;
}

static void begin(struct ranking *r, struct arena *mem)
{
    double length = 0;

    r->groups = arena_alloc(mem, (r->n + 1) * sizeof(*r->groups));
    r->norms = arena_alloc(mem, (r->n + 1) * sizeof(*r->norms));
    r->scores = arena_alloc(mem, (r->n + 1) * sizeof(*r->scores));
    r->found = arena_zalloc(mem, (r->n + 1) * sizeof(*r->found));
    r->best = arena_alloc(mem, (r->n + 1) * sizeof(*r->best));
    r->strongest = arena_alloc(mem, (r->n + 1) * sizeof(*r->strongest));
    r->touched = arena_alloc(mem, (r->n + 1) * sizeof(*r->touched));
    for (size_t i = 0; i < r->n; i++) {
        const struct rank_candidate *c = &r->candidates[i];
        struct group *g = group_of(r, c, mem);
        g->candidates[c->item] = (uint32_t)i + 1;
        r->norms[i] = g->words->lengths[c->item];
        length += r->norms[i];
    }
    for (size_t i = 0; i < r->n; i++)
        r->norms[i] = SATURATION * (1 - LENGTH_PART +
                                    LENGTH_PART * r->norms[i] / (length / (double)r->n + 1e-9));
}

/* Scoring. */

static size_t touch(struct ranking *r, size_t n, uint32_t candidate, double weight)
{
    if (r->found[candidate] == 0)
        r->touched[n++] = candidate;
    r->found[candidate] += weight / WEIGHT_HEAD;
    return n;
}

static bool is_named(const struct group *g, uint32_t stem)
{
    for (size_t i = 0; i < g->n_names; i++)
        if (g->names[i].stem == stem)
            return true;
    return false;
}

/* Fills r->found; returns the number of candidates that have the word. */
static size_t find_word(struct ranking *r, uint32_t stem)
{
    size_t n = 0;

    for (const struct group *g = r->groups; g < r->groups + r->n_groups; g++) {
        const struct rank_bucket *b = rank_index_bucket(g->words, stem);
        for (const struct rank_posting *p = b->postings; p < b->postings + b->n; p++)
            if (p->stem == stem && g->candidates[p->tool])
                n = touch(r, n, g->candidates[p->tool] - 1, p->weight);
        size_t tools = is_named(g, stem) ? g->catalog->lists[CATALOG_TOOLS].n : 0;
        for (size_t i = 0; i < tools; i++)
            if (g->candidates[i])
                n = touch(r, n, g->candidates[i] - 1, WEIGHT_SERVER);
    }
    return n;
}

static double rarity(const struct ranking *r, double having)
{
    return log(1 + ((double)r->n - having + 0.5) / (having + 0.5));
}

/* Scores a term's word or synonym; returns the highest value it could give. */
static double try_word(struct ranking *r, uint32_t stem, double strength)
{
    size_t n = find_word(r, stem);
    double worth = n ? strength * sqrt(rarity(r, (double)n)) : 0;

    for (size_t k = 0; k < n; k++) {
        uint32_t i = r->touched[k];
        double fits = worth * r->found[i] / (r->found[i] + r->norms[i]);
        r->best[i] = fits > r->best[i] ? fits : r->best[i];
        r->strongest[i] = strength > r->strongest[i] ? strength : r->strongest[i];
        r->found[i] = 0;
    }
    return worth;
}

static void score_term(struct ranking *r, const struct term *t)
{
    struct word_other others[WORDS_OTHERS_MAX];
    size_t n = words_others(t->stem, others, countof(others));
    double having = 0;

    memset(r->best, 0, r->n * sizeof(*r->best));
    memset(r->strongest, 0, r->n * sizeof(*r->strongest));
    double most = try_word(r, t->stem, 1);
    for (size_t k = 0; k < n; k++) {
        double worth = try_word(r, others[k].stem, (double)others[k].strength);
        most = worth > most ? worth : most;
    }
    for (size_t i = 0; i < r->n; i++)
        having += r->strongest[i];
    double factor = (t->weak ? WEAK_WORD : 1) * sqrt(rarity(r, having));
    for (size_t i = 0; i < r->n; i++)
        r->scores[i] += factor * r->best[i];
    r->total += having > 0 ? factor * most : UNKNOWN_WORD * log(1 + (double)r->n);
}

static bool is_its_name(const struct query *w, const struct rank_candidate *c)
{
    return unicode_same_name(str_trim(w->text),
                             c->catalog->lists[CATALOG_TOOLS].items[c->item].name);
}

static double fit(const struct ranking *r, const struct query *w, size_t i)
{
    const struct rank_candidate *c = &r->candidates[i];

    if (w->server.p && !str_ieq(w->server, c->server))
        return 0;
    if (!w->n || is_its_name(w, c))
        return 1;
    double score = r->total > 0 ? r->scores[i] / r->total : 0;
    bool unasked = rank_index_of(c->catalog)->destroys[c->item] && !w->destroys;
    return unasked ? UNASKED * score : score;
}

static void rank_query(struct ranking *r, const struct query *w, struct rank_candidate *candidates)
{
    r->total = 0;
    memset(r->scores, 0, r->n * sizeof(*r->scores));
    for (unsigned t = 0; t < w->n; t++)
        score_term(r, &w->terms[t]);
    for (size_t i = 0; i < r->n; i++) {
        double confidence = fit(r, w, i);
        if (confidence > candidates[i].confidence)
            candidates[i].confidence = confidence;
    }
}

struct ranked {
    struct rank_candidate candidate;
    size_t at;
};

static int by_fit(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->candidate.confidence != y->candidate.confidence)
        return x->candidate.confidence > y->candidate.confidence ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void sort(struct rank_candidate *candidates, size_t n, struct arena *mem)
{
    struct ranked *all = arena_alloc(mem, (n + 1) * sizeof(*all));

    for (size_t i = 0; i < n; i++)
        all[i] = (struct ranked){candidates[i], i};
    qsort(all, n, sizeof(*all), by_fit);
    for (size_t i = 0; i < n; i++)
        candidates[i] = all[i].candidate;
}

size_t rank_tools(struct rank_candidate *candidates, size_t n, struct str queries, double threshold,
                  struct arena *mem)
{
    struct ranking r = {.candidates = candidates, .n = n};
    struct query *w = arena_alloc(mem, sizeof(*w));
    struct str rest =
        str_n(queries.p, queries.n < RANK_QUERIES_BYTES ? queries.n : RANK_QUERIES_BYTES);
    unsigned n_queries = 0;
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        candidates[i].confidence = 0;
    while (rest.p && n_queries < QUERIES_MAX) {
        struct str text = str_trim(str_split(&rest, '|'));
        if (!text.n)
            continue;
        if (!n_queries++)
            begin(&r, mem);
        read_query(w, text, candidates, n);
        rank_query(&r, w, candidates);
    }
    for (size_t i = 0; i < n && !n_queries; i++)
        candidates[i].confidence = 1;
    sort(candidates, n, mem);
    while (found < n && candidates[found].confidence > 0 &&
           candidates[found].confidence >= threshold)
        found++;
    return found;
}
