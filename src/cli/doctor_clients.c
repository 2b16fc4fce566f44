/* SPDX-License-Identifier: Apache-2.0 */
/* Which MCP clients of this user are configured, whether they name Holdfast, and whether the entry
 * leads here.  The files of clients may hold secrets, so only our entries are shown. */
#include "cli/doctor.h"

#include "cli/clients.h"
#include "config/edit.h"
#include "config/snippet.h"
#include "json/read.h"

#include <stdio.h>
#include <unistd.h>

#define REACH_MS 3000

struct client_entry {
    const struct client *client;
    struct str file;
    struct js_doc doc; /* the entry */
    struct str command, url;
};

static bool is_ours(const struct doctor *d, struct client_entry *e)
{
    const struct js_node *command = js_get(&e->doc, js_root(&e->doc), STR("command"));

    e->command = arena_dup(d->mem, js_text(&e->doc, command, d->mem));
    e->url = our_entry_url(&e->doc, d->mem);
    return our_entry_is(&e->doc, &d->ours, d->mem);
}

static struct str connect_fix(const struct doctor *d, const struct client *c)
{
    return arena_printf(d->mem, "connect it: holdfast connect %s", c->name);
}

/* The program is started by the client, whose PATH may be another one. */
static void say_command(struct doctor *d, const struct client_entry *e)
{
    const char *fix = arena_printf(d->mem,
                                   "write the entry anew: holdfast disconnect %s, then "
                                   "holdfast connect %s",
                                   e->client->name, e->client->name)
                          .p;

    if (e->command.p[0] != '/')
        doctor_say(d, DOCTOR_WARNING, fix,
                   "%s names Holdfast, but starts \"%.*s\" from its own PATH, which may not have "
                   "it (%.*s)",
                   e->client->title, STR_ARG(e->command), STR_ARG(e->file));
    else if (access(e->command.p, X_OK) != 0)
        doctor_say(d, DOCTOR_FAILURE, fix,
                   "%s names Holdfast, but %.*s is not a program that can be started (%.*s)",
                   e->client->title, STR_ARG(e->command), STR_ARG(e->file));
    else
        doctor_say(d, DOCTOR_OK, NULL, "%s names Holdfast and starts %.*s stdio (%.*s)",
                   e->client->title, STR_ARG(e->command), STR_ARG(e->file));
}

static void say_url(struct doctor *d, const struct client_entry *e)
{
    struct str path = e->url, origin, json;
    struct control *control = NULL;
    struct error err;

    str_split(&path, '/'), str_split(&path, '/'), str_split(&path, '/');
    origin = path.p ? str_n(e->url.p, (size_t)(path.p - e->url.p) - 1) : e->url;
    if (!control_open_url(arena_dup(d->mem, origin), NULL, &control, &err)) {
        doctor_say(d, DOCTOR_WARNING, "check the address, and that Holdfast runs",
                   "%s names Holdfast at %.*s, which was not tried: %s", e->client->title,
                   STR_ARG(e->url), err.text);
        return;
    }
    control_set_deadline(control, REACH_MS);
    if (control_get(control, STR("/healthz"), d->mem, &json, &err))
        doctor_say(d, DOCTOR_OK, NULL, "%s names Holdfast and reaches it at %.*s (%.*s)",
                   e->client->title, STR_ARG(e->url), STR_ARG(e->file));
    else
        doctor_say(d, DOCTOR_FAILURE, "start Holdfast: `holdfast start`, or correct the address",
                   "%s names Holdfast at %.*s, which does not answer: %s", e->client->title,
                   STR_ARG(e->url), err.text);
    control_close(control);
}

static void look_at_entries(struct doctor *d, const struct client *c, struct str file,
                            const struct snippet_server *servers, size_t n)
{
    bool found = false;

    for (size_t i = 0; i < n; i++) {
        struct client_entry e = {.client = c, .file = file};
        if (!js_parse(servers[i].json, &js_limits_config, d->mem, &e.doc, NULL) || !is_ours(d, &e))
            continue;
        found = true;
        if (e.command.p)
            say_command(d, &e);
        else
            say_url(d, &e);
    }
    if (!found)
        doctor_say(d, DOCTOR_WARNING, connect_fix(d, c).p, "%s does not name Holdfast (%.*s)",
                   c->title, STR_ARG(file));
}

/* Whether the client has a file. */
static bool look_at_client(struct doctor *d, const struct client *c)
{
    struct snippet_server *servers = NULL;
    struct str path = STR_NONE;
    struct error err;
    bool exists = false;
    struct buf text;
    size_t n = 0;

    if (!client_file(c, d->mem, &path, &err))
        return false;
    buf_init_secret(&text, SIZE_MAX);
    bool ok = config_edit_read(path.p, &text, &exists, &err) &&
              (str_trim(buf_str(&text)).n == 0 ||
               snippet_read(buf_str(&text), d->mem, &servers, &n, &err));
    if (!ok)
        doctor_say(d, DOCTOR_WARNING, "correct the file; the client cannot read it either",
                   "the file of %s, %.*s, cannot be read: %s", c->title, STR_ARG(path), err.text);
    else if (exists)
        look_at_entries(d, c, path, servers, n);
    buf_release(&text);
    return exists || !ok;
}

void doctor_clients(struct doctor *d)
{
    unsigned found = 0;

    d->ours = our_addresses_of(d->config, d->mem);
    if (d->source.control && !d->source.local)
        d->ours.running = our_running_url(d->source.control, d->mem);
    for (const struct client *c = clients; c->name; c++)
        found += look_at_client(d, c);
    if (!found)
        doctor_say(d, DOCTOR_OK, NULL, "no configuration file of a known client was found");
    doctor_clients_seen(d);
}
