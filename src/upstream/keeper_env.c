/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of children: a short list of names taken over from Holdfast's own, and what the
 * configuration declares for that server.  Nothing else: our settings, store addresses and
 * credentials stay here. */
#include "upstream/keeper_wire.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A trailing '*' means a prefix. */
static const char *const inherited_names[] = {
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_*", "TZ", "TMPDIR", "SHELL", "TERM", "XDG_*",
};

static bool env_is_inherited(const char *pair)
{
    size_t n = strcspn(pair, "=");
    for (size_t i = 0; i < countof(inherited_names); i++) {
        const char *name = inherited_names[i];
        size_t len = strlen(name);
        if (name[len - 1] == '*' ? n >= len && strncmp(pair, name, len - 1) == 0
                                 : n == len && strncmp(pair, name, len) == 0)
            return true;
    }
    return false;
}

char **child_env_save(void)
{
    size_t n = 0, kept = 0;
    while (environ && environ[n])
        n++;
    char **saved = xcalloc(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        if (!env_is_inherited(environ[i]))
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
