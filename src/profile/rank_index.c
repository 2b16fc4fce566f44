/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the words of a catalog's tools: of names, titles, descriptions and schemas.  Phrases that
 * words.h knows are added to their words. */
#include "profile/rank_index.h"

#include "profile/words.h"

#include <stdlib.h>

#define DEPTH_MAX 6 /* depth up to which schemas are read */

struct gathering {
    struct rank_posting words[RANK_WORDS_MAX];
    size_t n;
    uint32_t tool;
    bool names_only;
    struct arena *mem; /* for temporary data */
};

static void gather_word(struct gathering *g, uint32_t stem, uint32_t weight)
{
    if (g->n < RANK_WORDS_MAX)
        g->words[g->n++] = (struct rank_posting){stem, g->tool, weight};
}

static void gather_text(struct gathering *g, struct str text, uint32_t weight)
{
    struct word words[RANK_WORDS_MAX];
    size_t n = g->n < RANK_WORDS_MAX ? words_cut(text, words, countof(words)) : 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t phrase = i + 1 < n ? words_phrase(words[i].stem, words[i + 1].stem) : 0;
        if (phrase)
            gather_word(g, phrase, weight);
        if (!(words[i].marks & WORD_IDLE))
            gather_word(g, words[i].stem, weight);
    }
}

static struct str member(struct gathering *g, const struct js_doc *doc,
                         const struct js_node *object, const char *key)
{
    struct str text = js_text(doc, js_get(doc, object, str_of(key)), g->mem);
    return text.p ? text : STR("");
}

/* The length of the first sentence: up to a full stop or line break before a blank or the end. */
static size_t end_of_sentence(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((text.p[i] == '.' || text.p[i] == '\n') &&
            (i + 1 == text.n || strchr(" \t\r\n", text.p[i + 1])))
            return i + 1;
    return text.n;
}

static void gather_description(struct gathering *g, struct str text)
{
    size_t head = end_of_sentence(text);

    gather_text(g, str_n(text.p, head), WEIGHT_HEAD);
    gather_text(g, str_n(text.p + head, text.n - head), WEIGHT_TEXT);
}

static void gather_choices(struct gathering *g, const struct js_doc *doc,
                           const struct js_node *choices)
{
    if (!js_type_is(choices, JS_ARRAY))
        return;
    for (const struct js_node *v = js_first(doc, choices); v && g->n < RANK_WORDS_MAX;
         v = js_next(doc, choices, v))
        if (js_type_is(v, JS_STRING))
            gather_text(g, js_text(doc, v, g->mem), WEIGHT_SCHEMA);
}

/* Adds names, descriptions and enum values of properties. */
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
        const struct js_node *value = js_value_of(key);
        gather_text(g, js_text(doc, key, g->mem), WEIGHT_SCHEMA);
        gather_text(g, member(g, doc, value, "description"), WEIGHT_SCHEMA);
        gather_choices(g, doc, js_get(doc, value, STR("enum")));
        gather_schema(g, doc, value, depth + 1);
    }
}

static int by_stem(const void *a, const void *b)
{
    const struct rank_posting *x = a, *y = b;

    if (x->stem != y->stem)
        return x->stem < y->stem ? -1 : 1;
    return x->tool < y->tool ? -1 : x->tool > y->tool;
}

static void gather_tool(struct gathering *g, const struct catalog_item *item)
{
    struct js_doc doc;
    size_t n = 0;

    g->n = 0;
    gather_text(g, str_cut(item->name, RANK_DEFINITION_MAX), WEIGHT_NAME);
    if (!g->names_only && catalog_shown(item).n <= RANK_DEFINITION_MAX &&
        js_parse(catalog_shown(item), &js_limits_upstream, g->mem, &doc, NULL)) {
        gather_text(g, member(g, &doc, js_root(&doc), "title"), WEIGHT_TITLE);
        gather_description(g, member(g, &doc, js_root(&doc), "description"));
        gather_schema(g, &doc, js_get(&doc, js_root(&doc), STR("inputSchema")), 0);
    }
    qsort(g->words, g->n, sizeof(*g->words), by_stem);
    for (size_t i = 0; i < g->n; i++)
        if (n && g->words[n - 1].stem == g->words[i].stem)
            g->words[n - 1].weight += g->words[i].weight;
        else
            g->words[n++] = g->words[i];
    g->n = n;
}

static bool is_destroying(struct str name)
{
    struct word words[16];
    size_t n = words_cut(name, words, countof(words));

    for (size_t i = 0; i < n; i++)
        if (words[i].marks & WORD_DESTROYS)
            return true;
    return false;
}

static void free_words(struct catalog_words *w)
{
    for (size_t i = 0; i < RANK_BUCKETS; i++)
        free(w->buckets[i].postings);
    free(w->lengths);
    free(w->destroys);
    free(w);
}

static struct catalog_words *words_new(const struct catalog *c)
{
    struct catalog_words *w = xcalloc(1, sizeof(*w));
    size_t n = c->lists[CATALOG_TOOLS].n + 1;

    w->lengths = xcalloc(n, sizeof(*w->lengths));
    w->destroys = xcalloc(n, sizeof(*w->destroys));
    return w;
}

static void add_posting(struct catalog_words *w, const struct rank_posting *p)
{
    struct rank_bucket *b = &w->buckets[p->stem % RANK_BUCKETS];

    if (b->n == b->room) {
        b->room = b->room ? 2 * b->room : 8;
        b->postings = xrealloc(b->postings, b->room * sizeof(*b->postings));
    }
    b->postings[b->n++] = *p;
    w->n++;
}

static void read_tool(struct catalog_words *w, struct gathering *g, const struct catalog_item *item)
{
    g->tool = (uint32_t)w->n_read;
    g->names_only = w->n >= RANK_POSTINGS_MAX;
    gather_tool(g, item);
    w->destroys[w->n_read] = is_destroying(item->name);
    for (size_t k = 0; k < g->n; k++) {
        w->lengths[w->n_read] += g->words[k].weight;
        add_posting(w, &g->words[k]);
    }
    w->n_read++;
    arena_reset(g->mem);
}

bool rank_index_step(struct catalog *c)
{
    const struct catalog_list *list = &c->lists[CATALOG_TOOLS];
    struct gathering *g;
    size_t bytes = 0, tools = 0;

    if (!c->words) {
        c->words = words_new(c);
        c->free_words = free_words;
    }
    if (c->words->n_read == list->n)
        return true;
    g = xcalloc(1, sizeof(*g));
    g->mem = arena_new(4 * CATALOG_MAX_BYTES);
    while (c->words->n_read < list->n && bytes < RANK_SLICE_BYTES && tools++ < RANK_SLICE_TOOLS) {
        const struct catalog_item *item = &list->items[c->words->n_read];
        size_t n = catalog_shown(item).n;
        bytes += n < RANK_DEFINITION_MAX ? n : 0;
        read_tool(c->words, g, item);
    }
    arena_free(g->mem);
    free(g);
    return c->words->n_read == list->n;
}

const struct catalog_words *rank_index_of(struct catalog *c)
{
    while (!rank_index_step(c))
        continue;
    return c->words;
}
