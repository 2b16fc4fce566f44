/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the index: two connections, one that writes and one that only reads, each
 * with its lock and its prepared statements.  ":memory:" has one connection for both. */
#ifndef HOLDFAST_DOCS_INDEX_IMPL_H
#define HOLDFAST_DOCS_INDEX_IMPL_H

#include "docs/index.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* Titles weigh most, then the words of the path. */
#define INDEX_RANK "bm25(8.0, 4.0, 1.0)"
#define INDEX_LINKS_MAX 1000

enum index_statement {
    INDEX_BEGIN,
    INDEX_COMMIT,
    INDEX_ROLLBACK,
    INDEX_SAVE,
    INDEX_RELEASE,
    INDEX_UNDO,
    INDEX_PUT_DOCUMENT,
    INDEX_HAS_TEXT,
    INDEX_DROP_WORDS,
    INDEX_PUT_WORDS,
    INDEX_DROP_LINKS,
    INDEX_PUT_LINK,
    INDEX_DOCUMENT_ID,
    INDEX_DROP_DOCUMENT,
    INDEX_FOLDER_IDS,
    INDEX_KNOWN,
    INDEX_FIND_PATH,
    INDEX_SEARCH,
    INDEX_SNIPPET,
    INDEX_BACKLINKS,
    INDEX_FORWARD_LINKS,
    INDEX_STATEMENTS
};

struct index_side {
    pthread_mutex_t lock;
    sqlite3 *db;
    sqlite3_stmt *statements[INDEX_STATEMENTS];
};

struct index {
    char *path;
    bool in_memory;
    atomic_bool damaged; /* set by a call that found damage; the next call makes the file anew */
    atomic_uint made;    /* how often the file was made anew */
    unsigned open;       /* calls of index_begin() without their commit; under the writer's lock */
    struct index_side writer, reader;
};

/* Takes the side's lock; makes a damaged file anew first.  False: the file cannot be opened, and
 * nothing is locked. */
must_check bool index_enter_writer(struct index *x, struct index_side **ret, struct error *err);
must_check bool index_enter_reader(struct index *x, struct index_side **ret, struct error *err);
void index_leave(struct index_side *side);

/* A statement to bind and step, reset; NULL: err says why. */
sqlite3_stmt *index_prepare(struct index *x, struct index_side *side, enum index_statement which,
                            struct error *err);
void index_bind(sqlite3_stmt *st, int at, struct str text);
/* A failure resets the statement and fills err. */
must_check bool index_step(struct index *x, struct index_side *side, sqlite3_stmt *st,
                           bool *ret_row, struct error *err);
/* Steps once, for statements without rows. */
must_check bool index_run(struct index *x, struct index_side *side, sqlite3_stmt *st,
                          struct error *err);
struct str index_column(sqlite3_stmt *st, int at, struct arena *mem);

/* index_links.c: replaces the links of document `id` with those in `accepted`. */
must_check bool index_links_put(struct index *x, struct index_side *side, int64_t id,
                                struct str path, struct str accepted, struct error *err);
/* index_text.c: the first heading, else the file's name; at most 200 bytes; borrowed. */
struct str index_title(struct str path, struct str accepted);
/* The text as it is searched: composed letters, so that both spellings of an accent are the same
 * word.  In mem, or `text` itself. */
struct str index_composed(struct str text, struct arena *mem);

#endif
