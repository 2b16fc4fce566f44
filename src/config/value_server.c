/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of options of server entries, and of carriers: programs, environments, headers.  They
 * check names and values once, so the code that sends or starts with them need not. */
#include "config/config_impl.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* Headers that Holdfast sets on upstream requests.  A duplicate would change the request's
 * meaning. */
static const char *const own_headers[] = {
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
};
/* Headers that a session's credential may not use, besides own_headers and all "mcp-" headers: they
 * are hop-by-hop, describe the body, or carry another login. */
static const char *const no_credential_headers[] = {
    "content-encoding",    "cookie",     "cookie2",     "last-event-id", "proxy-authenticate",
    "proxy-authorization", "set-cookie", "set-cookie2", "trailers",
};
/* Variables that decide which code a program loads or runs.  Clients choose a credential's value,
 * so a credential may not use these. */
static const char *const no_credential_variables[] = {
    "PATH",
    "HOME",
    "SHELL",
    "ENV",
    "IFS",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "CLASSPATH",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "DOTNET_STARTUP_HOOKS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXEC_PATH",
    "EDITOR",
    "PAGER",
};
static const char *const no_credential_variable_prefixes[] = {
    "LD_", "DYLD_", "GLIBC_", "MALLOC_", "BASH_FUNC_", "GIT_CONFIG"};
/* Prefixes of _meta keys that belong to MCP or Holdfast. */
static const char *const no_credential_meta_prefixes[] = {
    "io.modelcontextprotocol/", "modelcontextprotocol.io/", "mcp.dev/", "holdfast/"};
/* Headers that may not carry a session id: they hold credentials or have another meaning. */
static const char *const no_carriers[] = {
    "authorization",       "cookie",    "mcp-client-id", "mcp-config", "mcp-session-id",
    "proxy-authorization", "x-api-key",
};

static bool is_among(const char *const *names, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_ieq(str_of(names[i]), name))
            return true;
    return false;
}

static bool has_prefix_among(const char *const *prefixes, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(prefixes[i]);
        if (name.n >= length && str_ieq(str_n(name.p, length), str_of(prefixes[i])))
            return true;
    }
    return false;
}

bool value_is_header_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return name.n > 0 && name.n <= CONFIG_CARRIER_KEY_MAX;
}

