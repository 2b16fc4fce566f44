/* SPDX-License-Identifier: Apache-2.0 */
/* Cells are looked up once per (method, status class): the hot path adds to two integers. */
#include "exchange/measure.h"

#include "base/clock.h"
#include "base/metric.h"
#include "exchange/exchange.h"

#define CLASSES 6

static struct metric *requests, *durations;

struct cells {
    struct metric_cell *count[CLASSES];
    struct metric_cell *duration;
};

static struct cells *cells_of(const struct mcp_method *method)
{
    static struct cells known[16], other;
    for (size_t i = 0; method && i < countof(known) && mcp_methods[i].name.p; i++)
        if (method == &mcp_methods[i])
            return &known[i];
    return &other;
}

static void fill(struct cells *c, const struct mcp_method *method, int class)
{
    struct str name = method ? method->name : STR("unknown");
    char status[] = {(char)('0' + class), 'x', 'x', '\0'};
    struct str labels[] = {name, str_of(status)};

    if (!requests) {
        requests = metric_register(METRIC_COUNTER, "holdfast_requests_total",
                                   "MCP requests answered.", "method,status", 128);
        durations = metric_register(METRIC_HISTOGRAM, "mcp_server_operation_duration_seconds",
                                    "From the first byte of a request to its reply.",
                                    "mcp_method_name", 32);
    }
    c->count[class] = metric_cell(requests, labels, 2);
    if (!c->duration)
        c->duration = metric_cell(durations, labels, 1);
}

void measure_exchange(const struct exchange *x)
{
    struct cells *c = cells_of(x->method);
    int class = x->status >= 100 && x->status < 600 ? x->status / 100 : 0;

    if (!c->count[class] || !c->duration)
        fill(c, x->method, class);
    metric_add(c->count[class], 1);
    metric_observe_us(c->duration, clock_mono_us() - x->began_us);
}
