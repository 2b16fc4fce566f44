/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the operations on documents: an arena of its own (documents are larger than
 * the arena of a request may grow), the document that the path names, permission, and author.
 *
 *   run → docs_request_new → docs_request_place → [docs_request_author] → a verb of docs/docs.h
 *       → docs_request_reply or docs_request_refuse, which end it */
#ifndef HOLDFAST_DOCS_API_REQUEST_H
#define HOLDFAST_DOCS_API_REQUEST_H

#include "docs/docs.h"
#include "json/write.h"
#include "api/api.h"

#define DOCS_TAG_TEXT 67 /* "…" around a digest in hex, and a NUL */
#define DOCS_PAGE_DEFAULT 50

struct docs_request {
    struct api_call *api;
    struct arena *mem;
    struct docs_call call;
    struct read_job name;
    void (*ready)(struct docs_request *q); /* called when call.author is set */
    void *args;                            /* state of the operation */
};

/* NULL: the refusal was sent, because the caller may not read documents or, with `changes`, may not
 * change them.  The memory is zeroed. */
struct docs_request *docs_request_new(struct api_call *c, bool changes) must_check;
/* Resolves the document at "Folder/Path.md", or the document that the URL names.  false: the
 * refusal was sent, and `q` is freed. */
must_check bool docs_request_at(struct docs_request *q, struct str file_path);
must_check bool docs_request_place(struct docs_request *q);
/* Sets call.author to the caller's name, then calls ready().  `claimed` is the name that a caller
 * without a credential gives itself; absent: none given. */
void docs_request_author(struct docs_request *q, struct str claimed,
                         void (*ready)(struct docs_request *q));
/* Resets q->call for another verb on the same document. */
void docs_request_again(struct docs_request *q, void (*done)(struct docs_call *call));
/* "Folder/Path.md" of the place, in mem. */
struct str docs_request_path(const struct docs_request *q);

/* Each of these answers the request and frees it. */
void docs_request_reply(struct docs_request *q, int status, struct str headers, struct str body);
void docs_request_refuse(struct docs_request *q, enum err_code code, const char *error,
                         const char *detail, struct str headers);
void docs_request_missing(struct docs_request *q);
/* With the text of q->call.err, which names the nearest match. */
void docs_request_not_found(struct docs_request *q, const char *error);
/* With the error of q->call. */
void docs_request_fail(struct docs_request *q);
/* Frees the request without an answer; the answer was already sent. */
void docs_request_drop(struct docs_request *q);

/* The ETag of a text: its sha256 in hex, with quotes. */
struct str docs_tag(const uint8_t sha256[32], char ret[DOCS_TAG_TEXT]);
/* If-Match: whether the list has exactly this tag, or "*". */
bool docs_tag_matches(struct str header, struct str tag);
/* ?name=true|false; without it *ret is false.  Returns false when the refusal was sent. */
must_check bool docs_query_bool(struct api_call *c, const char *name, bool *ret);

/* The query of a list: ?folder=&limit=&cursor=.  `after` is the last row of the previous page. */
struct docs_page {
    struct str about, folder, after;
    int64_t limit;
};
must_check bool docs_page_read(struct api_call *c, const char *list, struct str about,
                               struct docs_page *ret);
/* Writes count and next_cursor and ends the object; returns the Link header.  `last` is the last
 * row of this page; absent: no page follows. */
struct str docs_page_end(struct docs_request *q, const struct docs_page *p, struct js_writer *w,
                         size_t count, struct str last, const char *path);
/* files.c: a change that replaces the text with `content` if If-Match names the current text
 * (absent: any text), and the `done` of a call with such a change. */
struct docs_change *docs_replace_new(struct str if_match, struct str content) must_check;
void docs_on_changed(struct docs_call *call);
/* Copies the JSON in `out` to mem and releases `out`. */
struct str docs_take(struct buf *out, struct arena *mem);

#endif
