/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of watched tools: a definition as a server wrote it, and its bytes as a name.
 * Whatever they are: the canonical form is its own canonical form, its diff with itself is empty
 * and any other within its bounds, and what a name looks like looks like itself. */
#include "upstream/pins_canon.h"
#include "upstream/pins_diff.h"
#include "upstream/pins_lookalike.h"

#include <stdio.h>
#include <stdlib.h>

#define DIFF_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

static void check_definition(struct str text)
{
    struct buf canon, again, diff;

    buf_init(&canon, SIZE_MAX / 4);
    buf_init(&again, SIZE_MAX / 4);
    buf_init(&diff, SIZE_MAX / 4);
    if (tool_canon(text, &canon)) {
        expect(tool_canon(buf_str(&canon), &again), "the canonical form can be read");
        expect(str_eq(buf_str(&canon), buf_str(&again)), "it is its own canonical form");
        tool_diff(buf_str(&canon), buf_str(&again), DIFF_MAX, &diff);
        expect(diff.n == 0, "a definition does not differ from itself");
        tool_diff(STR_NONE, buf_str(&canon), DIFF_MAX, &diff);
        expect(diff.n > 0 && diff.n <= DIFF_MAX, "a diff has its bounds");
    } else {
        expect(canon.n == 0, "what cannot be read leaves nothing");
    }
    buf_release(&canon);
    buf_release(&again);
    buf_release(&diff);
}

static void check_name(struct str name)
{
    const char *why = NULL;
    struct buf once, twice;

    buf_init(&once, LOOKALIKE_FOLD_MAX);
    buf_init(&twice, LOOKALIKE_FOLD_MAX);
    if (lookalike_fold(name, &once, &why)) {
        expect(once.n > LOOKALIKE_MAX || lookalike_fold(buf_str(&once), &twice, &why),
               "what a name looks like is a name");
        expect(once.n > LOOKALIKE_MAX || str_eq(buf_str(&once), buf_str(&twice)),
               "it looks like itself");
        buf_reset(&twice);
        lookalike_fold_loosely(name, &twice);
    } else {
        expect(why != NULL, "a refusal says why");
    }
    buf_release(&once);
    buf_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_n((const char *)data, size);

    check_definition(text);
    check_name(text);
    return 0;
}
