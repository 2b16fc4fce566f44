/* SPDX-License-Identifier: Apache-2.0 */
#include "export/api/upload.h"

#include "base/clock.h"
#include "crypto/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "imports"
#define NAME_TEXT (2 * SHA256_BYTES + sizeof(".part"))

static void name_of(const struct upload *u, char ret[NAME_TEXT])
{
    const struct str parts[] = {u->who->tenant, str_n("", 1), u->who->owner, str_n("", 1), u->name};
    char hex[2 * SHA256_BYTES + 1];
    uint8_t digest[SHA256_BYTES];

    sha256_parts(parts, countof(parts), digest);
    hex_encode(digest, sizeof(digest), hex);
    snprintf(ret, NAME_TEXT, "%s.part", hex);
}

static bool is_unknown(struct error *err)
{
    return error_set(err, ERR_NOT_FOUND,
                     "there is no such upload on this node: its pieces go to one node, each "
                     "within an hour; begin anew with at=0");
}

/* A descriptor of the folder; it is made when it is not there. */
static bool open_folder(struct str data_dir, bool makes, int *ret, struct error *err)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%.*s/" FOLDER, STR_ARG(data_dir));

    if (!data_dir.n || n < 0 || (size_t)n >= sizeof(path))
        return error_set(err, ERR_UNAVAILABLE, "there is no data directory for uploads here");
    if (makes && mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_sys(err, ERR_UNAVAILABLE, errno, "cannot make %s", path);
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (*ret < 0 && errno == ENOENT)
        return is_unknown(err);
    return *ret >= 0 || error_sys(err, ERR_UNAVAILABLE, errno, "cannot open %s", path);
}

/* Removes the files that nobody has added to for `idle_ms`.  Returns how many are left. */
static unsigned sweep(int folder, int64_t idle_ms)
{
    int64_t now = clock_wall_ms();
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    unsigned left = 0;
    struct stat st;

    if (!dir) {
        if (copy >= 0)
            close(copy);
        return 0;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        if (!str_ends(str_of(e->d_name), STR(".part")) ||
            fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (now - (int64_t)st.st_mtim.tv_sec * 1000 >= idle_ms)
            unlinkat(folder, e->d_name, 0);
        else
            left++;
    }
    closedir(dir);
    return left;
}

static bool add_at_end(int fd, int64_t at, struct str bytes, int64_t *ret_length, struct error *err)
{
    struct stat st;
    size_t done = 0;

    if (fstat(fd, &st) < 0)
        return error_sys(err, ERR_INTERNAL, errno, "cannot read the upload");
    *ret_length = st.st_size;
    if (st.st_size != at)
        return error_set(err, ERR_CONFLICT,
                         "the upload has %lld bytes so far: send the piece that begins there, or "
                         "begin anew with at=0",
                         (long long)st.st_size);
    if (at + (int64_t)bytes.n > UPLOAD_BYTES_MAX)
        return error_set(err, ERR_TOO_LARGE, "the session is longer than %lld bytes",
                         (long long)UPLOAD_BYTES_MAX);
    while (done < bytes.n) {
        ssize_t n = pwrite(fd, bytes.p + done, bytes.n - done, (off_t)(at + (int64_t)done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int why = errno;
            if (ftruncate(fd, (off_t)at) < 0)
                why = errno;
            return error_sys(err, ERR_UNAVAILABLE, why, "cannot store the upload");
        }
        done += (size_t)n;
    }
    *ret_length = at + (int64_t)bytes.n;
    return true;
}

bool upload_add(const struct upload *u, int64_t at, struct str bytes, int64_t *ret_length,
                struct error *err)
{
    char name[NAME_TEXT];
    int folder = -1, fd;

    *ret_length = 0;
    name_of(u, name);
    if (!open_folder(u->data_dir, at == 0, &folder, err))
        return false;
    bool is_full = at == 0 && faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
                   sweep(folder, UPLOAD_IDLE_MS) >= UPLOADS_MAX;
    fd = is_full
             ? -1
             : openat(folder, name,
                      O_RDWR | O_CLOEXEC | O_NOFOLLOW | (at == 0 ? O_CREAT | O_TRUNC : 0), 0600);
    int why = errno;
    close(folder);
    if (is_full)
        return error_set(err, ERR_UNAVAILABLE,
                         "%d uploads are not finished here; try again when one has ended",
                         UPLOADS_MAX);
    if (fd < 0 && why == ENOENT)
        return is_unknown(err);
    if (fd < 0)
        return error_sys(err, ERR_UNAVAILABLE, why, "cannot store the upload");
    bool ok = add_at_end(fd, at, bytes, ret_length, err);
    close(fd);
    return ok;
}

bool upload_take(const struct upload *u, int *ret_fd, struct error *err)
{
    char name[NAME_TEXT];
    int folder = -1;

    name_of(u, name);
    if (!open_folder(u->data_dir, false, &folder, err))
        return false;
    *ret_fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int why = errno;
    if (*ret_fd >= 0)
        unlinkat(folder, name, 0);
    close(folder);
    return *ret_fd >= 0 || error_sys(err, ERR_INTERNAL, why, "cannot read the upload");
}

void uploads_clear(struct str data_dir)
{
    struct error ignored;
    int folder = -1;

    if (!open_folder(data_dir, false, &folder, &ignored))
        return;
    sweep(folder, INT64_MIN);
    close(folder);
}
