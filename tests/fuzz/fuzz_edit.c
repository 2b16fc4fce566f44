/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the edits of JSON with comments: an edit that is accepted gives text that parses,
 * a member that was set can be removed again, and text that parses never breaks. */
#include "config/edit.h"

#include <stdlib.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct str path[] = {{"s", 1}, {"x", 1}};
    struct str text = {size ? (const char *)data : "", size};
    struct error err = {0};
    struct buf with, without;
    bool found = false;

    buf_init(&with, SIZE_MAX);
    buf_init(&without, SIZE_MAX);
    for (size_t n = 1; n <= 2; n++) {
        buf_reset(&with);
        buf_reset(&without);
        if (!config_edit_set(text, path, n, STR("{\"a\":[1]}"), &with, &err)) {
            check(err.code == ERR_CONFIG && with.n == 0);
            continue;
        }
        check(config_edit_remove(buf_str(&with), path, n, &without, &found, &err) && found);
        buf_reset(&with);
        check(config_edit_remove(text, path, n, &with, &found, &err));
    }
    buf_release(&with);
    buf_release(&without);
    return 0;
}
