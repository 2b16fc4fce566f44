/* SPDX-License-Identifier: Apache-2.0 */
/* A sink to a webhook: POST of a batch, signed as by Standard Webhooks.
 *
 *   webhook-id: msg_… (the same for every try of a batch)
 *   webhook-timestamp: seconds
 *   webhook-signature: v1,BASE64(HMAC-SHA256(key, ID "." TIMESTAMP "." BODY))
 *
 * Only a status of 2xx takes the batch.  No status makes Holdfast give it up: the receiver would miss
 * events. */
#include "sinks/webhook.h"

#include "sinks/out.h"

#include "base/clock.h"
#include "base/secret.h"
#include "crypto/base64.h"
#include "crypto/hash.h"
#include "http/target.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

#define REFUSED_WAIT_MS 60000 /* another try gets the same answer until the receiver changes */
#define KEY_PREFIX "whsec_"

struct webhook_out {
    struct sink_out out;
    struct sink_out_config config;
    struct str name;
    struct http_target *target;
    struct hmac_key *key; /* NULL: requests are not signed */
    struct buf head;      /* of the body */
};

/* The rest of "whsec_…" is the key in base64; any other text is the key itself.  *ret NULL: none is
 * wanted. */
static bool read_key(struct str secret, struct hmac_key **ret, struct error *err)
{
    struct arena *mem = arena_new_hidden(64 * 1024);
    bool is_base64 = str_starts(secret, STR(KEY_PREFIX));
    struct str key = secret;

    if (is_base64)
        key =
            base64_decode(str_n(secret.p + strlen(KEY_PREFIX), secret.n - strlen(KEY_PREFIX)), mem);
    bool ok = key.n >= CONFIG_SINK_SECRET_MIN;
    if (!ok)
        error_set(err, ERR_CONFIG,
                  is_base64 ? "\"secret\" begins with whsec_, so the rest is a key of at least %d "
                              "bytes in padded base64; copy it from the receiver again"
                            : "\"secret\" of a sink has at least %d bytes; use a longer one",
                  CONFIG_SINK_SECRET_MIN);
    else if (ret)
        *ret = hmac_key_new((const uint8_t *)key.p, key.n);
    arena_free(mem);
    return ok;
}

bool webhook_secret_check(struct str secret, struct error *err)
{
    return read_key(secret, NULL, err);
}

static bool target_of(const struct sink_out_config *c, struct http_target **ret, struct error *err)
{
    const struct server_config *to = &c->config->target;
    struct http_target_config config = {.url = to->url, .ca = to->tls_ca};
    struct buf lines;

    if (to->refusal.p)
        return error_set(err, ERR_CONFIG, "%.*s", STR_ARG(to->refusal));
    buf_init_secret(&lines, 64 * 1024);
    for (size_t i = 0; i < to->n_headers; i++) {
        buf_addstr(&lines, to->headers[i].name);
        buf_addz(&lines, ": ");
        buf_addstr(&lines, to->headers[i].value);
        buf_addz(&lines, "\r\n");
    }
    buf_addz(&lines, "Content-Type: application/json\r\n");
    config.lines = buf_str(&lines);
    bool ok = http_target_new(c->loop, &config, ret, err);
    buf_release(&lines);
    return ok;
}

static bool webhook_make(const struct sink_out_config *c, struct sink_out **ret, struct error *err)
{
    struct http_target *target = NULL;
    struct hmac_key *key = NULL;

    if (!target_of(c, &target, err))
        return false;
    if (c->config->target.secret.p && !read_key(c->config->target.secret, &key, err)) {
        http_target_free(target);
        return false;
    }
    struct webhook_out *o = xcalloc(1, sizeof(*o));
    o->out.type = &sink_webhook;
    o->config = *c;
    o->config.config = NULL;
    o->name = str_of(strndup(c->config->name.p, c->config->name.n));
    o->target = target;
    o->key = key;
    buf_init(&o->head, 4096);
    *ret = &o->out;
    return true;
}

