/* SPDX-License-Identifier: Apache-2.0 */
/* Values go from the terminal, a file or standard input straight into a request, never through argv
 * or the environment.  The terminal is asked on /dev/tty with echo off. */
#include "cli/secret.h"

#include "base/log.h"
#include "crypto/hash.h"
#include "json/write.h"

#include <errno.h>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

bool secret_put(struct cli *cli, struct source *s, struct str name, struct str value,
                struct error *err)
{
    struct str answer;
    struct js_writer w;
    struct buf body;

    buf_init_secret(&body, SIZE_MAX / 4);
    js_begin(&w, &body);
    js_object(&w);
    js_kv_string(&w, "value", value);
    js_object_end(&w);
    bool ok = control_ask(
        s->control, "PUT",
        arena_printf(cli->mem, "/api/v1/secrets/%.*s", STR_ARG(source_encoded(name, cli->mem))),
        buf_str(&body), cli->mem, &answer, err);
    buf_release(&body);
    return ok;
}

bool secret_remove(struct cli *cli, struct source *s, struct str name, struct error *err)
{
    struct str answer;

    return control_ask(
        s->control, "DELETE",
        arena_printf(cli->mem, "/api/v1/secrets/%.*s", STR_ARG(source_encoded(name, cli->mem))),
        STR_NONE, cli->mem, &answer, err);
}

bool secret_can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static void say(int tty, struct str text)
{
    if (write(tty, text.p, text.n) < 0)
        return; /* a prompt that cannot be written is left out */
}

static bool read_line(int tty, struct buf *out, struct error *err)
{
    char byte = 0;

    for (;;) {
        ssize_t got = read(tty, &byte, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_sys(err, ERR_BAD_INPUT, errno, "the secret cannot be read");
        if (got == 0 || byte == '\n')
            break;
        if (!buf_try_add(out, &byte, 1))
            return error_set(err, ERR_BAD_INPUT, "a secret has at most %u bytes",
                             CONFIG_SECRET_BYTES_MAX);
    }
    return out->n || error_set(err, ERR_BAD_INPUT, "the secret is empty; give a value");
}

/* "Value of NAME (description): " */
static void prompt(int tty, struct str name, struct str description)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 4);
    buf_addf(&text, "Value of %.*s", STR_ARG(name));
    if (description.n) {
        buf_addz(&text, " (");
        log_escape(&text, description, 200);
        buf_addz(&text, ")");
    }
    buf_addz(&text, ", not shown: ");
    say(tty, buf_str(&text));
    buf_release(&text);
}

bool secret_read_terminal(struct str name, struct str description, struct buf *out,
                          struct error *err)
{
    struct termios before, quiet;
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (tty < 0 || tcgetattr(tty, &before) != 0) {
        if (tty >= 0)
            close(tty);
        return error_set(err, ERR_BAD_INPUT,
                         "there is no terminal to ask for %.*s on; use `holdfast secret set %.*s "
                         "--value-file FILE`",
                         STR_ARG(name), STR_ARG(name));
    }
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(tty, TCSAFLUSH, &quiet); /* before the prompt: it discards what was typed so far */
    prompt(tty, name, description);
    bool ok = read_line(tty, out, err);
    tcsetattr(tty, TCSAFLUSH, &before);
    say(tty, STR("\n"));
    close(tty);
    return ok;
}

bool secret_ask(struct cli *cli, struct str name, struct str description, struct error *err)
{
    struct source s = {0};
    struct buf value;

    if (!secret_can_ask())
        return error_set(err, ERR_BAD_INPUT,
                         "the secret %.*s is not set, and there is no terminal to ask on; run "
                         "`holdfast secret set %.*s --value-file FILE`",
                         STR_ARG(name), STR_ARG(name));
    buf_init_secret(&value, CONFIG_SECRET_BYTES_MAX);
    bool ok = secret_read_terminal(name, description, &value, err) &&
              source_open(cli, SOURCE_CHANGES, &s, err) &&
              secret_put(cli, &s, name, buf_str(&value), err);
    source_close(&s);
    buf_release(&value);
    return ok;
}

/* *ret: the answer of GET /api/v1/secrets; absent: nothing is stored yet. */
static bool list_names(struct cli *cli, struct js_doc *ret, bool *ret_any, struct error *err)
{
    struct source s = {0};
    struct str json;

    bool opened = source_open(cli, SOURCE_READS, &s, err);
    *ret_any = opened;
    bool ok = opened ? control_get(s.control, STR("/api/v1/secrets"), cli->mem, &json, err) &&
                           source_parse(json, cli->mem, ret, err)
                     : err->code == ERR_NOT_FOUND;
    source_close(&s);
    return ok;
}

static bool is_listed(const struct js_doc *doc, struct str name)
{
    const struct js_node *list = js_get(doc, js_root(doc), STR("secrets"));

    for (const struct js_node *e = js_first(doc, list); e; e = js_next(doc, list, e))
        if (js_is(doc, js_get(doc, e, STR("name")), name))
            return true;
    return false;
}

bool secret_is_set(struct cli *cli, struct str name, bool *ret, struct error *err)
{
    struct js_doc doc;
    bool any;

    if (!list_names(cli, &doc, &any, err))
        return false;
    *ret = any && is_listed(&doc, name);
    return true;
}

static bool is_earlier(const struct config *c, size_t server, size_t use)
{
    struct str name = c->servers[server].secrets[use].name;

    for (size_t i = 0; i < server; i++)
        for (size_t k = 0; k < c->servers[i].n_secrets; k++)
            if (c->servers[i].secrets[k].is_input && str_eq(c->servers[i].secrets[k].name, name))
                return true;
    return false;
}

bool secret_ask_inputs(struct cli *cli, const struct config *config, struct error *err)
{
    struct js_doc doc;
    bool any = false, is_read = false;

    if (!secret_can_ask())
        return true;
    for (size_t i = 0; i < config->n_servers; i++)
        for (size_t k = 0; k < config->servers[i].n_secrets; k++) {
            const struct secret_use *use = &config->servers[i].secrets[k];
            if (!use->is_input || is_earlier(config, i, k))
                continue;
            if (!is_read && !list_names(cli, &doc, &any, err))
                return false;
            is_read = true;
            if ((!any || !is_listed(&doc, use->name)) &&
                !secret_ask(cli, use->name, config_input_description(config, use->name), err))
                return false;
        }
    return true;
}
