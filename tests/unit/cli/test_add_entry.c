/* SPDX-License-Identifier: Apache-2.0 */
/* The entry that `holdfast add` writes: programs with their whole path, secrets by reference. */
#include "test.h"

#include "cli/add_entry.h"

static struct str seal(struct arena *mem, const char *entry, struct add_secret **ret, size_t *ret_n)
{
    struct error err;
    struct str sealed = STR_NONE;

    assert_true(add_entry_seal(str_of(entry), STR("gh"), mem, &sealed, ret, ret_n, &err));
    return sealed;
}

static void check_sealed(const char *entry, const char *wanted, const char *secret)
{
    struct arena *mem = arena_new(1 << 20);
    struct add_secret *secrets;
    size_t n;

    assert_string_equal(seal(mem, entry, &secrets, &n).p, wanted);
    assert_int_equal(n, secret ? 1 : 0);
    if (secret)
        assert_string_equal(secrets[0].value.p, secret);
    arena_free(mem);
}

TEST(test_add_entry__a_variable_with_a_secret_name_becomes_a_reference)
{
    check_sealed("{\"env\":{\"API_KEY\":\"v1\",\"LEVEL\":\"2\"}}",
                 "{\"env\":{\"API_KEY\":\"${secret:gh.API_KEY}\",\"LEVEL\":\"2\"}}", "v1");
}

TEST(test_add_entry__a_value_with_the_shape_of_a_token_becomes_a_reference)
{
    check_sealed("{\"env\":{\"X\":\"ghp_abcdefghijklmnopqrstuvwxyz0123456789\"}}",
                 "{\"env\":{\"X\":\"${secret:gh.X}\"}}",
                 "ghp_abcdefghijklmnopqrstuvwxyz0123456789");
}

TEST(test_add_entry__the_scheme_of_a_header_stays)
{
    check_sealed("{\"headers\":{\"Authorization\":\"Bearer abc\",\"Accept\":\"a b\"}}",
                 "{\"headers\":{\"Authorization\":\"Bearer ${secret:gh.Authorization}\",\"Accept\":"
                 "\"a b\"}}",
                 "abc");
}

TEST(test_add_entry__arguments_are_judged_by_their_flag)
{
    check_sealed("{\"args\":[\"--api-key\",\"k1\",\"--level\",\"2\"]}",
                 "{\"args\":[\"--api-key\",\"${secret:gh.api-key}\",\"--level\",\"2\"]}", "k1");
    check_sealed("{\"args\":[\"--token=k2\",\"-v\"]}",
                 "{\"args\":[\"--token=${secret:gh.token}\",\"-v\"]}", "k2");
    check_sealed("{\"args\":[\"--token\",\"--verbose\"]}", "{\"args\":[\"--token\",\"--verbose\"]}",
                 NULL);
}

TEST(test_add_entry__a_header_in_an_argument_is_sealed_behind_its_scheme)
{
    check_sealed(
        "{\"args\":[\"https://h\",\"--header\",\"Authorization: Basic dXNlcjpwYXNzd29yZA==\"]}",
        "{\"args\":[\"https://h\",\"--header\",\"Authorization: Basic "
        "${secret:gh.Authorization}\"]}",
        "dXNlcjpwYXNzd29yZA==");
    check_sealed("{\"args\":[\"--header\",\"X-Api-Key: s3cretvalue99\"]}",
                 "{\"args\":[\"--header\",\"X-Api-Key: ${secret:gh.X-Api-Key}\"]}",
                 "s3cretvalue99");
    check_sealed("{\"args\":[\"-H\",\"Authorization:Bearer k9\"]}",
                 "{\"args\":[\"-H\",\"Authorization:Bearer ${secret:gh.Authorization}\"]}", "k9");
    check_sealed("{\"args\":[\"--header=X-Api-Key:k9\"]}",
                 "{\"args\":[\"--header=X-Api-Key:${secret:gh.X-Api-Key}\"]}", "k9");
    check_sealed("{\"args\":[\"-HX-Api-Key: k9\"]}",
                 "{\"args\":[\"-HX-Api-Key: ${secret:gh.X-Api-Key}\"]}", "k9");
    check_sealed("{\"args\":[\"--header\",\"Accept: text/plain\",\"tokens:/data\"]}",
                 "{\"args\":[\"--header\",\"Accept: text/plain\",\"tokens:/data\"]}", NULL);
    check_sealed("{\"args\":[\"--header\",\"Authorization:${AUTH}\"]}",
                 "{\"args\":[\"--header\",\"Authorization:${AUTH}\"]}", NULL);
}

