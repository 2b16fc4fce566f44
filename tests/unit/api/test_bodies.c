/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of bodies: limits at the limit and one past it, names that no path can say, and that
 * every row can be shown in the OpenAPI document. */
#include "api/bodies.h"

#include "products.h"
#include "test.h"

static bool bind_session(const char *json, struct session_body *ret, struct arena *mem,
                         struct error *err)
{
    struct js_doc doc;
    struct js_binding b = {.doc = &doc,
                           .mem = mem,
                           .code = ERR_BAD_INPUT,
                           .unknown_ok = body_session.unknown_ok,
                           .null_is_absent = true};

    assert_true(js_parse(str_of(json), &js_limits_request, mem, &doc, NULL));
    return js_bind(&b, js_root(&doc), body_session.fields, ret, err);
}

TEST(test_session_id__is_visible_ascii_that_a_path_can_hold)
{
    char longest[SESSION_ID_MAX + 1];

    memset(longest, 'a', sizeof(longest));
    assert_true(session_id_is_fit(str_n(longest, SESSION_ID_MAX)));
    assert_false(session_id_is_fit(str_n(longest, SESSION_ID_MAX + 1)));
    assert_true(session_id_is_fit(STR("Metrics")));
    assert_false(session_id_is_fit(STR("metrics")));
    assert_false(session_id_is_fit(STR("by-id")));
    assert_false(session_id_is_fit(STR("details")));
    assert_false(session_id_is_fit(STR("import")));
    assert_false(session_id_is_fit(STR("")));
    assert_false(session_id_is_fit(STR("..")));
    for (int c = 0; c < 256; c++) {
        char one[2] = {'x', (char)c};
        bool fits = c > ' ' && c < 0x7f && !strchr("/?#%\\", c);
        assert_int_equal(session_id_is_fit(str_n(one, 2)), fits);
    }
}

TEST(test_session_body__ttl_ends_at_thirty_days)
{
    static const struct {
        const char *json;
        int64_t ms; /* 0: refused */
    } rows[] = {
        {"{\"edge_mcp_id\":\"e\",\"ttl\":2592000}", SESSION_LIFE_MAX_MS},
        {"{\"edge_mcp_id\":\"e\",\"ttl\":2592001}", 0},
        {"{\"edge_mcp_id\":\"e\",\"ttl\":\"30d\"}", SESSION_LIFE_MAX_MS},
        {"{\"edge_mcp_id\":\"e\",\"ttl\":\"1ms\"}", 1},
        {"{\"edge_mcp_id\":\"e\",\"ttl\":0}", 0},
        {"{\"edge_mcp_id\":\"e\",\"ttl\":-3600}", 0},
        {"{\"edge_mcp_id\":\"e\",\"ttl\":\"-1h\"}", 0},
        {"{\"edge_mcp_id\":\"e\",\"ttl\":{}}", 0},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct arena *mem = arena_new(1 << 20);
        struct session_body body = {0};
        struct error err = {.code = ERR_NONE};
        bool ok = bind_session(rows[i].json, &body, mem, &err);
        assert_int_equal(ok, rows[i].ms != 0);
        assert_int_equal(err.code, ok ? ERR_NONE : ERR_BAD_DURATION);
        if (ok)
            assert_true(body.ttl_ms == rows[i].ms);
        arena_free(mem);
    }
}

TEST(test_uuid__is_read_in_any_case_and_kept_in_lower)
{
    struct arena *mem = arena_new(1 << 20);
    struct session_body body = {0};
    struct error err;

    assert_true(bind_session(
        "{\"edge_mcp_id\":\"e\",\"context_id\":\"01A1DFE0-6FBB-7000-B849-E51AC02E5F37\"}", &body,
        mem, &err));
    assert_true(str_eq(body.context_id, STR("01a1dfe0-6fbb-7000-b849-e51ac02e5f37")));
    assert_false(text_is_uuid(STR("01a1dfe0-6fbb-7000-b849-e51ac02e5f3g")));
    assert_false(text_is_uuid(STR("01a1dfe06fbb7000b849e51ac02e5f37")));
    arena_free(mem);
}

TEST(test_operations__tell_all_that_a_document_needs)
{
    size_t n;

    products_register();
    const struct api_operation *const *operations = api_operations(&n);
    for (size_t i = 0; i < n; i++) {
        const struct api_operation *op = operations[i];
        unsigned captures = 0, path_params = 0;
        assert_non_null(op->id);
        assert_non_null(op->summary);
        assert_non_null(op->run);
        assert_non_null(op->answers);
        for (const char *p = op->pattern; *p; p++)
            captures += *p == '{';
        for (const struct api_param *p = op->params; p && p->name; p++) {
            assert_non_null(p->help);
            path_params += strcmp(p->in, "path") == 0;
        }
        assert_int_equal(captures, path_params);
        for (const struct js_field *f = op->body ? op->body->fields : NULL; f && f->name; f++)
            assert_non_null(f->help);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(op->id, operations[k]->id);
    }
}

TEST(test_operations__name_schemas_that_exist)
{
    size_t n, n_schemas;

    products_register();
    const struct api_operation *const *operations = api_operations(&n);
    const struct api_schema *const *schemas = api_schemas(&n_schemas);
    for (size_t i = 0; i < n; i++)
        for (const struct api_answer *a = operations[i]->answers; a->status; a++) {
            bool found = !a->schema;
            for (size_t k = 0; k < n_schemas; k++)
                found = found || strcmp(schemas[k]->name, a->schema) == 0;
            assert_true(found);
        }
}
