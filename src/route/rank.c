/* SPDX-License-Identifier: Apache-2.0 */
/* Ranking.  A tool is a sorted list of (hash of a word, weight); what a word weighs depends on
 * where it stands.  The score of a tool is what BM25 gives it, as a part of what the wish could
 * give at most, so that scores of different wishes and sets of tools mean about the same.
 *
 * Words are lower case and lose their English endings.  A few words that people use for one another
 * find each other's tools at half the weight; docs/decisions has why it is not an embedding. */
#include "route/rank.h"

#include <math.h>
#include <stdlib.h>

#define WORD_MAX 48
#define WISHES_MAX 8
#define SATURATION 0.6
#define LENGTH_PART 0.35
#define OTHER_WORD 0.5 /* what a word for the same counts */
#define DEPTH_MAX 6    /* of schemas that are read */

enum { WEIGHT_NAME = 6, WEIGHT_TITLE = 4, WEIGHT_SERVER = 3, WEIGHT_TEXT = 2, WEIGHT_SCHEMA = 2 };

struct rank_word {
    uint32_t hash;
    uint32_t weight;
};
struct rank_tool {
    uint32_t first, n;
    uint32_t length; /* all its weights */
};
/* Of one catalog, in its memory. */
struct catalog_words {
    struct rank_word *words;
    struct rank_tool *tools;
    double length; /* of all of them */
};

/* What people say for the same; one row finds the others. */
static const char *const same[][8] = {
    {"delete", "remove", "erase", "drop", "trash"},
    {"create", "make", "add", "new", "insert"},
    {"update", "edit", "change", "modify", "set"},
    {"get", "read", "fetch", "show", "retrieve", "view"},
    {"list", "show", "enumerate", "all"},
    {"search", "find", "query", "lookup", "grep"},
    {"send", "post", "write"},
    {"run", "execute", "invoke", "start", "launch"},
    {"stop", "end", "kill", "cancel", "close"},
    {"email", "mail", "message", "inbox"},
    {"file", "document", "doc"},
    {"folder", "directory", "dir"},
    {"repository", "repo"},
    {"picture", "image", "photo", "screenshot"},
    {"event", "meeting", "appointment", "calendar"},
    {"bug", "issue", "ticket"},
    {"copy", "duplicate", "clone"},
    {"move", "rename"},
    {"web", "url", "page", "website", "http"},
    {"database", "db", "sql", "table"},
    {"merge", "pull"},
};

static const char *const idle_words[] = {
    "a",    "an",   "the", "to",  "of",  "for",  "and",  "or",   "in",   "on",   "at",     "by",
    "my",   "me",   "i",   "is",  "are", "this", "it",   "be",   "we",   "our",  "please", "can",
    "want", "what", "how", "you", "do",  "with", "from", "that", "some", "into", "need"};

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (unsigned char)c >= 0x80;
}

/* "sendEmail2_now" → "send", "email2", "now": cuts the next word off *rest; absent at the end. */
static struct str next_word(struct str *rest)
{
    size_t from = 0, to;

