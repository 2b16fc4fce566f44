/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of servers' eras, over a file. */
#include "test.h"

#include "upstream/eras.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/holdfast-eras-XXXXXX";

static struct str make_path(void)
{
    snprintf(path, sizeof(path), "/tmp/holdfast-eras-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return str_of(path);
}

static const struct era_entry sample = {.definition = {1, 2, 0xff},
                                        .identity = 0xfedcba9876543210u};

TEST(test_eras__come_back_from_their_file)
{
    struct eras *e = eras_open(make_path());
    struct era_entry modern = sample, only = sample;

    modern.era = MCP_MODERN;
    only.era = MCP_MODERN;
    only.refuses_initialize = true;
    eras_put(e, STR("a"), &sample);
    eras_put(e, STR("b-2"), &modern);
    eras_put(e, STR("c"), &only);
    eras_put(e, STR("d"), &only);
    eras_forget(e, STR("d"));
    eras_free(e);
    e = eras_open(str_of(path));
    assert_memory_equal(eras_find(e, STR("a"), sample.definition), &sample, sizeof(sample));
    assert_int_equal(eras_find(e, STR("b-2"), sample.definition)->era, MCP_MODERN);
    assert_false(eras_find(e, STR("b-2"), sample.definition)->refuses_initialize);
    assert_true(eras_find(e, STR("c"), sample.definition)->refuses_initialize);
    assert_null(eras_find(e, STR("d"), sample.definition));
    eras_free(e);
    unlink(path);
}

TEST(test_eras__hold_for_one_definition)
{
    struct eras *e = eras_open(STR_NONE);
    uint8_t other[ERAS_DEFINITION] = {9};

    eras_put(e, STR("a"), &sample);
    assert_non_null(eras_find(e, STR("a"), sample.definition));
    assert_null(eras_find(e, STR("a"), other));
    eras_free(e);
}

TEST(test_eras__of_a_thousand_servers_are_remembered)
{
    struct eras *e = eras_open(STR_NONE);
    char name[16];

    for (int i = 0; i <= ERAS_MAX; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        eras_put(e, str_of(name), &sample);
    }
    assert_non_null(eras_find(e, STR("s999"), sample.definition));
    assert_null(eras_find(e, STR("s1000"), sample.definition));
    eras_free(e);
}
