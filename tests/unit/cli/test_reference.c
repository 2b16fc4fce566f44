/* SPDX-License-Identifier: Apache-2.0 */
/* The pages in docs/generated/ are what the tables print today; tools/gen-docs prints them anew. */
#include "cli/cli.h"
#include "api/openapi.h"
#include "products.h"
#include "test.h"

#include <stdio.h>

static void read_page(const char *file, struct buf *out)
{
    struct buf path;
    char scratch[4096];
    size_t n;

    buf_init(&path, 4096);
    buf_addf(&path, TEST_SUPPORT_DIR "/../../docs/generated/%s", file);
    FILE *f = fopen(path.p, "r");
    assert_non_null(f);
    while ((n = fread(scratch, 1, sizeof(scratch), f)) > 0)
        buf_add(out, scratch, n);
    fclose(f);
    buf_release(&path);
}

static void check_page(const char *file, struct buf *printed)
{
    struct buf kept;

    buf_init(&kept, 1 << 20);
    read_page(file, &kept);
    if (!str_eq(buf_str(&kept), buf_str(printed)))
        fail_msg("docs/generated/%s is not what the tables say; run tools/gen-docs", file);
    buf_release(&kept);
    buf_release(printed);
}

TEST(test_reference__of_commands_is_current)
{
    struct buf printed;

    buf_init(&printed, 1 << 20);
    products_register();
    assert_true(cli_help_page("cli", &printed));
    check_page("cli.md", &printed);
}

TEST(test_reference__of_configuration_is_current)
{
    struct buf printed;

    buf_init(&printed, 1 << 20);
    assert_true(cli_help_page("config", &printed));
    check_page("config.md", &printed);
}

TEST(test_reference__of_rest_is_current)
{
    struct buf printed;

    buf_init(&printed, 1 << 20);
    products_register();
    openapi_print(&printed);
    check_page("openapi.json", &printed);
}