    while (from < rest->n && !is_word_byte(rest->p[from]))
        from++;
    for (to = from; to < rest->n && is_word_byte(rest->p[to]); to++)
        if (to > from && rest->p[to] >= 'A' && rest->p[to] <= 'Z' &&
            !(rest->p[to - 1] >= 'A' && rest->p[to - 1] <= 'Z'))
            break;
    struct str word = to > from ? str_n(rest->p + from, to - from) : STR_NONE;
    *rest = str_n(rest->p + to, rest->n - to);
    return word;
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

/* Lower case, without an ending that changes with grammar: "queries", "querying" → "query". */
static size_t stem(struct str word, char ret[WORD_MAX])
{
    size_t n = word.n < WORD_MAX ? word.n : WORD_MAX;

    for (size_t i = 0; i < n; i++)
        ret[i] = word.p[i] >= 'A' && word.p[i] <= 'Z' ? (char)(word.p[i] + 32) : word.p[i];
    if (!takes_ending(ret, &n, "ies", "y", 2) && !takes_ending(ret, &n, "sses", "ss", 1) &&
        !(n > 2 && ret[n - 2] == 's') && !(n > 2 && ret[n - 2] == 'u'))
        (void)takes_ending(ret, &n, "s", "", 3);
    if (!takes_ending(ret, &n, "ing", "", 3))
        (void)takes_ending(ret, &n, "ed", "", 3);
    (void)takes_ending(ret, &n, "e", "", 3); /* "create", "creating" */
    if (n > 3 && ret[n - 1] == ret[n - 2] && ret[n - 1] != 's' && ret[n - 1] != 'l')
        n--; /* "getting" */
    return n;
}

static uint32_t hash_of(struct str word)
{
    char text[WORD_MAX];
    size_t n = stem(word, text);
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

/* Reading a catalog. */

struct gathering {
    struct rank_word words[RANK_WORDS_MAX];
    size_t n;
    struct arena *mem; /* for what is looked at only */
};

static void gather_text(struct gathering *g, struct str text, uint32_t weight)
{
    for (struct str word = next_word(&text); word.p && g->n < RANK_WORDS_MAX;
         word = next_word(&text))
        g->words[g->n++] = (struct rank_word){hash_of(word), weight};
}

static void gather_member(struct gathering *g, const struct js_doc *doc,
                          const struct js_node *object, const char *key, uint32_t weight)
{
    struct str text = js_text(doc, js_get(doc, object, str_of(key)), g->mem);

    if (text.p)
        gather_text(g, text, weight);
}

/* Names of properties and what is said of them. */
static void gather_schema(struct gathering *g, const struct js_doc *doc,
                          const struct js_node *schema, unsigned depth)
{
    const struct js_node *properties = js_get(doc, schema, STR("properties"));
    const struct js_node *items = js_get(doc, schema, STR("items"));

    if (depth > DEPTH_MAX)
        return;
    if (js_type_is(items, JS_OBJECT))
        gather_schema(g, doc, items, depth + 1);
    if (!js_type_is(properties, JS_OBJECT))
        return;
    for (const struct js_node *key = js_first(doc, properties); key && g->n < RANK_WORDS_MAX;
         key = js_next(doc, properties, js_value_of(key))) {
        gather_text(g, js_text(doc, key, g->mem), WEIGHT_SCHEMA);
        gather_member(g, doc, js_value_of(key), "description", WEIGHT_SCHEMA);
        gather_schema(g, doc, js_value_of(key), depth + 1);
    }
}

static int by_hash(const void *a, const void *b)
{
    uint32_t x = ((const struct rank_word *)a)->hash, y = ((const struct rank_word *)b)->hash;
    return x < y ? -1 : x > y;
}

static void gather_tool(struct gathering *g, const struct catalog_item *item)
{
    struct js_doc doc;
    size_t n = 0;

    g->n = 0;
    gather_text(g, item->name, WEIGHT_NAME);
    if (js_parse(catalog_shown(item), &js_limits_upstream, g->mem, &doc, NULL)) {
        gather_member(g, &doc, js_root(&doc), "title", WEIGHT_TITLE);
        gather_member(g, &doc, js_root(&doc), "description", WEIGHT_TEXT);
        gather_schema(g, &doc, js_get(&doc, js_root(&doc), STR("inputSchema")), 0);
    }
    qsort(g->words, g->n, sizeof(*g->words), by_hash);
    for (size_t i = 0; i < g->n; i++)
        if (n && g->words[n - 1].hash == g->words[i].hash)
            g->words[n - 1].weight += g->words[i].weight;
        else
            g->words[n++] = g->words[i];
    g->n = n;
}

static const struct catalog_words *words_of(struct catalog *c)
{
    const struct catalog_list *list = &c->lists[CATALOG_TOOLS];
    struct gathering *g;
    struct buf all;

    if (c->words)
        return c->words;
    struct catalog_words *w = arena_new_of(c->mem, struct catalog_words);
    w->tools = arena_zalloc(c->mem, (list->n + 1) * sizeof(*w->tools));
    buf_init(&all, SIZE_MAX / 2);
    g = xcalloc(1, sizeof(*g));
    g->mem = arena_new(4 * CATALOG_MAX_BYTES);
    for (size_t i = 0; i < list->n; i++) {
        struct rank_tool *t = &w->tools[i];
        gather_tool(g, &list->items[i]);
        *t = (struct rank_tool){(uint32_t)(all.n / sizeof(*w->words)), (uint32_t)g->n, 0};
        for (size_t k = 0; k < g->n; k++)
            t->length += g->words[k].weight;
        w->length += t->length;
        buf_add(&all, g->words, g->n * sizeof(*g->words));
        arena_reset(g->mem);
    }
    w->words = arena_alloc(c->mem, all.n + 1);
    if (all.n)
        memcpy(w->words, all.p, all.n);
    buf_release(&all);
    arena_free(g->mem);
    free(g);
    c->words = w;
    return w;
}

/* Ranking. */

/* A word of a wish, and the words that mean the same. */
struct term {
    uint32_t hashes[16]; /* the first is its own */
    unsigned n;
    double idf;
};
struct wish {
    struct str text;   /* without the server */
    struct str server; /* absent: of any */
    struct term terms[RANK_TERMS_MAX];
    unsigned n;
    double total_idf, mean_length;
    float *frequencies; /* of each term in each candidate */
};

static bool is_idle(struct str word)
{
    for (size_t i = 0; i < countof(idle_words); i++)
        if (str_ieq(word, str_of(idle_words[i])))
            return true;
    return false;
}

static void add_same(struct term *t)
{
    for (size_t row = 0; row < countof(same); row++) {
        bool among = false;
        for (size_t i = 0; i < countof(same[row]) && same[row][i]; i++)
            among = among || hash_of(str_of(same[row][i])) == t->hashes[0];
        for (size_t i = 0; among && i < countof(same[row]) && same[row][i]; i++)
            if (t->n < countof(t->hashes) && hash_of(str_of(same[row][i])) != t->hashes[0])
                t->hashes[t->n++] = hash_of(str_of(same[row][i]));
    }
}

static void add_terms(struct wish *w, bool with_idle)
{
    struct str rest = w->text;

    for (struct str word = next_word(&rest); word.p && w->n < RANK_TERMS_MAX;
         word = next_word(&rest)) {
        struct term *t = &w->terms[w->n];
        if (!with_idle && is_idle(word))
            continue;
        *t = (struct term){.hashes = {hash_of(word)}, .n = 1};
        add_same(t);
        w->n++;
    }
}

static bool is_server(const struct rank_candidate *candidates, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_ieq(candidates[i].server, name))
            return true;
    return false;
}

static void read_wish(struct wish *w, struct str text, const struct rank_candidate *candidates,
                      size_t n)
{
    size_t colon = str_find(text, ':');
    struct str before = str_trim(str_n(text.p, colon));

    *w = (struct wish){.text = text, .frequencies = w->frequencies};
    if (is_server(candidates, n, before)) {
        w->server = before;
        w->text = colon < text.n ? str_n(text.p + colon + 1, text.n - colon - 1) : STR("");
    }
    add_terms(w, false);
    if (!w->n)
        add_terms(w, true);
}

static uint32_t weight_of(const struct catalog_words *w, const struct rank_tool *t, uint32_t hash)
{
    size_t low = t->first, high = t->first + t->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (w->words[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->first + t->n && w->words[low].hash == hash ? w->words[low].weight : 0;
}

/* How often the tool says it, weighed; what means the same counts less. */
static double frequency(const struct term *t, const struct rank_candidate *c, bool names_server)
{
    const struct catalog_words *w = words_of(c->catalog);
    double own = weight_of(w, &w->tools[c->item], t->hashes[0]), other = 0;

    own += names_server ? WEIGHT_SERVER : 0;
    for (unsigned i = 1; i < t->n; i++) {
        double f = OTHER_WORD * weight_of(w, &w->tools[c->item], t->hashes[i]);
        other = f > other ? f : other;
    }
    return (own > other ? own : other) / WEIGHT_TEXT;
}

static bool is_word_of(const struct term *t, struct str server)
{
    for (struct str word = next_word(&server); word.p; word = next_word(&server))
        if (hash_of(word) == t->hashes[0])
            return true;
    return false;
}

/* Fills w->frequencies and says what each term is worth. */
static void weigh_terms(struct wish *w, const struct rank_candidate *candidates, size_t n)
{
    double length = 0;

    for (size_t i = 0; i < n; i++)
        length += words_of(candidates[i].catalog)->tools[candidates[i].item].length;
    w->mean_length = n ? length / (double)n : 1;
    for (unsigned t = 0; t < w->n; t++) {
        double having = 0;
        bool names_server = false;
        for (size_t i = 0; i < n; i++) {
            if (i == 0 || candidates[i].server.p != candidates[i - 1].server.p)
                names_server = is_word_of(&w->terms[t], candidates[i].server);
            double f = frequency(&w->terms[t], &candidates[i], names_server);
            w->frequencies[i * w->n + t] = (float)f;
            having += f > 0;
        }
        /* A word that no tool has says little about any. */
        w->terms[t].idf = having > 0 ? log(1 + ((double)n - having + 0.5) / (having + 0.5))
                                     : log(1 + (double)n) / 2;
        w->total_idf += w->terms[t].idf;
    }
}

static bool is_its_name(const struct wish *w, const struct rank_candidate *c)
{
    return str_ieq(str_trim(w->text), c->catalog->lists[CATALOG_TOOLS].items[c->item].name);
}

static double fit(const struct wish *w, const struct rank_candidate *c, const float *frequencies)
{
    const struct rank_tool *t = &words_of(c->catalog)->tools[c->item];
    double norm =
        SATURATION * (1 - LENGTH_PART + LENGTH_PART * (double)t->length / (w->mean_length + 1e-9));
    double score = 0;

    if (w->server.p && !str_ieq(w->server, c->server))
        return 0;
    if (!w->n || is_its_name(w, c))
        return 1;
    for (unsigned i = 0; i < w->n; i++) {
        double f = (double)frequencies[i];
        score += w->terms[i].idf * f / (f + norm);
    }
    return w->total_idf > 0 ? score / w->total_idf : 0;
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

size_t rank_tools(struct rank_candidate *candidates, size_t n, struct str query, double threshold,
                  struct arena *mem)
{
    struct wish *w = arena_alloc(mem, sizeof(*w));
    struct str rest = str_n(query.p, query.n < RANK_QUERY_MAX ? query.n : RANK_QUERY_MAX);
    unsigned wishes = 0;
    size_t found = 0;

    w->frequencies = arena_alloc(mem, (n + 1) * RANK_TERMS_MAX * sizeof(float));
    for (size_t i = 0; i < n; i++)
        candidates[i].confidence = 0;
    while (rest.p && wishes < WISHES_MAX) {
        struct str text = str_trim(str_split(&rest, '|'));
        if (!text.n)
            continue;
        wishes++;
        read_wish(w, text, candidates, n);
        weigh_terms(w, candidates, n);
        for (size_t i = 0; i < n; i++) {
            double confidence = fit(w, &candidates[i], &w->frequencies[i * w->n]);
            if (confidence > candidates[i].confidence)
                candidates[i].confidence = confidence;
        }
    }
    for (size_t i = 0; i < n && !wishes; i++)
        candidates[i].confidence = 1;
    sort(candidates, n, mem);
    while (found < n && candidates[found].confidence > 0 &&
           candidates[found].confidence >= threshold)
        found++;
    return found;
}
