/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an address outside; the contract is in target.h.  The error texts of the HTTP client
 * hold no bytes of a peer, so they may be shown to operators. */
#include "http/target.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/secret.h"
#include "io/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct http_target {
    struct loop *loop;
    struct str url_text;
    struct http_url url;
    struct tls_context *tls;
    struct http_pool *pool;
    struct secret lines;
    struct http_call *call; /* NULL: idle */
    int status;
    int64_t retry_after_ms;
    void (*done)(void *arg, const struct target_answer *a);
    void *arg;
};

bool http_target_new(struct loop *loop, const struct http_target_config *config,
                     struct http_target **ret, struct error *err)
{
    struct http_target *t = xcalloc(1, sizeof(*t));
    char *url = strndup(config->url.p, config->url.n);
    char *ca = config->ca.p ? strndup(config->ca.p, config->ca.n) : NULL;

    t->loop = loop;
    t->url_text = str_of(url);
    bool ok = http_url_parse(t->url_text, &t->url, err) &&
              (!t->url.is_tls || tls_client_new(ca, &t->tls, err));
    free(ca);
    if (!ok) {
        http_target_free(t);
        return false;
    }
    secret_set(&t->lines, config->lines);
    t->pool = http_pool_new(loop, &(struct http_pool_config){
                                      .host = t->url.host,
                                      .port = t->url.port,
                                      .tls = t->tls,
                                      .max_connections = 1,
                                      .connect_ms = 5000,
                                      .idle_ms = 30000,
                                      .max_body = TARGET_ANSWER_MAX,
                                  });
    *ret = t;
    return true;
}

void http_target_free(struct http_target *t)
{
    if (!t)
        return;
    if (t->call)
        http_call_cancel(t->call);
    if (t->pool)
        http_pool_free(t->pool);
    tls_free(t->tls);
    secret_release(&t->lines);
    free((char *)t->url_text.p);
    free(t);
}

bool http_target_is_busy(const struct http_target *t)
{
    return t->call != NULL;
}

struct str http_target_path(const struct http_target *t)
{
    return t->url.target;
}

/* Seconds, or a date: "Wed, 18 Nov 2026 07:28:00 GMT". */
static int64_t retry_after_ms(const struct http_head *head)
{
    struct str text = str_trim(http_header_get(head, STR("retry-after")));
    char date[40];
    struct tm tm = {0};
    uint64_t seconds;
    int64_t ms = 0;

    if (!text.n || text.n >= sizeof(date))
        return 0;
    memcpy(date, text.p, text.n);
    date[text.n] = '\0';
    if (str_to_u64(text, TARGET_RETRY_AFTER_MAX_MS, &seconds))
        ms = (int64_t)seconds * 1000;
    else if (strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        ms = (int64_t)timegm(&tm) * 1000 - clock_wall_ms();
    return ms < 0 ? 0 : ms > TARGET_RETRY_AFTER_MAX_MS ? TARGET_RETRY_AFTER_MAX_MS : ms;
}

static bool on_head(void *arg, const struct http_head *head)
{
    struct http_target *t = arg;

    t->status = head->status;
    t->retry_after_ms = retry_after_ms(head);
    return false;
}

static enum target_result judge(int status)
{
    if (status / 100 == 2)
        return TARGET_TAKEN;
    return status == 0 || status == 408 || status == 429 || status / 100 == 5 ? TARGET_LATER
                                                                              : TARGET_REFUSED;
}

static void on_done(void *arg, struct str body, const struct error *err, bool sent unused_arg)
{
    struct http_target *t = arg;
    struct target_answer a = {
        .result = judge(t->status), .status = t->status, .retry_after_ms = t->retry_after_ms};
    char why[sizeof(err->text)];

    if (!err)
        a.body = body;
    if (a.result != TARGET_TAKEN) {
        if (t->status)
            snprintf(why, sizeof(why), "it answered HTTP %d", t->status);
        else
            snprintf(why, sizeof(why), "%s", err ? err->text : "it did not answer");
        a.why = why;
    }
    t->call = NULL;
    t->done(t->arg, &a);
}

static const struct http_call_events events = {.on_head = on_head, .on_done = on_done};

void http_target_post(struct http_target *t, struct str path, struct str lines,
                      const struct iovec *parts, int n,
                      void (*done)(void *arg, const struct target_answer *a), void *arg)
{
    struct buf head;

    t->status = 0;
    t->retry_after_ms = 0;
    t->done = done;
    t->arg = arg;
    buf_init_secret(&head, 128 * 1024);
    buf_addz(&head, "User-Agent: holdfast/" HOLDFAST_VERSION "\r\n");
    buf_addstr(&head, secret_view(&t->lines));
    buf_addstr(&head, lines);
    t->call = http_call_start(t->pool, "POST", path.p ? path : t->url.target, buf_str(&head), parts,
                              n, TARGET_TIMEOUT_MS, &events, t);
    buf_release(&head);
}

int64_t http_target_wait_ms(unsigned tries, int64_t retry_after_ms)
{
    int64_t wait = TARGET_RETRY_FIRST_MS;

    for (unsigned i = 1; i < tries && wait < TARGET_RETRY_LAST_MS; i++)
        wait *= 2;
    if (wait > TARGET_RETRY_LAST_MS)
        wait = TARGET_RETRY_LAST_MS;
    wait = wait / 2 + (int64_t)random_below((uint64_t)wait / 2 + 1);
    return wait > retry_after_ms ? wait : retry_after_ms;
}
