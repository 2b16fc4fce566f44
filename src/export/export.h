/* SPDX-License-Identifier: Apache-2.0 */
/* An exported session: its recording as bytes for another program or for people, piece by piece.
 *
 *   struct export_session s = {…};           the session, as the caller has found it
 *   struct export_writer w;
 *   export_begin(&w, &s, &export_formats[…], key, &out);
 *   for (each page of the recording)
 *       export_calls(&w, calls, n, &out);
 *   export_end(&w, &out);
 *
 * Each function appends to `out`, which the caller sends and resets as it likes.  The bytes depend
 * on the recording alone, so two exports of an ended session are equal.
 *
 * jsonl is for programs (line.h): one JSON object per line, chained and signed, so that a reader
 * sees whether lines are missing, changed or in another order, and which Holdfast wrote them.  md
 * is a transcript for people; nothing in it that a client or server chose has an effect as Markdown
 * or HTML.  csv is a table with one row per call, whose cells no spreadsheet takes for formulas. */
#ifndef HOLDFAST_EXPORT_EXPORT_H
#define HOLDFAST_EXPORT_EXPORT_H

#include "base/buf.h"
#include "recording/recording.h"

struct export_key;

/* Borrowed until export_end(). */
struct export_session {
    const struct session_row *row;
    struct str user, key;      /* names of the owner for people; absent: it has none */
    struct str context;        /* the context document, JSON; absent: none */
    const struct str *servers; /* that the session has used */
    size_t n_servers;
};

/* SHA-256 of the line before and of this line up to the member "chain"; zero before the first. */
struct export_chain {
    uint8_t link[32];
};

struct export_format;
struct export_writer {
    const struct export_format *format;
    const struct export_session *session;
    const struct export_key *key; /* NULL: not signed */
    struct export_chain chain;
    int64_t calls;
    struct arena *scratch; /* of one call */
};

struct export_format {
    const char *name; /* as in ?format= */
    const char *type; /* Content-Type */
    void (*begin)(struct export_writer *w, struct buf *out);
    void (*call)(struct export_writer *w, const struct recorded_call *call, struct buf *out);
    void (*end)(struct export_writer *w, struct buf *out);
    /* Of several sessions one after the other: */
    bool has_head;       /* the first line belongs before the first session alone */
    const char *between; /* stands between two; NULL: nothing */
};
extern const struct export_format export_jsonl, export_md, export_csv;
/* All formats; the first is the default. */
extern const struct export_format *const export_formats[]; /* NULL-terminated */
extern const char *const export_format_names[];            /* NULL-terminated, for schemas */
/* NULL: there is no such format. */
const struct export_format *export_format_named(struct str name);

void export_begin(struct export_writer *w, const struct export_session *s,
                  const struct export_format *format, const struct export_key *key,
                  struct buf *out);
void export_calls(struct export_writer *w, const struct recorded_call *calls, size_t n,
                  struct buf *out);
void export_end(struct export_writer *w, struct buf *out);
/* Frees what the writer holds; also after export_end(), and for a zeroed writer. */
void export_release(struct export_writer *w);

#endif
