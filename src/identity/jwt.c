/* SPDX-License-Identifier: Apache-2.0 */
/* Checks parts, header, key, signature and claims in this order, so the payload is not read before
 * the signature of a known key is verified.  Each step is a row of `steps` and returns its reason
 * to refuse. */
#include "identity/jwt.h"

#include "base/log.h"
#include "crypto/base64.h"
#include "json/read.h"

#define TIME_MAX INT64_C(253402300799) /* the end of the year 9999 */

static const struct js_limits token_limits = {
    .depth = 16, .keys = 256, .nodes = 4096, .flags = JS_NO_DUPLICATES};

struct check {
    const struct jwt_keys *keys;
    const struct jwt_rules *rules;
    struct str token;
    int64_t now_ms;
    struct arena *mem;
    struct str signed_text;                /* header.payload as signed */
    struct str header, payload, signature; /* decoded */
    struct js_doc doc;                     /* the header, later the payload */
    const struct jwt_key *key;
    struct jwt_claims claims;
};

static const char *const fault_names[JWT_FAULT_COUNT] = {
    [JWT_OK] = "ok",
    [JWT_TOO_LONG] = "too_long",
    [JWT_PARTS] = "parts",
    [JWT_BASE64] = "base64",
    [JWT_HEADER] = "header",
    [JWT_ALG] = "alg",
    [JWT_TYP] = "typ",
    [JWT_CRIT] = "crit",
    [JWT_KID] = "kid",
    [JWT_NO_KEY] = "no_key",
    [JWT_SIGNATURE] = "signature",
    [JWT_PAYLOAD] = "payload",
    [JWT_ISS] = "iss",
    [JWT_AUD] = "aud",
    [JWT_EXP] = "exp",
    [JWT_EXPIRED] = "expired",
    [JWT_NBF] = "nbf",
    [JWT_IAT] = "iat",
    [JWT_SUB] = "sub",
    [JWT_TENANT] = "tenant",
    [JWT_ROLE] = "role",
    [JWT_CLAIM] = "claim",
};

const char *jwt_fault_name(enum jwt_fault f)
{
    return fault_names[f];
}

static enum jwt_fault cut_parts(struct check *c)
{
    struct str rest = c->token, header, payload;

    if (c->token.n > JWT_BYTES_MAX)
        return JWT_TOO_LONG;
    header = str_split(&rest, '.');
    payload = rest.p ? str_split(&rest, '.') : STR_NONE;
    if (!rest.p || str_find(rest, '.') != rest.n || !header.n || !payload.n || !rest.n)
        return JWT_PARTS;
    c->signed_text = str_n(c->token.p, header.n + 1 + payload.n);
    c->header = base64url_decode(header, c->mem);
    c->payload = base64url_decode(payload, c->mem);
    c->signature = base64url_decode(rest, c->mem);
    return c->header.p && c->payload.p && c->signature.p ? JWT_OK : JWT_BASE64;
}

static bool parse_object(struct check *c, struct str json)
{
    return js_parse(json, &token_limits, c->mem, &c->doc, NULL) &&
           js_type_is(js_root(&c->doc), JS_OBJECT);
}

static const struct js_node *member(const struct check *c, struct str name)
{
    return js_get(&c->doc, js_root(&c->doc), name);
}

/* Parameters that change the meaning of a token.  "crit" requires extensions that Holdfast does not
 * have, "b64" and "zip" change the signed text, "cty" is a nested token, "enc" an encrypted
 * token. */
static enum jwt_fault refuse_extensions(struct check *c)
{
    static const char *const names[] = {"crit", "b64", "zip", "cty", "enc"};

    for (size_t i = 0; i < countof(names); i++)
        if (member(c, str_of(names[i])))
            return JWT_CRIT;
    return JWT_OK;
}

/* Refuses tokens that the same issuer made for another purpose (RFC 8725, 3.11). */
static enum jwt_fault check_typ(struct check *c)
{
    const struct js_node *typ = member(c, STR("typ"));
    struct str text = js_text(&c->doc, typ, c->mem);

    if (!typ || str_ieq(text, STR("JWT")) || str_ieq(text, STR("at+jwt")) ||
        str_ieq(text, STR("application/at+jwt")))
        return JWT_OK;
    return JWT_TYP;
}

static enum jwt_fault read_header(struct check *c)
{
    enum jwt_fault fault;

