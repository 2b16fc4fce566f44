/* SPDX-License-Identifier: Apache-2.0 */
/* The stored form:
 *
 *     version, number of cells, then each cell: outcome, calls, request bytes, response bytes, tokens,
 *     tokens estimated, number of buckets, each bucket as distance from the one before and count,
 *     and the sessions: twice the number of hashes and the hashes, or 1 and the registers, packed in
 *     six bits each
 *
 * Numbers are LEB128 in as few bytes as possible; a hash has five bytes, the highest first. */
#include "analytics/store/cells.h"

#include <stdlib.h>

#define VERSION 1
#define CELLS_MAX (1 << 20)
#define REGISTER_BITS 6
#define PACKED (DISTINCT_REGISTERS * REGISTER_BITS / 8)

void cell_release(struct cell *c)
{
    durations_release(&c->durations);
    distinct_release(&c->sessions);
}

void cells_release(struct cells *c)
{
    for (size_t i = 0; i < COUNTED_OUTCOMES; i++) {
        if (c->of[i])
            cell_release(c->of[i]);
        free(c->of[i]);
        c->of[i] = NULL;
    }
}

static struct cell *cell_of(struct cells *c, size_t outcome)
{
    if (!c->of[outcome])
        c->of[outcome] = xcalloc(1, sizeof(struct cell));
    return c->of[outcome];
}

/* A sum stops at the largest number. */
static void add(int64_t *sum, int64_t n)
{
    if (__builtin_add_overflow(*sum, n, sum))
        *sum = INT64_MAX;
}

/* A session cannot be taken back, so calls whose outcome is a guess add none. */
void cells_count(struct cells *c, const struct counted_call *call, size_t most_sessions)
{
    struct cell *cell = cell_of(c, call->outcome);
    int64_t sign = call->is_undone ? -1 : 1, bytes = call->request_bytes;

    add(&bytes, call->response_bytes);
    cell->calls += sign;
    add(&cell->request_bytes, sign * call->request_bytes);
    add(&cell->response_bytes, sign * call->response_bytes);
    add(&cell->tokens, sign * call->tokens);
    if (!call->tokens)
        add(&cell->tokens_estimated, sign * (bytes / 4 + (bytes % 4 != 0)));
    if (call->duration_us)
        durations_add(&cell->durations, duration_bucket(call->duration_us), sign);
    if (call->session_id.n && call->outcome != COUNTED_INDETERMINATE)
        distinct_add(&cell->sessions, distinct_hash(call->session_id), most_sessions);
}

void cell_merge(struct cell *c, const struct cell *more, size_t most_sessions)
{
    add(&c->calls, more->calls);
    add(&c->request_bytes, more->request_bytes);
    add(&c->response_bytes, more->response_bytes);
    add(&c->tokens, more->tokens);
    add(&c->tokens_estimated, more->tokens_estimated);
    durations_merge(&c->durations, &more->durations);
    distinct_merge(&c->sessions, &more->sessions, most_sessions);
}

/* Writing. */

static void put_number(struct buf *out, int64_t value)
{
    uint64_t n = value > 0 ? (uint64_t)value : 0;
    for (; n >= 0x80; n >>= 7)
        buf_addc(out, (char)(n | 0x80));
    buf_addc(out, (char)n);
}

static void put_durations(struct buf *out, const struct durations *d)
{
    size_t n = 0, last = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->items[i].n > 0;
    put_number(out, (int64_t)n);
    for (size_t i = 0; i < d->n; i++) {
        if (d->items[i].n <= 0)
            continue;
        put_number(out, (int64_t)(d->items[i].bucket - last));
        put_number(out, d->items[i].n);
        last = d->items[i].bucket;
    }
}

static void put_registers(struct buf *out, const uint8_t *registers)
{
    unsigned bits = 0, n = 0;
    for (size_t i = 0; i < DISTINCT_REGISTERS; i++) {
        bits = bits << REGISTER_BITS | registers[i];
        for (n += REGISTER_BITS; n >= 8; n -= 8)
            buf_addc(out, (char)(bits >> (n - 8)));
    }
}

static void put_sessions(struct buf *out, const struct distinct *d)
{
    if (d->registers) {
        put_number(out, 1);
        put_registers(out, d->registers);
        return;
    }
    put_number(out, 2 * (int64_t)d->n);
    for (size_t i = 0; i < d->n; i++)
        for (int shift = 8 * (DISTINCT_HASH_BYTES - 1); shift >= 0; shift -= 8)
            buf_addc(out, (char)(d->hashes[i] >> shift));
}

