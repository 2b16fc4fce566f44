/* SPDX-License-Identifier: Apache-2.0 */
/* Cells are cached by their labels, so a call costs one map lookup and no rendering.  The map holds
 * at most as many cells as the metric; above that all labels share one cell. */
#include "session/session_metrics.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metric.h"

#include <stdlib.h>

#define MOST_TENANTS 256
#define MOST_TOOLS 1024
#define MOST_KEY 400

/* Metrics with up to two labels that callers set. */
struct labelled {
    const char *name, *help, *labels;
    unsigned most;
    struct metric *metric;
    struct map cells;
};

static struct labelled created = {
    "sessions_created_total", "Sessions made.", "tenant_id,client_type", MOST_TENANTS, NULL, {0}};
static struct labelled executed = {"tools_executed_total",
                                   "Tool executions, with those reported by REST.",
                                   "tenant_id,tool_name",
                                   MOST_TOOLS,
                                   NULL,
                                   {0}};
static struct labelled tokens_used = {
    "tokens_used_total", "Tokens that executions reported.", "tenant_id", MOST_TENANTS, NULL, {0}};

static struct metric_cell *terminated, *expired, *duration;
static struct metric_cell *create_failures[CREATE_STORE_FAILED + 1];
static struct metric_cell *crypt_failures[CRYPT_OPEN + 1];

static struct metric_cell *plain(enum metric_kind kind, const char *name, const char *help)
{
    return metric_cell(metric_register(kind, name, help, "", 1), NULL, 0);
}

static struct metric_cell *one_of(const char *name, const char *help, const char *label,
                                  const char *value)
{
    struct str values[] = {str_of(value)};
    return metric_cell(metric_register(METRIC_COUNTER, name, help, label, 4), values, 1);
}

void session_metrics_start(void)
{
    struct labelled *const all[] = {&created, &executed, &tokens_used};

    for (size_t i = 0; i < countof(all); i++)
        all[i]->metric = metric_register(METRIC_COUNTER, all[i]->name, all[i]->help, all[i]->labels,
                                         all[i]->most);
    terminated = plain(METRIC_COUNTER, "sessions_terminated_total", "Sessions ended on request.");
    expired = plain(METRIC_COUNTER, "sessions_expired_total", "Sessions that expired.");
    duration = plain(METRIC_LIFETIMES, "session_duration_seconds",
                     "From the creation of a session to its end.");
    for (int i = 0; i <= CREATE_STORE_FAILED; i++)
        create_failures[i] =
            one_of("holdfast_session_create_failures_total", "Sessions that could not be made.",
                   "reason", i == CREATE_OVER_LIMIT ? "limit" : "store");
    for (int i = 0; i <= CRYPT_OPEN; i++)
        crypt_failures[i] =
            one_of("holdfast_crypt_failures_total",
                   "Things that could not be sealed, or sealed things that could not be opened.",
                   "operation", i == CRYPT_SEAL ? "seal" : "open");
}

/* Starts the metrics in programs without a gateway, mainly tests. */
static void be_started(void)
{
    if (unlikely(!terminated))
        session_metrics_start();
}

static struct metric_cell *cell_of(struct labelled *l, struct str a, struct str b, size_t n)
{
    struct str values[] = {a, b};
    char key[MOST_KEY];
    size_t len = a.n + 1 + b.n;

    if (len > sizeof(key)) /* long labels are rare, and are cut in the text form */
        return metric_cell(l->metric, values, n);
    memcpy(key, a.p ? a.p : "", a.n);
    key[a.n] = '\0';
    memcpy(key + a.n + 1, b.p ? b.p : "", b.n);
    struct metric_cell *c = map_get(&l->cells, str_n(key, len));
    if (c)
        return c;
    c = metric_cell(l->metric, values, n);
    if (l->cells.n < l->most) {
        char *copy = xmalloc(len);
        memcpy(copy, key, len);
        map_put(&l->cells, str_n(copy, len), c);
    }
    return c;
}

void session_metric_created(struct str tenant, struct str client_type)
{
    be_started();
    metric_add(cell_of(&created, tenant, client_type, 2), 1);
}

void session_metric_create_failed(enum session_create_failure why)
{
    be_started();
    metric_add(create_failures[why], 1);
}

void session_metric_ended(enum session_status status, int64_t lived_ms)
{
    be_started();
    metric_add(status == SESSION_EXPIRED ? expired : terminated, 1);
    metric_observe_us(duration, lived_ms * 1000);
}

void session_metric_executed(struct str tenant, struct str tool, int64_t tokens)
{
    be_started();
    metric_add(cell_of(&executed, tenant, tool, 2), 1);
    if (tokens > 0)
        metric_add(cell_of(&tokens_used, tenant, STR_NONE, 1), tokens);
}

void session_metric_crypt_failed(enum crypt_failure what)
{
    be_started();
    metric_add(crypt_failures[what], 1);
}

void session_report_created(const struct session_row *row)
{
    char until[CLOCK_TEXT];

    session_metric_created(row->tenant, row->client_type);
    clock_format(row->expires_ms, until);
    log_info("Session created", LS("session_id", row->id), LS("tenant_id", row->tenant),
             LS("edge_mcp_id", row->edge_mcp_id),
             LZ("expires_at", row->expires_ms ? until : "never"));
    log_debug("Session created under a handle", LS("session_id", row->id),
              LS("handle", row->handle));
}

void session_report_ended(struct str id, struct str tenant, enum session_status status,
                          struct str reason, int64_t lived_ms)
{
    session_metric_ended(status, lived_ms);
    if (status == SESSION_TERMINATED)
        log_info("Session terminated", LS("session_id", id), LS("tenant_id", tenant),
                 LS("reason", reason));
}
