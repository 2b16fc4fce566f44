/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/checkpoint.h"

#include "audit/chain.h"
#include "audit/event_id.h"
#include "crypto/hash.h"
#include "json/write.h"

#include <stdlib.h>

#define PURPOSE "the checkpoints of retention"
#define ADVICE "keep the database as evidence and compare it with a backup"

struct checkpoints {
    struct arena *mem;
    struct removed_row *rows; /* by writer, tenant and first_seq */
    size_t n;
};

static void add_int(struct buf *out, int64_t value)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
    buf_add(out, bytes, sizeof(bytes));
}

static void add_text(struct buf *out, struct str text)
{
    add_int(out, (int64_t)text.n);
    buf_addstr(out, text);
}

/* Change the label when the sealed content changes. */
void checkpoint_seal(struct chain *c, const struct removed_row *row, uint8_t ret[32])
{
    const int64_t numbers[] = {row->writer,  row->first_seq, row->last_seq,  row->first_id,
                               row->last_id, row->oldest_ms, row->newest_ms, row->by_age,
                               row->by_size, row->removed_ms};
    uint8_t key[32];
    struct buf sealed;

    buf_init(&sealed, SIZE_MAX / 4);
    buf_addz(&sealed, "holdfast checkpoint 1");
    for (size_t i = 0; i < countof(numbers); i++)
        add_int(&sealed, numbers[i]);
    add_text(&sealed, row->tenant);
    add_text(&sealed, row->rule);
    buf_add(&sealed, row->before, sizeof(row->before));
    buf_add(&sealed, row->after, sizeof(row->after));
    chain_derive(c, PURPOSE, key);
    struct hmac_key *hmac = hmac_key_new(key, sizeof(key));
    const struct str part = buf_str(&sealed);
    hmac_sha256(hmac, &part, 1, ret);
    hmac_key_free(hmac);
    crypto_wipe(key, sizeof(key));
    buf_release(&sealed);
}

bool checkpoint_is_sealed(struct chain *c, const struct removed_row *row)
{
    uint8_t seal[32];

    checkpoint_seal(c, row, seal);
    return crypto_equal(seal, row->seal, sizeof(seal));
}

struct checkpoints *checkpoints_new(void)
{
    struct checkpoints *cs = xcalloc(1, sizeof(*cs));

    cs->mem = arena_new(SIZE_MAX / 4);
    return cs;
}

void checkpoints_free(struct checkpoints *cs)
{
    if (!cs)
        return;
    arena_free(cs->mem);
    free(cs);
}

static bool bad(struct error *err, const struct removed_row *row, const char *what)
{
    char first[EVENT_ID_TEXT], last[EVENT_ID_TEXT];

    return error_set(err, ERR_CHAIN_BROKEN,
                     "the checkpoint of the removed events %s to %s of tenant %.*s %s; " ADVICE,
                     event_id_format(row->first_id, first), event_id_format(row->last_id, last),
                     STR_ARG(row->tenant), what);
}

static int chain_order(const struct removed_row *r, int64_t writer, struct str tenant)
{
    if (r->writer != writer)
        return r->writer < writer ? -1 : 1;
    return str_cmp(r->tenant, tenant);
}

static int row_order(const void *a, const void *b)
{
    const struct removed_row *x = a, *y = b;
    int order = chain_order(x, y->writer, y->tenant);

    return order ? order : (x->first_seq > y->first_seq) - (x->first_seq < y->first_seq);
}

static bool check(struct chain *c, const struct removed_row *row, const struct removed_row *before,
                  struct error *err)
{
    if (!checkpoint_is_sealed(c, row))
        return bad(err, row, "was not made by Holdfast, or was changed");
    if (before && chain_order(before, row->writer, row->tenant) == 0 &&
        before->last_seq >= row->first_seq)
        return bad(err, row, "overlaps another one");
    return true;
}

bool checkpoints_set(struct checkpoints *cs, struct chain *c, const struct removed_row *rows,
                     size_t n, struct error *err)
{
    arena_reset(cs->mem);
    cs->n = 0;
    cs->rows = arena_zalloc(cs->mem, (n + 1) * sizeof(*cs->rows));
    for (size_t i = 0; i < n; i++) {
        cs->rows[i] = rows[i];
        cs->rows[i].tenant = arena_dup(cs->mem, rows[i].tenant);
        cs->rows[i].rule = arena_dup(cs->mem, rows[i].rule);
    }
    qsort(cs->rows, n, sizeof(*cs->rows), row_order);
    for (size_t i = 0; i < n; i++)
        if (!check(c, &cs->rows[i], i ? &cs->rows[i - 1] : NULL, err))
            return false;
    cs->n = n;
    return true;
}

const struct removed_row *checkpoints_at(const struct checkpoints *cs, int64_t writer,
                                         struct str tenant, int64_t seq)
{
    size_t low = 0, high = cs->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct removed_row *r = &cs->rows[middle];
        int order = chain_order(r, writer, tenant);
        if (order < 0 || (order == 0 && r->last_seq < seq))
            low = middle + 1;
        else
            high = middle;
    }
    const struct removed_row *r = low < cs->n ? &cs->rows[low] : NULL;
    return r && chain_order(r, writer, tenant) == 0 && r->first_seq <= seq ? r : NULL;
}

bool checkpoints_reach(const struct checkpoints *cs, int64_t writer, int64_t id)
{
    for (size_t i = 0; i < cs->n; i++)
        if (cs->rows[i].writer == writer && cs->rows[i].first_id <= id && id <= cs->rows[i].last_id)
            return true;
    return false;
}

int64_t checkpoints_last(const struct checkpoints *cs, int64_t writer)
{
    int64_t last = 0;

    for (size_t i = 0; i < cs->n; i++)
        if (cs->rows[i].writer == writer && cs->rows[i].last_id > last)
            last = cs->rows[i].last_id;
    return last;
}

const struct removed_row *checkpoints_all(const struct checkpoints *cs, size_t *ret_n)
{
    *ret_n = cs->n;
    return cs->rows;
}

void checkpoint_write(struct js_writer *w, const struct removed_row *row)
{
    char first[EVENT_ID_TEXT], last[EVENT_ID_TEXT];

    js_object(w);
    js_kv_string(w, "tenant", row->tenant);
    js_kv_int(w, "writer", row->writer);
    js_kv_string(w, "first", str_of(event_id_format(row->first_id, first)));
    js_kv_string(w, "last", str_of(event_id_format(row->last_id, last)));
    js_kv_int(w, "events", row->last_seq - row->first_seq + 1);
    js_kv_int(w, "by_keep", row->by_age);
    js_kv_int(w, "by_max_size", row->by_size);
    js_kv_time(w, "oldest", row->oldest_ms);
    js_kv_time(w, "newest", row->newest_ms);
    js_kv_time(w, "removed_at", row->removed_ms);
    js_kv_string(w, "rule", row->rule);
    js_object_end(w);
}