/* No byte of the value ends the header. */
static bool is_header_text(struct str value)
{
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* Leading and trailing blanks are refused too, because the receiver would strip them. */
bool config_is_header_value(struct str value)
{
    return is_header_text(value) && str_trim(value).n == value.n;
}

/* upstream/fill.c checks context values when it fills them in.  Blanks at the ends are allowed in a
 * value with placeholders, because they may be inside once the placeholders are filled. */
static bool is_header_pair(const struct config_pair *pair)
{
    for (size_t i = 0; i < pair->n_placeholders; i++)
        if (!is_header_text(pair->placeholders[i].fallback))
            return false;
    return pair->n_placeholders ? is_header_text(pair->value) : config_is_header_value(pair->value);
}

bool option_read_program(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err)
{
    char what[80];
    struct str text;

    snprintf(what, sizeof(what), "\"%s\"", f->name);
    if (!value_string(b, v, what, &text, err))
        return false;
    if (text.n == 0)
        return js_bind_fault(b, v, err, "\"%s\" is empty; give it a value or leave it out",
                             f->name);
    *(struct str *)place = text;
    return true;
}

bool option_read_command(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err)
{
    struct server_draft *d = (struct server_draft *)(void *)((char *)place - f->offset);

    d->server.command_at = value_place(b, v);
    return option_read_program(b, f, v, place, err);
}

bool option_read_cwd(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err)
{
    struct server_draft *d = (struct server_draft *)(void *)((char *)place - f->offset);

    d->server.cwd_at = value_place(b, v);
    return option_read_program(b, f, v, place, err);
}

typedef bool (*pair_check)(const struct js_binding *b, const struct js_node *key,
                           const struct config_pair *pair, struct error *err);

static int compare_pairs(const void *a, const void *b)
{
    const struct config_pair *x = a, *y = b;

    return str_cmp(x->name, y->name);
}

/* Gemini CLI also expands a variable without braces; Holdfast takes it as literal text. */
static void note_bare_variable(const struct js_binding *b, const struct js_node *v,
                               const struct config_pair *pair)
{
    struct str name = pair->value.n ? str_n(pair->value.p + 1, pair->value.n - 1) : STR("");

    if (pair->n_placeholders || !name.n || pair->value.p[0] != '$')
        return;
    for (size_t i = 0; i < name.n; i++)
        if (!(name.p[i] >= 'A' && name.p[i] <= 'Z') && !(name.p[i] >= '0' && name.p[i] <= '9') &&
            name.p[i] != '_')
            return;
    note_at(b, v, "\"%.*s\" of server %.*s is the text $%.*s; write ${%.*s} for the variable",
            STR_ARG(pair->name), STR_ARG(reading_of(b)->server), STR_ARG(name), STR_ARG(name));
}

/* Reads an object of strings into a sorted array, so that the order in the file has no effect. */
static bool read_pairs(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, void *place, pair_check check, struct error *err)
{
    size_t n = 0, *count = (size_t *)(void *)((char *)place - f->offset + f->count_offset);
    const struct js_node *key, *value;
    struct context_placeholders placeholders;
    struct config_pair *pairs;
    char what[80];

    snprintf(what, sizeof(what), "an entry of \"%s\"", f->name);
    if (v->type != JS_OBJECT)
        return js_bind_fault(b, v, err, "\"%s\" must be an object of strings", f->name);
    for (key = js_first(b->doc, v); key; key = js_next(b->doc, v, js_value_of(key)))
        n++;
    if (n > CONFIG_PAIRS_MAX)
        return js_bind_fault(b, v, err, "\"%s\" has %zu entries; at most %d are taken", f->name, n,
                             CONFIG_PAIRS_MAX);
    pairs = arena_zalloc(b->mem, n * sizeof(*pairs));
    n = 0;
    for (key = js_first(b->doc, v); key; key = js_next(b->doc, v, value)) {
        value = js_value_of(key);
        pairs[n].name = arena_dup(b->mem, js_text(b->doc, key, b->mem));
        context_placeholders_begin(reading_of(b), &placeholders);
        if (!value_string(b, value, what, &pairs[n].value, err))
            return false;
        context_placeholders_end(reading_of(b), &pairs[n]);
        if (!check(b, key, &pairs[n], err))
            return false;
        credential_note_literal(b, pairs[n].name, value);
        if (str_eq(js_raw(b->doc, value),
                   arena_printf(b->mem, "\"%.*s\"", STR_ARG(pairs[n].value))))
            note_bare_variable(b, value, &pairs[n]);
        n++;
    }
    if (n > 1)
        qsort(pairs, n, sizeof(*pairs), compare_pairs);
    *(struct config_pair **)place = pairs;
    *count = n;
    return true;
}

static bool check_variable(const struct js_binding *b, const struct js_node *key,
                           const struct config_pair *pair, struct error *err)
{
    bool ok = pair->name.n > 0 && str_find(pair->name, '=') == pair->name.n &&
              str_find(pair->name, '\0') == pair->name.n;

    return ok || js_bind_fault(b, key, err,
                               "names in \"env\" must not be empty or contain = or NUL; choose "
                               "another");
}

bool option_read_env(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err)
{
    return read_pairs(b, f, v, place, check_variable, err);
}

static bool check_header(const struct js_binding *b, const struct js_node *key,
                         const struct config_pair *pair, struct error *err)
{
    if (!value_is_header_name(pair->name))
        return js_bind_fault(b, key, err,
                             "names in \"headers\" have 1 to %d token characters, no blanks or "
                             "colons; correct this one",
                             CONFIG_CARRIER_KEY_MAX);
    if (is_among(own_headers, countof(own_headers), pair->name))
        return js_bind_fault(b, key, err, "the header %.*s is set by Holdfast itself; remove it",
                             STR_ARG(pair->name));
    if (!is_header_pair(pair))
        return js_bind_fault(b, js_value_of(key), err,
                             "the value of the header %.*s must not contain control characters or "
                             "begin or end with a blank",
                             STR_ARG(pair->name));
    return true;
}

/* The fields lie in struct server_draft itself; the row has no offset. */
bool option_read_server_tls(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, void *place, struct error *err)
{
    ((struct server_draft *)place)->server.tls_at = value_place(b, v);
    return js_bind(b, v, f->fields, place, err);
}

bool option_read_server_credential(const struct js_binding *b, const struct js_field *f,
                                   const struct js_node *v, void *place, struct error *err)
{
    return js_bind(b, v, f->fields, place, err);
}

/* Size of the headers as lines of a request head. */
static size_t header_bytes(const struct config_pair *pairs, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++) {
        bytes += pairs[i].name.n + pairs[i].value.n + 4;
        for (size_t k = 0; k < pairs[i].n_placeholders; k++)
            bytes += pairs[i].placeholders[k].fallback.n;
    }
    return bytes;
}

