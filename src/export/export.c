/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

const struct export_format *const export_formats[] = {&export_jsonl, &export_md, &export_csv, NULL};
const char *const export_format_names[] = {"jsonl", "md", "csv", NULL};

const struct export_format *export_format_named(struct str name)
{
    for (size_t i = 0; export_formats[i]; i++)
        if (str_eq(name, str_of(export_formats[i]->name)))
            return export_formats[i];
    return NULL;
}

void export_begin(struct export_writer *w, const struct export_session *s,
                  const struct export_format *format, const struct export_key *key, struct buf *out)
{
    *w = (struct export_writer){
        .format = format, .session = s, .key = key, .scratch = arena_new(SIZE_MAX / 4)};
    format->begin(w, out);
    arena_reset(w->scratch);
}

void export_calls(struct export_writer *w, const struct recorded_call *calls, size_t n,
                  struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        w->calls++;
        w->format->call(w, &calls[i], out);
        arena_reset(w->scratch);
    }
}

void export_end(struct export_writer *w, struct buf *out)
{
    w->format->end(w, out);
    arena_reset(w->scratch);
}

void export_release(struct export_writer *w)
{
    arena_free(w->scratch);
    w->scratch = NULL;
}