TEST(test_add_entry__no_name_of_a_secret_comes_from_text_that_is_no_name)
{
    check_sealed("{\"args\":[\"--secret\",\"dXNlcjpwYXNzd29yZA==\"]}",
                 "{\"args\":[\"--secret\",\"${secret:gh.secret}\"]}", "dXNlcjpwYXNzd29yZA==");
    check_sealed("{\"args\":[\"ghp_abcdefghijklmnopqrstuvwxyz0123456789=token\"]}",
                 "{\"args\":[\"${secret:gh.arg0}\"]}",
                 "ghp_abcdefghijklmnopqrstuvwxyz0123456789=token");
    check_sealed("{\"url\":\"https://a.example/?my%20token=k3\"}",
                 "{\"url\":\"https://a.example/?my%20token=${secret:gh.value}\"}", "k3");
}

TEST(test_add_entry__a_secret_inside_an_argument_is_found)
{
    check_sealed("{\"args\":[\"-e\",\"API_KEY=k4\",\"img\"]}",
                 "{\"args\":[\"-e\",\"API_KEY=${secret:gh.API_KEY}\",\"img\"]}", "k4");
    check_sealed("{\"args\":[\"--env=API_KEY=k4\"]}",
                 "{\"args\":[\"--env=API_KEY=${secret:gh.API_KEY}\"]}", "k4");
    check_sealed("{\"args\":[\"https://h/mcp?api_key=canary-55\"]}",
                 "{\"args\":[\"${secret:gh.arg0}\"]}", "https://h/mcp?api_key=canary-55");
}

TEST(test_add_entry__the_query_of_a_url_is_searched)
{
    check_sealed("{\"url\":\"https://a.example/mcp?api_key=k3&x=1\"}",
                 "{\"url\":\"https://a.example/mcp?api_key=${secret:gh.api_key}&x=1\"}", "k3");
}

TEST(test_add_entry__references_and_other_members_keep_their_bytes)
{
    const char *entry = "{\"env\":{\"TOKEN\":\"${GH_TOKEN}\",\"N\":\"\"},\"share\":\"all\",\"pin\":"
                        "true}";

    check_sealed(entry, entry, NULL);
}

TEST(test_add_entry__two_values_of_one_name_are_two_secrets)
{
    struct arena *mem = arena_new(1 << 20);
    struct add_secret *secrets;
    size_t n;

    assert_string_equal(
        seal(mem, "{\"env\":{\"a.token\":\"1\"},\"args\":[\"--a.token=2\"]}", &secrets, &n).p,
        "{\"env\":{\"a.token\":\"${secret:gh.a.token}\"},\"args\":[\"--a.token=${secret:gh.a.token."
        "2}\"]}");
    assert_int_equal(n, 2);
    arena_free(mem);
}

TEST(test_add_entry__a_program_is_found_in_path_and_path_is_kept)
{
    struct arena *mem = arena_new(1 << 20);
    struct str entry, program;
    struct error err;

    assert_true(add_entry_locate(STR("{\"command\":\"sh\",\"env\":{\"A\":\"1\"}}"),
                                 STR("relative:/nowhere:/bin"), mem, &entry, &program, &err));
    assert_string_equal(program.p, "/bin/sh");
    assert_string_equal(entry.p, "{\"command\":\"/bin/sh\",\"env\":{\"PATH\":\"relative:/nowhere:/"
                                 "bin\",\"A\":\"1\"}}");
    assert_true(add_entry_locate(STR("{\"command\":\"/bin/sh\",\"env\":{\"PATH\":\"/x\"}}"),
                                 STR("/bin"), mem, &entry, &program, &err));
    assert_string_equal(entry.p, "{\"command\":\"/bin/sh\",\"env\":{\"PATH\":\"/x\"}}");
    arena_free(mem);
}

TEST(test_add_entry__a_program_that_is_not_there_is_refused_by_name)
{
    struct arena *mem = arena_new(1 << 20);
    struct str entry, program;
    struct error err;

    assert_false(add_entry_locate(STR("{\"command\":\"no-such-program\"}"), STR("/bin"), mem,
                                  &entry, &program, &err));
    assert_non_null(strstr(err.text, "no-such-program"));
    assert_false(add_entry_locate(STR("{\"command\":\"/etc/passwd\"}"), STR("/bin"), mem, &entry,
                                  &program, &err));
    assert_non_null(strstr(err.text, "/etc/passwd"));
    arena_free(mem);
}
