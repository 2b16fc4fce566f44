/* SPDX-License-Identifier: Apache-2.0 */
/* Parses, writes and describes limits, and merges the limits of configuration, tenant and key.  A
 * rate is stored as written.  The parser checks that amount and burst fit a bucket
 * (identity/quota.c counts in units of 1/per_ms). */
#include "config/limits.h"

#include "config/config_impl.h"

#include <stddef.h>
#include <stdio.h>

#define BUCKET_MAX (INT64_C(1) << 61)

static const struct {
    const char *name, *one, *many, *example;
} kinds[] = {
    [LIMIT_REQUESTS] = {"requests", "request", "requests", "600/m, or 600/m burst 100"},
    [LIMIT_BYTES] = {"bytes", "byte", "bytes", "50MiB/m, or 50MiB/m burst 200MiB"},
    [LIMIT_CALLS] = {"calls", "call", "calls", "8"},
    [LIMIT_CHILDREN] = {"children", "server process", "server processes", "4"},
};

static const struct {
    const char *name, *word;
    int64_t ms;
} times[] = {
    {"s", "second", 1000}, {"m", "minute", 60000}, {"h", "hour", 3600000}, {"d", "day", 86400000}};

const char *limit_name(enum limit_kind kind)
{
    return kinds[kind].name;
}

bool limit_kind_parse(struct str name, enum limit_kind *ret)
{
    for (unsigned k = 0; k < LIMIT_KINDS; k++)
        if (str_eq(name, str_of(kinds[k].name))) {
            *ret = (enum limit_kind)k;
            return true;
        }
    return false;
}

static bool parse_amount(enum limit_kind kind, struct str text, int64_t *ret)
{
    uint64_t n;

    if (!(kind == LIMIT_BYTES ? js_parse_size(text, &n) : str_to_u64(text, INT64_MAX, &n)) ||
        n < 1 || n > INT64_MAX)
        return false;
    *ret = (int64_t)n;
    return true;
}

static bool parse_rate(enum limit_kind kind, struct str text, struct limit *ret)
{
    struct str rest = text, amount = str_split(&rest, '/');
    struct str unit = rest.p ? str_split(&rest, ' ') : STR("");
    struct limit l = {0};

    for (size_t i = 0; i < countof(times); i++)
        if (str_eq(unit, str_of(times[i].name)))
            l.per_ms = times[i].ms;
    if (!l.per_ms || !parse_amount(kind, amount, &l.amount))
        return false;
    l.burst = l.amount;
    if (rest.p && (!str_eq(str_split(&rest, ' '), STR("burst")) || !rest.p ||
                   !parse_amount(kind, rest, &l.burst)))
        return false;
    *ret = l;
    return true;
}

bool limit_parse(enum limit_kind kind, struct str text, struct limit *ret, struct error *err)
{
    struct limit l = {0};

    if (str_eq(text, STR("none"))) {
        *ret = (struct limit){.amount = LIMIT_NONE};
        return true;
    }
    if (kind >= LIMIT_RATES) {
        if (!parse_amount(kind, text, &l.amount) || l.amount > LIMIT_COUNT_MAX)
            return error_set(err, ERR_BAD_INPUT,
                             "\"%s\" must be a whole number from 1 to %d, or \"none\"",
                             kinds[kind].name, LIMIT_COUNT_MAX);
    } else if (!parse_rate(kind, text, &l)) {
        return error_set(err, ERR_BAD_INPUT,
                         "\"%s\" must be a rate per s, m, h or d such as %s; or \"none\"",
                         kinds[kind].name, kinds[kind].example);
    } else if (l.amount > BUCKET_MAX / l.per_ms || l.burst > BUCKET_MAX / l.per_ms) {
        return error_set(err, ERR_BAD_INPUT,
                         "\"%s\" is too large to count; write it per second (s)", kinds[kind].name);
    }
    *ret = l;
    return true;
}

/* Fields of the option table. */

bool option_read_limit(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, void *place, struct error *err)
{
    struct str text = v->type == JS_STRING ? js_text(b->doc, v, b->mem) : js_raw(b->doc, v);
    enum limit_kind kind;
    struct error why;

    if (v->type == JS_STRING && b->text && !b->text(b, v, &text, err))
        return false;
    return (limit_kind_parse(str_of(f->name), &kind) && limit_parse(kind, text, place, &why)) ||
           js_bind_fault(b, v, err, "%s", why.text);
}

