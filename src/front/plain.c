/* SPDX-License-Identifier: Apache-2.0 */
#include "front/plain.h"

#include "json/write.h"

struct str plain_refusal(struct http_request *r, const char *text)
{
    struct buf b;
    buf_init(&b, 8192);
    buf_addz(&b, "{\"error\":");
    js_quote(&b, str_of(text));
    buf_addc(&b, '}');
    struct str body = arena_dup(r->mem, buf_str(&b));
    buf_release(&b);
    return body;
}

void plain_refuse(struct http_request *r, int status, struct str headers, const char *text)
{
    http_reply(r, status, "application/json", headers, plain_refusal(r, text));
}
