/* SPDX-License-Identifier: Apache-2.0 */
/* Notes: keys that are accepted but have no effect.  Holdfast logs them once at start instead of
 * ignoring them silently.  One note covers all server entries with the key and names the first
 * few. */
#include "config/config_impl.h"

#include <stdarg.h>
#include <stdio.h>

#define SERVERS_NAMED 5

static struct note *append(struct reading *r)
{
    struct note *n = arena_new_of(r->config->mem, struct note);

    *r->notes_end = n;
    r->notes_end = &n->next;
    r->config->n_notes++;
    return n;
}

void note_add(struct reading *r, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    append(r)->text = arena_dup(r->config->mem, str_of(text));
}

void note_at(const struct js_binding *b, const struct js_node *at, const char *fmt, ...)
{
    unsigned line, column;
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (!b->file.p || !at) {
        note_add(reading_of(b), "%s", text);
        return;
    }
    js_position(b->doc->text, at->start, &line, &column);
    note_add(reading_of(b), "%.*s:%u:%u: %s", STR_ARG(b->file), line, column, text);
}

static void note_key_of_server(struct reading *r, const struct js_field *f)
{
    struct note *n = r->notes;

    while (n && n->field != f)
        n = n->next;
    if (!n) {
        n = append(r);
        n->field = f;
        n->text = r->server;
    } else if (n->n_servers < SERVERS_NAMED) {
        n->text = arena_printf(r->config->mem, "%.*s, %.*s", STR_ARG(n->text), STR_ARG(r->server));
    }
    n->n_servers++;
}

void note_seen(const struct js_binding *b, const struct js_field *f,
               const struct js_node *key unused_arg)
{
    struct reading *r = reading_of(b);

    if (f->kind != JS_BIND_IGNORED && !f->data)
        return;
    if (r->server.p)
        note_key_of_server(r, f);
    else
        note_add(r, "\"%s\" is accepted but not used yet", (const char *)f->data);
}

static struct str note_text(struct reading *r, const struct note *n)
{
    struct arena *mem = r->config->mem;
    struct str more = STR("");

    if (!n->field)
        return n->text;
    if (n->n_servers > SERVERS_NAMED)
        more = arena_printf(mem, " and %zu more", n->n_servers - SERVERS_NAMED);
    return arena_printf(mem, "\"%s\" of %s %.*s%.*s %s", n->field->name,
                        n->n_servers > 1 ? "servers" : "server", STR_ARG(n->text), STR_ARG(more),
                        n->field->data ? "is accepted but not used yet"
                                       : "is a key of other clients and has no effect here");
}

void notes_finish(struct reading *r)
{
    struct config *c = r->config;
    size_t at = 0;

    c->notes = arena_zalloc(c->mem, c->n_notes * sizeof(*c->notes));
    for (const struct note *n = r->notes; n; n = n->next)
        c->notes[at++] = note_text(r, n);
}
