/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect_address.h"

#include "config/config.h"
#include "http/client.h"
#include "identity/identity.h"

#include <stdio.h>
#include <stdlib.h>

/* https://host, https://host/ and https://host/mcp name the same Holdfast. */
static bool base_of_url(struct str text, struct arena *mem, struct str *ret, struct error *err)
{
    struct http_url url;

    while (text.n && text.p[text.n - 1] == '/')
        text.n--;
    if (str_ends(text, STR("/mcp")))
        text.n -= 4;
    if (!http_url_parse(text, &url, err))
        return error_wrap(err, "--url");
    if (str_find(text, '?') < text.n || str_find(text, '#') < text.n ||
        str_find(text, '@') < text.n)
        return error_set(err, ERR_USAGE,
                         "--url is the address of Holdfast without a query or a password, such as "
                         "https://mcp.example; a key goes into HOLDFAST_KEY");
    if (!url.is_tls && !host_is_loopback(url.host))
        fprintf(stderr, "holdfast: warning: http:// sends keys and results unencrypted; ask for "
                        "the https:// address\n");
    *ret = arena_dup(mem, text);
    return true;
}

static bool base_of_config(struct cli *cli, struct str *ret, struct error *err)
{
    struct config_source source = {.file = str_of(cli_flag(cli, "--config"))};
    struct config *config = NULL;

    if (!config_load(&source, &config, err))
        return false;
    *ret = arena_printf(cli->mem, "http%s://%.*s", config->tls_cert.p ? "s" : "",
                        STR_ARG(config->listen));
    config_unref(config);
    return true;
}

static bool find_key(bool *ret, struct error *err)
{
    const char *key = getenv("HOLDFAST_KEY");

    *ret = key != NULL;
    return !key || (*key && !strpbrk(key, " \r\n\t")) ||
           error_set(err, ERR_USAGE,
                     "HOLDFAST_KEY does not contain a key; make one with `holdfast key create`");
}

bool connect_address(struct cli *cli, const struct client *client, struct connect_address *ret,
                     struct error *err)
{
    const char *server = cli_flag(cli, "--server"), *profile = cli_flag(cli, "--profile");
    struct str given = str_of(cli_flag(cli, "--url")), base = STR_NONE;

    if (!client->url_key)
        return error_set(err, ERR_USAGE,
                         "%s takes no addresses in its file; leave --http and --url out, then it "
                         "starts holdfast stdio",
                         client->title);
    if (!find_key(&ret->has_key, err) ||
        !(given.p ? base_of_url(given, cli->mem, &base, err) : base_of_config(cli, &base, err)))
        return false;
    ret->url = arena_printf(cli->mem, "%.*s/mcp%s%s", STR_ARG(base),
                            server    ? "/"
                            : profile ? "/p/"
                                      : "",
                            server    ? server
                            : profile ? profile
                                      : "");
    return true;
}
