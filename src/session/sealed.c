/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of sealed credentials. */
#include "session/sealed.h"

#include "crypto/base64.h"
#include "crypto/hash.h"

#include <stdlib.h>

#define VERSION "hfs1"
#define N_BOUND 6

static void bind(struct str ret[N_BOUND], const struct sealed_place *place, struct str key_id,
                 struct str services)
{
    ret[0] = STR(VERSION);
    ret[1] = place->tenant;
    ret[2] = place->session_id;
    ret[3] = place->field;
    ret[4] = key_id;
    ret[5] = services;
}

bool sealed_read(struct str text, struct arena *mem, struct sealed *ret)
{
    struct str rest = text;
    if (!text.p || !str_eq(str_split(&rest, '.'), STR(VERSION)) || !rest.p)
        return false;
    struct str key_id = str_split(&rest, '.');
    if (!rest.p)
        return false;
    struct str services = base64url_decode(str_split(&rest, '.'), mem);
    if (!rest.p || !services.p)
        return false;
    struct str bytes = base64url_decode(rest, mem);
    if (!bytes.p || bytes.n < SEAL_OVERHEAD)
        return false;
    *ret = (struct sealed){.key_id = key_id, .services = services, .bytes = bytes};
    return true;
}

static char *add_base64(char *at, struct str bytes)
{
    *at++ = '.';
    return at + base64url_encode(bytes.p, bytes.n, at);
}

struct str sealed_write(struct seal_key *key, struct str key_id, const struct sealed_place *place,
                        struct str services, struct str plain, struct arena *mem)
{
    struct str bound[N_BOUND];
    size_t n = plain.n + SEAL_OVERHEAD;
    uint8_t *bytes = arena_alloc(mem, n);
    char *text = arena_alloc(mem, sizeof(VERSION) + key_id.n + (services.n + n) * 4 / 3 + 16);
    char *at = text;

    bind(bound, place, key_id, services);
    seal(key, bound, N_BOUND, plain, bytes);
    memcpy(at, VERSION ".", sizeof(VERSION));
    at += sizeof(VERSION);
    memcpy(at, key_id.p, key_id.n);
    at = add_base64(at + key_id.n, services);
    at = add_base64(at, str_n((const char *)bytes, n));
    return str_n(text, (size_t)(at - text));
}

bool sealed_open(struct seal_key *key, const struct sealed *s, const struct sealed_place *place,
                 char *ret_plain, size_t *ret_n)
{
    struct str bound[N_BOUND];

    bind(bound, place, s->key_id, s->services);
    if (!unseal(key, bound, N_BOUND, s->bytes, (uint8_t *)ret_plain))
        return false;
    *ret_n = s->bytes.n - SEAL_OVERHEAD;
    return true;
}
