/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the configuration.  What is accepted keeps its promises: at least one server,
 * names that can stand in a URL, one kind of endpoint each, loopback only; and what is printed of
 * it is read again.  What is refused says where and why. */
#include "config/config_impl.h"

#include <stdlib.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_server(const struct config *c, const struct server_config *s)
{
    check(config_server(c, s->name) == s);
    check(value_is_name(s->name) && !memmem(s->name.p, s->name.n, "__", 2));
    check((s->kind == SERVER_STDIO) == (s->command.p != NULL));
    check((s->kind == SERVER_HTTP) == (s->url.p != NULL));
    check(s->kind != SERVER_BUILTIN || c->n_servers == 1);
    check(s->timeout_ms > 0);
    for (size_t i = 0; i < s->n_headers; i++) {
        check(value_is_header_name(s->headers[i].name));
        check(!memchr(s->headers[i].value.p, '\n', s->headers[i].value.n));
    }
}

static void check_written(const struct config *c)
{
    struct config *again;
    struct error err;
    struct buf out;

    buf_init(&out, SIZE_MAX);
    config_write(c, &out);
    /* Indentation may make it longer than what is taken. */
    if (out.n <= CONFIG_FILE_MAX) {
        check(config_parse(buf_str(&out), STR("again.json"), NULL, &again, &err));
        check(again->n_servers == c->n_servers && again->n_notes <= c->n_notes);
        config_unref(again);
    }
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {size ? (const char *)data : "", size};
    struct error err = {0};
    struct config *c;
    bool is_loopback = false;

    if (!config_parse(text, STR("f.json"), NULL, &c, &err)) {
        check(err.code == ERR_CONFIG && strncmp(err.text, "f.json", 6) == 0);
        return 0;
    }
    check(c->n_servers > 0 && value_check_listen(c->listen, &is_loopback, &err));
    check(is_loopback || (c->auth_required && (c->tls_cert.p || c->n_trusted_proxies)));
    for (size_t i = 0; i < c->n_servers; i++)
        check_server(c, &c->servers[i]);
    check_written(c);
    config_unref(c);
    return 0;
}
