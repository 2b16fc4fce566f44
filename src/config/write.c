/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the effective configuration as JSON from the option table: every option with its current
 * value.  Parsing the output gives the same configuration, except for masked secrets.  The built-in
 * sample is left out, because it exists only when no server is configured. */
#include "config/config_impl.h"
#include "config/sinks.h"

#include "config/limits.h"
#include "json/write.h"

#define MASK "***"

/* Escapes a literal ${ as $${.  A secret is written by its name. */
static void add_text(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '$' && i + 1 < s.n && s.p[i + 1] == '{' &&
            !secret_reference_length(str_n(s.p + i, s.n - i)))
            buf_addc(out, '$');
        buf_addc(out, s.p[i]);
    }
}

static void write_text(struct js_writer *w, struct str s)
{
    struct buf out;

    buf_init(&out, SIZE_MAX);
    add_text(&out, s);
    js_string(w, buf_str(&out));
    buf_release(&out);
}

const struct config_unit config_time_units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
const struct config_unit config_size_units[] = {
    {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}};

void config_add_units(struct buf *out, const struct config_unit *u, int64_t v)
{
    while (v % u->value != 0)
        u++;
    buf_addf(out, "%lld%s", (long long)(v / u->value), u->name);
}

static void write_units(struct js_writer *w, const struct config_unit *units, int64_t v)
{
    struct buf text;

    buf_init(&text, SIZE_MAX);
    config_add_units(&text, units, v);
    js_string(w, buf_str(&text));
    buf_release(&text);
}

static void write_strings(struct js_writer *w, const struct str *list, size_t n)
{
    js_array(w);
    for (size_t i = 0; i < n; i++)
        write_text(w, list[i]);
    js_array_end(w);
}

/* Masks secrets in arguments such as "--token=abc" and "--token abc". */
static void write_args(struct js_writer *w, const struct str *args, size_t n)
{
    bool mask_next = false;

    js_array(w);
    for (size_t i = 0; i < n; i++) {
        size_t equals = str_find(args[i], '=');
        bool secret = credential_is_named(str_n(args[i].p, equals));
        bool is_reference = args[i].n && secret_reference_length(args[i]) == args[i].n;
        if (mask_next && !is_reference)
            js_string(w, STR(MASK));
        else if (secret && equals < args[i].n)
            js_string(w, STR(MASK));
        else
            write_text(w, args[i]);
        mask_next =
            !mask_next && secret && equals == args[i].n && args[i].n > 0 && args[i].p[0] == '-';
    }
    js_array_end(w);
}

static size_t count_of(const struct js_field *f, const void *place)
{
    return *(const size_t *)(const void *)((const char *)place - f->offset + f->count_offset);
}

static void write_field_string(struct js_writer *w, const struct js_field *f unused_arg,
                               const void *place)
{
    write_text(w, *(const struct str *)place);
}

/* Masks the query of a URL, because it may hold keys. */
static void write_url(struct js_writer *w, const struct js_field *f unused_arg, const void *place)
{
    struct str url = *(const struct str *)place;
    size_t query = str_find(url, '?');
    struct buf out;

    buf_init(&out, SIZE_MAX);
    buf_add(&out, url.p, query);
    if (query < url.n)
        buf_addz(&out, "?" MASK);
    write_text(w, buf_str(&out));
    buf_release(&out);
}

static void write_switch(struct js_writer *w, const struct js_field *f, const void *place)
{
    js_string(w, str_of(f->names[*(const bool *)place]));
}

static void write_list(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_strings(w, *(struct str *const *)place, count_of(f, place));
}

/* Writes placeholders in their original form. */
static void write_value(struct js_writer *w, const struct config_pair *pair)
{
    struct buf out;
    size_t at = 0;

    buf_init(&out, SIZE_MAX);
    for (size_t i = 0; i < pair->n_placeholders; i++) {
        const struct context_placeholder *placeholder = &pair->placeholders[i];
        add_text(&out, str_n(pair->value.p + at, placeholder->at - at));
        buf_addf(&out, "${context:%.*s%s%.*s}", STR_ARG(placeholder->key),
                 placeholder->fallback.p ? ":-" : "", STR_ARG(placeholder->fallback));
        at = placeholder->at;
    }
    add_text(&out, str_n(pair->value.p + at, pair->value.n - at));
    js_string(w, buf_str(&out));
    buf_release(&out);
}

