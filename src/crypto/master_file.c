/* SPDX-License-Identifier: Apache-2.0 */
/* The file of master keys.  It is written to a temporary file beside its path, synced, and renamed:
 * a crash leaves the old file or the new one.  The first file is linked instead, so that two starts
 * never overwrite each other's key. */
#include "crypto/master_impl.h"

#include "base/buf.h"
#include "base/random.h"
#include "crypto/hash.h"
#include "crypto/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "hfmk1"
#define FILE_MAX 4096
#define LEAST_DISTINCT 17 /* 32 random bytes have about 30; sixteen bytes repeated have fewer */

/* Published keys, by their fingerprints: examples from standards. */
static const char *const published[] = {
    "4e9e4ac40d8d77fd", /* 603deb10…, NIST SP 800-38A */
    "cf4a76e6709036e7", /* feffe992…, the GCM specification */
};

static void fingerprint(const uint8_t key[MASTER_KEY_BYTES], char ret[MASTER_ID_TEXT])
{
    struct str parts[] = {STR("holdfast master key"), str_n((const char *)key, MASTER_KEY_BYTES)};
    uint8_t sha[SHA256_BYTES];
    sha256_parts(parts, countof(parts), sha);
    hex_encode(sha, (MASTER_ID_TEXT - 1) / 2, ret);
}

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c == '-' ? '+' : c == '_' ? '/' : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* 43 digits, with or without the padding. */
static bool decode_base64(struct str text, uint8_t ret[MASTER_KEY_BYTES])
{
    uint32_t bits = 0;
    size_t n = 0, held = 0;
    if (text.n == 44 && text.p[43] == '=')
        text.n = 43;
    if (text.n != 43)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        int value = base64_value(text.p[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            ret[n++] = (uint8_t)(bits >> held);
        }
    }
    return n == MASTER_KEY_BYTES && (bits & ((1u << held) - 1)) == 0;
}

/* Trims blanks and line ends. */
static struct str trim(struct str text)
{
    while (text.n && strchr(" \t\r\n", text.p[text.n - 1]))
        text.n--;
    while (text.n && strchr(" \t\r\n", text.p[0]))
        text = str_n(text.p + 1, text.n - 1);
    return text;
}

static const char *why_weak(const uint8_t key[MASTER_KEY_BYTES], const char *id)
{
    bool seen[256] = {false}, is_text = true, is_row = true;
    size_t distinct = 0;
    for (size_t i = 0; i < MASTER_KEY_BYTES; i++) {
        distinct += !seen[key[i]];
        seen[key[i]] = true;
        is_text = is_text && key[i] >= ' ' && key[i] < 0x7f;
        is_row = is_row && (i < 2 || (uint8_t)(key[i] - key[i - 1]) == (uint8_t)(key[1] - key[0]));
    }
    for (size_t i = 0; i < countof(published); i++)
        if (strcmp(published[i], id) == 0)
            return "has been published as an example";
    return is_row                      ? "is a plain sequence"
           : is_text                   ? "is a text"
           : distinct < LEAST_DISTINCT ? "repeats itself"
                                       : NULL;
}

/* Parses one key from one line. */
static bool parse_key(struct str line, struct master_key *ret, struct error *err)
{
    struct str rest = line, word = str_split(&rest, ' '), id = STR_NONE;
    if (str_eq(word, STR(PREFIX))) {
        id = str_split(&rest, ' ');
        line = trim(rest);
    }
    if (!hex_decode(line, ret->key, MASTER_KEY_BYTES) && !decode_base64(line, ret->key))
        return error_set(err, ERR_CONFIG,
                         "a master key is 32 random bytes as 64 hex digits or as base64; make one "
                         "with: openssl rand -hex 32");
    fingerprint(ret->key, ret->id);
    if (id.p && !str_eq(id, str_of(ret->id)))
        return error_set(err, ERR_CONFIG,
                         "a master key does not fit its id, so the file was damaged; restore it "
                         "from a backup");
    const char *weak = why_weak(ret->key, ret->id);
    return !weak || error_set(err, ERR_CONFIG,
                              "a master key %s, so others could guess it; make one with: openssl "
                              "rand -hex 32",
                              weak);
}

static bool parse_file(struct str text, struct master *m, struct error *err)
{
    while (text.p) {
        struct str line = trim(str_split(&text, '\n'));
        if (line.n == 0 || line.p[0] == '#')
            continue;
        if (m->n == MASTER_KEYS_MAX)
            return error_set(err, ERR_CONFIG, "there are more than %d master keys; remove the old",
                             MASTER_KEYS_MAX);
        struct master_key *k = &m->keys[m->n];
        if (!parse_key(line, k, err))
            return false;
        k->seal = seal_key_new(k->key);
        m->n++;
    }
    return m->n > 0 || error_set(err, ERR_CONFIG,
                                 "there is no master key in it; restore it from a "
                                 "backup");
}

struct str master_path(struct str data_dir, struct arena *mem, bool *ret_is_ours)
{
    const char *named = getenv("HOLDFAST_MASTER_KEY_FILE");
    struct str given = key_file_handed_over("holdfast-master-key", mem);
    *ret_is_ours = false;
    if (named && *named)
        return arena_dup(mem, str_of(named));
    if (given.p)
        return given;
    *ret_is_ours = true;
    return arena_printf(mem, "%.*s/master.key", STR_ARG(data_dir));
}

