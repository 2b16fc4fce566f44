/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of documents, and the family that adds them to the store. */
#include "docs/store/family.h"

#include "docs/store/impl.h"

bool store_document(struct store *s, struct str folder, struct str path, struct arena *mem,
                    struct document_row **ret_row, struct error *err)
{
    struct document_place place = {folder, path};
    return store_row(s, &(struct store_call){VERB_DOCUMENT, .filter = &place, .mem = mem}, ret_row,
                     err);
}

bool store_document_ended(struct store *s, struct str folder, struct str path, struct arena *mem,
                          struct document_row **ret_row, struct error *err)
{
    struct document_place place = {folder, path};
    return store_row(s, &(struct store_call){VERB_DOCUMENT_ENDED, .filter = &place, .mem = mem},
                     ret_row, err);
}

bool store_document_by_id(struct store *s, struct str id, struct arena *mem,
                          struct document_row **ret_row, struct error *err)
{
    return store_row(s, &(struct store_call){VERB_DOCUMENT_BY_ID, .id = id, .mem = mem}, ret_row,
                     err);
}

bool store_documents_page(struct store *s, struct str folder, struct str after, unsigned limit,
                          struct arena *mem, struct document_row **ret_rows, size_t *ret_n,
                          struct error *err)
{
    struct document_place place = {.folder = folder};
    return store_rows(s,
                      &(struct store_call){VERB_DOCUMENTS_PAGE, .filter = &place, .after = after,
                                           .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_document_history(struct store *s, struct str document_id, int64_t before, unsigned limit,
                            struct arena *mem, struct revision_row **ret_rows, size_t *ret_n,
                            struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_DOCUMENT_HISTORY, .id = document_id,
                                           .after_id = before, .limit = limit, .mem = mem},
                      ret_rows, ret_n, err);
}

bool store_document_revision(struct store *s, struct str document_id, int64_t revision,
                             struct arena *mem, struct revision_row **ret_row, struct error *err)
{
    return store_row(s,
                     &(struct store_call){VERB_DOCUMENT_REVISION, .id = document_id,
                                          .number = revision, .mem = mem},
                     ret_row, err);
}

bool store_document_reads(struct store *s, const struct principal *who, struct str session_id,
                          struct str document_id, struct arena *mem,
                          struct document_read_row **ret_rows, size_t *ret_n, struct error *err)
{
    return store_rows(s,
                      &(struct store_call){VERB_DOCUMENT_READS, .who = who,
                                           .session_id = session_id, .id = document_id, .mem = mem},
                      ret_rows, ret_n, err);
}

#define VERB_ROW(upper, lower, kind) {VERB_##upper, {#lower, VERB_KIND_##kind}},
static const struct family_verb verbs[] = {DOCUMENT_VERBS(VERB_ROW){0}};

const struct store_family docs_store = {
    .verbs = verbs,
    .ops = document_ops,
    .reads = sql_document_reads,
    .sqlite = &document_sqlite,
    .postgres = &document_postgres,
};
