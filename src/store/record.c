/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes events as bytes and decodes them.  The write lane does this for every event, so there is
 * no loop over field tables.
 *
 *     version, digests, kind, seq, at_ms, exec - id, parent, duration_us, body_len + 1,
 *     eleven texts as length + 1 and bytes (0: absent),
 *     [tokens, tool_id, [client, request_len, [origin,]]] the digests, if any
 *
 * Version 2 has the members in the outer brackets, version 3 also those inside of them, version 4
 * all.  Each is written only if one of its own members is set, so that an event has only one
 * encoding.
 *
 * Numbers are LEB128 of their 64 bits, in as few bytes as possible.  exec is stored as its distance
 * from id, which is short. */
#include "store/record.h"

#define VERSION_PLAIN 1
#define VERSION_REPORTED 2
#define VERSION_CLIENT 3
#define VERSION_ORIGIN 4
#define VARINT_MAX 10
#define N_NUMBERS 9
#define N_TEXTS 14

enum digests {
    BODY_SHA = 1,
    STORED_SHA = 2, /* differs from the digest of the original bytes */
    STORED_SAME = 4,
};

static bool is_zero(const uint8_t sha[32])
{
    static const uint8_t zero[32];
    return memcmp(sha, zero, 32) == 0;
}

static unsigned digests_of(const struct event_row *e)
{
    if (is_zero(e->body_sha))
        return is_zero(e->stored_sha) ? 0 : STORED_SHA;
    if (memcmp(e->body_sha, e->stored_sha, 32) == 0)
        return BODY_SHA | STORED_SAME;
    return BODY_SHA | (is_zero(e->stored_sha) ? 0 : STORED_SHA);
}

static inline char *put_number(char *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (char)(value | 0x80);
    *to++ = (char)value;
    return to;
}

/* Distances may be negative: small distances of either sign get a short encoding. */
static inline uint64_t fold_sign(uint64_t value)
{
    return value << 1 ^ -(value >> 63);
}

static inline uint64_t unfold_sign(uint64_t value)
{
    return value >> 1 ^ -(value & 1);
}

static inline char *put_text(char *to, struct str s)
{
    if (!s.p)
        return put_number(to, 0);
    to = put_number(to, s.n + 1);
    memcpy(to, s.p, s.n);
    return to + s.n;
}

static inline char *put_sha(char *to, const uint8_t sha[32])
{
    memcpy(to, sha, 32);
    return to + 32;
}

static char version_of(const struct event_row *e)
{
    if (e->origin.p)
        return VERSION_ORIGIN;
    if (e->client.p || e->request_len != 0)
        return VERSION_CLIENT;
    return e->tokens != 0 || e->tool_id.p ? VERSION_REPORTED : VERSION_PLAIN;
}

size_t record_room(const struct event_row *e)
{
    return 2 + N_NUMBERS * VARINT_MAX + N_TEXTS * VARINT_MAX + e->tenant.n + e->owner.n +
           e->session_id.n + e->transport.n + e->carrier.n + e->server.n + e->method.n + e->tool.n +
           e->era.n + e->outcome.n + e->error.n + e->tool_id.n + e->client.n + e->origin.n + 2 * 32;
}

static inline size_t number_length(uint64_t value)
{
    return value ? (size_t)(63 - __builtin_clzll(value)) / 7 + 1 : 1;
}

static inline size_t text_length(struct str s)
{
    return s.p ? number_length(s.n + 1) + s.n : 1;
}

size_t record_length(const struct event_row *e)
{
    unsigned digests = digests_of(e);
    char version = version_of(e);
    size_t n = 2 + number_length((uint32_t)e->kind) + number_length((uint64_t)e->seq) +
               number_length((uint64_t)e->at_ms) +
               number_length(fold_sign((uint64_t)e->exec - (uint64_t)e->id)) +
               number_length((uint64_t)e->parent) + number_length((uint64_t)e->duration_us) +
               number_length((uint64_t)e->body_len + 1);
    n += text_length(e->tenant) + text_length(e->owner) + text_length(e->session_id) +
         text_length(e->transport) + text_length(e->carrier) + text_length(e->server) +
         text_length(e->method) + text_length(e->tool) + text_length(e->era) +
         text_length(e->outcome) + text_length(e->error);
    if (version >= VERSION_REPORTED)
        n += number_length((uint64_t)e->tokens) + text_length(e->tool_id);
    if (version >= VERSION_CLIENT)
        n += text_length(e->client) + number_length((uint64_t)e->request_len);
    if (version >= VERSION_ORIGIN)
        n += text_length(e->origin);
    return n + (digests & BODY_SHA ? 32 : 0) + (digests & STORED_SHA ? 32 : 0);
}