static void webhook_free(struct sink_out *out)
{
    struct webhook_out *o = container_of(out, struct webhook_out, out);

    http_target_free(o->target);
    hmac_key_free(o->key);
    buf_release(&o->head);
    free((char *)o->name.p);
    free(o);
}

static void webhook_add(struct sink_out *o unused_arg, const struct sink_item *item, struct buf *to)
{
    buf_addz(to, to->n ? ",\n" : "");
    sink_item_write(item, to);
}

/* The same events give the same id, so a receiver can recognise a batch that came twice. */
static void make_id(const struct webhook_out *o, const struct sink_batch *b, char ret[40])
{
    uint8_t digest[SHA256_BYTES];
    char range[80];

    snprintf(range, sizeof(range), "|%lld|%lld|%u", (long long)b->first_id, (long long)b->last_id,
             b->n);
    struct str parts[] = {o->name, str_of(range), buf_str(&b->bytes)};
    sha256_parts(parts, countof(parts), digest);
    memcpy(ret, "msg_", 4);
    hex_encode(digest, 16, ret + 4);
}

static void add_signature(const struct webhook_out *o, const char *id, const char *at,
                          const struct str *body, size_t n, struct buf *lines)
{
    struct str parts[8] = {str_of(id), STR("."), str_of(at), STR(".")};
    uint8_t mac[SHA256_BYTES];
    char text[64];

    for (size_t i = 0; i < n; i++)
        parts[4 + i] = body[i];
    hmac_sha256(o->key, parts, 4 + n, mac);
    base64_encode(mac, sizeof(mac), text);
    buf_addf(lines, "webhook-signature: v1,%s\r\n", text);
}

static void write_head(struct webhook_out *o, const struct sink_batch *b)
{
    char made[CLOCK_TEXT];

    clock_format(b->made_ms, made);
    buf_reset(&o->head);
    buf_addf(&o->head,
             "{\"type\":\"holdfast.events\",\"timestamp\":\"%s\",\"data\":{\"sink\":\"%.*s\","
             "\"events\":[",
             made, STR_ARG(o->name));
}

static void on_answer(void *arg, const struct target_answer *a)
{
    struct webhook_out *o = arg;
    struct sink_answer answer = {.result = SINK_TAKEN, .wait_ms = a->retry_after_ms, .why = a->why};

    if (a->result != TARGET_TAKEN)
        answer.result = a->status == 413 ? SINK_TOO_LARGE : SINK_LATER;
    if (a->result == TARGET_REFUSED && answer.result == SINK_LATER &&
        answer.wait_ms < REFUSED_WAIT_MS)
        answer.wait_ms = REFUSED_WAIT_MS;
    o->config.done(o->config.arg, &answer);
}

static void webhook_send(struct sink_out *out, const struct sink_batch *b)
{
    struct webhook_out *o = container_of(out, struct webhook_out, out);
    char id[40], at[24];
    struct buf lines;

    write_head(o, b);
    make_id(o, b, id);
    snprintf(at, sizeof(at), "%lld", (long long)(clock_wall_ms() / 1000));
    struct str body[] = {buf_str(&o->head), buf_str(&b->bytes), STR("]}}\n")};
    buf_init(&lines, 4096);
    buf_addf(&lines, "webhook-id: %s\r\nwebhook-timestamp: %s\r\n", id, at);
    if (o->key)
        add_signature(o, id, at, body, countof(body), &lines);
    struct iovec parts[countof(body)];
    for (size_t i = 0; i < countof(body); i++)
        parts[i] = (struct iovec){(char *)body[i].p, body[i].n};
    http_target_post(o->target, STR_NONE, buf_str(&lines), parts, (int)countof(parts), on_answer,
                     o);
    buf_release(&lines);
}

const struct sink_out_type sink_webhook = {webhook_make, webhook_add, webhook_send, webhook_free};