static void write_pairs(struct js_writer *w, const struct js_field *f, const void *place)
{
    const struct config_pair *pairs = *(struct config_pair *const *)place;

    js_object(w);
    for (size_t i = 0; i < count_of(f, place); i++) {
        if (pairs[i].is_from_file)
            continue;
        js_key(w, pairs[i].name);
        bool is_reference = secret_reference_length(pairs[i].value) == pairs[i].value.n;
        if (credential_is_named(pairs[i].name) && !(is_reference && pairs[i].value.n))
            js_string(w, STR(MASK));
        else
            write_value(w, &pairs[i]);
    }
    js_object_end(w);
}

static void write_carriers(struct js_writer *w, const struct js_field *f, const void *place)
{
    const struct meta_carrier *list = *(struct meta_carrier *const *)place;

    js_array(w);
    for (size_t i = 0; i < count_of(f, place); i++) {
        if (list[i].n == 1)
            write_text(w, list[i].path[0]);
        else
            write_strings(w, list[i].path, list[i].n);
    }
    js_array_end(w);
}

static void write_fields(struct js_writer *w, const struct js_field *fields, const char *from);

/* Writes an object of objects by name; the first member of each item is its name. */
static void write_named(struct js_writer *w, const struct js_field *f, const void *place,
                        size_t size)
{
    const char *items = *(const char *const *)place;

    js_object(w);
    for (size_t i = 0; i < count_of(f, place); i++) {
        const void *item = items + i * size;
        js_key(w, *(const struct str *)item);
        js_object(w);
        write_fields(w, f->fields, item);
        js_object_end(w);
    }
    js_object_end(w);
}

static void write_tenants(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_named(w, f, place, sizeof(struct tenant_config));
}

static void write_folders(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_named(w, f, place, sizeof(struct folder_config));
}

static void write_profiles(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_named(w, f, place, sizeof(struct profile_config));
}

static void write_toolsets(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_named(w, f, place, sizeof(struct toolset_config));
}

static void write_clients(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_named(w, f, place, sizeof(struct client_config));
}

/* Options that a tenant does not set are not written. */
static bool is_unset(const struct js_field *f, const void *place)
{
    return !f->default_text && ((f->kind == JS_BIND_DURATION && *(const int64_t *)place == 0) ||
                                (f->kind == JS_BIND_SIZE && *(const size_t *)place == 0) ||
                                (f->kind == JS_BIND_INT && *(const int64_t *)place < 0));
}

static void write_mask(struct js_writer *w, const struct js_field *f unused_arg,
                       const void *place unused_arg)
{
    js_string(w, STR(MASK));
}

static void write_jwks(struct js_writer *w, const struct js_field *f, const void *place)
{
    const struct issuer_config *c =
        (const struct issuer_config *)(const void *)((const char *)place - f->offset);

    if (c->jwks_is_url)
        write_url(w, f, place);
    else
        write_text(w, c->jwks);
}

static void write_objects(struct js_writer *w, const struct js_field *f, const void *place,
                          size_t size)
{
    const char *list = *(const char *const *)place;

    js_array(w);
    for (size_t i = 0; i < count_of(f, place); i++) {
        js_object(w);
        write_fields(w, f->fields, list + i * size);
        js_object_end(w);
    }
    js_array_end(w);
}

static void write_issuers(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_objects(w, f, place, sizeof(struct issuer_config));
}

static void write_issuer_keys(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_objects(w, f, place, sizeof(struct issuer_key_config));
}

static void write_duration(struct js_writer *w, const struct js_field *f unused_arg,
                           const void *place)
{
    write_units(w, config_time_units, *(const int64_t *)place);
}

static void write_limit(struct js_writer *w, const struct js_field *f, const void *place)
{
    enum limit_kind kind;

    if (limit_kind_parse(str_of(f->name), &kind))
        limit_value_write(w, kind, place);
}

static void write_limits(struct js_writer *w, const struct js_field *f, const void *place)
{
    js_object(w);
    write_fields(w, f->fields, place);
    js_object_end(w);
}

