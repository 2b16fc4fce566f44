/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of redaction.  Whatever the body and the cap: what is stored fits, is JSON, and holds
 * no secret that stood under a secret's name and no value that is known.  Wide registers change
 * nothing. */
#include "audit/redact.h"
#include "base/buf.h"
#include "json/read.h"

#include <stdlib.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_body(struct redactor *r, struct str body, bool secrets, size_t cap)
{
    struct js_doc doc;
    struct arena *mem = arena_new(1 << 26);
    struct str out = redact_body(r, NULL, body, secrets, cap);

    check(out.p && out.n <= cap);
    check(js_parse(out, &js_limits_upstream, mem, &doc, NULL));
    arena_free(mem);
}

/* The input as the value of a member: nothing of it may be left when it is JSON. */
static void check_member(struct redactor *r, struct str value)
{
    struct js_doc doc;
    struct buf b;
    struct arena *mem = arena_new(1 << 26);

    buf_init(&b, SIZE_MAX / 4);
    buf_addz(&b, "{\"client_secret\":");
    buf_addstr(&b, value);
    buf_addz(&b, ",\"z\":0}");
    if (js_parse(buf_str(&b), &js_limits_upstream, mem, &doc, NULL) &&
        doc.nodes[0].type == JS_OBJECT &&
        js_raw(&doc, js_value_of(js_first(&doc, js_root(&doc)))).n + 24 == b.n) {
        struct str out = redact_body(r, NULL, buf_str(&b), true, b.n + REDACT_LEAST_CAP);
        bool literal = doc.nodes[2].type <= JS_TRUE;
        check(literal || str_eq(out, STR("{\"client_secret\":\"[redacted]\",\"z\":0}")));
    }
    buf_release(&b);
    arena_free(mem);
}

#define VALUE "7Q\"canary/value"
#define AS_JSON "7Q\\\"canary/value"

/* The input around a known value, as it is and as JSON has it. */
static void check_known(struct redactor *r, struct str body)
{
    struct known *k = known_new(false);
    struct own_secrets own = {.known = k};
    struct buf b;

    known_add(k, STR(VALUE), STR("a value"));
    known_finish(k);
    for (int json = 0; json < 2; json++) {
        buf_init(&b, SIZE_MAX / 4);
        buf_add(&b, body.p, body.n / 2);
        buf_addz(&b, json ? AS_JSON : VALUE);
        buf_add(&b, body.p + body.n / 2, body.n - body.n / 2);
        struct str out = redact_body(r, &own, buf_str(&b), true, 8 * b.n + 256);
        check(!memmem(out.p, out.n, "canary/value", 12) || memmem(body.p, body.n, "canary", 6));
        buf_release(&b);
    }
    known_unref(k);
}

static void check_narrow(struct redactor *r, struct str body)
{
    struct redactor *narrow = redactor_new();
    size_t cap = 8 * body.n + 256;

    redactor_be_narrow(narrow);
    check(
        str_eq(redact_body(r, NULL, body, true, cap), redact_body(narrow, NULL, body, true, cap)));
    redactor_free(narrow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1)
        return 0;
    struct redactor *r = redactor_new();
    struct str body = str_n((const char *)data + 1, n - 1);

    check_body(r, body, true, REDACT_LEAST_CAP + data[0]);
    check_body(r, body, false, REDACT_LEAST_CAP + data[0]);
    check_body(r, body, true, 8 * n + 256);
    check_member(r, body);
    check_known(r, body);
    check_narrow(r, body);
    redactor_free(r);
    return 0;
}
