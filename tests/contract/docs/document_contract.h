/* SPDX-License-Identifier: Apache-2.0 */
/* Documents as the claims on them make them: named by a path of the folder "notes". */
#ifndef HOLDFAST_TESTS_DOCUMENT_CONTRACT_H
#define HOLDFAST_TESTS_DOCUMENT_CONTRACT_H

#include "../store_contract.h"

#include "docs/store/family.h"
#include "docs/store/ops.h"
#include "docs/store/verbs.h"
#include "store/memory_impl.h"

/* As the program does at its start; the memory store is for tests only. */
__attribute__((constructor)) static void register_documents(void)
{
    store_family_add(&docs_store);
    memory_family_add(&docs_memory);
}

#define DOC "40000000-0000-7000-8000-000000"

/* One op of OP_DOCUMENT_REVISE and what it is about; `op` points into it. */
struct revise {
    struct document_row document;
    struct revision_row revision;
    struct document_revise rows;
    struct store_op op;
};

/* What stands for the digest of a content. */
static inline void digest(struct str content, uint8_t ret[32])
{
    memset(ret, 7, 32);
    for (size_t i = 0; i < content.n; i++)
        ret[i % 31] = (uint8_t)(ret[i % 31] * 31 + (uint8_t)content.p[i]);
}

/* A new document would be named by n. */
static inline struct revise *revise(struct fixture *f, int n, const char *path, struct str content)
{
    struct revise *r = arena_new_of(f->mem, struct revise);
    r->document = (struct document_row){
        .id = arena_printf(f->mem, DOC "%06d", n), .folder = STR("notes"), .path = str_of(path)};
    r->revision = (struct revision_row){
        .at_ms = NOW + n, .author = STR("Ada"), .kind = STR("outside"), .content = content};
    digest(content, r->revision.sha256);
    r->rows = (struct document_revise){.document = &r->document, .revision = &r->revision};
    r->op = op_document_revise(&r->rows);
    return r;
}

/* Writes it, and gives the revision. */
static inline int64_t revised(struct fixture *f, struct revise *r)
{
    assert_int_equal(write_one(f, r->op), VERDICT_OK);
    return r->revision.revision;
}

static inline int64_t put(struct fixture *f, int n, const char *path, const char *content)
{
    return revised(f, revise(f, n, path, str_of(content)));
}

static inline enum verdict move(struct fixture *f, const char *path, const char *to)
{
    struct document_row row = {
        .folder = STR("notes"), .path = str_of(path), .new_path = str_of(to)};
    return write_one(f, op_document_move(&row));
}

static inline enum verdict end_document(struct fixture *f, const char *path, int64_t at_ms)
{
    struct document_row row = {.folder = STR("notes"), .path = str_of(path), .ended_ms = at_ms};
    return write_one(f, op_document_end(&row));
}

static inline struct document_row *document(struct fixture *f, const char *path)
{
    struct document_row *row = NULL;
    check(f, store_document(f->store, STR("notes"), str_of(path), f->mem, &row, &f->err));
    return row;
}

static inline struct revision_row *revision(struct fixture *f, const char *id, int64_t number)
{
    struct revision_row *row = NULL;
    check(f, store_document_revision(f->store, str_of(id), number, f->mem, &row, &f->err));
    return row;
}

static inline size_t history(struct fixture *f, const char *id, int64_t before, unsigned limit,
                             struct revision_row **ret)
{
    size_t n = 0;
    check(f, store_document_history(f->store, str_of(id), before, limit, f->mem, ret, &n, &f->err));
    return n;
}

#endif
