/* SPDX-License-Identifier: Apache-2.0 */
/* Turns text into the typed configuration: reads the top level of the file, applies the flags that
 * override it, and counts references to the result.  All memory of the result is in its own arena.
 * The parsed document is freed as soon as it has been read. */
#include "config/config_impl.h"

#include "base/log.h"

#define DOCUMENT_MAX (64u << 20) /* bytes, for the nodes of a file of CONFIG_FILE_MAX bytes */

static struct config *config_new(void)
{
    struct arena *mem = arena_new_hidden(SIZE_MAX); /* holds headers, env and secrets of issuers */
    struct config *c = arena_new_of(mem, struct config);

    c->refs = 1;
    c->mem = mem;
    c->listen = STR(CONFIG_LISTEN_DEFAULT);
    c->listens_on_loopback = true;
    js_bind_defaults(option_fields, c, mem);
    carriers_default(c);
    return c;
}

struct config *config_ref(struct config *c)
{
    c->refs++;
    return c;
}

void config_unref(struct config *c)
{
    if (c && --c->refs == 0)
        arena_free(c->mem);
}

const struct server_config *config_server(const struct config *c, struct str name)
{
    for (size_t i = 0; i < c->n_servers; i++)
        if (str_eq(c->servers[i].name, name))
            return &c->servers[i];
    for (size_t i = 0; i < c->n_builtins; i++)
        if (str_eq(c->builtins[i].name, name))
            return &c->builtins[i];
    return NULL;
}

static bool read_servers_once(const struct js_binding *b, const struct js_node *key,
                              struct error *err)
{
    if (reading_of(b)->config->servers)
        return js_bind_fault(b, key, err,
                             "\"mcpServers\" and \"servers\" mean the same; keep one of them");
    return servers_read(b, js_value_of(key), err);
}

static bool read_options(const struct js_binding *b, const struct js_node *key, struct error *err)
{
    return js_bind(b, js_value_of(key), option_fields, reading_of(b)->config, err);
}

static const struct section {
    const char *name;
    bool (*read)(const struct js_binding *b, const struct js_node *key, struct error *err);
} sections[] = {
    {"mcpServers", read_servers_once},
    {"servers", read_servers_once}, /* as VS Code writes it */
    {"holdfast", read_options},
    {"inputs", inputs_read},
};

/* Other clients share the file, so an unknown top-level key may belong to them.  A key that looks
 * like a misspelt or misplaced key of Holdfast is refused. */
static bool read_foreign(const struct js_binding *b, const struct js_node *key, struct error *err)
{
    struct str name = js_text(b->doc, key, b->mem);
    struct buf shown;
    bool ok = true;

    buf_init(&shown, SIZE_MAX);
    log_escape(&shown, name, CONFIG_NAME_MAX);
    for (const struct js_field *f = option_fields; ok && f->name; f++)
        if (str_eq(name, str_of(f->name)))
            ok = js_bind_fault(b, key, err, "\"%s\" belongs inside \"holdfast\"; move it there",
                               f->name);
    for (size_t i = 0; ok && i < countof(sections); i++)
        if (str_distance(name, str_of(sections[i].name), 3) < 3)
            ok = js_bind_fault(b, key, err, "unknown key \"%.*s\"; did you mean \"%s\"?",
                               STR_ARG(buf_str(&shown)), sections[i].name);
    if (ok)
        note_add(reading_of(b), "the top-level key \"%.*s\" has no effect here",
                 STR_ARG(buf_str(&shown)));
    buf_release(&shown);
    return ok;
}

static bool read_section(const struct js_binding *b, const struct js_node *key, struct error *err)
{
    for (size_t i = 0; i < countof(sections); i++)
        if (js_is(b->doc, key, str_of(sections[i].name)))
            return sections[i].read(b, key, err);
    return read_foreign(b, key, err);
}

static bool read_root(const struct js_binding *b, struct error *err)
{
    const struct js_node *root = js_root(b->doc), *key;

    if (root->type != JS_OBJECT)
        return js_bind_fault(b, root, err, "a configuration is an object, not %s; put it in { }",
                             js_type_name((enum js_type)root->type));
    for (key = js_first(b->doc, root); key; key = js_next(b->doc, root, js_value_of(key)))
        if (!read_section(b, key, err))
            return false;
    return true;
}

/* A value that is known only in the environment of the service cannot be checked here. */
static bool is_unexpanded(const struct js_binding *b, const struct js_node *at)
{
    return at == reading_of(b)->unexpanded;
}

/* *ret_is_known is false if a value stays unexpanded. */
static bool read_text(struct config *c, struct str text, struct str file, bool is_for_edit,
                      bool *ret_is_known, struct error *err)
{
    struct arena *scratch = arena_new(DOCUMENT_MAX);
    struct reading r = {.config = c, .is_for_edit = is_for_edit};
    struct js_fault fault;
    struct js_doc doc;
    struct js_binding b = {.mem = c->mem,
                           .file = file,
                           .code = ERR_CONFIG,
                           .null_is_absent = true,
                           .seen = note_seen,
                           .text = expand_text,
                           .forgives = is_unexpanded};
    bool ok;

    r.notes_end = &r.notes;
    b.doc = &doc;
    b.user = &r;
    if (js_parse(text, &js_limits_config, scratch, &doc, &fault))
        ok = read_root(&b, err);
    else
        ok = syntax_fault(text, file, &fault, err);
    ok = ok && profiles_finish(&b, err);
    if (ok)
        notes_finish(&r);
    *ret_is_known = !r.unexpanded;
    arena_free(scratch);
    return ok;
}

static bool apply_flags(struct config *c, const struct config_source *source, struct error *err)
{
    if (!source || !source->listen.p)
        return true;
    if (!value_check_listen(source->listen, &c->listens_on_loopback, err))
        return error_wrap(err, "--listen");
    c->listen = arena_dup(c->mem, source->listen);
    c->listen_at = STR_NONE; /* the value comes from the flag, not from the file */
    return true;
}

bool config_parse(struct str text, struct str file, const struct config_source *source,
                  struct config **ret, struct error *err)
{
    struct config *c;

    if (text.n > CONFIG_FILE_MAX)
        return error_set(err, ERR_CONFIG, "%.*s is larger than 1 MiB; shorten it", STR_ARG(file));
    if (str_starts(text, STR("\xef\xbb\xbf"))) /* a byte order mark, as some editors write it */
        text = str_n(text.p + 3, text.n - 3);
    c = config_new();
    c->file = arena_dup(c->mem, file);
    bool is_for_edit = source && source->is_for_edit, is_known = true;
    if (!(text.p == NULL || read_text(c, text, file, is_for_edit, &is_known, err)) ||
        !apply_flags(c, source, err) || !issuers_finish(c, err) ||
        (is_known && !exposure_check(c, err) &&
         !(file.p && error_wrap(err, "%.*s", STR_ARG(c->listen_at.p ? c->listen_at : file))))) {
        config_unref(c);
        return false;
    }
    servers_finish(c);
    limits_finish(c);
    *ret = c;
    return true;
}
