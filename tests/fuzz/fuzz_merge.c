/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the smart merge: one byte where the edit begins, one how long it is, the new text
 * up to a NUL, then the document.  Whatever they are, the promises of critic.h hold. */
#include "critic_check.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct critic_edit edit = {.author = check_author};
    struct str accepted, source, after;
    const char *broken;
    struct arena *mem;
    struct critic c;

    if (size < 2)
        return 0;
    source = str_n((const char *)data + 2, size - 2);
    edit.fresh = str_split(&source, '\0');
    if (!source.p)
        return 0;
    mem = arena_new(SIZE_MAX);
    critic_parse(source, mem, &c);
    accepted = critic_accepted(&c, mem);
    edit.at = data[0] * accepted.n / 255;
    edit.n = data[1] * (accepted.n - edit.at) / 255;
    broken = check_edit(source, &edit, mem, &after);
    if (broken) {
        fprintf(stderr, "not so: %s\n", broken);
        abort();
    }
    arena_free(mem);
    return 0;
}
