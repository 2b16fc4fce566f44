/* SPDX-License-Identifier: Apache-2.0 */
/* Driver for the official suite of JSON Schema: a schema and an instance on stdin, again and again,
 * each with its length as four bytes, big end first; one line on stdout for each pair: "valid",
 * "invalid KEYWORD", "unsure KEYWORD: REASON" or "error TEXT". */
#include "schema/schema.h"

#include <stdio.h>
#include <stdlib.h>

#define LONGEST (16u << 20)

static void answer(struct str schema, struct str instance)
{
    struct arena *mem = arena_new(256 << 20);
    struct js_doc wanted, given;
    struct schema_report report;
    struct schema *s;
    struct error err;

    if (!js_parse(schema, &js_limits_upstream, mem, &wanted, NULL) ||
        !js_parse(instance, &js_limits_request, mem, &given, NULL)) {
        puts("error not JSON");
    } else if (!schema_compile(&wanted, js_root(&wanted), mem, &s, &err)) {
        printf("error %s\n", err.text);
    } else {
        switch (schema_check(s, &given, js_root(&given), mem, &report)) {
        case SCHEMA_VALID:
            puts("valid");
            break;
        case SCHEMA_INVALID:
            printf("invalid %s\n", report.findings[0].keyword);
            break;
        case SCHEMA_UNSURE:
            printf("unsure %s: %s\n", report.unsure_keyword, report.unsure_reason);
        }
    }
    arena_free(mem);
}

/* false at the end of input.  Exactly as long as what was sent, so that a byte read too many is
 * seen. */
static bool read_text(struct str *ret)
{
    unsigned char head[4];
    size_t got = fread(head, 1, sizeof(head), stdin);
    uint32_t n;
    char *text;

    if (got == 0)
        return false;
    n = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
    if (got != sizeof(head) || n > LONGEST)
        die("the length of a text is cut off or too large; send four bytes, big end first");
    text = xmalloc(n);
    if (fread(text, 1, n, stdin) != n)
        die("a text is cut off; send as many bytes as its length says");
    *ret = str_n(text, n);
    return true;
}

int main(void)
{
    struct str schema, instance;

    while (read_text(&schema) && read_text(&instance)) {
        answer(schema, instance);
        free((char *)schema.p);
        free((char *)instance.p);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