    if (!parse_object(c, c->header))
        return JWT_HEADER;
    fault = refuse_extensions(c);
    return fault ? fault : check_typ(c);
}

/* The key with this kid.  For a token without kid: the only key of its algorithm. */
static enum jwt_fault find_key(const struct check *c, bool has_kid, struct str kid,
                               enum jwt_alg alg, const struct jwt_key **ret)
{
    bool kid_known = false;

    *ret = NULL;
    for (size_t i = 0; i < c->keys->n; i++) {
        const struct jwt_key *key = &c->keys->keys[i];
        if (has_kid && !(key->kid.p && str_eq(key->kid, kid)))
            continue;
        kid_known = has_kid;
        if (key->alg != alg)
            continue;
        if (*ret)
            return JWT_NO_KEY;
        *ret = key;
    }
    if (*ret)
        return JWT_OK;
    return kid_known ? JWT_ALG : JWT_NO_KEY;
}

static enum jwt_fault choose_key(struct check *c)
{
    const struct js_node *alg_node = member(c, STR("alg")), *kid_node = member(c, STR("kid"));
    struct str kid = js_text(&c->doc, kid_node, c->mem);
    enum jwt_alg alg;

    if (!jwt_alg_parse(js_text(&c->doc, alg_node, c->mem), &alg))
        return JWT_ALG;
    if (kid_node && (kid.n == 0 || kid.n > JWT_KID_MAX))
        return JWT_KID;
    return find_key(c, kid_node != NULL, kid, alg, &c->key);
}

static enum jwt_fault check_signature(struct check *c)
{
    return jwt_key_verify(c->key, c->signed_text, c->signature) ? JWT_OK : JWT_SIGNATURE;
}

static enum jwt_fault read_payload(struct check *c)
{
    return parse_object(c, c->payload) ? JWT_OK : JWT_PAYLOAD;
}

static enum jwt_fault check_issuer(struct check *c)
{
    if (!c->rules->issuer.n || !js_is(&c->doc, member(c, STR("iss")), c->rules->issuer))
        return JWT_ISS;
    c->claims.issuer = arena_dup(c->mem, c->rules->issuer);
    return JWT_OK;
}

static bool is_ours(const struct check *c, const struct js_node *audience)
{
    for (size_t i = 0; i < c->rules->n_audiences; i++)
        if (js_is(&c->doc, audience, c->rules->audiences[i]))
            return true;
    return false;
}

static enum jwt_fault check_audience(struct check *c)
{
    const struct js_node *aud = member(c, STR("aud"));
    bool found = false;

    if (js_type_is(aud, JS_STRING))
        return is_ours(c, aud) ? JWT_OK : JWT_AUD;
    if (!js_type_is(aud, JS_ARRAY))
        return JWT_AUD;
    for (const struct js_node *e = js_first(&c->doc, aud); e; e = js_next(&c->doc, aud, e)) {
        if (!js_type_is(e, JS_STRING))
            return JWT_AUD;
        found |= is_ours(c, e);
    }
    return found ? JWT_OK : JWT_AUD;
}

/* Whole seconds since 1970. */
static bool read_time(const struct check *c, const struct js_node *v, int64_t *ret_ms)
{
    int64_t seconds;

    if (!js_to_i64(&c->doc, v, &seconds) || seconds < 0 || seconds > TIME_MAX)
        return false;
    *ret_ms = seconds * 1000;
    return true;
}

static bool has_begun(const struct check *c, struct str name)
{
    const struct js_node *v = member(c, name);
    int64_t ms;

    return !v || (read_time(c, v, &ms) && ms <= c->now_ms + JWT_LEEWAY_MS);
}

static enum jwt_fault check_times(struct check *c)
{
    int64_t trust = c->now_ms + JWT_TRUST_MAX_MS, *end = &c->claims.expires_ms;

    if (!read_time(c, member(c, STR("exp")), end))
        return JWT_EXP;
    if (*end <= c->now_ms)
        return JWT_EXPIRED;
    c->claims.trust_until_ms = *end < trust ? *end : trust;
    if (!has_begun(c, STR("nbf")))
        return JWT_NBF;
    return has_begun(c, STR("iat")) ? JWT_OK : JWT_IAT;
}

/* Text that is safe in a row, a log line and a reply: 1 to `max` bytes without control
 * characters. */
