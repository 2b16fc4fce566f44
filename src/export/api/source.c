/* SPDX-License-Identifier: Apache-2.0 */
#include "export/api/source.h"

#include <errno.h>
#include <unistd.h>

#define PIECE ((size_t)256 << 10)

/* The line that begins the bytes; false: its end is not among them. */
static bool take_line(struct str bytes, size_t max, struct str *ret, size_t *ret_used)
{
    size_t n = str_find(bytes, '\n');

    if (n == bytes.n && n <= max)
        return false;
    *ret = str_n(bytes.p, n <= max ? n : max + 1);
    *ret_used = n <= max ? n + 1 : max + 1;
    return true;
}

static bool memory_line(struct import_source *s, size_t max, struct str *ret, bool *ret_end)
{
    struct str rest = str_n(s->bytes.p + s->at, s->bytes.n - s->at);
    size_t used = rest.n;

    *ret_end = rest.n == 0;
    if (!*ret_end && !take_line(rest, max, ret, &used))
        *ret = rest;
    s->at += used;
    return true;
}

/* Reads a piece more of the file. */
static bool fill(struct import_source *s, struct error *err)
{
    char *room = buf_room(&s->window, PIECE);
    ssize_t n = -1;

    while (n < 0) {
        n = pread(s->fd, room, PIECE, (off_t)(s->at + s->window.n - s->used));
        if (n < 0 && errno != EINTR)
            return error_sys(err, ERR_INTERNAL, errno, "cannot read the uploaded file");
    }
    s->is_read = n == 0;
    buf_grown(&s->window, (size_t)n);
    return true;
}

bool import_source_line(struct import_source *s, size_t max, struct str *ret, bool *ret_end,
                        struct error *err)
{
    size_t used;

    if (s->fd < 0)
        return memory_line(s, max, ret, ret_end);
    if (!s->window.max)
        buf_init(&s->window, SIZE_MAX / 4);
    *ret_end = false;
    for (;;) {
        struct str rest = str_n(s->window.p + s->used, s->window.n - s->used);
        bool is_line = rest.n && take_line(rest, max, ret, &used);
        if (!is_line && s->is_read) {
            *ret_end = rest.n == 0;
            *ret = rest;
            used = rest.n;
            is_line = true;
        }
        if (is_line) {
            s->used += used;
            s->at += used;
            return true;
        }
        if (s->used) {
            buf_consume(&s->window, s->used);
            s->used = 0;
        }
        if (!fill(s, err))
            return false;
    }
}

void import_source_rewind(struct import_source *s)
{
    s->at = s->used = 0;
    s->is_read = false;
    if (s->window.max)
        buf_reset(&s->window);
}

void import_source_release(struct import_source *s)
{
    buf_release(&s->window);
}
