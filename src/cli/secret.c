/* SPDX-License-Identifier: Apache-2.0 */
/* Values go from the terminal, a file or standard input straight into a request, never through argv
 * or the environment.  The terminal is asked on /dev/tty (hidden_line.h). */
#include "cli/secret.h"

#include "base/log.h"
#include "cli/hidden_line.h"
#include "json/write.h"

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

/* "Value of NAME (description): " */
static void write_prompt(struct buf *out, struct str name, struct str description)
{
    buf_addf(out, "Value of %.*s", STR_ARG(name));
    if (description.n) {
        buf_addz(out, " (");
        log_escape(out, description, 200);
        buf_addz(out, ")");
    }
    buf_addz(out, ", not shown: ");
}

bool secret_read_terminal(struct str name, struct str description, struct buf *out,
                          struct error *err)
{
    struct hidden_line line;
    struct buf prompt;

    if (!hidden_line_open(&line, err))
        return error_set(err, ERR_BAD_INPUT,
                         "there is no terminal to ask for %.*s on; use `holdfast secret set %.*s "
                         "--value-file FILE`",
                         STR_ARG(name), STR_ARG(name));
    buf_init(&prompt, SIZE_MAX / 4);
    write_prompt(&prompt, name, description);
    bool ok = hidden_line_ask(&line, buf_str(&prompt), out, err);
    hidden_line_close(&line);
    buf_release(&prompt);
    if (!ok && err->code == ERR_TOO_LARGE)
        return error_set(err, ERR_BAD_INPUT, "a secret has at most %u bytes",
                         CONFIG_SECRET_BYTES_MAX);
    return ok && (out->n || error_set(err, ERR_BAD_INPUT, "the secret is empty; give a value"));
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
