/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions of one document as JSON, and their ids. */
#include "docs/api/suggestion.h"

#include "base/map.h"
#include "crypto/hash.h"

#include <stdio.h>
#include <stdlib.h>

#define ID_HEX 10
#define ID_TEXT (ID_HEX + 24)

/* How many suggestions of the document have the same markup, and how many of them have an id. */
struct twins {
    unsigned count, named;
};

/* The id is a digest of the markup alone, so that a decision about one suggestion does not change
 * the ids of the others.  Suggestions of agents differ in their markup (docs/critic/emit.c).  People
 * may write the same markup twice.  The digest of such a twin also covers its number and the count
 * of twins, so that an id never moves to the twin beside it. */
static void id_of(const struct critic_suggestion *s, struct twins *twins, char ret[ID_HEX + 1])
{
    char number[48] = "";
    uint8_t sha[SHA256_BYTES];

    if (twins->count > 1)
        snprintf(number, sizeof(number), "%u/%u", ++twins->named, twins->count);
    const struct str parts[] = {s->raw, STR("\0"), str_of(number)};
    sha256_parts(parts, countof(parts), sha);
    hex_encode(sha, ID_HEX / 2, ret);
    ret[ID_HEX] = '\0';
}

static struct str content_of(const struct critic_suggestion *s)
{
    return s->new_content.p ? s->new_content : s->old_content;
}

static void write_or_null(struct js_writer *w, const char *key, struct str text)
{
    js_key(w, str_of(key));
    if (text.p)
        js_string(w, text);
    else
        js_null(w);
}

static void write_one(struct js_writer *w, const struct critic_suggestion *s, struct str id)
{
    js_object(w);
    js_kv_string(w, "id", id);
    js_kv_string(w, "type", str_of(s->type));
    js_kv_string(w, "content", content_of(s).p ? content_of(s) : STR(""));
    write_or_null(w, "old_content", s->old_content);
    write_or_null(w, "new_content", s->new_content);
    write_or_null(w, "author", s->meta.author);
    js_key(w, STR("timestamp"));
    if (s->meta.time_s)
        js_int(w, s->meta.time_s > INT64_MAX / 1000 ? INT64_MAX : s->meta.time_s * 1000);
    else
        js_null(w);
    js_kv_int(w, "from", (int64_t)s->from);
    js_kv_int(w, "to", (int64_t)s->to);
    js_kv_string(w, "raw_markup", s->raw);
    js_kv_string(w, "context_before", s->context_before.p ? s->context_before : STR(""));
    js_kv_string(w, "context_after", s->context_after.p ? s->context_after : STR(""));
    js_kv_int(w, "line", (int64_t)s->line);
    js_object_end(w);
}

/* Counts the suggestions with the same id: ids are short, and an agent could search for two texts
 * with one id. */
struct alike {
    char id[ID_HEX + 1];
    unsigned count;
};

static struct str name_of(const struct critic_suggestion *s, struct twins *twins,
                          struct alike *mine, struct map *seen, char text[ID_TEXT])
{
    struct alike *first;

    id_of(s, twins, mine->id);
    first = map_get(seen, str_of(mine->id));
    if (!first) {
        first = mine;
        map_put(seen, str_of(mine->id), mine);
    }
    if (++first->count == 1)
        return str_of(mine->id);
    return str_n(text, (size_t)snprintf(text, ID_TEXT, "%s-%u", mine->id, first->count));
}

static struct twins *count_twins(const struct critic_suggestion *list, size_t n, struct map *by_raw)
{
    struct twins *twins = xcalloc(n + 1, sizeof(*twins));

    for (size_t i = 0; i < n; i++) {
        struct twins *first = map_get(by_raw, list[i].raw);

        if (!first) {
            first = &twins[i];
            map_put(by_raw, list[i].raw, first);
        }
        first->count++;
    }
    return twins;
}

void suggestions_write(struct js_writer *w, const struct critic_suggestion *list, size_t n)
{
    size_t most = n < SUGGESTIONS_SHOWN ? n : SUGGESTIONS_SHOWN, bytes = 0;
    struct alike *alike = xcalloc(most + 1, sizeof(*alike));
    struct map seen = {0}, by_raw = {0};
    struct twins *twins = count_twins(list, n, &by_raw);
    char text[ID_TEXT];

    js_array(w);
    for (size_t i = 0; i < most; i++) {
        bytes += list[i].raw.n;
        if (bytes > SUGGESTIONS_BYTES)
            break;
        write_one(w, &list[i],
                  name_of(&list[i], map_get(&by_raw, list[i].raw), &alike[i], &seen, text));
    }
    js_array_end(w);
    map_release(&seen);
    map_release(&by_raw);
    free(twins);
    free(alike);
}
