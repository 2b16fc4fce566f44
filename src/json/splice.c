/* SPDX-License-Identifier: Apache-2.0 */
/* Edits that keep all other bytes.  The tape gives offsets into the original text, so an edit is a
 * span and its replacement; writing copies the gaps. */
#include "json/splice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void js_splice_init(struct js_splice *s, const struct js_doc *doc)
{
    s->doc = doc;
    s->n = 0;
    s->room = JS_SPLICE_OWN;
    s->edits = s->own;
}

static void make_room(struct js_splice *s)
{
    struct js_splice_edit *more = xmalloc(2 * (size_t)s->room * sizeof(*more));

    memcpy(more, s->edits, s->n * sizeof(*more));
    if (s->edits != s->own)
        free(s->edits);
    s->edits = more;
    s->room *= 2;
}

static void add_edit(struct js_splice *s, struct js_splice_edit edit)
{
    if (unlikely(s->n == s->room))
        make_room(s);
    /* Sorted; edits with equal starts keep their order. */
    unsigned at = s->n++;
    while (at > 0 && s->edits[at - 1].start > edit.start) {
        s->edits[at] = s->edits[at - 1];
        at--;
    }
    s->edits[at] = edit;
}

void js_splice_replace(struct js_splice *s, const struct js_node *value, struct str with)
{
    add_edit(s, (struct js_splice_edit){value->start, value->end, with, false});
}

/* Removing a run of members removes one of its two commas: the comma after it if another member
 * follows, else the comma before it. */
unsigned js_splice_remove(struct js_splice *s, const struct js_node *object,
                          bool (*drop)(void *arg, struct str raw_key), void *arg)
{
    const struct js_node *stays = NULL, *run = NULL, *last = NULL;
    unsigned kept = 0;

    for (const struct js_node *key = js_first(s->doc, object); key;
         key = js_next(s->doc, object, js_value_of(key))) {
        if (drop(arg, js_raw(s->doc, key))) {
            run = run ? run : key;
            last = js_value_of(key);
            continue;
        }
        if (run)
            add_edit(s, (struct js_splice_edit){run->start, key->start, STR(""), false});
        run = NULL;
        stays = js_value_of(key);
        kept++;
    }
    if (run)
        add_edit(
            s, (struct js_splice_edit){stays ? stays->end : run->start, last->end, STR(""), false});
    return kept;
}

unsigned js_splice_stay(const struct js_doc *doc, const struct js_node *object,
                        bool (*drop)(void *arg, struct str raw_key), void *arg)
{
    unsigned stay = 0;

    for (const struct js_node *key = js_first(doc, object); key;
         key = js_next(doc, object, js_value_of(key)))
        stay += !drop(arg, js_raw(doc, key));
    return stay;
}

/* Whether any member or element of the container remains. */
static bool has_siblings(const struct js_splice *s, const struct js_node *container)
{
    for (const struct js_node *n = js_first(s->doc, container); n;) {
        const struct js_node *value = container->type == JS_OBJECT ? js_value_of(n) : n;
        bool gone = false;
        for (unsigned i = 0; i < s->n; i++)
            gone |= !s->edits[i].with.n && s->edits[i].start <= n->start &&
                    s->edits[i].end >= value->end;
        if (!gone)
            return true;
        n = js_next(s->doc, container, value);
    }
    return false;
}

static void add_last(struct js_splice *s, const struct js_node *container, struct str with)
{
    uint32_t at = container->end - 1;
    bool comma = has_siblings(s, container);
    for (unsigned i = 0; i < s->n; i++)
        comma |= s->edits[i].start == at && s->edits[i].end == at;
    add_edit(s, (struct js_splice_edit){at, at, with, comma});
}

void js_splice_member(struct js_splice *s, const struct js_node *object, struct str member)
{
    assert(js_type_is(object, JS_OBJECT));
    add_last(s, object, member);
}

void js_splice_element(struct js_splice *s, const struct js_node *array, struct str element)
{
    assert(js_type_is(array, JS_ARRAY));
    add_last(s, array, element);
}

void js_splice_write(struct js_splice *s, const struct js_node *value, struct buf *out)
{
    const char *text = s->doc->text.p;
    uint32_t at = value->start;

    for (unsigned i = 0; i < s->n; i++) {
        const struct js_splice_edit *e = &s->edits[i];
        if (e->start < value->start || e->end > value->end)
            continue;
        buf_add(out, text + at, e->start - at);
        if (e->comma)
            buf_addc(out, ',');
        buf_addstr(out, e->with);
        at = e->end;
    }
    buf_add(out, text + at, value->end - at);
    if (unlikely(s->edits != s->own)) {
        free(s->edits);
        js_splice_init(s, s->doc);
    }
}
