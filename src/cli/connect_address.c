/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect_address.h"

#include "cli/our_entry.h"
#include "config/config.h"
#include "http/client.h"
#include "http/codec.h"
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

/* "0.0.0.0:4653" and "[::]:4653" are all addresses of the machine, and so none of a client. */
static bool is_wildcard(struct str base)
{
    struct str host = base;

    str_split(&host, '/'), str_split(&host, '/');
    return str_starts(host, STR("0.0.0.0:")) || str_starts(host, STR("[::]:"));
}

/* As the page at / shows it: public_url, else the address of the running Holdfast, else
 * `listen`. */
static bool base_of_config(struct cli *cli, struct connect_address *a, struct str *ret,
                           struct error *err)
{
    struct config_source source = {.file = str_of(cli_flag(cli, "--config"))};
    struct config *config = NULL;
    struct our_addresses ours;

    if (!config_load(&source, &config, err))
        return false;
    a->needs_key = config->auth_required && !a->has_key;
    config_unref(config);
    ours = our_addresses_find(cli);
    *ret = ours.public_url.n ? ours.public_url : ours.running.n ? ours.running : ours.listen;
    return !is_wildcard(*ret) ||
           error_set(err, ERR_CONFIG,
                     "Holdfast listens on all addresses (%.*s), and a client needs one: set "
                     "public_url in the configuration, or give --url with a name of this machine",
                     STR_ARG(*ret));
}

static bool find_key(bool *ret, struct error *err)
{
    const char *key = getenv("HOLDFAST_KEY");

    *ret = key != NULL;
    return !key || (*key && !strpbrk(key, " \r\n\t")) ||
           error_set(err, ERR_USAGE,
                     "HOLDFAST_KEY does not contain a key; make one with `holdfast key create`");
}

/* As a part of a path; "" for NULL. */
static struct str encoded(const char *name, struct arena *mem)
{
    struct str text = name ? str_of(name) : STR("");
    char *out = arena_alloc(mem, text.n * 3 + 1);

    return str_n(out, http_percent_encode(text, out));
}

bool connect_address(struct cli *cli, const struct client *client, struct connect_address *ret,
                     struct error *err)
{
    const char *server = cli_flag(cli, "--server"), *profile = cli_flag(cli, "--profile");
    struct str given = str_of(cli_flag(cli, "--url")), base = STR_NONE;
    struct connect_address a = {0};

    if (!client->url_key)
        return error_set(err, ERR_USAGE,
                         "%s takes no addresses in its file; leave --http and --url out, then it "
                         "starts holdfast stdio",
                         client->title);
    if (!find_key(&a.has_key, err) ||
        !(given.p ? base_of_url(given, cli->mem, &base, err) : base_of_config(cli, &a, &base, err)))
        return false;
    a.url = arena_printf(cli->mem, "%.*s/mcp%s%.*s", STR_ARG(base),
                         server    ? "/"
                         : profile ? "/p/"
                                   : "",
                         STR_ARG(encoded(server ? server : profile, cli->mem)));
    *ret = a;
    return true;
}