bool option_read_headers(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err)
{
    const size_t *n = (const size_t *)(void *)((char *)place - f->offset + f->count_offset);
    const struct js_node *key, *other;

    if (!read_pairs(b, f, v, place, check_header, err))
        return false;
    if (header_bytes(*(struct config_pair **)place, *n) > CONFIG_HEADERS_BYTES_MAX)
        return js_bind_fault(b, v, err,
                             "\"%s\" have more than %u KiB together; shorten the values or their "
                             "variables",
                             f->name, CONFIG_HEADERS_BYTES_MAX >> 10);
    /* The JSON reader has refused equal keys; header names are also compared without case. */
    for (key = js_first(b->doc, v); key; key = js_next(b->doc, v, js_value_of(key)))
        for (other = js_first(b->doc, v); other != key;
             other = js_next(b->doc, v, js_value_of(other)))
            if (str_ieq(js_text(b->doc, key, b->mem), js_text(b->doc, other, b->mem)))
                return js_bind_fault(b, key, err, "this header is given twice; keep one of them");
    return true;
}

/* The reason that this header may not carry a session's credential, or NULL. */
static const char *credential_header_complaint(struct str name)
{
    static const char *const mcp[] = {"mcp-"};

    if (is_among(own_headers, countof(own_headers), name) || has_prefix_among(mcp, 1, name))
        return "is set by Holdfast itself";
    return is_among(no_credential_headers, countof(no_credential_headers), name)
               ? "cannot hold a session's credential"
               : NULL;
}

static const char *credential_place_complaint(struct str as, struct str name)
{
    if (str_starts(as, STR("header:")))
        return credential_header_complaint(name);
    if (str_starts(as, STR("env:")))
        return is_among(no_credential_variables, countof(no_credential_variables), name) ||
                       has_prefix_among(no_credential_variable_prefixes,
                                        countof(no_credential_variable_prefixes), name)
                   ? "decides what the program loads or runs, so a client must not set it"
                   : NULL;
    return str_eq(name, STR("progressToken")) ||
                   has_prefix_among(no_credential_meta_prefixes,
                                    countof(no_credential_meta_prefixes), name)
               ? "is a member of _meta that belongs to MCP or Holdfast"
               : NULL;
}

bool option_read_credential_as(const struct js_binding *b, const struct js_field *f unused_arg,
                               const struct js_node *v, void *place, struct error *err)
{
    struct str text, where;
    const char *complaint;
    bool ok;

    if (!value_string(b, v, "\"as\"", &text, err))
        return false;
    where = text;
    str_split(&where, ':');
    ok = where.n > 0 && where.n <= CONFIG_CARRIER_KEY_MAX &&
         ((str_starts(text, STR("header:")) && value_is_header_name(where)) ||
          (str_starts(text, STR("env:")) && str_find(where, '=') == where.n) ||
          str_starts(text, STR("meta:")));
    if (!ok)
        return js_bind_fault(b, v, err,
                             "\"as\" must be header:NAME, env:NAME or meta:KEY, such as "
                             "\"header:Authorization\"");
    complaint = credential_place_complaint(text, where);
    if (complaint)
        return js_bind_fault(b, v, err, "%.*s %s; name another", STR_ARG(where), complaint);
    *(struct str *)place = text;
    return true;
}