int64_t cells_write(struct cells *c, size_t most_sessions, struct buf *out)
{
    int64_t calls = 0, n = 0;

    for (size_t i = 0; i < COUNTED_OUTCOMES; i++)
        n += c->of[i] && c->of[i]->calls > 0;
    put_number(out, VERSION);
    put_number(out, n);
    for (size_t i = 0; i < COUNTED_OUTCOMES; i++) {
        struct cell *cell = c->of[i];
        if (!cell || cell->calls <= 0)
            continue;
        calls += cell->calls;
        distinct_limit(&cell->sessions, most_sessions);
        put_number(out, (int64_t)i);
        put_number(out, cell->calls);
        put_number(out, cell->request_bytes);
        put_number(out, cell->response_bytes);
        put_number(out, cell->tokens);
        put_number(out, cell->tokens_estimated);
        put_durations(out, &cell->durations);
        put_sessions(out, &cell->sessions);
    }
    return calls;
}

/* Reading. */

struct reader {
    const uint8_t *p, *end;
    bool bad;
};

static int64_t get_number(struct reader *r)
{
    uint64_t n = 0;
    for (int shift = 0; shift < 63; shift += 7) {
        if (r->p == r->end)
            break;
        uint8_t byte = *r->p++;
        n |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return (int64_t)(n & INT64_MAX);
    }
    r->bad = true;
    return 0;
}

static void get_durations(struct reader *r, struct durations *d)
{
    int64_t n = get_number(r), bucket = 0;
    for (; !r->bad && n > 0; n--) {
        bucket += get_number(r);
        int64_t count = get_number(r);
        r->bad = r->bad || bucket < 0 || bucket >= DURATION_BUCKETS;
        if (!r->bad)
            durations_add(d, (uint16_t)bucket, count);
    }
}

static void get_sessions(struct reader *r, struct distinct *d)
{
    int64_t n = get_number(r);
    size_t bytes = n == 1 ? PACKED : (size_t)(n / 2) * DISTINCT_HASH_BYTES;
    if (r->bad || (n != 1 && n % 2) || n > CELLS_MAX || bytes > (size_t)(r->end - r->p)) {
        r->bad = true;
        return;
    }
    unsigned bits = 0, held = 0;
    for (size_t i = 0; n == 1 && i < DISTINCT_REGISTERS; i++) {
        if (held < REGISTER_BITS) {
            bits = bits << 8 | *r->p++;
            held += 8;
        }
        held -= REGISTER_BITS;
        distinct_add_register(d, i, bits >> held & ((1 << REGISTER_BITS) - 1));
    }
    for (int64_t i = 0; n != 1 && i < n / 2; i++) {
        uint64_t hash = 0;
        for (size_t k = 0; k < DISTINCT_HASH_BYTES; k++)
            hash = hash << 8 | *r->p++;
        distinct_add(d, hash, SIZE_MAX);
    }
}

static void get_cell(struct reader *r, struct cell *c)
{
    c->calls = get_number(r);
    c->request_bytes = get_number(r);
    c->response_bytes = get_number(r);
    c->tokens = get_number(r);
    c->tokens_estimated = get_number(r);
    get_durations(r, &c->durations);
    get_sessions(r, &c->sessions);
}

static bool read_all(struct reader *r, struct cells *c)
{
    if (get_number(r) != VERSION)
        return false;
    for (int64_t n = get_number(r); n > 0 && !r->bad; n--) {
        int64_t outcome = get_number(r);
        if (outcome < 0 || outcome >= COUNTED_OUTCOMES || c->of[outcome])
            return false;
        get_cell(r, cell_of(c, (size_t)outcome));
    }
    return !r->bad && r->p == r->end;
}

bool cells_add_stored(struct cells *c, struct str bytes, size_t most_sessions)
{
    struct reader r = {.p = (const uint8_t *)bytes.p, .end = (const uint8_t *)bytes.p + bytes.n};
    struct cells read = {0};
    bool ok = read_all(&r, &read);

    for (size_t i = 0; ok && i < COUNTED_OUTCOMES; i++)
        if (read.of[i])
            cell_merge(cell_of(c, i), read.of[i], most_sessions);
    cells_release(&read);
    return ok;
}