/* Limits that a tenant or key does not set are not written. */
static bool says_nothing(const struct js_field *f, const void *place)
{
    const struct limits_config *both = place;

    if (f->read == option_read_limit)
        return ((const struct limit *)place)->amount == LIMIT_UNSAID;
    return f->read == option_read_limits && limits_are_unset(&both->tenant) &&
           (f->fields == limits_fields || limits_are_unset(&both->key));
}

/* An address outside has the members of a server entry. */
static void write_outward(struct js_writer *w, const struct js_field *f, const void *place)
{
    const struct server_draft draft = {.server = **(struct server_config *const *)place};

    js_object(w);
    write_fields(w, f->fields, (const char *)&draft);
    js_object_end(w);
}

static void write_sinks(struct js_writer *w, const struct js_field *f, const void *place)
{
    write_objects(w, f, place, sizeof(struct sink_config));
}

static void write_sink_url(struct js_writer *w, const struct js_field *f, const void *place)
{
    if (str_starts(*(const struct str *)place, STR("http")))
        write_url(w, f, place);
    else
        write_field_string(w, f, place);
}

/* The name of a secret is shown, its value is not. */
static void write_signing_key(struct js_writer *w, const struct js_field *f unused_arg,
                              const void *place)
{
    struct str text = *(const struct str *)place;

    js_string(w, text.n && secret_reference_length(text) == text.n ? text : STR(MASK));
}

/* Writers of the values that the readers of options.c store; other readers store nothing. */
static const struct writer {
    js_bind_read read;
    enum { IS_STRING, IS_LIST, IS_POINTER, IS_ALWAYS } absence; /* when to omit the option */
    void (*write)(struct js_writer *w, const struct js_field *f, const void *place);
} writers[] = {
    {option_read_listen, IS_STRING, write_field_string},
    {option_read_program, IS_STRING, write_field_string},
    {option_read_command, IS_STRING, write_field_string},
    {option_read_cwd, IS_STRING, write_field_string},
    {option_read_file, IS_STRING, write_field_string},
    {option_read_url, IS_STRING, write_url},
    {option_read_type, IS_STRING, write_field_string},
    {option_read_credential_as, IS_STRING, write_field_string},
    {option_read_switch, IS_ALWAYS, write_switch},
    {option_read_origins, IS_LIST, write_list},
    {option_read_proxies, IS_LIST, write_list},
    {option_read_context_keys, IS_LIST, write_list},
    {option_read_header_carriers, IS_LIST, write_list},
    {option_read_key_names, IS_LIST, write_list},
    {option_read_inherit_env, IS_LIST, write_list},
    {option_read_env_file, IS_STRING, write_field_string},
    {option_read_only_tools, IS_LIST, write_list},
    {option_read_without_tools, IS_LIST, write_list},
    {option_read_timeout, IS_ALWAYS, write_duration},
    {option_read_env, IS_LIST, write_pairs},
    {option_read_headers, IS_LIST, write_pairs},
    {option_read_meta_carriers, IS_ALWAYS, write_carriers},
    {option_read_tenants, IS_LIST, write_tenants},
    {option_read_folders, IS_LIST, write_folders},
    {option_read_profiles, IS_LIST, write_profiles},
    {option_read_toolsets, IS_LIST, write_toolsets},
    {option_read_clients, IS_LIST, write_clients},
    {option_read_directory, IS_STRING, write_field_string},
    {option_read_jwt, IS_LIST, write_issuers},
    {option_read_issuer_keys, IS_LIST, write_issuer_keys},
    {option_read_audience, IS_LIST, write_list},
    {option_read_tenant_names, IS_LIST, write_list},
    {option_read_secret_names, IS_LIST, write_list},
    {option_read_role_names, IS_LIST, write_list},
    {option_read_jwks, IS_STRING, write_jwks},
    {option_read_one_of, IS_STRING, write_field_string},
    {option_read_name, IS_STRING, write_field_string},
    {option_read_secret, IS_STRING, write_mask},
    {option_read_otlp, IS_POINTER, write_outward},
    {option_read_sinks, IS_LIST, write_sinks},
    {option_read_sink_name, IS_STRING, write_field_string},
    {option_read_sink_url, IS_STRING, write_sink_url},
    {option_read_sink_path, IS_STRING, write_field_string},
    {option_read_sink_secret, IS_STRING, write_signing_key},
    {option_read_limit, IS_ALWAYS, write_limit},
    {option_read_limits, IS_ALWAYS, write_limits},
};

