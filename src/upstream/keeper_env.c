/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of children: a fixed list of names from Holdfast's own environment, the names in
 * "inherit_env" of the server, and the variables that the configuration sets for that server.
 * Nothing else: Holdfast's settings, store addresses and credentials are not passed on. */
#include "upstream/keeper_env.h"
#include "upstream/keeper_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A '*' at one end matches any text. */
static const char *const inherited_names[] = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "SHELL",
    "TERM",
    "XDG_*",
    /* Needed to download packages behind a proxy. */
    "*_PROXY",
    "*_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CURL_CA_BUNDLE",
    "npm_config_noproxy",
    "npm_config_cafile",
    "NPM_CONFIG_NOPROXY",
    "NPM_CONFIG_CAFILE",
    "PIP_CERT",
};
/* No pattern matches these; "inherit_env" may name them in full. */
static const char *const our_names[] = {"HOLDFAST_*", "DATABASE_URL", "REDIS_URL"};
/* Variables that servers often need, for the hint when a server does not start; the likeliest
 * first. */
static const char *const wanted_names[] = {
    "*_TOKEN",
    "*_API_KEY",
    "*_ACCESS_KEY",
    "*_ACCESS_KEY_ID",
    "*_SECRET",
    "*_PASSWORD",
    "*_CREDENTIALS",
    "AWS_PROFILE",
    "AWS_REGION",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "KUBECONFIG",
    "SSH_AUTH_SOCK",
    "JAVA_HOME",
    "NVM_DIR",
    "npm_config_registry",
    "NPM_CONFIG_REGISTRY",
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "PLAYWRIGHT_BROWSERS_PATH",
};
#define HINTED_MAX 8 /* names in one hint */

static struct str name_of(const char *pair)
{
    return str_n(pair, strcspn(pair, "="));
}

static bool name_matches(struct str name, struct str pattern)
{
    size_t n = pattern.n - 1;

    if (pattern.p[0] == '*')
        return name.n > n && memcmp(name.p + name.n - n, pattern.p + 1, n) == 0;
    if (pattern.p[n] == '*')
        return name.n > n && memcmp(name.p, pattern.p, n) == 0;
    return str_eq(name, pattern);
}

static bool is_among(struct str name, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name_matches(name, str_of(patterns[i])))
            return true;
    return false;
}

static bool is_inherited(struct str name)
{
    return is_among(name, inherited_names, countof(inherited_names)) &&
           !is_among(name, our_names, countof(our_names));
}

/* True when "inherit_env" of this server names it. */
static bool is_asked_for(struct str name, const struct server_config *s)
{
    for (size_t i = 0; i < s->n_inherit_env; i++)
        if (str_eq(name, s->inherit_env[i]) || (name_matches(name, s->inherit_env[i]) &&
                                                !is_among(name, our_names, countof(our_names))))
            return true;
    return false;
}

char **child_env_save(void)
{
    size_t n = 0, kept = 0;
    while (environ && environ[n])
        n++;
    char **saved = xcalloc(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        if (!is_inherited(name_of(environ[i])))
            continue;
        size_t size = strlen(environ[i]) + 1;
        saved[kept] = xmalloc(size);
        memcpy(saved[kept++], environ[i], size);
    }
    return saved;
}

static bool env_same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strncmp(a, b, n) == 0 && b[n] == '=';
}

char **child_env_build(char **saved, char **declared, size_t n_declared)
{
    size_t n_saved = 0, n = 0;
    while (saved[n_saved])
        n_saved++;
    char **env = xcalloc(n_saved + n_declared + 1, sizeof(char *));
    for (size_t i = 0; i < n_saved + n_declared; i++) {
        char *pair = i < n_saved ? saved[i] : declared[i - n_saved];
        size_t at = 0;
        while (at < n && !env_same_name(pair, env[at]))
            at++;
        env[at] = pair;
        n += at == n;
    }
    return env;
}

size_t child_env_each_asked(const struct server_config *s,
                            bool (*take)(void *arg, struct str name, struct str value), void *arg)
{
    size_t n = 0;

    for (char **e = environ; e && *e && s->n_inherit_env; e++) {
        struct str name = name_of(*e);
        if (!name.n || name.p[name.n] != '=' || !is_asked_for(name, s))
            continue;
        n++;
        if (!take(arg, name, str_of(name.p + name.n + 1)))
            break;
    }
    return n;
}

static bool is_declared(struct str name, const struct server_config *s)
{
    for (size_t i = 0; i < s->n_env; i++)
        if (str_eq(name, s->env[i].name))
            return true;
    return false;
}

static bool is_missed(struct str name, const struct server_config *s)
{
    return !is_inherited(name) && !is_among(name, our_names, countof(our_names)) &&
           !is_asked_for(name, s) && !is_declared(name, s);
}

void child_env_hint(const struct server_config *s, char *ret_text, size_t size)
{
    size_t at = 0, n = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < countof(wanted_names); i++)
        for (char **e = environ; e && *e && n < HINTED_MAX; e++) {
            struct str name = name_of(*e);
            if (!name_matches(name, str_of(wanted_names[i])) || !is_missed(name, s) ||
                at + name.n + 3 > size)
                continue;
            at += (size_t)snprintf(ret_text + at, size - at, "%s%.*s", n++ ? ", " : "",
                                   STR_ARG(name));
        }
}
