/* SPDX-License-Identifier: Apache-2.0 */
/* What every store promises about templates. */
#include "../store_contract.h"

#include "store/memory_impl.h"
#include "templates/store/family.h"
#include "templates/store/ops.h"
#include "templates/store/verbs.h"

/* As the program does at its start; the memory store is for tests only. */
__attribute__((constructor)) static void register_templates(void)
{
    store_family_add(&templates_store);
    memory_family_add(&templates_memory);
}

static struct template_change change(const char *tenant, const char *name, const char *spec,
                                     int64_t expected)
{
    return (struct template_change){.row = {.tenant = str_of(tenant),
                                            .name = str_of(name),
                                            .created_ms = NOW,
                                            .created_by = STR("user:alice"),
                                            .spec = str_of(spec)},
                                    .expected = expected};
}

/* The version; 0 when it was refused. */
static int64_t put(struct fixture *f, const char *tenant, const char *name, const char *spec,
                   int64_t expected, enum verdict verdict)
{
    struct template_change c = change(tenant, name, spec, expected);
    assert_int_equal(write_one(f, op_template_put(&c)), verdict);
    return verdict == VERDICT_OK ? c.row.version : 0;
}

static enum verdict drop(struct fixture *f, const char *tenant, const char *name, int64_t expected)
{
    struct template_change c = change(tenant, name, "", expected);
    return write_one(f, op_template_remove(&c));
}

static struct template_row *template_at(struct fixture *f, const char *tenant, const char *name,
                                        int64_t version)
{
    struct template_row *row = NULL;
    check(f,
          store_template(f->store, str_of(tenant), str_of(name), version, f->mem, &row, &f->err));
    return row;
}

static void versions_stay(struct fixture *f)
{
    struct template_row *rows = NULL;
    size_t n = 0;
    assert_null(template_at(f, "acme", "support", 0));
    assert_int_equal(put(f, "acme", "support", "{\"a\":1}", 0, VERDICT_OK), 1);
    assert_int_equal(put(f, "acme", "support", "{\"a\":2}", 1, VERDICT_OK), 2);
    assert_int_equal(put(f, "acme", "support", "{\"a\":1}", -1, VERDICT_OK), 3);
    struct template_row *row = template_at(f, "acme", "support", 0);
    assert_str(row->tenant, "acme");
    assert_str(row->name, "support");
    assert_str(row->created_by, "user:alice");
    assert_str(row->spec, "{\"a\":1}");
    assert_int_equal(row->version, 3);
    assert_int_equal(row->created_ms, NOW);
    assert_str(template_at(f, "acme", "support", 2)->spec, "{\"a\":2}");
    assert_null(template_at(f, "acme", "support", 4));
    assert_null(template_at(f, "umbrella", "support", 0));
    check(f, store_template_versions(f->store, STR("acme"), STR("support"), 0, 2, f->mem, &rows, &n,
                                     &f->err));
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].version, 3);
    assert_int_equal(rows[1].version, 2);
    assert_null(rows[0].spec.p);
    check(f, store_template_versions(f->store, STR("acme"), STR("support"), 2, 2, f->mem, &rows, &n,
                                     &f->err));
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].version, 1);
}
TEST(test_template_put__adds_a_version_and_leaves_the_others)
{
    on_every_store(versions_stay);
}

static void same_spec(struct fixture *f)
{
    assert_int_equal(put(f, "acme", "support", "{}", -1, VERDICT_OK), 1);
    assert_int_equal(put(f, "acme", "support", "{}", -1, VERDICT_OK), 1);
    assert_int_equal(put(f, "acme", "support", "{}", 1, VERDICT_OK), 1);
    assert_null(template_at(f, "acme", "support", 2));
}
TEST(test_template_put__the_same_spec_makes_no_version)
{
    on_every_store(same_spec);
}