static bool path_fits(struct str path, char ret[PATH_MAX], struct error *err)
{
    if (path.n >= PATH_MAX)
        return error_set(err, ERR_CONFIG,
                         "the path of the master key is too long; use a shorter one");
    snprintf(ret, PATH_MAX, "%.*s", STR_ARG(path));
    return true;
}

static bool write_file(const char *path, struct str text, bool first, struct error *err)
{
    return key_file_put(path, text, first) ||
           error_sys(err, ERR_CONFIG, errno,
                     "the master key %s cannot be written; check that its directory is "
                     "writable",
                     path);
}

static void add_line(struct buf *out, const struct master_key *k)
{
    char hex[2 * MASTER_KEY_BYTES + 1];
    hex_encode(k->key, MASTER_KEY_BYTES, hex);
    buf_addf(out, PREFIX " %s %s\n", k->id, hex);
    crypto_wipe(hex, sizeof(hex));
}

static void wipe_text(struct buf *text)
{
    if (text->p)
        crypto_wipe(text->p, text->n);
    buf_release(text);
}

static bool make_first(const char *path, struct error *err)
{
    struct master_key fresh;
    struct buf text;
    buf_init(&text, FILE_MAX);
    (void)buf_room(&text, 256); /* so that it never moves, which would leave a copy */
    random_bytes(fresh.key, sizeof(fresh.key));
    fingerprint(fresh.key, fresh.id);
    add_line(&text, &fresh);
    bool ok = write_file(path, buf_str(&text), true, err);
    wipe_text(&text);
    crypto_wipe(&fresh, sizeof(fresh));
    return ok;
}

/* Checks the file before its content is read. */
static bool check_file(int fd, const char *path, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return error_sys(err, ERR_CONFIG, errno, "the master key %s cannot be read", path);
    if (!S_ISREG(st.st_mode))
        return error_set(err, ERR_CONFIG,
                         "the master key %s is no regular file; put the key file in its place",
                         path);
    if (st.st_mode & (key_is_handed_over(path) ? 007 : 077))
        return error_set(err, ERR_CONFIG,
                         "the master key %s can be read by others; run: chmod 600 %s", path, path);
    return key_file_check_owner(&st, path, err);
}

static bool read_file(int fd, const char *path, struct master *m, struct error *err)
{
    char text[FILE_MAX + 1];
    if (!check_file(fd, path, err))
        return false;
    ssize_t n = read(fd, text, sizeof(text));
    bool ok = n >= 0 && n <= FILE_MAX;
    if (!ok)
        error_set(err, ERR_CONFIG, "the master key cannot be read, or is longer than a key");
    ok = ok && parse_file(str_n(text, (size_t)n), m, err);
    crypto_wipe(text, sizeof(text));
    return ok || error_wrap(err, "%s", path);
}

bool master_load(struct str path, bool create, struct master **ret, struct error *err)
{
    char file[PATH_MAX];
    if (!path_fits(path, file, err))
        return false;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT && create) {
        if (!make_first(file, err))
            return false;
        fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    if (fd < 0)
        return error_sys(err, ERR_CONFIG, errno,
                         "the master key %s cannot be opened; restore it from a backup, or name "
                         "the right file",
                         file);
    struct master *m = master_new();
    bool ok = read_file(fd, file, m, err);
    close(fd);
    if (!ok) {
        master_free(m);
        return false;
    }
    *ret = m;
    return true;
}

bool master_check(struct str text, struct error *err)
{
    struct master_key k;
    bool ok = parse_key(trim(text), &k, err);
    crypto_wipe(&k, sizeof(k));
    return ok;
}

bool master_add(struct str path, struct str text, struct error *err)
{
    char file[PATH_MAX];
    struct master *m = NULL;
    struct master_key fresh;
    struct buf out;
    if (!path_fits(path, file, err) || !master_load(path, false, &m, err))
        return false;
    random_bytes(fresh.key, sizeof(fresh.key));
    fingerprint(fresh.key, fresh.id);
    bool ok = !text.p || parse_key(trim(text), &fresh, err);
    for (size_t i = 0; ok && i < m->n; i++)
        if (strcmp(m->keys[i].id, fresh.id) == 0)
            ok = error_set(err, ERR_CONFLICT, "this master key is in use already; give another");
    if (ok && m->n == MASTER_KEYS_MAX)
        ok = error_set(err, ERR_CONFLICT,
                       "there are too many old master keys; finish the rotation "
                       "under way first");
    buf_init(&out, FILE_MAX);
    (void)buf_room(&out, FILE_MAX / 2);
    add_line(&out, &fresh);
    for (size_t i = 0; i < m->n; i++)
        add_line(&out, &m->keys[i]);
    ok = ok && write_file(file, buf_str(&out), false, err);
    wipe_text(&out);
    crypto_wipe(&fresh, sizeof(fresh));
    master_free(m);
    return ok;
}

bool master_drop_old(struct str path, struct error *err)
{
    char file[PATH_MAX];
    struct master *m = NULL;
    struct buf out;
    if (!path_fits(path, file, err) || !master_load(path, false, &m, err))
        return false;
    buf_init(&out, FILE_MAX);
    (void)buf_room(&out, 256);
    add_line(&out, &m->keys[0]);
    bool ok = write_file(file, buf_str(&out), false, err);
    wipe_text(&out);
    master_free(m);
    return ok;
}
