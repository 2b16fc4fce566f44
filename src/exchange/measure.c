/* SPDX-License-Identifier: Apache-2.0 */
/* Metric cells are looked up once per (method, status class) and (method, outcome).  After that the
 * hot path adds to three integers. */
#include "exchange/measure.h"

#include "base/clock.h"
#include "base/metric.h"
#include "exchange/exchange.h"

#define CLASSES 6

static struct metric *requests, *durations;

struct cells {
    struct metric_cell *count[CLASSES];
    struct metric_cell *duration[OUTCOME_COUNT];
};

static struct cells *cells_of(const struct mcp_method *method)
{
    static const struct mcp_method *const unnamed[] = {&mcp_method_get, &mcp_method_delete,
                                                       &mcp_method_notification,
                                                       &mcp_method_response, &mcp_method_batch};
    static struct cells named[24], of_unnamed[countof(unnamed)], unknown;

    for (size_t i = 0; method && i < countof(named) && mcp_methods[i].name.p; i++)
        if (method == &mcp_methods[i])
            return &named[i];
    for (size_t i = 0; method && i < countof(unnamed); i++)
        if (method == unnamed[i])
            return &of_unnamed[i];
    return &unknown;
}

static void be_registered(void)
{
    if (requests)
        return;
    requests = metric_register(METRIC_COUNTER, "holdfast_requests_total", "MCP requests answered.",
                               "method,status", 128);
    durations = metric_register(METRIC_HISTOGRAM, "mcp_server_operation_duration_seconds",
                                "From the first byte of a request to its reply.",
                                "mcp_method_name,error_type", 192);
}

static struct str method_label(const struct exchange *x)
{
    return x->method ? x->method->name : STR("unknown");
}

static struct metric_cell *count_cell(const struct exchange *x, int class)
{
    char status[] = {(char)('0' + class), 'x', 'x', '\0'};
    struct str labels[] = {method_label(x), str_of(status)};

    be_registered();
    return metric_cell(requests, labels, countof(labels));
}

static struct metric_cell *duration_cell(const struct exchange *x, enum call_outcome outcome)
{
    struct str labels[] = {method_label(x),
                           outcome == OUTCOME_OK ? STR("") : call_outcome_name(outcome)};

    be_registered();
    return metric_cell(durations, labels, countof(labels));
}

/* The outcome of the call, or of our own reply without a call. */
static enum call_outcome outcome_of(const struct exchange *x)
{
    if (x->call && x->call->outcome != OUTCOME_OK)
        return x->call->outcome;
    return !x->is_error ? OUTCOME_OK : x->call ? OUTCOME_ERROR : OUTCOME_REFUSED;
}

void measure_exchange(const struct exchange *x)
{
    struct cells *c = cells_of(x->method);
    int class = x->status >= 100 && x->status < 600 ? x->status / 100 : 0;
    enum call_outcome outcome = outcome_of(x);

    if (unlikely(!c->count[class]))
        c->count[class] = count_cell(x, class);
    if (unlikely(!c->duration[outcome]))
        c->duration[outcome] = duration_cell(x, outcome);
    metric_add(c->count[class], 1);
    metric_observe_us(c->duration[outcome], clock_mono_us() - x->began_us);
}
