/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of an exported session (line.h) and believes none of them:
 *
 *   struct export_read r = {.first_line = 1};
 *   while (…) if (!export_read_line(&r, line, mem, &what, &err)) …   err names the line
 *   export_read_end(&r, &err)                                        the file is whole
 *
 * Each line must have the chain that the lines before it ask for, and a call must be written exactly
 * as this program writes it, so that nothing in a line goes unread and an export of the imported
 * session has the same bytes.  The last line must have a signature by the key of the first.  The
 * lines say nothing about who holds that key: the caller decides which key it takes. */
#ifndef HOLDFAST_EXPORT_READ_H
#define HOLDFAST_EXPORT_READ_H

#include "base/error.h"
#include "export/export.h"
#include "export/sign.h"

#define EXPORT_LINE_MAX ((size_t)4 << 20) /* bytes of a line, without its end */
#define EXPORT_CALLS_MAX INT64_C(1000000) /* of a session */
#define EXPORT_TEXT_MAX 1024              /* bytes of a text of a call or of the session */
#define EXPORT_CONTEXT_MAX ((size_t)1 << 20)
#define EXPORT_TOOLSETS_MAX 16384         /* bytes of the list */
#define EXPORT_JSON_MAX ((size_t)1 << 20) /* bytes of the metadata and of the lineage */

/* What the first line says of the session.  Absent texts were not there. */
struct export_about {
    struct str id, handle;
    struct str edge_mcp_id, client_name, client_type, client_version;
    enum session_status status; /* active, expired or terminated */
    struct str termination_reason, origin, carrier, core_session_id;
    bool initialized;
    struct str connection_metadata, setup, lineage, context; /* JSON */
    struct str toolsets;                                     /* as in the row */
    int64_t created_ms, last_activity_ms, terminated_ms;
    int64_t calls, tokens;
};

enum export_line_type { EXPORT_LINE_SESSION, EXPORT_LINE_CALL, EXPORT_LINE_END };
struct export_line {
    enum export_line_type type;
    struct export_about about; /* of a session */
    struct recorded_call call; /* of a call, without `id` */
};

struct export_read {
    int64_t first_line; /* the number of the session's first line in its file, from 1 */
    /* The rest is the reader's. */
    int64_t line;  /* lines read */
    int64_t calls; /* read */
    struct export_chain chain;
    uint8_t key[EXPORT_KEY_BYTES];
    bool is_whole; /* the last line was read, and its signature is right */
};

/* Spans of *ret are in mem, or in `line`.  ERR_BAD_INPUT. */
must_check bool export_read_line(struct export_read *r, struct str line, struct arena *mem,
                                 struct export_line *ret, struct error *err);
/* After the last line. */
must_check bool export_read_end(const struct export_read *r, struct error *err);

#endif