bool option_read_limits(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err)
{
    return js_bind(b, v, f->fields, place, err);
}

const struct js_field limits_fields[] = {LIMIT_ROWS(struct limits, of, "one key or user"), {0}};

const struct js_field tenant_limits_fields[] = {
    LIMIT_ROWS(struct limits_config, tenant.of, "this tenant"),
    LIMIT_KEY_ROW(struct limits_config, key),
    {0},
};

/* Writing JSON and descriptions. */

static void add_amount(enum limit_kind kind, int64_t n, struct buf *out)
{
    if (kind == LIMIT_BYTES)
        config_add_units(out, config_size_units, n);
    else
        buf_addf(out, "%lld", (long long)n);
}

void limit_value_write(struct js_writer *w, enum limit_kind kind, const struct limit *l)
{
    struct buf text;
    size_t i = 0;

    if (l->amount == LIMIT_NONE) {
        js_string(w, STR("none"));
        return;
    }
    if (kind >= LIMIT_RATES) {
        js_int(w, l->amount);
        return;
    }
    while (times[i].ms != l->per_ms)
        i++;
    buf_init(&text, 256);
    add_amount(kind, l->amount, &text);
    buf_addf(&text, "/%s", times[i].name);
    if (l->burst != l->amount) {
        buf_addz(&text, " burst ");
        add_amount(kind, l->burst, &text);
    }
    js_string(w, buf_str(&text));
    buf_release(&text);
}

void limits_write(struct js_writer *w, const struct limits *l)
{
    for (unsigned k = 0; k < LIMIT_KINDS; k++)
        if (l->of[k].amount != LIMIT_UNSAID) {
            js_key(w, str_of(kinds[k].name));
            limit_value_write(w, (enum limit_kind)k, &l->of[k]);
        }
}

bool limits_are_unset(const struct limits *l)
{
    for (unsigned k = 0; k < LIMIT_KINDS; k++)
        if (l->of[k].amount != LIMIT_UNSAID)
            return false;
    return true;
}

/* "52428800" is "50 MiB". */
static void describe_bytes(int64_t n, struct buf *out)
{
    const struct config_unit *u = config_size_units;

    while (n % u->value != 0)
        u++;
    buf_addf(out, "%lld %s", (long long)(n / u->value),
             u->value > 1 ? u->name
             : n == 1     ? "byte"
                          : "bytes");
}

void limit_describe(enum limit_kind kind, const struct limit *l, struct buf *out)
{
    if (kind == LIMIT_BYTES)
        describe_bytes(l->amount, out);
    else
        buf_addf(out, "%lld %s", (long long)l->amount,
                 l->amount == 1 ? kinds[kind].one : kinds[kind].many);
    if (kind >= LIMIT_RATES) {
        buf_addz(out, " at a time");
        return;
    }
    for (size_t i = 0; i < countof(times); i++)
        if (times[i].ms == l->per_ms)
            buf_addf(out, " %s %s", times[i].ms == 3600000 ? "an" : "a", times[i].word);
}

/* Which limits apply. */

static void put_under(struct limits *own, const struct limits *all)
{
    for (unsigned k = 0; k < LIMIT_KINDS; k++)
        if (own->of[k].amount == LIMIT_UNSAID)
            own->of[k] = all->of[k];
}

struct limits config_limits(const struct config *c, struct str tenant)
{
    const struct tenant_config *t = config_tenant(c, tenant);
    struct limits l = t ? t->limits.tenant : (struct limits){0};

    put_under(&l, &c->limits.tenant);
    return l;
}

struct limits config_key_limits(const struct config *c, struct str tenant, const struct limits *own)
{
    const struct tenant_config *t = config_tenant(c, tenant);
    struct limits l = own ? *own : (struct limits){0};

    if (t)
        put_under(&l, &t->limits.key);
    put_under(&l, &c->limits.key);
    return l;
}

static bool says_any(const struct limits_config *l)
{
    return !limits_are_unset(&l->tenant) || !limits_are_unset(&l->key);
}

void limits_finish(struct config *c)
{
    c->is_limited = says_any(&c->limits);
    for (size_t i = 0; i < c->n_tenants; i++)
        c->is_limited = c->is_limited || says_any(&c->tenants[i].limits);
}
