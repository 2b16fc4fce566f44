/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: parameters and columns in PostgreSQL's binary forms, one statement at a time or many
 * in a pipeline.  A statement is prepared at its first use on a connection. */
#include "store/postgres_impl.h"

#include <endian.h>
#include <stdio.h>

#include "base/fault.h"
#include "base/utf8.h"

/* Fixed values in pg_type. */
#define BYTEA_OID 17
#define INT8_OID 20
#define TEXT_OID 25
#define UUID_OID 2950

/* Binary times count microseconds from 2000-01-01. */
#define EPOCH_MS INT64_C(946684800000)
/* The end of the year 9999; later times are cut to it. */
#define TIME_MAX_MS INT64_C(253402300799999)
#define UUID_CHARS 36

bool pg_is_text(struct str s)
{
    const char *p = s.p, *end = s.p + s.n;
    while (p < end) {
        uint32_t code;
        size_t n = utf8_decode(p, end, &code);
        if (n == 0 || code == 0)
            return false;
        p += n;
    }
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool pg_uuid_parse(struct str s, uint8_t ret[16])
{
    uint8_t bytes[16];
    size_t n = 0;
    if (!s.p || s.n != UUID_CHARS)
        return false;
    for (size_t i = 0; i < UUID_CHARS;) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (s.p[i++] != '-')
                return false;
            continue;
        }
        int high = hex_digit(s.p[i]), low = hex_digit(s.p[i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[n++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    memcpy(ret, bytes, sizeof(bytes));
    return true;
}

static void add(struct pg_params *p, const char *value, size_t n)
{
    p->values[p->n] = value;
    p->lengths[p->n++] = (int)n;
}

static void add_fixed(struct pg_params *p, const void *value, size_t n)
{
    char *to = p->fixed[p->n];
    memcpy(to, value, n);
    add(p, to, n);
}

void pg_text(struct pg_params *p, struct str s)
{
    p->bad |= s.p && !pg_is_text(s);
    add(p, s.p, s.n);
}

void pg_bytes(struct pg_params *p, struct str s)
{
    add(p, s.p, s.n);
}

void pg_sha(struct pg_params *p, const uint8_t sha[32])
{
    add(p, (const char *)sha, 32);
}

void pg_uuid(struct pg_params *p, struct str s)
{
    uint8_t bytes[16] = {0};
    if (!s.p)
        add(p, NULL, 0);
    else if (pg_uuid_parse(s, bytes))
        add_fixed(p, bytes, sizeof(bytes));
    else
        add_fixed(p, (const uint8_t[16]){0}, 16);
}

void pg_own_uuid(struct pg_params *p, struct str s)
{
    uint8_t bytes[16];
    p->bad |= s.p && !pg_uuid_parse(s, bytes);
    pg_uuid(p, s);
}

void pg_int(struct pg_params *p, int64_t i)
{
    uint64_t be = htobe64((uint64_t)i);
    add_fixed(p, &be, sizeof(be));
}

void pg_int4(struct pg_params *p, int32_t i)
{
    uint32_t be = htobe32((uint32_t)i);
    add_fixed(p, &be, sizeof(be));
}

void pg_bool(struct pg_params *p, bool b)
{
    char byte = b;
    add_fixed(p, &byte, 1);
}

void pg_instant(struct pg_params *p, int64_t ms)
{
    int64_t most = ms > TIME_MAX_MS ? TIME_MAX_MS : ms < -TIME_MAX_MS ? -TIME_MAX_MS : ms;
    pg_int(p, (most - EPOCH_MS) * 1000);
}

void pg_time(struct pg_params *p, int64_t ms)
{
    if (ms)
        pg_instant(p, ms);
    else
        add(p, NULL, 0);
}

/* A one-dimensional array: dimensions, no NULLs, type, length, first index; then each element. */
static void add_array(struct pg_params *p, unsigned type, const struct str *elements, size_t n,
                      struct arena *mem)
{
    const uint32_t head[] = {htobe32(n > 0), 0, htobe32(type), htobe32((uint32_t)n), htobe32(1)};
    size_t size = n ? sizeof(head) : 3 * sizeof(head[0]);
    size_t head_n = size;
    for (size_t i = 0; i < n; i++)
        size += 4 + elements[i].n;
    char *bytes = arena_alloc(mem, size), *to = bytes + head_n;
    memcpy(bytes, head, head_n);
    for (size_t i = 0; i < n; i++) {
        uint32_t length = htobe32((uint32_t)elements[i].n);
        memcpy(to, &length, 4);
        if (elements[i].n)
            memcpy(to + 4, elements[i].p, elements[i].n);
        to += 4 + elements[i].n;
    }
    add(p, bytes, size);
}

void pg_ints(struct pg_params *p, const int64_t *ids, size_t n, struct arena *mem)
{
    uint64_t *be = arena_alloc(mem, n * sizeof(*be) + 1);
    struct str *elements = arena_alloc(mem, n * sizeof(*elements) + 1);
    for (size_t i = 0; i < n; i++) {
        be[i] = htobe64((uint64_t)ids[i]);
        elements[i] = str_n((const char *)&be[i], sizeof(be[i]));
    }
    add_array(p, INT8_OID, elements, n, mem);
}

/* A text that is not a UUID becomes the zero UUID, which no row has. */
void pg_uuids(struct pg_params *p, const struct str *texts, size_t n, struct arena *mem)
{
    uint8_t(*bytes)[16] = arena_zalloc(mem, n * sizeof(*bytes) + 1);
    struct str *elements = arena_alloc(mem, n * sizeof(*elements) + 1);
    for (size_t i = 0; i < n; i++) {
        uint8_t parsed[16];
        if (pg_uuid_parse(texts[i], parsed))
            memcpy(bytes[i], parsed, sizeof(parsed));
        elements[i] = str_n((const char *)bytes[i], sizeof(bytes[i]));
    }
    add_array(p, UUID_OID, elements, n, mem);
}

void pg_blobs_of(struct pg_params *p, const struct str *blobs, size_t n, struct arena *mem)
{
    add_array(p, BYTEA_OID, blobs, n, mem);
}

void pg_texts_of(struct pg_params *p, const struct str *texts, size_t n, struct arena *mem)
{
    add_array(p, TEXT_OID, texts, n, mem);
}

struct str pg_peek_bytes(struct pg_row *r)
{
    int at = r->at++;
    if (pq.getisnull(r->res, r->row, at))
        return STR_NONE;
    return str_n(pq.getvalue(r->res, r->row, at), (size_t)pq.getlength(r->res, r->row, at));
}

struct str pg_get_bytes(struct pg_row *r)
{
    return arena_dup(r->mem, pg_peek_bytes(r));
}

struct str pg_get_uuid(struct pg_row *r)
{
    static const char digits[] = "0123456789abcdef";
    struct str bytes = pg_peek_bytes(r);
    if (!bytes.p || bytes.n != 16)
        return STR_NONE;
    char *text = arena_alloc(r->mem, UUID_CHARS + 1), *to = text;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = digits[(uint8_t)bytes.p[i] >> 4];
        *to++ = digits[(uint8_t)bytes.p[i] & 0xf];
    }
    *to = '\0';
    return str_n(text, UUID_CHARS);
}

int64_t pg_get_int(struct pg_row *r)
{
    struct str bytes = pg_peek_bytes(r);
    uint64_t be = 0;
    uint32_t be4 = 0;
    if (bytes.n == sizeof(be4)) {
        memcpy(&be4, bytes.p, sizeof(be4));
        return (int32_t)be32toh(be4);
    }
    if (bytes.n == sizeof(be))
        memcpy(&be, bytes.p, sizeof(be));
    return (int64_t)be64toh(be);
}

bool pg_get_bool(struct pg_row *r)
{
    struct str bytes = pg_peek_bytes(r);
    return bytes.n == 1 && bytes.p[0];
}

int64_t pg_get_time(struct pg_row *r)
{
    bool is_null = pq.getisnull(r->res, r->row, r->at);
    int64_t us = pg_get_int(r);
    int64_t ms = us / 1000 - (us % 1000 < 0);
    return is_null ? 0 : ms + EPOCH_MS;
}

void pg_get_sha(struct pg_row *r, uint8_t ret[32])
{
    struct str bytes = pg_peek_bytes(r);
    memset(ret, 0, 32);
    if (bytes.n == 32)
        memcpy(ret, bytes.p, 32);
}

static void name_of(unsigned which, char ret[16])
{
    snprintf(ret, 16, "hf%u", which);
}

/* Discards the remaining results of a query after the first. */
static bool finish(struct pg_store *s, struct error *err)
{
    for (;;) {
        PGresult *more = NULL;
        if (!pg_next(s, &more, err))
            return false;
        if (!more)
            return true;
        pq.clear(more);
    }
}

static bool is_fine(const PGresult *res)
{
    ExecStatusType status = pq.result_status(res);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Reads all results of the one query that was sent; *ret is the first. */
static bool answer(struct pg_store *s, const char *doing, PGresult **ret, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_flush(s, err) || !pg_next(s, &res, err))
        return false;
    if (!res)
        return pg_disconnect(s, "it gave no answer", err);
    bool ok = is_fine(res) || pg_failed(s, res, doing, err);
    if (s->conn && !finish(s, err))
        ok = false;
    if (!ok) {
        pq.clear(res);
        return false;
    }
    *ret = res;
    return true;
}

bool pg_prepare(struct pg_store *s, unsigned which, struct error *err)
{
    char name[16];
    PGresult *res = NULL;
    if (s->prepared[which])
        return true;
    name_of(which, name);
    const char *text =
        which < PG_COUNT ? pg_texts[which] : sql_statement_text(which - PG_COUNT, SQL_POSTGRES);
    if (!pq.send_prepare(s->conn, name, text, 0, NULL))
        return pg_disconnect(s, pq.error_message(s->conn), err);
    if (!answer(s, "preparing a statement", &res, err))
        return false;
    pq.clear(res);
    s->prepared[which] = true;
    return true;
}

static bool send(struct pg_store *s, unsigned which, const struct pg_params *p, struct error *err)
{
    static const struct pg_params none = {0};
    static const int all_binary[PG_PARAMS_MAX] = {[0 ... PG_PARAMS_MAX - 1] = 1};
    char name[16];
    if (!p)
        p = &none;
    if (p->bad)
        return error_set(err, ERR_BAD_INPUT,
                         "PostgreSQL cannot store a text with a NUL character or with bytes that "
                         "are not UTF-8, nor an id that is not a UUID; send other values.");
    name_of(which, name);
    return pq.send_query_prepared(s->conn, name, p->n, p->values, p->lengths, all_binary, 1) ||
           pg_disconnect(s, pq.error_message(s->conn), err);
}

bool pg_run(struct pg_store *s, unsigned which, const struct pg_params *p, PGresult **ret,
            struct error *err)
{
    return pg_prepare(s, which, err) && send(s, which, p, err) &&
           answer(s, s->read_only ? "reading" : "running a statement", ret, err);
}

bool pg_query(struct pg_store *s, unsigned which, const struct pg_params *p, PGresult **ret,
              struct error *err)
{
    return pg_ready(s, err) && pg_run(s, which, p, ret, err);
}

bool pg_pipe_begin(struct pg_store *s, struct error *err)
{
    return pq.enter_pipeline_mode(s->conn) || pg_disconnect(s, pq.error_message(s->conn), err);
}

bool pg_pipe_send(struct pg_store *s, unsigned which, const struct pg_params *p, struct error *err)
{
    return send(s, which, p, err);
}

bool pg_pipe_sync(struct pg_store *s, struct error *err)
{
    if (!pq.pipeline_sync(s->conn))
        return pg_disconnect(s, pq.error_message(s->conn), err);
    return pg_flush(s, err);
}

bool pg_pipe_next(struct pg_store *s, PGresult **ret, struct error *err)
{
    PGresult *res = NULL, *end = NULL;
    if (!pg_next(s, &res, err))
        return false;
    if (!res)
        return pg_disconnect(s, "it gave no answer", err);
    if (pq.result_status(res) == PGRES_FATAL_ERROR &&
        !pq.result_error_field(res, PG_DIAG_SQLSTATE)) {
        pg_failed(s, res, "writing", err);
        pq.clear(res);
        return false;
    }
    if (!pg_next(s, &end, err)) {
        pq.clear(res);
        return false;
    }
    pq.clear(end); /* NULL: the end of this statement's results */
    *ret = res;
    return true;
}

bool pg_pipe_synced(struct pg_store *s, struct error *err)
{
    PGresult *res = NULL;
    if (!pg_next(s, &res, err))
        return false;
    bool synced = pq.result_status(res) == PGRES_PIPELINE_SYNC;
    pq.clear(res);
    return synced || pg_disconnect(s, "its answers are out of step", err);
}

void pg_pipe_end(struct pg_store *s)
{
    struct error ignored;
    if (s->conn && !pq.exit_pipeline_mode(s->conn))
        pg_disconnect(s, pq.error_message(s->conn), &ignored);
}

void pg_rollback(struct pg_store *s)
{
    struct error ignored;
    if (!s->conn || pq.transaction_status(s->conn) == PQTRANS_IDLE)
        return;
    if (!pg_exec_text(s, "ROLLBACK", "rolling back", NULL, &ignored) && s->conn)
        pg_disconnect(s, "it could not roll back", &ignored);
}

/* BEGIN, the limit for this transaction alone, the statement, COMMIT: one round trip. */
static bool limited(struct pg_store *s, unsigned which, const struct pg_params *p, PGresult **ret,
                    struct error *err)
{
    const unsigned all[] = {PG_BEGIN, PG_PAGE_LIMIT, which, PG_COMMIT};
    PGresult *answers[countof(all)] = {0};
    bool ok = pg_pipe_begin(s, err);
    for (size_t i = 0; ok && i < countof(all); i++)
        ok = pg_pipe_send(s, all[i], all[i] == which ? p : NULL, err);
    ok = ok && pg_pipe_sync(s, err);
    for (size_t i = 0; ok && i < countof(all); i++)
        ok = pg_pipe_next(s, &answers[i], err);
    ok = ok && pg_pipe_synced(s, err);
    pg_pipe_end(s);
    for (size_t i = 0; ok && i < countof(all); i++)
        if (!is_fine(answers[i]))
            ok =
                pg_has_state(answers[i], "57014")
                    ? error_set(err, ERR_TIMEOUT, "The page took too long; ask for a narrower one.")
                    : pg_failed(s, answers[i], "reading a page", err);
    if (ok) {
        *ret = answers[2];
        answers[2] = NULL;
    } else {
        pg_rollback(s);
    }
    for (size_t i = 0; i < countof(all); i++)
        pq.clear(answers[i]);
    return ok;
}

bool pg_page(struct pg_store *s, unsigned which, const struct pg_params *p, PGresult **ret,
             struct error *err)
{
    if (!s->read_only)
        return pg_query(s, which, p, ret, err);
    if (fault_hits("store.page"))
        return error_set(err, ERR_TIMEOUT, "The page took too long; ask for a narrower one.");
    return pg_ready(s, err) && pg_prepare(s, PG_BEGIN, err) && pg_prepare(s, PG_PAGE_LIMIT, err) &&
           pg_prepare(s, which, err) && pg_prepare(s, PG_COMMIT, err) &&
           limited(s, which, p, ret, err);
}