static void expectations(struct fixture *f)
{
    put(f, "acme", "support", "{}", 1, VERDICT_STALE);
    put(f, "acme", "support", "{}", 0, VERDICT_OK);
    put(f, "acme", "support", "{}", 0, VERDICT_STALE);
    put(f, "acme", "support", "{\"a\":1}", 2, VERDICT_STALE);
    assert_int_equal(drop(f, "acme", "support", 2), VERDICT_STALE);
    assert_int_equal(drop(f, "acme", "other", 1), VERDICT_MISSING);
    assert_int_equal(drop(f, "umbrella", "support", -1), VERDICT_MISSING);
    assert_int_equal(drop(f, "acme", "support", 1), VERDICT_OK);
    assert_int_equal(drop(f, "acme", "support", -1), VERDICT_MISSING);
}
TEST(test_template_put__another_version_than_the_expected_one_is_stale)
{
    on_every_store(expectations);
}

static void removal(struct fixture *f)
{
    put(f, "acme", "support", "{\"a\":1}", -1, VERDICT_OK);
    put(f, "acme", "support", "{\"a\":2}", -1, VERDICT_OK);
    put(f, "acme", "supporter", "{}", -1, VERDICT_OK);
    put(f, "umbrella", "support", "{}", -1, VERDICT_OK);
    assert_int_equal(drop(f, "acme", "support", -1), VERDICT_OK);
    assert_null(template_at(f, "acme", "support", 0));
    assert_null(template_at(f, "acme", "support", 1));
    assert_non_null(template_at(f, "acme", "supporter", 0));
    assert_non_null(template_at(f, "umbrella", "support", 0));
    assert_int_equal(put(f, "acme", "support", "{\"a\":3}", 0, VERDICT_OK), 1);
}
TEST(test_template_remove__takes_every_version_of_that_template_alone)
{
    on_every_store(removal);
}

static void pages(struct fixture *f)
{
    struct template_row *rows = NULL;
    size_t n = 0;
    put(f, "acme", "b", "{}", -1, VERDICT_OK);
    put(f, "acme", "a", "{}", -1, VERDICT_OK);
    put(f, "acme", "C", "{}", -1, VERDICT_OK);
    put(f, "acme", "a", "{\"x\":1}", -1, VERDICT_OK);
    put(f, "umbrella", "a", "{}", -1, VERDICT_OK);
    check(f, store_templates_page(f->store, STR("acme"), STR_NONE, 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 2);
    assert_str(rows[0].name, "C");
    assert_str(rows[1].name, "a");
    assert_int_equal(rows[1].version, 2);
    assert_str(rows[1].spec, "{\"x\":1}");
    check(f, store_templates_page(f->store, STR("acme"), STR("a"), 2, f->mem, &rows, &n, &f->err));
    assert_int_equal(n, 1);
    assert_str(rows[0].name, "b");
}
TEST(test_templates_page__has_the_newest_of_each_in_the_order_of_names)
{
    on_every_store(pages);
}

static void caps(struct fixture *f)
{
    char text[32];
    for (int i = 1; i <= TEMPLATE_VERSIONS_MAX; i++) {
        snprintf(text, sizeof(text), "{\"a\":%d}", i);
        assert_int_equal(put(f, "acme", "t0", text, -1, VERDICT_OK), i);
    }
    put(f, "acme", "t0", "{\"a\":0}", -1, VERDICT_LIMIT);
    assert_int_equal(put(f, "acme", "t0", text, -1, VERDICT_OK), TEMPLATE_VERSIONS_MAX);
    for (int i = 1; i < TEMPLATES_MAX; i++) {
        snprintf(text, sizeof(text), "t%d", i);
        put(f, "acme", text, "{}", -1, VERDICT_OK);
    }
    put(f, "acme", "one-more", "{}", -1, VERDICT_LIMIT);
    put(f, "acme", "t1", "{\"a\":1}", -1, VERDICT_OK);
    put(f, "umbrella", "one-more", "{}", -1, VERDICT_OK);
    assert_int_equal(drop(f, "acme", "t0", -1), VERDICT_OK);
    put(f, "acme", "one-more", "{}", -1, VERDICT_OK);
}
TEST(test_template_put__templates_and_versions_are_counted_up_to_their_caps)
{
    on_every_store(caps);
}