static bool read_text(const struct check *c, const struct js_node *v, size_t max, struct str *ret)
{
    struct str text = js_text(&c->doc, v, c->mem);

    if (text.n == 0 || text.n > max)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return false;
    *ret = arena_dup(c->mem, text);
    return true;
}

static enum jwt_fault read_subject(struct check *c)
{
    return read_text(c, member(c, STR("sub")), JWT_SUBJECT_MAX, &c->claims.subject) ? JWT_OK
                                                                                    : JWT_SUB;
}

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char ch = name.p[i];
        bool letter = (ch | 32) >= 'a' && (ch | 32) <= 'z';
        if (!letter && !(ch >= '0' && ch <= '9') && ch != '.' && ch != '_' && ch != '-')
            return false;
    }
    return true;
}

static bool is_among(const struct str *names, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(names[i], name))
            return true;
    return n == 0;
}

static enum jwt_fault check_tenant(struct check *c)
{
    return is_among(c->rules->tenants, c->rules->n_tenants, c->claims.tenant) ? JWT_OK : JWT_TENANT;
}

static enum jwt_fault check_role(struct check *c)
{
    return is_among(c->rules->roles, c->rules->n_roles, str_of(role_name(c->claims.role)))
               ? JWT_OK
               : JWT_ROLE;
}

static enum jwt_fault read_tenant(struct check *c)
{
    struct str name = c->rules->tenant_claim;
    const struct js_node *v = name.n ? member(c, name) : NULL;

    if (v)
        return read_text(c, v, JWT_NAME_MAX, &c->claims.tenant) && is_name(c->claims.tenant)
                   ? JWT_OK
                   : JWT_TENANT;
    if (!c->rules->tenant.n)
        return JWT_TENANT;
    c->claims.tenant = arena_dup(c->mem, c->rules->tenant);
    return JWT_OK;
}

static enum jwt_fault read_role(struct check *c)
{
    const struct js_node *v = c->rules->role_claim.n ? member(c, c->rules->role_claim) : NULL;

    c->claims.role = ROLE_MEMBER;
    if (!v || role_parse(js_text(&c->doc, v, c->mem), &c->claims.role))
        return JWT_OK;
    return JWT_ROLE;
}

static enum jwt_fault read_rest(struct check *c)
{
    const struct js_node *id = member(c, STR("jti")), *scope = member(c, STR("scope"));

    if (id && !read_text(c, id, JWT_SUBJECT_MAX, &c->claims.id))
        return JWT_CLAIM;
    /* Some issuers write an empty scope for "none". */
    if (scope && !js_is(&c->doc, scope, STR("")) &&
        !read_text(c, scope, JWT_BYTES_MAX, &c->claims.scope))
        return JWT_CLAIM;
    return JWT_OK;
}

static enum jwt_fault (*const steps[])(struct check *c) = {
    cut_parts,    read_header,    choose_key,  check_signature, read_payload,
    check_issuer, check_audience, check_times, read_subject,    read_tenant,
    check_tenant, read_role,      check_role,  read_rest,
};

enum jwt_fault jwt_check(const struct jwt_keys *keys, const struct jwt_rules *rules,
                         struct str token, int64_t now_ms, struct arena *mem,
                         struct jwt_claims *ret)
{
    struct check c = {.keys = keys, .rules = rules, .token = token, .now_ms = now_ms, .mem = mem};

    for (size_t i = 0; i < countof(steps); i++) {
        enum jwt_fault fault = steps[i](&c);
        if (fault != JWT_OK)
            return fault;
    }
    *ret = c.claims;
    return JWT_OK;
}

bool jwt_refuse(enum jwt_fault f, struct error *err)
{
    log_debug("token refused", LZ("reason", jwt_fault_name(f)));
    return error_set(err, ERR_UNAUTHENTICATED, "the token is not valid; get a new one");
}

bool jwt_verify(const struct jwt_keys *keys, const struct jwt_rules *rules, struct str token,
                int64_t now_ms, struct arena *mem, struct jwt_claims *ret, struct error *err)
{
    enum jwt_fault fault = jwt_check(keys, rules, token, now_ms, mem, ret);

    return fault == JWT_OK || jwt_refuse(fault, err);
}

struct str jwt_claimed_issuer(struct str token, struct arena *mem)
{
    struct check c = {.token = token, .mem = mem};

    if (cut_parts(&c) != JWT_OK || !parse_object(&c, c.payload))
        return STR_NONE;
    return js_text(&c.doc, member(&c, STR("iss")), mem);
}
