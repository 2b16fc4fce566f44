/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of a configuration.  A service manager passes ${credential:NAME} as a file (systemd:
 * LoadCredential=).  Secrets may also be written in the configuration file itself; then other users
 * should not be able to read the file. */
#include "config/config_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MOST 255 /* the maximum of systemd */

bool credential_is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c >= 0x7f || c == '/' || c == ':')
            return false;
    }
    return s.n > 0 && s.n <= NAME_MOST && s.p[0] != '.';
}

static bool read_all(int fd, struct buf *out)
{
    char piece[4096];
    size_t before = out->n;
    bool ok = true;
    ssize_t n = 1;

    while (ok && n != 0) {
        n = read(fd, piece, sizeof(piece));
        ok = n >= 0 ? buf_try_add(out, piece, (size_t)n) : errno == EINTR;
    }
    explicit_bzero(piece, sizeof(piece));
    /* Editors end the last line of a file with a newline. */
    if (ok && out->n > before && out->p[out->n - 1] == '\n')
        out->p[--out->n] = '\0';
    return ok;
}

const char *credential_add(struct str name, struct buf *out)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    char path[PATH_MAX];
    struct stat st;

    if (!credential_is_name(name))
        return "is not the name of a credential; write ${credential:NAME} with a plain file name";
    if (!dir || !*dir)
        return "cannot be read, because CREDENTIALS_DIRECTORY is not set; start Holdfast as a "
               "service with LoadCredential=, or set the variable";
    if ((size_t)snprintf(path, sizeof(path), "%s/%.*s", dir, STR_ARG(name)) >= sizeof(path))
        return "has too long a path; use a shorter CREDENTIALS_DIRECTORY";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return "cannot be read from CREDENTIALS_DIRECTORY; add a LoadCredential= for it";
    bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    bool ok = is_file && read_all(fd, out);
    close(fd);
    return ok        ? NULL
           : is_file ? "is longer than a value may be; shorten it"
                     : "is not a regular file in CREDENTIALS_DIRECTORY; put one there";
}

/* Parts of names that mark a secret, in lower case without separators. */
static const char *const secret_words[] = {
    "auth",     "apikey",     "bearer",     "cookie", "credential", "passwd",
    "password", "passphrase", "privatekey", "secret", "signature",  "token",
};

bool credential_is_named(struct str name)
{
    char plain[128];
    size_t n = 0;

    for (size_t i = 0; i < name.n && n < sizeof(plain) - 1; i++) {
        char c = name.p[i];
        if (c != '_' && c != '-' && c != '.')
            plain[n++] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    for (size_t i = 0; i < countof(secret_words); i++)
        if (memmem(plain, n, secret_words[i], strlen(secret_words[i])))
            return true;
    return n >= 3 && memcmp(plain + n - 3, "key", 3) == 0;
}

void credential_note_literal(const struct js_binding *b, struct str name, const struct js_node *v)
{
    struct reading *r = reading_of(b);
    struct str raw = js_raw(b->doc, v);

    if (r->config->literal_secret.p || raw.n <= 2 || memmem(raw.p, raw.n, "${", 2) ||
        !credential_is_named(name))
        return;
    r->config->literal_secret =
        r->server.p ? arena_printf(b->mem, "\"%.*s\" of %s\"%.*s\"", STR_ARG(name),
                                   r->is_outward ? "" : "the server ", STR_ARG(r->server))
                    : arena_printf(b->mem, "\"%.*s\"", STR_ARG(name));
}

void credential_check_mode(struct config *c, unsigned mode)
{
    if (!c->literal_secret.p || !(mode & (S_IRGRP | S_IROTH)))
        return;
    c->warning =
        arena_printf(c->mem,
                     "%.*s can be read by other users and contains secrets (%.*s): run chmod 600 "
                     "on it, or write the secrets as ${VARIABLE} or ${credential:NAME}",
                     STR_ARG(c->file), STR_ARG(c->literal_secret));
}
