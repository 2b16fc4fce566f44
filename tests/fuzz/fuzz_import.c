/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of imported sessions: the lines of a file.  If the first byte is not '{', it is left
 * out and each line gets the chain that it should have, so that the reader goes further.  Whatever a
 * file is: a refusal names a line, and a call that is taken is stored and written again as it was. */
#include "export/line.h"
#include "export/read.h"
#include "recording/imported.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

static void check_call(struct str line, const struct recorded_call *call, struct arena *mem)
{
    struct event_row e = {.id = call->id};
    struct recorded_call back;
    struct buf out;

    imported_call_write(call, mem, &e);
    imported_call_read(&e, mem, &back);
    back.number = call->number;
    buf_init(&out, SIZE_MAX / 4);
    export_write_call(&out, &back, mem);
    expect(str_eq(buf_str(&out), str_n(line.p, line.n - EXPORT_LINE_TAIL)),
           "a call comes back as it was");
    buf_release(&out);
}

/* The line with the chain that follows `chain`. */
static struct str chained(struct str line, const struct export_chain *chain, struct arena *mem)
{
    struct export_chain next = *chain;
    struct buf out;

    buf_init(&out, SIZE_MAX / 4);
    buf_addstr(&out, line);
    export_line_end(&next, &out, 0);
    struct str ret = arena_dup(mem, str_n(out.p, out.n - 1));
    buf_release(&out);
    return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = str_n((const char *)data, size);
    bool chains = size && rest.p[0] != '{';
    struct export_read r = {.first_line = 1};
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct error err;
    bool ok = true;

    if (chains)
        rest = str_n(rest.p + 1, rest.n - 1);
    while (ok && rest.p) {
        struct export_line what;
        struct str line = str_split(&rest, '\n');
        if (chains)
            line = chained(line, &r.chain, mem);
        ok = export_read_line(&r, line, mem, &what, &err);
        expect(ok || str_starts(str_of(err.text), STR("line ")), "a refusal names the line");
        if (ok && what.type == EXPORT_LINE_CALL)
            check_call(line, &what.call, mem);
    }
    expect(!ok || export_read_end(&r, &err) == r.is_whole, "only a whole file is whole");
    arena_free(mem);
    return 0;
}
