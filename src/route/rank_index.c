/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the words of a catalog's tools: of names, titles, descriptions and schemas.  Phrases that
 * words.h knows stand beside their words. */
#include "route/rank_index.h"

#include "route/words.h"

#include <stdlib.h>

#define DEPTH_MAX 6 /* of schemas that are read */

struct gathering {
    struct rank_posting words[RANK_WORDS_MAX];
    size_t n;
    uint32_t tool;
    struct arena *mem; /* for what is looked at only */
};

static void gather_word(struct gathering *g, uint32_t stem, uint32_t weight)
{
    if (g->n < RANK_WORDS_MAX)
        g->words[g->n++] = (struct rank_posting){stem, g->tool, weight};
}

static void gather_text(struct gathering *g, struct str text, uint32_t weight)
{
    struct word words[RANK_WORDS_MAX];
    size_t n = words_cut(text, words, countof(words));

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

/* How long the first sentence is: up to a full stop or line break before a blank or the end. */
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
    for (const struct js_node *v = js_first(doc, choices); v; v = js_next(doc, choices, v))
        if (js_type_is(v, JS_STRING))
            gather_text(g, js_text(doc, v, g->mem), WEIGHT_SCHEMA);
}

/* Names of properties, what is said of them, and what can be chosen. */
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
    gather_text(g, item->name, WEIGHT_NAME);
    if (js_parse(catalog_shown(item), &js_limits_upstream, g->mem, &doc, NULL)) {
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

static struct catalog_words *read_words(struct catalog *c)
{
    const struct catalog_list *list = &c->lists[CATALOG_TOOLS];
    struct catalog_words *w = arena_new_of(c->mem, struct catalog_words);
    struct gathering *g = xcalloc(1, sizeof(*g));
    struct buf all;

    w->lengths = arena_zalloc(c->mem, (list->n + 1) * sizeof(*w->lengths));
    w->destroys = arena_zalloc(c->mem, (list->n + 1) * sizeof(*w->destroys));
    buf_init(&all, SIZE_MAX / 2);
    g->mem = arena_new(4 * CATALOG_MAX_BYTES);
    for (size_t i = 0; i < list->n; i++) {
        g->tool = (uint32_t)i;
        gather_tool(g, &list->items[i]);
        w->destroys[i] = is_destroying(list->items[i].name);
        for (size_t k = 0; k < g->n; k++)
            w->lengths[i] += g->words[k].weight;
        buf_add(&all, g->words, g->n * sizeof(*g->words));
        arena_reset(g->mem);
    }
    w->n = all.n / sizeof(*w->postings);
    w->postings = arena_alloc(c->mem, all.n + 1);
    if (all.n)
        memcpy(w->postings, all.p, all.n);
    qsort(w->postings, w->n, sizeof(*w->postings), by_stem);
    buf_release(&all);
    arena_free(g->mem);
    free(g);
    return w;
}

const struct catalog_words *rank_index_of(struct catalog *c)
{
    if (!c->words)
        c->words = read_words(c);
    return c->words;
}

size_t rank_index_find(const struct catalog_words *w, uint32_t stem,
                       const struct rank_posting **ret)
{
    size_t low = 0, high = w->n, end;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (w->postings[middle].stem < stem)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < w->n && w->postings[end].stem == stem; end++)
        continue;
    *ret = w->postings + low;
    return end - low;
}
