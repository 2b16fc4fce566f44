/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations on documents have in common: memory of their own (documents are larger than
 * what a request may take), the document that the path names, who may, and in whose name.
 *
 *   run → docs_request_new → docs_request_place → [docs_request_author] → a verb of docs/docs.h
 *       → docs_request_reply or docs_request_refuse, which end it */
#ifndef HOLDFAST_API_DOCS_REQUEST_H
#define HOLDFAST_API_DOCS_REQUEST_H

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
    void (*ready)(struct docs_request *q); /* call.author is known */
    void *args;                            /* the operation's own */
};

/* NULL: it was refused already, because documents are not for this caller, or not to be changed by
 * it.  Memory is zeroed. */
struct docs_request *docs_request_new(struct api_call *c, bool changes) must_check;
/* The document at "Folder/Path.md", or that of the path; false: refused already. */
must_check bool docs_request_at(struct docs_request *q, struct str file_path);
must_check bool docs_request_place(struct docs_request *q);
/* Finds out the caller's name, then ready().  `claimed` is what the local admin calls itself;
 * absent: it does not say. */
void docs_request_author(struct docs_request *q, struct str claimed,
                         void (*ready)(struct docs_request *q));
/* For another verb about the same document: a call that is as good as new. */
void docs_request_again(struct docs_request *q, void (*done)(struct docs_call *call));
/* "Folder/Path.md" of the place, in mem. */
struct str docs_request_path(const struct docs_request *q);

/* Each answers and ends the request. */
void docs_request_reply(struct docs_request *q, int status, struct str headers, struct str body);
void docs_request_refuse(struct docs_request *q, enum err_code code, const char *error,
                         const char *detail, struct str headers);
void docs_request_missing(struct docs_request *q);
/* In the words of q->call.err, which name what is nearest. */
void docs_request_not_found(struct docs_request *q, const char *error);
/* By what the call ended with. */
void docs_request_fail(struct docs_request *q);
/* Gives it up without an answer, which was given already. */
void docs_request_drop(struct docs_request *q);

/* "sha256 in hex" with its quotes. */
struct str docs_tag(const uint8_t sha256[32], char ret[DOCS_TAG_TEXT]);
/* If-Match: is it one of these, exactly, or is any welcome? */
bool docs_tag_matches(struct str header, struct str tag);
/* ?name=true|false; false: refused already. */
must_check bool docs_query_bool(struct api_call *c, const char *name, bool *ret);

/* What a list is asked with: ?folder= &limit= &cursor=.  `after` is the last row of the page
 * before. */
struct docs_page {
    struct str about, folder, after;
    int64_t limit;
};
must_check bool docs_page_read(struct api_call *c, const char *list, struct str about,
                               struct docs_page *ret);
/* Writes count and next_cursor (absent: this was the last page); gives the Link header. */
struct str docs_page_end(struct docs_request *q, const struct docs_page *p, struct js_writer *w,
                         size_t count, struct str last, const char *path);
/* docs_files.c: a change that puts `content` in place of what is there, if that is what If-Match
 * (absent: anything) names; and the `done` of a call with it. */
struct docs_change *docs_replace_new(struct str if_match, struct str content) must_check;
void docs_on_changed(struct docs_call *call);
/* The JSON gathered, in the request's memory. */
struct str docs_take(struct buf *out, struct arena *mem);

#endif
