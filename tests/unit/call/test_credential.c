/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "call/credential.h"

static void stamped(const char *name, const char *value, const char *request, const char *wanted)
{
    struct link_credential c = {CREDENTIAL_META, str_of(name), value ? str_of(value) : STR_NONE};
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_addz(&text, request);
    credential_stamp(c, &text);
    assert_str(buf_str(&text), wanted);
    buf_release(&text);
}

TEST(test_credential_stamp__adds_a_member_and_leaves_every_other_byte)
{
    stamped("k", "s\"1", "{\"id\":1, \"params\": {\"a\" : 1.0,\"_meta\":{ \"x\":2 } }}",
            "{\"id\":1, \"params\": {\"a\" : 1.0,\"_meta\":{ \"x\":2 ,\"k\":\"s\\\"1\"} }}");
    stamped("k", "s", "{\"params\":{\"_meta\":{}}}", "{\"params\":{\"_meta\":{\"k\":\"s\"}}}");
    stamped("k", "s", "{\"params\":{\"a\":1}}", "{\"params\":{\"a\":1,\"_meta\":{\"k\":\"s\"}}}");
}

TEST(test_credential_stamp__takes_the_place_of_a_member_of_that_name_however_it_is_spelt)
{
    stamped("k", "s", "{\"params\":{\"_meta\":{\"k\":\"theirs\",\"b\":1}}}",
            "{\"params\":{\"_meta\":{\"b\":1,\"k\":\"s\"}}}");
    stamped("k", "s", "{\"params\":{\"_meta\":{\"\\u006b\":{\"k\":1}}}}",
            "{\"params\":{\"_meta\":{\"k\":\"s\"}}}");
}

TEST(test_credential_stamp__without_a_credential_changes_nothing)
{
    stamped("k", NULL, "{\"params\":{\"_meta\":{\"k\":1}}}", "{\"params\":{\"_meta\":{\"k\":1}}}");
}
