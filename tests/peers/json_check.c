/* SPDX-License-Identifier: Apache-2.0 */
/* Driver for the differential run of our JSON reader: documents on stdin, each with its length as
 * four bytes, big end first; one byte on stdout for each: '1' taken, or why not: 'd' duplicate key,
 * 'l' limit, '0' not JSON. */
#include "json/read.h"

#include <stdio.h>
#include <stdlib.h>

#define LONGEST (64u << 20)

static char verdict(struct str text)
{
    struct arena *mem = arena_new(256 << 20);
    struct js_fault fault;
    struct js_doc doc;
    bool ok = js_parse(text, &js_limits_request, mem, &doc, &fault);

    arena_free(mem);
    return ok ? '1' : fault.duplicate ? 'd' : fault.limit ? 'l' : '0';
}

/* false at the end of input. */
static bool read_length(uint32_t *ret)
{
    unsigned char head[4];
    size_t got = fread(head, 1, sizeof(head), stdin);

    if (got == 0)
        return false;
    *ret = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
    if (got != sizeof(head) || *ret > LONGEST)
        die("the length of a document is cut off or too large; send four bytes, big end first");
    return true;
}

int main(void)
{
    uint32_t n;

    while (read_length(&n)) {
        /* Exactly as long as the document, so that a byte read too many is seen. */
        char *text = xmalloc(n);
        if (fread(text, 1, n, stdin) != n)
            die("a document is cut off; send as many bytes as its length says");
        putchar(verdict(str_n(text, n)));
        free(text);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