static bool check_key_name(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, struct str text, struct error *err)
{
    const char *complaint = credential_header_complaint(text);

    if (!value_is_header_name(text))
        return js_bind_fault(b, v, err,
                             "\"%s\" takes names of headers: 1 to %d token characters, no blanks "
                             "or colons",
                             f->name, CONFIG_CARRIER_KEY_MAX);
    return !complaint || js_bind_fault(b, v, err, "the header %.*s %s; remove it from \"%s\"",
                                       STR_ARG(text), complaint, f->name);
}

bool option_read_key_names(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err)
{
    return value_list(b, f, v, place, check_key_name, err);
}

/* "NAME" or "PREFIX*".  A bare "*" would also pass Holdfast's own credentials. */
static bool check_inherited(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, struct str text, struct error *err)
{
    struct str name = text.n && text.p[text.n - 1] == '*' ? str_n(text.p, text.n - 1) : text;
    bool ok = name.n > 0 && name.n <= CONFIG_CARRIER_KEY_MAX;

    for (size_t i = 0; i < name.n && ok; i++)
        ok = name.p[i] > ' ' && name.p[i] < 0x7f && name.p[i] != '=' && name.p[i] != '*';
    return ok ||
           js_bind_fault(b, v, err,
                         "\"%s\" takes names of variables, or the beginning of names with a * "
                         "behind it, such as \"AWS_*\"",
                         f->name);
}

bool option_read_inherit_env(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, void *place, struct error *err)
{
    return value_list(b, f, v, place, check_inherited, err);
}

bool option_read_flag(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err)
{
    if (v->type != JS_TRUE && v->type != JS_FALSE)
        return js_bind_fault(b, v, err, "\"%s\" must be true or false", f->name);
    *(bool *)place = v->type == JS_TRUE;
    return true;
}

bool option_read_type(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err)
{
    char what[80];

    snprintf(what, sizeof(what), "\"%s\"", f->name);
    return value_string(b, v, what, place, err);
}

bool option_read_transport(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err)
{
    return option_read_type(b, f, v, place, err);
}

static bool carrier_key(const struct js_binding *b, const struct js_node *v, struct str *ret,
                        struct error *err)
{
    if (!value_string(b, v, "a key of _meta", ret, err))
        return false;
    if (ret->n == 0 || ret->n > CONFIG_CARRIER_KEY_MAX)
        return js_bind_fault(b, v, err, "a key of _meta has 1 to %d bytes; correct this one",
                             CONFIG_CARRIER_KEY_MAX);
    return true;
}

static bool read_path(const struct js_binding *b, const struct js_node *v, struct meta_carrier *ret,
                      struct error *err)
{
    *ret = (struct meta_carrier){0};
    if (v->type != JS_ARRAY) {
        ret->n = 1;
        return carrier_key(b, v, &ret->path[0], err);
    }
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e)) {
        if (ret->n == countof(ret->path))
            return js_bind_fault(b, e, err, "a path into _meta has at most %zu keys",
                                 countof(ret->path));
        if (!carrier_key(b, e, &ret->path[ret->n++], err))
            return false;
    }
    return ret->n > 0 || js_bind_fault(b, v, err, "a path into _meta needs at least one key");
}

static struct str carrier_label(const struct meta_carrier *m, struct arena *mem)
{
    struct buf label;
    struct str ret;

    buf_init(&label, SIZE_MAX);
    buf_addz(&label, "meta:");
    for (size_t i = 0; i < m->n; i++) {
        buf_addz(&label, i ? "." : "");
        buf_addstr(&label, m->path[i]);
    }
    ret = arena_dup(mem, buf_str(&label));
    buf_release(&label);
    return ret;
}

