/* SPDX-License-Identifier: Apache-2.0 */
/* Strict HTTP/1.1 heads and chunks, one parser for both directions.  Pure: bytes in, spans out.
 * Ambiguous input is an error (threats H1-H8): only CRLF ends lines, no obs-fold, no space before a
 * colon, no CL with TE, no second Content-Length or Host, no TE but exactly "chunked", digits only.
 * Headers with an underscore in their name are dropped in the parser (they count as lines). */
#ifndef HOLDFAST_HTTP_CODEC_H
#define HOLDFAST_HTTP_CODEC_H

#include "base/str.h"

#define HTTP_MAX_HEADERS 100
#define HTTP_MAX_HEAD (32 * 1024)
#define HTTP_MAX_TARGET (8 * 1024)

struct http_header {
    struct str name, value; /* value trimmed of SP/HTAB */
};

enum http_framing { HTTP_NO_BODY, HTTP_LENGTH, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

struct http_head {
    struct str method, target; /* requests: capitals; origin-form (absolute-form is reduced) */
    struct str path, query;    /* target split at the first '?'; query absent without a '?' */
    struct str host;           /* requests: Host value, or the authority of absolute-form, which
                                * must be the same; its syntax is checked; absent only in
                                * HTTP/1.0 */
    int status;                /* responses */
    int minor;                 /* HTTP/1.minor, 0 or 1 */
    enum http_framing framing;
    unsigned n_headers;
    uint64_t marks;          /* http_header_mark() of each header; 0 when not computed */
    uint64_t content_length; /* with HTTP_LENGTH, then > 0: length 0 is HTTP_NO_BODY */
    bool keep_alive;         /* according to the peer's head */
    bool expect_continue;    /* set only when a body follows */
    struct http_header headers[HTTP_MAX_HEADERS]; /* last: few are used */
};

enum http_parse { HTTP_PARSE_OK, HTTP_PARSE_MORE, HTTP_PARSE_BAD };
struct http_fault {
    int status;         /* 400, 405, 414, 417, 431 or 505; callers may use 502 for responses */
    const char *reason; /* a literal sentence */
};

/* Parses one head from the front of `bytes`.  OK: *ret_used is its length with the blank line;
 * spans point into `bytes`.  MORE: incomplete, and within the limits so far.  BAD: *ret_fault says
 * why.  *ret is undefined unless OK.  More input never changes a BAD or an OK result. */
enum http_parse http_parse_request(struct str bytes, struct http_head *ret, size_t *ret_used,
                                   struct http_fault *ret_fault);
/* `to_head`: the request was HEAD.  1xx heads are returned like any other, with HTTP_NO_BODY. */
enum http_parse http_parse_response(struct str bytes, bool to_head, struct http_head *ret,
                                    size_t *ret_used, struct http_fault *ret_fault);
/* One of 64 bits for a name, which must not be empty.  A clear bit shows that a name is absent
 * without a search. */
static inline uint64_t http_header_mark(struct str name)
{
    return UINT64_C(1) << ((name.n + 5 * (unsigned)(name.p[0] & 31)) & 63);
}
/* Returns the value of the first header of this name, or absent.  Case-insensitive;
 * http_header_count() finds duplicates. */
struct str http_header_get(const struct http_head *h, struct str name);
unsigned http_header_count(const struct http_head *h, struct str name);
/* Whether a comma-separated list has this member; case-insensitive, ignores parameters (";q=1"). */
bool http_list_has(struct str value, struct str token);
/* Whether Accept allows an event stream.  if_absent: the result without an Accept header. */
bool http_takes_events(const struct http_head *head, bool if_absent);

/* Chunked body decoder: takes bytes, returns data spans.  Trailers are checked and dropped. */
struct http_chunks {
    uint64_t left; /* bytes left of the current chunk */
    unsigned state;
    unsigned line;    /* bytes of the current size line */
    uint32_t trailer; /* bytes of trailers so far */
};
void http_chunks_init(struct http_chunks *c);
/* Consumes up to bytes.n, sets *ret_used, and sets *ret_data to the payload found (may be empty;
 * call again while bytes remain).  OK: the body is complete.  MORE: more bytes are needed.  BAD:
 * see fault. */
enum http_parse http_chunks_feed(struct http_chunks *c, struct str bytes, size_t *ret_used,
                                 struct str *ret_data, struct http_fault *ret_fault);

const char *http_reason(int status); /* "Not Found" */
/* Percent-decodes one path segment or query value, once.  Rejects broken escapes, %00 and, in
 * paths, %2f %5c and dot segments.  In query values "+" is a space, as browsers write it.  `out`
 * has room for in.n bytes.  Returns the length or -1. */
int http_percent_decode(struct str in, char *out, bool is_path);
/* Percent-encodes one path segment.  `out` has room for 3 * in.n bytes.  Returns the length. */
size_t http_percent_encode(struct str in, char *out);
/* Returns the first value of `name` in a query string, still encoded, or absent.  *ret_count (may
 * be NULL) counts its occurrences. */
struct str http_query_get(struct str query, struct str name, unsigned *ret_count);
/* Whether every byte may be sent in a header value: 0x20-0x7E and HTAB. */
bool http_value_is_safe(struct str value);

#endif
