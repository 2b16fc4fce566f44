/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: filling, wrapping, and the table outsiders see. */
#include "test.h"

#include "base/error.h"

#include <errno.h>

TEST(test_error_set__fills_code_and_text_and_returns_false)
{
    struct error err = {0};

    assert_false(error_set(&err, ERR_CONFLICT, "taken by %s", "x"));
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_string_equal(err.text, "taken by x");
    assert_false(error_set(NULL, ERR_CONFLICT, "nobody listens"));
}

TEST(test_error_set__text_may_quote_the_text_it_replaces)
{
    struct error err = {.text = "inner"};

    assert_false(error_set(&err, ERR_CONFIG, "outer of %s", err.text));
    assert_string_equal(err.text, "outer of inner");
}

TEST(test_error_wrap__puts_context_before_and_keeps_the_code)
{
    struct error err = {0};

    assert_false(error_set(&err, ERR_TIMEOUT, "no answer"));
    assert_false(error_wrap(&err, "calling %s", "echo"));
    assert_int_equal(err.code, ERR_TIMEOUT);
    assert_string_equal(err.text, "calling echo: no answer");
}

TEST(test_error_wrap__too_much_text_is_cut_and_terminated)
{
    struct error err = {0};
    char longest[600];

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_false(error_set(&err, ERR_TIMEOUT, "%s", longest));
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_false(error_wrap(&err, "why"));
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_memory_equal(err.text, "why: xxx", 8);
    assert_false(error_wrap(&err, "%s", longest));
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

TEST(test_error_sys__ends_with_the_reason)
{
    struct error err = {0};

    assert_false(error_sys(&err, ERR_INTERNAL, ENOENT, "opening %s", "f"));
    assert_string_equal(err.text, "opening f: No such file or directory");
}

TEST(test_error_info__every_code_has_a_full_row)
{
    for (int code = 0; code < ERR_COUNT; code++) {
        const struct error_info *info = error_info((enum err_code)code);
        assert_int_equal(info->code, code);
        assert_non_null(info->name);
        assert_non_null(info->help);
        assert_true(strlen(info->sentence) > 5);
        assert_true(info->http_status >= 200 && info->http_status < 600);
        assert_true(code == 0 ? info->exit_status == 0 : info->exit_status > 0);
        assert_ptr_equal(error_info_by_name(info->name), info);
    }
    assert_int_equal(error_info((enum err_code)9999)->code, ERR_INTERNAL);
    assert_null(error_info_by_name("no_such_thing"));
    assert_null(error_info_by_name(NULL));
}

TEST(test_error_info__what_peers_rely_on_does_not_move)
{
    const struct error_info *miss = error_info(ERR_SESSION_NOT_FOUND);

    assert_string_equal(miss->sentence, "Session not found or expired");
    assert_int_equal(miss->http_status, 404);
    assert_int_equal(miss->jsonrpc, -32000);
    assert_int_equal(error_info(ERR_PARSE)->jsonrpc, -32700);
    assert_int_equal(error_info(ERR_NO_METHOD)->jsonrpc, -32601);
    assert_int_equal(error_info(ERR_BAD_PARAMS)->jsonrpc, -32602);
    assert_int_equal(error_info(ERR_CONFIG)->exit_status, 7);
    assert_int_equal(error_info(ERR_CHAIN_BROKEN)->exit_status, 8);
    assert_int_equal(error_info(ERR_INTERRUPTED)->exit_status, 130);
    assert_int_equal(error_info(ERR_LIMIT)->http_status, 429);
}