size_t record_write(const struct event_row *e, char *to)
{
    char *begin = to;
    unsigned digests = digests_of(e);
    char version = version_of(e);
    *to++ = version;
    *to++ = (char)digests;
    to = put_number(to, (uint32_t)e->kind);
    to = put_number(to, (uint64_t)e->seq);
    to = put_number(to, (uint64_t)e->at_ms);
    to = put_number(to, fold_sign((uint64_t)e->exec - (uint64_t)e->id));
    to = put_number(to, (uint64_t)e->parent);
    to = put_number(to, (uint64_t)e->duration_us);
    to = put_number(to, (uint64_t)e->body_len + 1);
    to = put_text(to, e->tenant);
    to = put_text(to, e->owner);
    to = put_text(to, e->session_id);
    to = put_text(to, e->transport);
    to = put_text(to, e->carrier);
    to = put_text(to, e->server);
    to = put_text(to, e->method);
    to = put_text(to, e->tool);
    to = put_text(to, e->era);
    to = put_text(to, e->outcome);
    to = put_text(to, e->error);
    if (version >= VERSION_REPORTED) {
        to = put_number(to, (uint64_t)e->tokens);
        to = put_text(to, e->tool_id);
    }
    if (version >= VERSION_CLIENT) {
        to = put_text(to, e->client);
        to = put_number(to, (uint64_t)e->request_len);
    }
    if (version >= VERSION_ORIGIN)
        to = put_text(to, e->origin);
    if (digests & BODY_SHA)
        to = put_sha(to, e->body_sha);
    if (digests & STORED_SHA)
        to = put_sha(to, e->stored_sha);
    return (size_t)(to - begin);
}

/* The bytes that are left to read.  `bad` is set by the first failed read; all reads after it
 * return nothing. */
struct reader {
    const char *p, *end;
    bool bad;
};

static uint64_t get_number(struct reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && r->p < r->end; shift += 7) {
        uint8_t byte = (uint8_t)*r->p++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if ((byte == 0 && shift > 0) || (shift == 63 && byte > 1))
            break; /* not the shortest form, or more than 64 bits */
        return value;
    }
    r->bad = true;
    r->p = r->end;
    return 0;
}

static struct str get_text(struct reader *r)
{
    uint64_t n = get_number(r);
    if (n == 0)
        return STR_NONE;
    if (n - 1 > (uint64_t)(r->end - r->p)) {
        r->bad = true;
        r->p = r->end;
        return STR_NONE;
    }
    struct str s = str_n(r->p, (size_t)(n - 1));
    r->p += n - 1;
    return s;
}

static void get_sha(struct reader *r, uint8_t ret[32])
{
    if (r->end - r->p < 32) {
        r->bad = true;
        return;
    }
    memcpy(ret, r->p, 32);
    r->p += 32;
}

static void get_digests(struct reader *r, unsigned digests, struct event_row *e)
{
    if (digests & BODY_SHA)
        get_sha(r, e->body_sha);
    if (digests & STORED_SHA)
        get_sha(r, e->stored_sha);
    if (digests & STORED_SAME)
        memcpy(e->stored_sha, e->body_sha, 32);
}

bool record_read(int64_t id, struct str record, struct event_row *ret)
{
    struct event_row e = {.id = id};
    struct reader r = {.p = record.p, .end = record.p + record.n};
    if (record.n < 2)
        return false;
    char version = *r.p++;
    unsigned digests = (uint8_t)*r.p++;
    uint64_t kind = get_number(&r);
    e.kind = (enum event_kind)kind;
    e.seq = (int64_t)get_number(&r);
    e.at_ms = (int64_t)get_number(&r);
    e.exec = (int64_t)((uint64_t)id + unfold_sign(get_number(&r)));
    e.parent = (int64_t)get_number(&r);
    e.duration_us = (int64_t)get_number(&r);
    e.body_len = (int64_t)(get_number(&r) - 1);
    struct str *const texts[] = {&e.tenant,  &e.owner,   &e.session_id, &e.transport,
                                 &e.carrier, &e.server,  &e.method,     &e.tool,
                                 &e.era,     &e.outcome, &e.error};
    for (size_t i = 0; i < countof(texts); i++)
        *texts[i] = get_text(&r);
    if (version >= VERSION_REPORTED) {
        e.tokens = (int64_t)get_number(&r);
        e.tool_id = get_text(&r);
    }
    if (version >= VERSION_CLIENT) {
        e.client = get_text(&r);
        e.request_len = (int64_t)get_number(&r);
    }
    if (version >= VERSION_ORIGIN)
        e.origin = get_text(&r);
    get_digests(&r, digests, &e);
    if (r.bad || r.p != r.end || kind > UINT32_MAX || digests != digests_of(&e) ||
        version != version_of(&e))
        return false;
    *ret = e;
    return true;
}
