/* SPDX-License-Identifier: Apache-2.0 */
/* The origin has redacted what it knew for a secret.  A file may come from a Holdfast with other
 * secrets or an older table of shapes, or from none, and this one promises the same of all its
 * records. */
#include "export/api/impl.h"

#include "audit/audit.h"
#include "json/read.h"

static bool is_json(struct str bytes)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct js_doc doc;
    bool ok = js_parse(bytes, &js_limits_upstream, mem, &doc, NULL);

    arena_free(mem);
    return ok;
}

static void redact(struct audit *a, struct recorded_body *b, struct arena *mem)
{
    if (!b->bytes.p)
        return;
    struct str clean = audit_redact(a, b->bytes, is_json(b->bytes));
    if (str_eq(clean, b->bytes))
        return;
    b->bytes = arena_dup(mem, clean);
    if (b->state == RECORDED_COMPLETE)
        b->state = RECORDED_REDACTED;
}

void import_redact(struct audit *a, struct recorded_call *call, struct arena *mem)
{
    redact(a, &call->params, mem);
    redact(a, &call->result, mem);
    if (call->error.p)
        call->error = arena_dup(mem, audit_redact(a, call->error, false));
}