bool option_read_meta_carriers(const struct js_binding *b, const struct js_field *f,
                               const struct js_node *v, void *place, struct error *err)
{
    struct meta_carrier list[CONFIG_CARRIERS_MAX], *copy;
    size_t n = 0;

    if (v->type != JS_ARRAY)
        return js_bind_fault(b, v, err, "\"%s\" must be an array of strings or arrays of strings",
                             f->name);
    for (const struct js_node *e = js_first(b->doc, v); e; e = js_next(b->doc, v, e)) {
        if (n == CONFIG_CARRIERS_MAX)
            return js_bind_fault(b, e, err, "\"%s\" takes at most %d entries", f->name,
                                 CONFIG_CARRIERS_MAX);
        if (!read_path(b, e, &list[n], err))
            return false;
        list[n].label = carrier_label(&list[n], b->mem);
        for (size_t i = 0; i < n; i++) /* sessions are found by label and value */
            if (str_eq(list[i].label, list[n].label))
                return js_bind_fault(b, e, err, "this key is given twice; keep one of them");
        n++;
    }
    copy = arena_zalloc(b->mem, n * sizeof(*copy));
    memcpy(copy, list, n * sizeof(*copy));
    *(struct meta_carrier **)place = copy;
    *(size_t *)(void *)((char *)place - f->offset + f->count_offset) = n;
    return true;
}

void carriers_default(struct config *c)
{
    static const struct js_field row = {
        .name = "meta",
        .offset = offsetof(struct config, meta_carriers),
        .count_offset = offsetof(struct config, n_meta_carriers),
    };
    struct js_binding b = {.mem = c->mem, .code = ERR_CONFIG};
    struct error err;
    struct js_doc doc;

    b.doc = &doc;
    if (!js_parse(STR(CONFIG_META_DEFAULT), &js_limits_config, c->mem, &doc, NULL) ||
        !option_read_meta_carriers(&b, &row, js_root(&doc), &c->meta_carriers, &err))
        die("the default carriers are not acceptable; this is a bug, please report it");
}

static bool check_header_carrier(const struct js_binding *b, const struct js_field *f,
                                 const struct js_node *v, struct str text, struct error *err)
{
    if (!value_is_header_name(text))
        return js_bind_fault(
            b, v, err, "\"%s\" takes names of headers such as \"X-Conversation-Id\"", f->name);
    if (is_among(no_carriers, countof(no_carriers), text))
        return js_bind_fault(b, v, err,
                             "the header %.*s has a meaning of its own and cannot name a session; "
                             "remove it",
                             STR_ARG(text));
    return true;
}

bool option_read_header_carriers(const struct js_binding *b, const struct js_field *f,
                                 const struct js_node *v, void *place, struct error *err)
{
    return value_list(b, f, v, place, check_header_carrier, err);
}

bool option_read_env_file(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err)
{
    ((struct server_draft *)(void *)((char *)place - f->offset))->env_file_at = v;
    return option_read_program(b, f, v, place, err);
}

static bool check_tool(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, struct str text, struct error *err)
{
    return text.n > 0 || js_bind_fault(b, v, err, "\"%s\" takes names of tools", f->name);
}

static bool read_tools(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, void *place, struct error *err)
{
    const size_t *n = (const size_t *)(void *)((char *)place - f->offset + f->count_offset);

    if (*n)
        return js_bind_fault(b, v, err,
                             "\"%s\" means the same as another list of this server; keep one of "
                             "them",
                             f->name);
    return value_list(b, f, v, place, check_tool, err);
}

bool option_read_without_tools(const struct js_binding *b, const struct js_field *f,
                               const struct js_node *v, void *place, struct error *err)
{
    return read_tools(b, f, v, place, err);
}

bool option_read_without_tools_alias(const struct js_binding *b, const struct js_field *f,
                                     const struct js_node *v, void *place, struct error *err)
{
    return read_tools(b, f, v, place, err);
}

bool option_read_only_tools(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, void *place, struct error *err)
{
    if (!read_tools(b, f, v, place, err))
        return false;
    return *(size_t *)(void *)((char *)place - f->offset + f->count_offset) > 0 ||
           js_bind_fault(b, v, err,
                         "\"%s\" is empty and would leave no tool; name some, or say \"disabled\": "
                         "true",
                         f->name);
}

