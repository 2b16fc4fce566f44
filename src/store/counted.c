/* SPDX-License-Identifier: Apache-2.0 */
#include "store/counted.h"

const char *const counted_outcome_names[COUNTED_OUTCOMES + 1] = {
    [COUNTED_OK] = "ok",
    [COUNTED_TOOL_ERROR] = "tool_error",
    [COUNTED_ERROR] = "error",
    [COUNTED_TIMEOUT] = "timeout",
    [COUNTED_CANCELLED] = "cancelled",
    [COUNTED_REFUSED] = "refused",
    [COUNTED_UPSTREAM_LOST] = "upstream_lost",
    [COUNTED_INDETERMINATE] = "indeterminate",
    [COUNTED_REDELIVERED] = "redelivered",
    [COUNTED_OTHER] = "other",
};

enum { N_TEXTS = 7 };

static void texts_of(const struct event_row *e, struct str ret[N_TEXTS])
{
    const struct str texts[N_TEXTS] = {e->tenant, e->server, e->tool,   e->client,
                                       e->owner,  e->era,    e->carrier};
    for (size_t i = 0; i < N_TEXTS; i++)
        ret[i] = texts[i].p ? texts[i] : STR("");
}

static bool are_same(const struct counted_labels *l, const struct str t[N_TEXTS])
{
    return l && str_eq(l->tool, t[2]) && str_eq(l->server, t[1]) && str_eq(l->client, t[3]) &&
           str_eq(l->owner, t[4]) && str_eq(l->tenant, t[0]) && str_eq(l->era, t[5]) &&
           str_eq(l->carrier, t[6]);
}

/* The texts one after the other, each behind its length. */
static struct str key_of(const struct str texts[N_TEXTS], struct arena *mem, struct str small)
{
    size_t n = 0;
    for (size_t i = 0; i < N_TEXTS; i++)
        n += sizeof(uint32_t) + texts[i].n;
    char *key = n <= small.n ? (char *)small.p : arena_alloc(mem, n), *to = key;
    for (size_t i = 0; i < N_TEXTS; i++) {
        uint32_t size = (uint32_t)texts[i].n;
        to = mempcpy(to, &size, sizeof(size));
        to = mempcpy(to, texts[i].p, texts[i].n);
    }
    return str_n(key, n);
}

static const struct counted_labels *labels_new(struct map *map, struct arena *mem,
                                               const struct str texts[N_TEXTS], struct str key)
{
    struct counted_labels *l = arena_new_of(mem, struct counted_labels);
    struct str *const to[N_TEXTS] = {&l->tenant, &l->server, &l->tool,   &l->client,
                                     &l->owner,  &l->era,    &l->carrier};
    const char *at = key.p;
    for (size_t i = 0; i < N_TEXTS; i++) {
        at += sizeof(uint32_t);
        *to[i] = str_n(at, texts[i].n);
        at += texts[i].n;
    }
    map_put(map, key, l);
    return l;
}

const struct counted_labels *counted_labels_of(struct counted_names *names, struct arena *mem,
                                               const struct event_row *e)
{
    struct str texts[N_TEXTS];
    char small[768];

    texts_of(e, texts);
    if (are_same(names->last, texts))
        return names->last;
    struct str key = key_of(texts, mem, str_n(small, sizeof(small)));
    const struct counted_labels *l = map_get(&names->map, key);
    if (!l)
        l = labels_new(&names->map, mem, texts, key.p == small ? arena_dup(mem, key) : key);
    return names->last = l;
}

bool counted_is_end(const struct event_row *e)
{
    return e->kind == EVENT_OUTCOME || e->kind == EVENT_NOTE || e->kind == EVENT_RECORD;
}

static uint8_t outcome_number(struct str name)
{
    for (int i = 0; i < COUNTED_OTHER; i++)
        if (str_eq(name, str_of(counted_outcome_names[i])))
            return (uint8_t)i;
    return name.n ? COUNTED_OTHER : COUNTED_OK;
}

static int64_t or_zero(int64_t n)
{
    return n > 0 ? n : 0;
}

struct counted_call counted_call_of(const struct event_row *e, const struct counted_labels *labels)
{
    struct counted_call c = {
        .labels = labels,
        .session_id = e->session_id,
        .at_ms = or_zero(e->at_ms),
        .duration_us = or_zero(e->duration_us),
        .request_bytes = or_zero(e->request_len),
        .response_bytes = or_zero(e->body_len),
        .tokens = or_zero(e->tokens),
        .outcome = outcome_number(e->outcome),
    };
    /* The body of a note is its request, and that of a record is both. */
    if (e->kind == EVENT_NOTE) {
        c.request_bytes = c.response_bytes;
        c.response_bytes = 0;
    } else if (e->kind == EVENT_RECORD) {
        c.response_bytes = or_zero(c.response_bytes - c.request_bytes);
    }
    return c;
}
