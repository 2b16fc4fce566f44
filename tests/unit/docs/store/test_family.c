/* SPDX-License-Identifier: Apache-2.0 */
/* The family of documents in the store: it is there once, and wrappers see it like any verb. */
#include "test.h"

#include <stdio.h>

#include "base/arena.h"
#include "docs/store/family.h"
#include "docs/store/ops.h"
#include "docs/store/verbs.h"
#include "store/memory_impl.h"

struct seen {
    char verb[32];
    bool ok;
};

static void on_traced(void *arg, const char *verb, bool ok, int64_t us)
{
    struct seen *seen = arg;
    (void)us;
    snprintf(seen->verb, sizeof(seen->verb), "%s", verb);
    seen->ok = ok;
}

static struct store *open_with_documents(void)
{
    struct store *s = NULL;
    struct error err;
    store_family_add(&docs_store);
    store_family_add(&docs_store); /* changes nothing */
    memory_family_add(&docs_memory);
    memory_family_add(&docs_memory);
    assert_true(store_open_memory(&s, &err));
    return s;
}

TEST(test_family__a_wrapper_sees_its_verbs)
{
    struct seen seen = {0};
    struct document_row *row = NULL;
    struct error err;
    struct arena *mem = arena_new(1 << 16);
    struct store *failing = store_failing(open_with_documents());
    struct store *s = store_traced(failing, on_traced, &seen);
    assert_true(store_document(s, STR("notes"), STR("a.md"), mem, &row, &err));
    assert_null(row);
    assert_string_equal(seen.verb, "document");
    assert_true(seen.ok);
    store_failing_set(failing, 1, true);
    assert_false(store_document_by_id(s, STR("x"), mem, &row, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_string_equal(seen.verb, "document_by_id");
    assert_false(seen.ok);
    store_close(s);
    arena_free(mem);
}

TEST(test_family__an_op_that_no_family_has_is_refused)
{
    struct document_row row = {.folder = STR("notes"), .path = STR("a.md"), .ended_ms = 1};
    struct error err;
    struct store *s = open_with_documents();
    struct store_op ops[] = {op_document_end(&row), op_document_end(&row)};
    ops[0].kind = DOCUMENT_OPS_END; /* after the last op of documents */
    ops[1].kind = OP_COUNT;
    for (size_t i = 0; i < countof(ops); i++) {
        assert_false(store_write(s, &ops[i], 1, &err));
        assert_int_equal(err.code, ERR_INTERNAL);
    }
    store_close(s);
}