bool option_read_only_tools_alias(const struct js_binding *b, const struct js_field *f,
                                  const struct js_node *v, void *place, struct error *err)
{
    return option_read_only_tools(b, f, v, place, err);
}

bool config_pattern_fits(struct str pattern, struct str name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, from = 0;

    while (n < name.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            from = n;
        } else if (p < pattern.n && pattern.p[p] == name.p[n]) {
            p++;
            n++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            n = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

static bool fits_one(const struct str *patterns, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (config_pattern_fits(patterns[i], name))
            return true;
    return false;
}

bool config_shows_tool(const struct server_config *s, struct str tool)
{
    return (!s->n_only_tools || fits_one(s->only_tools, s->n_only_tools, tool)) &&
           !fits_one(s->without_tools, s->n_without_tools, tool);
}

/* "timeout" without a unit.  Cline and Roo Code write seconds, 3600 at most.  Claude Code, Gemini
 * CLI and others write milliseconds, and values below 3600 ms are unlikely. */
#define SECONDS_MOST 3600
#define TIMEOUT_MOST_MS (24LL * 3600 * 1000)

static bool put_timeout(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, int64_t ms, void *place, struct error *err)
{
    struct server_draft *d = (struct server_draft *)(void *)((char *)place - f->offset);

    if (ms < 1 || ms > TIMEOUT_MOST_MS)
        return js_bind_fault(b, v, err, "\"%s\" must be from 1 ms to 1 d", f->name);
    if (d->has_timeout)
        return js_bind_fault(b, v, err, "\"%s\" gives a second timeout; keep one of them", f->name);
    d->has_timeout = true;
    *(int64_t *)place = ms;
    return true;
}

static void note_timeout(const struct js_binding *b, const struct js_node *v, uint64_t count,
                         int64_t ms)
{
    struct buf shown;

    if (count < 1000)
        return;
    buf_init(&shown, 64);
    config_add_units(&shown, config_time_units, ms);
    note_at(b, v, "\"timeout\" of server %.*s is %llu %s, %.*s; write \"%.*s\" to have it exact",
            STR_ARG(reading_of(b)->server), (unsigned long long)count,
            count > SECONDS_MOST ? "milliseconds" : "seconds", STR_ARG(buf_str(&shown)),
            STR_ARG(buf_str(&shown)));
    buf_release(&shown);
}

bool option_read_timeout(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err)
{
    struct str text = js_raw(b->doc, v);
    uint64_t count;
    int64_t ms;

    if (v->type == JS_STRING && !value_string(b, v, "\"timeout\"", &text, err))
        return false;
    if ((v->type == JS_STRING || v->type == JS_NUMBER) &&
        str_to_u64(text, (uint64_t)TIMEOUT_MOST_MS, &count)) {
        ms = (int64_t)count * (count > SECONDS_MOST ? 1 : 1000);
        note_timeout(b, v, count, ms);
    } else if (v->type != JS_STRING || !clock_parse_duration(text, &ms)) {
        return js_bind_fault(b, v, err,
                             "\"%s\" must be a duration such as \"30s\", or a whole number: of "
                             "seconds up to 3600, else of milliseconds; from 1 ms to 1 d",
                             f->name);
    }
    return put_timeout(b, f, v, ms, place, err);
}

bool option_read_timeout_sec(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, void *place, struct error *err)
{
    char text[32];
    double seconds;

    if (v->type != JS_NUMBER || js_raw(b->doc, v).n >= sizeof(text))
        return js_bind_fault(b, v, err, "\"%s\" must be a number of seconds", f->name);
    memcpy(text, js_raw(b->doc, v).p, js_raw(b->doc, v).n);
    text[js_raw(b->doc, v).n] = '\0';
    seconds = strtod(text, NULL);
    if (seconds < 0 || seconds > (double)TIMEOUT_MOST_MS)
        seconds = 0;
    return put_timeout(b, f, v, (int64_t)(seconds * 1000), place, err);
}
