/* SPDX-License-Identifier: Apache-2.0 */
/* One import: shared by the files that check and write it. */
#ifndef HOLDFAST_EXPORT_API_IMPORT_IMPL_H
#define HOLDFAST_EXPORT_API_IMPORT_IMPL_H

#include "base/random.h"
#include "export/api/impl.h"
#include "export/api/source.h"
#include "export/read.h"
#include "session/plan.h"
#include "session/token.h"

#define IMPORT_MEM_MAX ((size_t)64 << 20) /* of the session, and of one batch */
#define BATCH_CALLS 100
#define SERVERS_MAX 16 /* that are noted, for transcripts */

/* Calls on their way to the store. */
struct batch {
    struct arena *mem; /* NULL: none */
    struct recorded_call calls[BATCH_CALLS];
    struct event_row events[BATCH_CALLS];
    struct store_op ops[BATCH_CALLS];
    size_t n;
    bool is_sealed;
};

struct importing {
    struct api_call *call;
    struct arena *mem;
    struct import_source source;
    struct export_read lines;
    struct str pinned; /* public key in hex digits; absent: any */
    bool again;        /* also if the file was imported before */
    bool as_recorded;  /* bodies stay as the origin recorded them */
    int64_t first_line, began_ms;
    struct export_about about;
    char id[UUID_TEXT], handle[HANDLE_LENGTH + 1], context_id[UUID_TEXT], key[65], file[65];
    struct str servers[SERVERS_MAX]; /* that its calls name */
    size_t n_servers;
    struct session_row *before; /* of an earlier import of this file */
    bool is_checked;            /* the first reading has come to the end of the file */
    bool is_at_end;             /* the second one likewise */
    struct str upload;          /* name of an upload; absent: the request has the whole file */
    int64_t at, length;         /* of the piece, and of the upload behind it */
    bool is_last;
    struct read_job read;
    struct write_job write;
    struct batch batch;
    struct session_row row, over;
    struct context_row context;
    struct session_plan plan;
    struct event_row event;
    struct str busy; /* key in the registry; absent: not taken */
};

/* import.c.  For a caller that answers the request itself. */
void import_free(struct importing *i);
/* These answer the request and free the import.  `err` may be that of a job in `i`. */
void import_refuse(struct importing *i, const struct error *err);
void import_fail(struct importing *i, enum err_code code, const char *text);
/* `row` is the session that was made, or i->before. */
void import_reply(struct importing *i, const struct session_row *row);
/* import_session.c: writes the session, the last step. */
void import_create(struct importing *i);

#endif
