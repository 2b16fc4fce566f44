/* SPDX-License-Identifier: Apache-2.0 */
/* The views of a document, and the mapping of accepted offsets to spans. */
#include "docs/critic/critic_impl.h"

struct str critic_span_accepted(const struct critic_span *span)
{
    switch (span->kind) {
    case CRITIC_CHANGE:
        return span->inserted;
    case CRITIC_HIGHLIGHT:
        return span->text;
    case CRITIC_PLAIN:
    case CRITIC_COMMENT:
        break;
    }
    return span->raw;
}

static struct str span_base(const struct critic_span *span)
{
    return span->kind == CRITIC_CHANGE ? span->deleted : critic_span_accepted(span);
}

static struct str span_bare_base(const struct critic_span *span)
{
    return span->kind == CRITIC_COMMENT ? STR_NONE : span_base(span);
}

static struct str render(const struct critic *c, struct str (*of)(const struct critic_span *),
                         struct arena *mem)
{
    size_t n = 0;
    char *p;

    if (c->n == 0)
        return str_n(c->source.p ? c->source.p : "", 0);
    if (c->n == 1 && c->spans[0].kind == CRITIC_PLAIN)
        return c->source;
    for (size_t i = 0; i < c->n; i++)
        n += of(&c->spans[i]).n;
    p = arena_alloc(mem, n + 1);
    n = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct str s = of(&c->spans[i]);
        if (s.n)
            memcpy(p + n, s.p, s.n);
        n += s.n;
    }
    p[n] = '\0';
    return str_n(p, n);
}

struct str critic_accepted(const struct critic *c, struct arena *mem)
{
    return render(c, critic_span_accepted, mem);
}

struct str critic_base(const struct critic *c, struct arena *mem)
{
    return render(c, span_base, mem);
}

struct str critic_bare_base(const struct critic *c, struct arena *mem)
{
    return render(c, span_bare_base, mem);
}

size_t critic_span_at(const struct critic *c, size_t accepted_at)
{
    size_t end = 0;

    for (size_t i = 0; i < c->n; i++) {
        end += critic_span_accepted(&c->spans[i]).n;
        if (accepted_at < end)
            return i;
    }
    return c->n ? c->n - 1 : 0;
}

size_t critic_accepted_offset(const struct critic *c, size_t span)
{
    size_t at = 0;

    for (size_t i = 0; i < span && i < c->n; i++)
        at += critic_span_accepted(&c->spans[i]).n;
    return at;
}
