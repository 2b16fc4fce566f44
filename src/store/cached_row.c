/* SPDX-License-Identifier: Apache-2.0 */
/* A session's row as bytes, under a MAC that also covers the entry name.  So a client with write
 * access to Redis can neither forge a row nor move one to another session.
 *
 *     MAC, format, status, origin, three flags, numbers (8 bytes each), texts (length + 1, bytes)
 *
 * All processes of one cluster read these bytes, and their machines may differ in byte order:
 * numbers are little-endian.  A row of another format is a miss. */
#include "store/cached_impl.h"

#include <endian.h>

#define FORMAT 4
/* For a new column extend these tables and increase FORMAT. */
_Static_assert(sizeof(struct session_row) == 20 * sizeof(struct str) + 8 * sizeof(int64_t) + 16,
               "struct session_row has changed");

#define AT(field) offsetof(struct session_row, field)
static const size_t texts[] = {
    AT(id),
    AT(handle),
    AT(tenant),
    AT(owner),
    AT(user_id),
    AT(edge_mcp_id),
    AT(client_name),
    AT(client_type),
    AT(client_version),
    AT(carrier),
    AT(carrier_key),
    AT(core_session_id),
    AT(connection_metadata),
    AT(context_id),
    AT(sealed_auth),
    AT(termination_reason),
    AT(toolsets),
    AT(sealed_context),
    AT(setup),
    AT(lineage),
};
static const size_t numbers[] = {
    AT(created_ms), AT(last_activity_ms), AT(expires_ms),  AT(terminated_ms),
    AT(ttl_ms),     AT(tool_count),       AT(tokens_used), AT(version),
};

static struct str *text_of(const struct session_row *row, size_t i)
{
    return (struct str *)((char *)row + texts[i]);
}

static int64_t *number_of(const struct session_row *row, size_t i)
{
    return (int64_t *)((char *)row + numbers[i]);
}

void cache_entry_name(const struct cache *c, char kind, struct str tenant, struct str a,
                      struct str b, struct entry_name *ret)
{
    uint64_t lengths[2] = {htole64(tenant.n), htole64(a.n)};
    uint8_t mac[SHA256_BYTES];
    char hex[2 * SHA256_BYTES + 1];
    struct str parts[] = {str_n(&kind, 1), str_n((char *)lengths, sizeof(lengths)), tenant, a, b};
    hmac_sha256(c->key, parts, countof(parts), mac);
    hex_encode(mac, ENTRY_DIGITS / 2, hex);
    memcpy(ret->digits, hex, ENTRY_DIGITS);
}

void cache_session_name(const struct cache *c, struct str tenant, struct str id,
                        struct entry_name *ret)
{
    char lower[64];
    if (id.n <= sizeof(lower)) {
        for (size_t i = 0; i < id.n; i++)
            lower[i] = (char)(id.p[i] >= 'A' && id.p[i] <= 'Z' ? id.p[i] | 0x20 : id.p[i]);
        id = str_n(lower, id.n);
    }
    cache_entry_name(c, 'i', tenant, id, STR_NONE, ret);
}

static void mac_of(const struct cache *c, const struct entry_name *name, struct str body,
                   uint8_t ret[SHA256_BYTES])
{
    struct str parts[] = {STR("row"), str_n(name->digits, ENTRY_DIGITS), body};
    hmac_sha256(c->key, parts, countof(parts), ret);
}

static void put_u64(struct buf *b, uint64_t value)
{
    value = htole64(value);
    buf_add(b, &value, sizeof(value));
}

struct str cache_row_pack(const struct cache *c, const struct entry_name *name,
                          const struct session_row *row, struct arena *mem)
{
    char head[] = {FORMAT,           (char)row->status,      (char)row->origin,
                   row->initialized, (char)row->provisional, (char)row->counted};
    uint8_t mac[SHA256_BYTES];
    struct str packed = STR_NONE;
    struct buf out;
    size_t room = MAC_BYTES + sizeof(head) + 8 * (countof(numbers) + countof(texts));

    for (size_t i = 0; i < countof(texts); i++)
        room += text_of(row, i)->n;
    if (room > CACHE_ROW_BYTES_MAX)
        return packed;
    buf_init(&out, CACHE_ROW_BYTES_MAX);
    memset(mac, 0, sizeof(mac));
    buf_add(&out, mac, MAC_BYTES);
    buf_add(&out, head, sizeof(head));
    for (size_t i = 0; i < countof(numbers); i++)
        put_u64(&out, (uint64_t)*number_of(row, i));
    for (size_t i = 0; i < countof(texts); i++) {
        struct str *text = text_of(row, i);
        put_u64(&out, text->p ? text->n + 1 : 0);
        buf_addstr(&out, *text);
    }
    mac_of(c, name, str_n(out.p + MAC_BYTES, out.n - MAC_BYTES), mac);
    memcpy(out.p, mac, MAC_BYTES);
    packed = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return packed;
}

static bool get_u64(struct str *rest, uint64_t *ret)
{
    if (rest->n < sizeof(*ret))
        return false;
    memcpy(ret, rest->p, sizeof(*ret));
    *ret = le64toh(*ret);
    *rest = str_n(rest->p + sizeof(*ret), rest->n - sizeof(*ret));
    return true;
}

static bool get_text(struct str *rest, struct str *ret)
{
    uint64_t n;
    if (!get_u64(rest, &n) || (n > 0 && n - 1 > rest->n))
        return false;
    if (n == 0)
        return true;
    *ret = str_n(rest->p, (size_t)n - 1);
    *rest = str_n(rest->p + ret->n, rest->n - ret->n);
    return true;
}

bool cache_row_unpack(const struct cache *c, const struct entry_name *name, struct str packed,
                      struct session_row *ret)
{
    struct session_row row = {0};
    uint8_t mac[SHA256_BYTES];
    uint64_t value;
    if (packed.n < MAC_BYTES + 6)
        return false;
    struct str rest = str_n(packed.p + MAC_BYTES, packed.n - MAC_BYTES);
    mac_of(c, name, rest, mac);
    if (!crypto_equal(mac, packed.p, MAC_BYTES) || rest.p[0] != FORMAT)
        return false;
    row.status = (enum session_status)rest.p[1];
    row.origin = (enum session_origin)rest.p[2];
    row.initialized = rest.p[3];
    row.provisional = rest.p[4];
    row.counted = rest.p[5];
    rest = str_n(rest.p + 6, rest.n - 6);
    for (size_t i = 0; i < countof(numbers); i++) {
        if (!get_u64(&rest, &value))
            return false;
        *number_of(&row, i) = (int64_t)value;
    }
    for (size_t i = 0; i < countof(texts); i++)
        if (!get_text(&rest, text_of(&row, i)))
            return false;
    if (rest.n > 0)
        return false;
    *ret = row;
    return true;
}
