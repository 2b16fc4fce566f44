/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the reference of the configuration as Markdown from the option table, so the reference
 * always matches the parser. */
#include "config/config_impl.h"

static const struct config_unit no_units[] = {{"", 1}};

/* The description of each kind, and the units of its bounds. */
static const struct {
    const char *what;
    const struct config_unit *units;
} kinds[] = {
    [JS_BIND_STRING] = {"a string", no_units},
    [JS_BIND_BOOL] = {"`true`, `false`", no_units},
    [JS_BIND_INT] = {"a whole number", no_units},
    [JS_BIND_UINT] = {"a whole number", no_units},
    [JS_BIND_DURATION] = {"a duration", config_time_units},
    [JS_BIND_SIZE] = {"a size", config_size_units},
    [JS_BIND_ENUM] = {"", no_units},
    [JS_BIND_STRINGS] = {"an array of strings", no_units},
    [JS_BIND_OBJECT] = {"an object", no_units},
    [JS_BIND_CUSTOM] = {"a string", no_units},
    [JS_BIND_IGNORED] = {"anything", no_units},
};

/* The descriptions of readers that do not read a string. */
static const struct {
    js_bind_read read;
    const char *what;
} shapes[] = {
    {option_read_listen, "an address"},
    {option_read_url, "a URL"},
    {option_read_url_alias, "a URL"},
    {option_read_flag, "`true`, `false`"},
    {option_read_tls, "an object"},
    {option_read_otlp, "an object"},
    {option_read_sinks, "an array of objects"},
    {option_read_sink_url, "a URL"},
    {option_read_sink_path, "a file name"},
    {option_read_jwt, "an object, or an array of them"},
    {option_read_jwks, "a file name or a URL"},
    {option_read_audience, "a string, or an array of them"},
    {option_read_issuer_keys, "an array of objects"},
    {option_read_tenant_names, "an array of strings"},
    {option_read_role_names, "an array of strings"},
    {option_read_server_tls, "an object"},
    {option_read_server_credential, "an object"},
    {option_read_file, "a file name"},
    {option_read_profiles, "an object of objects"},
    {option_read_toolsets, "an object of objects"},
    {option_read_clients, "an object of objects"},
    {option_read_tenants, "an object of objects"},
    {option_read_folders, "an object of objects"},
    {option_read_directory, "a directory"},
    {option_read_env, "an object of strings"},
    {option_read_headers, "an object of strings"},
    {option_read_meta_carriers, "an array of strings and arrays"},
    {option_read_header_carriers, "an array of strings"},
    {option_read_key_names, "an array of strings"},
    {option_read_inherit_env, "an array of strings"},
    {option_read_only_tools, "an array of strings"},
    {option_read_only_tools_alias, "an array of strings"},
    {option_read_without_tools, "an array of strings"},
    {option_read_without_tools_alias, "an array of strings"},
    {option_read_env_file, "a file name"},
    {option_read_timeout, "a duration, or a whole number"},
    {option_read_timeout_sec, "a number of seconds"},
    {option_read_origins, "an array of strings"},
    {option_read_context_keys, "an array of strings"},
    {option_read_proxies, "an array of strings"},
    {option_read_limit, "a limit, or `none`"},
    {option_read_limits, "an object"},
};

static void write_kind(struct buf *out, const struct js_field *f)
{
    const char *what = kinds[f->kind].what;

    for (size_t i = 0; f->names && f->names[i]; i++)
        buf_addf(out, "%s`%s`", i ? ", " : "", f->names[i]);
    if (f->names)
        return;
    for (size_t i = 0; i < countof(shapes); i++)
        if (f->kind == JS_BIND_CUSTOM && f->read == shapes[i].read)
            what = shapes[i].what;
    buf_addz(out, what);
    if (!f->max)
        return;
    buf_addz(out, ", ");
    config_add_units(out, kinds[f->kind].units, f->min);
    buf_addz(out, " to ");
    config_add_units(out, kinds[f->kind].units, f->max);
}

static void write_row(struct buf *out, struct str path, const struct js_field *f)
{
    buf_addf(out, "| `%.*s` | ", STR_ARG(path));
    write_kind(out, f);
    if (f->default_text)
        buf_addf(out, " | `%s` | ", f->default_text);
    else
        buf_addz(out, " |  | ");
    buf_addf(out, "%s%s%s |\n", f->help ? f->help : "", f->required ? " Required." : "",
             f->data ? " Not used yet." : "");
}

static void write_rows(struct buf *out, struct arena *mem, struct str prefix,
                       const struct js_field *fields)
{
    for (const struct js_field *f = fields; f->name; f++) {
        bool named = f->kind == JS_BIND_CUSTOM &&
                     (f->read == option_read_profiles || f->read == option_read_toolsets ||
                      f->read == option_read_clients || f->read == option_read_tenants ||
                      f->read == option_read_folders);
        struct str path = arena_printf(mem, "%.*s.%s", STR_ARG(prefix), f->name);

        if (f->kind == JS_BIND_IGNORED)
            continue;
        if (f->kind != JS_BIND_OBJECT)
            write_row(out, path, f);
        if (f->fields)
            write_rows(out, mem, named ? arena_printf(mem, "%.*s.NAME", STR_ARG(path)) : path,
                       f->fields);
    }
}

void config_write_reference(struct buf *out)
{
    struct arena *mem = arena_new(SIZE_MAX);
    const char *before = "";

    buf_addz(out, "| key | takes | default | |\n|---|---|---|---|\n");
    write_rows(out, mem, STR("mcpServers.NAME"), server_fields);
    write_rows(out, mem, STR("holdfast"), option_fields);
    buf_addz(out,
             "\nKeys of other clients that are accepted in a server entry and have no effect: ");
    for (const struct js_field *f = server_fields; f->name; f++) {
        if (f->kind != JS_BIND_IGNORED)
            continue;
        buf_addf(out, "%s`%s`", before, f->name);
        before = ", ";
    }
    buf_addz(out, ".\n");
    arena_free(mem);
}
