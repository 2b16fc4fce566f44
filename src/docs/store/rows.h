/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the knowledge base: documents, their revisions, and the lines that sessions have
 * seen.  What store/rows.h says of rows holds for these too. */
#ifndef HOLDFAST_DOCS_STORE_ROWS_H
#define HOLDFAST_DOCS_STORE_ROWS_H

#include "base/random.h"
#include "store/rows.h"

/* A document in a folder.  Folders belong to the nodes, not to a tenant: code above the store
 * decides which principal reaches a folder.  On all nodes the same folder name means the same
 * files. */
struct document_row {
    struct str id;           /* UUIDv7; stays when the document moves */
    struct str folder, path; /* UTF-8 */
    int64_t revision;        /* the newest revision, from 1 */
    uint8_t sha256[32];      /* of the document's bytes */
    int64_t created_ms, changed_ms;
    int64_t ended_ms; /* when the file was gone; 0: it exists */
    /* Parameter of OP_DOCUMENT_MOVE, not stored. */
    struct str new_path;
};

/* Maximum size of a revision. */
#define DOCUMENT_CONTENT_MAX (5u << 20)
/* Added to the size of each revision; see revision_row.history_max. */
#define HISTORY_ROW_BYTES 256
/* One revision of a document: its text, and how the revision came about. */
struct revision_row {
    struct str document_id;
    int64_t revision;
    int64_t at_ms;
    struct str author; /* absent: unknown */
    struct str kind; /* outside create suggest comment accept reject write move restore recovered */
    struct str reason; /* absent: not given */
    struct str path;   /* path at that time */
    uint8_t sha256[32];
    int64_t size;
    struct str content; /* bytes, not interpreted; absent in lists, and when it was deleted */
    bool has_text;      /* read only: its text is stored */
    /* For OP_DOCUMENT_REVISE, so that a small change takes little space: the first `prefix` and the
     * last `suffix` bytes equal those of the text with the digest `follows`.  0 and 0: unknown. */
    size_t prefix, suffix;
    uint8_t follows[32];
    /* Likewise: the maximum size of the document's history, with HISTORY_ROW_BYTES added per
     * revision; 0: unlimited.  The oldest revisions are deleted; the newest stays. */
    int64_t history_max;
    /* OP_DOCUMENT_REVISE points document_id at this text.  A copy of the row must point at its
     * own. */
    char id_text[UUID_TEXT];
};

/* One slice of OP_DOCUMENTS_AGE. */
struct documents_age {
    struct str folder;
    int64_t before_ms;
    struct str after; /* id of the last document of the slice before; absent: the first slice */
    unsigned limit;   /* documents */
    /* Set by the op. */
    int64_t documents; /* that were looked at; 0: there are no more */
    int64_t texts, bytes;
    char last[UUID_TEXT]; /* the last of them */
};
/* A slice ends after the document that took it past these bytes of texts read and written. */
#define DOCUMENTS_AGE_BYTES (1 << 20)

/* The lines of a document that a session has seen, and at which revision. */
struct document_read_row {
    struct str session_id; /* row id */
    struct str folder, path;
    int64_t revision;
    int64_t from_line, to_line; /* both inclusive */
    int64_t at_ms;
};
/* Maximum of reads stored per session and document. */
#define DOCUMENT_READS_MAX 64

#endif
