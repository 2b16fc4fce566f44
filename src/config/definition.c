/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of a server's definition.  A reload leaves a server alone when its digest is
 * unchanged.  Each part is written after its length, and an absent text differs from an empty text,
 * so two different definitions cannot produce the same bytes. */
#include "config/config_impl.h"

#include "crypto/hash.h"

static void put_number(struct buf *out, uint64_t v)
{
    unsigned char bytes[8];

    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    buf_add(out, bytes, sizeof(bytes));
}

static void put_text(struct buf *out, struct str s)
{
    put_number(out, s.p ? s.n : UINT64_MAX);
    buf_addstr(out, s);
}

static void put_texts(struct buf *out, const struct str *texts, size_t n)
{
    put_number(out, n);
    for (size_t i = 0; i < n; i++)
        put_text(out, texts[i]);
}

static void put_pairs(struct buf *out, const struct config_pair *pairs, size_t n)
{
    put_number(out, n);
    for (size_t i = 0; i < n; i++) {
        put_text(out, pairs[i].name);
        put_text(out, pairs[i].value);
        put_number(out, pairs[i].n_placeholders);
        for (size_t k = 0; k < pairs[i].n_placeholders; k++) {
            put_number(out, pairs[i].placeholders[k].at);
            put_text(out, pairs[i].placeholders[k].key);
            put_text(out, pairs[i].placeholders[k].fallback);
        }
    }
}

void definition_compute(struct server_config *s)
{
    struct buf out;

    buf_init_secret(&out, SIZE_MAX); /* headers and env hold secrets */
    put_text(&out, s->name);
    put_number(&out, s->kind);
    put_text(&out, s->command);
    put_number(&out, s->n_args);
    for (size_t i = 0; i < s->n_args; i++)
        put_text(&out, s->args[i]);
    put_pairs(&out, s->env, s->n_env);
    put_number(&out, s->n_inherit_env);
    for (size_t i = 0; i < s->n_inherit_env; i++)
        put_text(&out, s->inherit_env[i]);
    put_text(&out, s->cwd);
    put_text(&out, s->url);
    put_number(&out, s->sse);
    put_pairs(&out, s->headers, s->n_headers);
    put_text(&out, s->secret);
    put_text(&out, s->tls_ca);
    put_text(&out, s->credential_service);
    put_text(&out, s->credential_as);
    put_number(&out, s->n_key_names);
    for (size_t i = 0; i < s->n_key_names; i++)
        put_text(&out, s->key_names[i]);
    put_number(&out, s->share);
    put_number(&out, s->handles);
    put_number(&out, s->audit);
    put_number(&out, s->era);
    put_number(&out, s->pin);
    put_number(&out, (uint64_t)s->timeout_ms);
    put_texts(&out, s->only_tools, s->n_only_tools);
    put_texts(&out, s->without_tools, s->n_without_tools);
    put_text(&out, s->refusal);
    sha256(buf_str(&out), s->definition);
    buf_release(&out);
}
