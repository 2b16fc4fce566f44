/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the schema checker: a schema on the first line, an instance after it.  Whatever
 * they are, the check ends, its report fits its answer, a second check says the same, and so do
 * both inside `allOf`; inside `not` the answer is the opposite. */
#include "base/buf.h"
#include "schema/schema.h"

#include <stdlib.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_report(const struct schema_report *r, enum schema_answer answer)
{
    check(r->n <= SCHEMA_FINDINGS_MAX && (r->n > 0) == (answer == SCHEMA_INVALID));
    check((r->unsure_keyword != NULL) == (answer == SCHEMA_UNSURE));
    check((r->unsure_reason != NULL) == (answer == SCHEMA_UNSURE));
    for (unsigned i = 0; i < r->n; i++)
        check(r->findings[i].keyword && r->findings[i].sentence.n && r->findings[i].path.p);
}

static bool answer_of(struct str schema, const struct js_doc *given, struct arena *mem,
                      enum schema_answer *ret)
{
    struct schema_report report, again;
    struct js_doc doc;
    struct schema *s;
    struct error err;
    struct buf text;

    if (!js_parse(schema, &js_limits_upstream, mem, &doc, NULL) ||
        !schema_compile(&doc, js_root(&doc), mem, &s, &err))
        return false;
    *ret = schema_check(s, given, js_root(given), mem, &report);
    check_report(&report, *ret);
    check(schema_check(s, given, js_root(given), mem, &again) == *ret && again.n == report.n);
    buf_init(&text, SIZE_MAX);
    schema_report_write(&report, given, js_root(given), &text);
    check((text.n > 0) == (*ret == SCHEMA_INVALID));
    buf_release(&text);
    return true;
}

/* Compares with the answer when the schema stands between `before` and `after`; a limit may be
 * passed on the way, which is fine. */
static void check_wrapped(struct str schema, const struct js_doc *given, struct arena *mem,
                          const char *before, const char *after, enum schema_answer want)
{
    struct str text = arena_printf(mem, "%s%.*s%s", before, STR_ARG(schema), after);
    enum schema_answer answer;

    if (answer_of(text, given, mem, &answer))
        check(answer == want || answer == SCHEMA_UNSURE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size}, schema = str_split(&rest, '\n');
    struct arena *mem = arena_new(256 << 20);
    enum schema_answer answer;
    struct js_doc given;

    if (rest.p && js_parse(rest, &js_limits_request, mem, &given, NULL) &&
        answer_of(schema, &given, mem, &answer) && str_find(schema, '$') == schema.n &&
        str_find(schema, '\\') == schema.n) {
        check_wrapped(schema, &given, mem, "{\"allOf\":[", "]}", answer);
        check_wrapped(schema, &given, mem, "{\"not\":", "}", SCHEMA_INVALID - answer);
    }
    arena_free(mem);
    return 0;
}
