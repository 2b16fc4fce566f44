/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads the configuration file, and names the data directory.  A file that was named
 * explicitly must exist.  A candidate of the search may be missing, but an existing candidate that
 * cannot be read is an error: skipping it could skip the intended configuration.  The file of the
 * system service is the exception: other users may not read it, and it is not meant for them. */
#include "config/config_impl.h"

#include "crypto/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SERVICE_FILE "/etc/holdfast/holdfast.json"
#define SERVICE_DATA "/var/lib/holdfast"

/* XDG requires that relative paths in these variables are ignored. */
static struct str absolute_env(const char *name)
{
    struct str s = str_of(getenv(name));

    return s.n > 0 && s.p[0] == '/' ? s : STR_NONE;
}

/* $VARIABLE/rest, else $HOME/home_part/rest, else absent. */
static struct str xdg_path(struct arena *mem, const char *variable, const char *home_part,
                           const char *rest)
{
    struct str base = absolute_env(variable), home = absolute_env("HOME");

    if (base.p)
        return arena_printf(mem, "%.*s/%s", STR_ARG(base), rest);
    if (home.p)
        return arena_printf(mem, "%.*s/%s/%s", STR_ARG(home), home_part, rest);
    return STR_NONE;
}

/* A missing file sets *ret_missing and is not an error. */
static bool open_file(const char *path, int *ret_fd, bool *ret_missing, struct error *err)
{
    /* Non-blocking, so that opening a FIFO does not block. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    *ret_missing = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    if (*ret_missing)
        return true;
    if (fd < 0)
        return error_sys(err, ERR_CONFIG, errno, "cannot open %s", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return error_set(err, ERR_CONFIG, "%s is not a regular file; name one", path);
    }
    *ret_fd = fd;
    return true;
}

/* Reads to the end, or to one byte more than config_parse() accepts, so that config_parse() reports
 * the size. */
static bool read_all(int fd, const char *path, struct buf *out, struct error *err)
{
    for (;;) {
        size_t room = CONFIG_FILE_MAX + 1 - out->n;
        size_t want = room < 16384 ? room : 16384;
        ssize_t n = want ? read(fd, buf_room(out, want), want) : 0;
        if (n == 0)
            return true;
        if (n > 0)
            buf_grown(out, (size_t)n);
        else if (errno != EINTR)
            return error_sys(err, ERR_CONFIG, errno, "cannot read %s", path);
    }
}

/* Where the loaded file goes: into a configuration, or only into its identity. */
struct wanted {
    const struct config_source *source; /* may be NULL */
    struct arena *mem;
    struct config **config;           /* NULL: only the identity is wanted */
    struct config_identity *identity; /* NULL: use the identity in the configuration */
    struct str *text;                 /* NULL: the text is not wanted */
};

static void identify(const char *path, struct str text, struct arena *mem,
                     struct config_identity *ret)
{
    char *whole = realpath(path, NULL);
    uint8_t digest[SHA256_BYTES];

    ret->path = arena_dup(mem, str_of(whole ? whole : path));
    free(whole);
    sha256(text, digest);
    hex_encode(digest, sizeof(digest), ret->digest);
}

static bool load_text(struct wanted *w, const char *path, struct str text, int fd,
                      struct error *err)
{
    struct stat st;

    if (!w->config) {
        identify(path, text, w->mem, w->identity);
        if (w->text)
            *w->text = arena_dup(w->mem, text);
        return true;
    }
    if (!config_parse(text, str_of(path), w->source, w->config, err))
        return false;
    identify(path, text, (*w->config)->mem, &(*w->config)->identity);
    if (fstat(fd, &st) == 0)
        credential_check_mode(*w->config, st.st_mode);
    return true;
}

static bool load_nothing(struct wanted *w, struct error *err)
{
    if (w->config)
        return config_parse(STR_NONE, STR_NONE, w->source, w->config, err);
    *w->identity = (struct config_identity){0};
    return true;
}

static bool load_file(struct wanted *w, const char *path, bool *ret_missing, struct error *err)
{
    struct buf text;
    int fd = -1;
    bool ok;

    if (!open_file(path, &fd, ret_missing, err))
        return false;
    if (*ret_missing)
        return true;
    buf_init_secret(&text, CONFIG_FILE_MAX + 1);
    ok = read_all(fd, path, &text, err) && load_text(w, path, buf_str(&text), fd, err);
    close(fd);
    buf_release(&text);
    return ok;
}

static bool load_named(struct wanted *w, struct str file, bool must_exist, struct error *err)
{
    const char *path = arena_dup(w->mem, file).p;
    bool missing;

    if (!load_file(w, path, &missing, err))
        return false;
    if (missing && must_exist)
        return error_set(err, ERR_CONFIG, "there is no file %s; create it or name another", path);
    return !missing || load_nothing(w, err);
}

/* The service itself names its file with --config. */
static bool is_for_the_service_only(struct str file)
{
    return str_eq(file, STR(SERVICE_FILE)) && access(SERVICE_FILE, R_OK) != 0 && errno == EACCES;
}

static bool search(struct wanted *w, struct error *err)
{
    struct str candidates[] = {
        STR("holdfast.json"),
        xdg_path(w->mem, "XDG_CONFIG_HOME", ".config", "holdfast/holdfast.json"),
        STR(SERVICE_FILE),
    };
    bool missing;

    for (size_t i = 0; i < countof(candidates); i++) {
        if (!candidates[i].p || is_for_the_service_only(candidates[i]))
            continue;
        if (!load_file(w, candidates[i].p, &missing, err))
            return false;
        if (!missing)
            return true;
    }
    return load_nothing(w, err);
}

static bool find(struct wanted *w, struct error *err)
{
    struct str from_env = str_of(getenv("HOLDFAST_CONFIG"));

    if (w->source && w->source->file.p)
        return load_named(w, w->source->file, w->source->must_exist, err);
    /* A command that makes the file may be told its name before it exists. */
    return from_env.n > 0 ? load_named(w, from_env, !w->text, err) : search(w, err);
}

bool config_load(const struct config_source *source, struct config **ret, struct error *err)
{
    struct wanted w = {.source = source, .mem = arena_new(SIZE_MAX), .config = ret};
    bool ok = find(&w, err);

    arena_free(w.mem);
    return ok;
}

bool config_identify(const struct config_source *source, struct arena *mem,
                     struct config_identity *ret, struct error *err)
{
    struct wanted w = {.source = source, .mem = mem, .identity = ret};

    return find(&w, err);
}

/* The file to create: as it was named, or in the user's configuration directory. */
static struct str new_file(const struct config_source *source, struct arena *mem)
{
    struct str from_env = str_of(getenv("HOLDFAST_CONFIG"));

    if (source->file.p || from_env.n)
        return arena_dup(mem, source->file.p ? source->file : from_env);
    return xdg_path(mem, "XDG_CONFIG_HOME", ".config", "holdfast/holdfast.json");
}

bool config_find_file(const struct config_source *source, struct arena *mem, struct str *ret_path,
                      struct str *ret_text, struct error *err)
{
    struct config_identity identity = {0};
    struct wanted w = {.source = source, .mem = mem, .identity = &identity, .text = ret_text};

    *ret_text = STR_NONE;
    if (!find(&w, err))
        return false;
    *ret_path = identity.path.p ? identity.path : new_file(source, mem);
    return ret_path->p ||
           error_set(err, ERR_CONFIG,
                     "there is no configuration file, and HOME is not set; name one with --config");
}

struct str config_service_data_dir(struct str file)
{
    return str_eq(file, STR(SERVICE_FILE)) ? STR(SERVICE_DATA) : STR_NONE;
}

bool config_data_dir(struct str flag, struct arena *mem, struct str *ret, struct error *err)
{
    struct str state = absolute_env("STATE_DIRECTORY"); /* set by the system service manager */
    struct str home;

    if (flag.p && flag.n == 0)
        return error_set(err, ERR_CONFIG, "--data is empty; name a directory");
    if (flag.p) {
        *ret = arena_dup(mem, flag);
        return true;
    }
    if (state.p && !absolute_env("XDG_DATA_HOME").p) {
        *ret = arena_dup(mem, str_split(&state, ':'));
        return true;
    }
    home = xdg_path(mem, "XDG_DATA_HOME", ".local/share", "holdfast");
    *ret = home.p ? home : STR(SERVICE_DATA); /* without HOME it is a system service */
    return true;
}
