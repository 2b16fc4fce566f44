/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/anchor_file.h"

#include "audit/event_id.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/map.h"
#include "json/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void anchor_file_init(struct anchor_file *f, const char *path)
{
    f->path = path;
    f->shrink_from = ANCHOR_FILE_SHRINK_FROM;
    f->removed_before_ms = 0;
}

/* True if no later line names this chain. */
static bool is_newest(struct map *seen, const struct js_doc *doc, const struct js_node *claim,
                      struct arena *mem)
{
    struct str id = js_text(doc, js_get(doc, claim, STR("id")), mem);
    struct str tenant = js_text(doc, js_get(doc, claim, STR("tenant")), mem);
    int64_t number;

    if (!id.p || !tenant.p || !event_id_parse(id, &number))
        return false;
    int64_t writer = event_id_writer(number);
    char *key = arena_alloc(mem, sizeof(writer) + tenant.n);
    memcpy(key, &writer, sizeof(writer));
    memcpy(key + sizeof(writer), tenant.p, tenant.n);
    return !map_put(seen, str_n(key, sizeof(writer) + tenant.n), seen);
}

/* A line that a crash tore proves nothing. */
static bool is_needed(struct map *seen, struct str line, int64_t removed_before_ms,
                      struct arena *mem)
{
    struct js_doc doc;
    int64_t at_ms;

    if (!js_parse(line, &js_limits_upstream, mem, &doc, NULL) ||
        !js_to_i64(&doc, js_get(&doc, js_root(&doc), STR("at_ms")), &at_ms))
        return false;
    const struct js_node *heads =
        js_get(&doc, js_get(&doc, js_root(&doc), STR("anchor")), STR("heads"));
    bool needed = is_newest(seen, &doc, js_root(&doc), mem) || at_ms >= removed_before_ms;
    for (const struct js_node *head = js_type_is(heads, JS_ARRAY) ? js_first(&doc, heads) : NULL;
         head; head = js_next(&doc, heads, head))
        needed |= is_newest(seen, &doc, head, mem);
    return needed;
}

/* From the newest line to the oldest; `out` gets those that are needed, in the order of the file. */
static void choose(struct str lines, int64_t removed_before_ms, struct buf *out)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct map seen = {0};
    size_t end = lines.n, n = 0, cap = 0;
    struct str *needed = NULL;

    while (end > 0) {
        size_t from = end - 1;
        while (from > 0 && lines.p[from - 1] != '\n')
            from--;
        struct str line = str_n(lines.p + from, end - from);
        end = from;
        if (!is_needed(&seen, line, removed_before_ms, mem))
            continue;
        if (n == cap) {
            cap = cap ? 2 * cap : 64;
            needed = xrealloc(needed, cap * sizeof(*needed));
        }
        needed[n++] = line;
    }
    while (n > 0)
        buf_addstr(out, needed[--n]);
    free(needed);
    map_release(&seen);
    arena_free(mem);
}

static bool write_all(int fd, struct str text)
{
    for (size_t done = 0; done < text.n;) {
        ssize_t n = write(fd, text.p + done, text.n - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n < 0 ? 0 : (size_t)n;
    }
    return true;
}

static bool sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];
    int n = slash ? snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - path), path)
                  : snprintf(folder, sizeof(folder), ".");
    int fd =
        n > 0 && (size_t)n < sizeof(folder) ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

/* Puts the text in the place of the file, whole or not at all. */
static bool replace(const char *path, struct str text)
{
    char fresh[4096];
    int n = snprintf(fresh, sizeof(fresh), "%s.new", path);
    int fd = n > 0 && (size_t)n < sizeof(fresh)
                 ? open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)
                 : -1;

    if (fd < 0)
        return false;
    bool ok = write_all(fd, text) && fsync(fd) == 0;
    close(fd);
    if (!ok || rename(fresh, path) != 0) {
        unlink(fresh);
        return false;
    }
    return sync_folder(path);
}

/* The old file stays if this fails: it proves as much. */
static void shrink(struct anchor_file *f, int fd, int64_t size)
{
    void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    struct buf text;

    f->shrink_from = 2 * size;
    if (p == MAP_FAILED)
        return;
    buf_init(&text, SIZE_MAX / 4);
    choose(str_n(p, (size_t)size), f->removed_before_ms, &text);
    munmap(p, (size_t)size);
    if (replace(f->path, buf_str(&text))) {
        int64_t twice = 2 * (int64_t)text.n;
        f->shrink_from = twice > ANCHOR_FILE_SHRINK_FROM ? twice : ANCHOR_FILE_SHRINK_FROM;
    } else {
        log_warn("the file of anchors could not be shortened; it grows until that works",
                 LZ("file", f->path));
    }
    buf_release(&text);
}

static int open_file(const struct anchor_file *f, struct stat *ret)
{
    int fd = open(f->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0 && fstat(fd, ret) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool anchor_file_append(struct anchor_file *f, struct str line, struct error *err)
{
    struct stat st;
    char last = '\n';
    int fd = open_file(f, &st);

    if (fd >= 0 && S_ISREG(st.st_mode) && f->removed_before_ms && st.st_size > f->shrink_from) {
        shrink(f, fd, st.st_size);
        close(fd);
        fd = open_file(f, &st);
    }
    /* Ends a line that a crash or a full disk tore, so that the next line stays readable. */
    bool ok = fd >= 0 &&
              (!S_ISREG(st.st_mode) || st.st_size == 0 || pread(fd, &last, 1, st.st_size - 1) == 1);
    ok = ok && (last == '\n' || write(fd, "\n", 1) == 1);
    ok = ok && write(fd, line.p, line.n) == (ssize_t)line.n &&
         (fdatasync(fd) == 0 || errno == EINVAL);
    if (!ok)
        error_sys(err, ERR_UNAVAILABLE, errno,
                  "the anchor file %s cannot be written; check its disk and its mode", f->path);
    if (fd >= 0)
        close(fd);
    return ok;
}