static void write_custom(struct js_writer *w, const struct js_field *f, const char *from)
{
    const void *place = from + f->offset;

    if ((f->read == option_read_tls && ((const struct config *)(const void *)from)->tls_cert.p) ||
        (f->read == option_read_server_tls &&
         ((const struct server_draft *)(const void *)from)->server.tls_ca.p) ||
        (f->read == option_read_server_credential &&
         ((const struct server_draft *)(const void *)from)->server.credential_service.p)) {
        js_key(w, str_of(f->name));
        js_object(w);
        write_fields(w, f->fields, from);
        js_object_end(w);
    }
    for (size_t i = 0; i < countof(writers); i++) {
        const struct writer *t = &writers[i];
        if (t->read != f->read || says_nothing(f, place) ||
            (t->absence == IS_STRING && !((const struct str *)place)->p) ||
            (t->absence == IS_LIST && count_of(f, place) == 0) ||
            (t->absence == IS_POINTER && !*(const void *const *)place))
            continue;
        js_key(w, str_of(f->name));
        t->write(w, f, place);
    }
}

static void write_plain(struct js_writer *w, const struct js_field *f, const char *from)
{
    const void *place = from + f->offset;

    switch (f->kind) {
    case JS_BIND_STRING:
        write_text(w, *(const struct str *)place);
        break;
    case JS_BIND_BOOL:
        js_bool(w, *(const bool *)place);
        break;
    case JS_BIND_INT:
        js_int(w, *(const int64_t *)place);
        break;
    case JS_BIND_UINT:
        js_int(w, *(const unsigned *)place);
        break;
    case JS_BIND_DURATION:
        write_units(w, config_time_units, *(const int64_t *)place);
        break;
    case JS_BIND_SIZE:
        write_units(w, config_size_units, (int64_t) * (const size_t *)place);
        break;
    case JS_BIND_ENUM:
        js_string(w, str_of(f->names[*(const int *)place]));
        break;
    case JS_BIND_STRINGS: /* used by server entries only */
        write_args(w, *(struct str *const *)place, count_of(f, place));
        break;
    default:
        js_object(w);
        write_fields(w, f->fields, from + f->offset);
        js_object_end(w);
    }
}

/* An object without its required list was not in the file. */
static bool lacks_list(const struct js_field *f, const char *place)
{
    if (f->kind != JS_BIND_OBJECT)
        return false;
    for (const struct js_field *own = f->fields; own->name; own++)
        if (own->required && own->count_offset && count_of(own, place + own->offset) == 0)
            return true;
    return false;
}

static void write_fields(struct js_writer *w, const struct js_field *fields, const char *from)
{
    for (const struct js_field *f = fields; f->name; f++) {
        const void *place = from + f->offset;
        bool absent = f->data || is_unset(f, place) || lacks_list(f, place) ||
                      (f->kind == JS_BIND_STRINGS && count_of(f, place) == 0) ||
                      (f->kind == JS_BIND_STRING && !((const struct str *)place)->p);

        if (f->kind == JS_BIND_CUSTOM) {
            write_custom(w, f, from);
        } else if (f->kind != JS_BIND_IGNORED && !absent) {
            js_key(w, str_of(f->name));
            write_plain(w, f, from);
        }
    }
}

void config_write(const struct config *c, struct buf *out)
{
    struct js_writer w;

    js_begin(&w, out);
    w.pretty = true;
    js_object(&w);
    js_key(&w, STR("mcpServers"));
    js_object(&w);
    for (size_t i = 0; i < c->n_servers; i++) {
        struct server_draft draft = {.server = c->servers[i],
                                     .type = c->servers[i].sse ? STR("sse") : STR_NONE};
        if (c->servers[i].kind == SERVER_BUILTIN)
            continue;
        js_key(&w, c->servers[i].name);
        js_object(&w);
        write_fields(&w, server_fields, (const char *)&draft);
        js_object_end(&w);
    }
    js_object_end(&w);
    js_key(&w, STR("holdfast"));
    js_object(&w);
    write_fields(&w, option_fields, (const char *)c);
    js_object_end(&w);
    js_object_end(&w);
}
