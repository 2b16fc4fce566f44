/* SPDX-License-Identifier: Apache-2.0 */
/* All or nothing: if one key cannot be loaded, the caller keeps its old keys. */
#include "identity/issuer_keys.h"

#include "base/buf.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_open(int fd, size_t max, struct buf *out, struct error *err)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return error_set(err, ERR_CONFIG, "it is not a regular file; name one");
    for (;;) {
        char *room = buf_room(out, 4096);
        if (!room)
            return error_set(err, ERR_CONFIG, "it is longer than %zu bytes; name another file",
                             max);
        n = read(fd, room, 4096);
        if (n == 0)
            return true;
        if (n > 0)
            buf_grown(out, (size_t)n);
        else if (errno != EINTR)
            return error_sys(err, ERR_CONFIG, errno, "it cannot be read");
    }
}

/* Regular files only: opening a FIFO must not block. */
static bool read_file(struct str path, size_t max, struct buf *out, struct error *err)
{
    int fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok;

    buf_init(out, max + 4096); /* extra room, to find the end of a file of exactly `max` bytes */
    ok = fd >= 0 ? read_open(fd, max, out, err)
                 : error_sys(err, ERR_CONFIG, errno, "it cannot be opened");
    if (fd >= 0)
        close(fd);
    if (ok && out->n > max)
        ok = error_set(err, ERR_CONFIG, "it is longer than %zu bytes; name another file", max);
    return ok || error_wrap(err, "%.*s", STR_ARG(path));
}

static bool add_pem(struct jwt_keys *keys, const struct issuer_key_config *key, enum jwt_alg alg,
                    struct error *err)
{
    struct buf text;
    bool ok = read_file(key->pem, ISSUER_PEM_MAX, &text, err) &&
              (jwt_keys_add_pem(keys, key->kid, alg, buf_str(&text), err) ||
               error_wrap(err, "%.*s", STR_ARG(key->pem)));

    buf_release(&text);
    return ok;
}

static bool add_key(struct jwt_keys *keys, const struct issuer_key_config *key, struct error *err)
{
    enum jwt_alg alg;
    bool ok;

    if (!jwt_alg_parse(key->alg, &alg))
        ok = error_set(err, ERR_CONFIG, "this \"alg\" is not known; use RS256 or ES256");
    else if (alg == JWT_HS256)
        ok = jwt_keys_add_secret(keys, key->kid, key->secret, err);
    else
        ok = add_pem(keys, key, alg, err);
    return ok || error_wrap(err, "%.*s", STR_ARG(key->at));
}

static bool add_set(struct jwt_keys *keys, const struct issuer_config *c, struct str json,
                    struct error *err)
{
    struct jwks_report report;

    if (!jwks_parse(json, keys, &report, err))
        return false;
    if (report.n_skipped)
        log_debug("keys of an issuer are not used", LS("issuer", c->issuer),
                  LI("count", report.n_skipped), LZ("first", report.why.text));
    return true;
}

static bool add_set_file(struct jwt_keys *keys, const struct issuer_config *c, struct error *err)
{
    struct buf text;
    bool ok = read_file(c->jwks, JWKS_BYTES_MAX, &text, err) &&
              (add_set(keys, c, buf_str(&text), err) || error_wrap(err, "%.*s", STR_ARG(c->jwks)));

    buf_release(&text);
    return ok || error_wrap(err, "%.*s", STR_ARG(c->jwks_at));
}

bool issuer_keys_make(const struct issuer_config *c, struct str set, struct jwt_keys **ret,
                      struct error *err)
{
    struct jwt_keys *keys = jwt_keys_new();
    bool ok = true;

    for (size_t i = 0; ok && i < c->n_keys; i++)
        ok = add_key(keys, &c->keys[i], err);
    if (ok && c->jwks.p && !c->jwks_is_url)
        ok = add_set_file(keys, c, err);
    else if (ok && set.p)
        ok = add_set(keys, c, set, err);
    if (!ok) {
        jwt_keys_free(keys);
        return false;
    }
    *ret = keys;
    return true;
}

static uint64_t mix(uint64_t mark, uint64_t value)
{
    return (mark ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (mark >> 29);
}

static uint64_t mix_file(uint64_t mark, struct str path)
{
    struct stat st;

    if (stat(path.p, &st) != 0)
        return mix(mark, 1);
    mark = mix(mark, st.st_ino);
    mark = mix(mark, (uint64_t)st.st_size);
    mark = mix(mark, (uint64_t)st.st_mtim.tv_sec);
    return mix(mark, (uint64_t)st.st_mtim.tv_nsec);
}

uint64_t issuer_keys_mark(const struct issuer_config *c)
{
    uint64_t mark = 0;

    if (c->jwks.p && !c->jwks_is_url)
        mark = mix_file(mark, c->jwks);
    for (size_t i = 0; i < c->n_keys; i++)
        if (c->keys[i].pem.p)
            mark = mix_file(mark, c->keys[i].pem);
    return mark;
}
