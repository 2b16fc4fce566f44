/* SPDX-License-Identifier: Apache-2.0 */
/* Metric cells of tools/call, the only method with many calls, are looked up once per outcome. */
#include "call/call_impl.h"

#include "base/clock.h"
#include "base/metric.h"
#include "session/session_metrics.h"

static const char *const names[OUTCOME_COUNT] = {
    [OUTCOME_OK] = "ok",
    [OUTCOME_TOOL_ERROR] = "tool_error",
    [OUTCOME_ERROR] = "error",
    [OUTCOME_TIMEOUT] = "timeout",
    [OUTCOME_CANCELLED] = "cancelled",
    [OUTCOME_REFUSED] = "refused",
    [OUTCOME_UPSTREAM_LOST] = "upstream_lost",
};

struct str call_outcome_name(enum call_outcome outcome)
{
    return str_of(names[outcome]);
}

static enum call_outcome outcome_of(const struct call *c)
{
    if (c->has_answer) {
        if (c->answer.error)
            return OUTCOME_ERROR;
        bool failed = js_type_is(js_get(&c->answer.doc, c->answer.result, STR("isError")), JS_TRUE);
        return failed ? OUTCOME_TOOL_ERROR : OUTCOME_OK;
    }
    switch (c->err.code) {
    case ERR_TIMEOUT:
        return OUTCOME_TIMEOUT;
    case ERR_CANCELLED:
        return OUTCOME_CANCELLED;
    case ERR_LIMIT:
    case ERR_QUOTA:
        return OUTCOME_REFUSED;
    case ERR_UNREACHABLE:
        return OUTCOME_UPSTREAM_LOST;
    default:
        return OUTCOME_ERROR;
    }
}

static struct metric_cell *duration_cell(const struct call *c)
{
    static struct metric *durations;
    static struct metric_cell *of_tools[OUTCOME_COUNT];
    bool is_tool = c->kind == EXEC_DURABLE;

    if (is_tool && of_tools[c->outcome])
        return of_tools[c->outcome];
    if (!durations)
        durations = metric_register(METRIC_HISTOGRAM, "mcp_client_operation_duration_seconds",
                                    "From a client's request on its way to a server to the answer.",
                                    "mcp_method_name,error_type", 128);
    struct str labels[] = {c->request.method,
                           c->outcome == OUTCOME_OK ? STR("") : call_outcome_name(c->outcome)};
    struct metric_cell *cell = metric_cell(durations, labels, countof(labels));
    if (is_tool)
        of_tools[c->outcome] = cell;
    return cell;
}

/* The name of a tool that its server does not list may be any text from a client. */
static struct str tool_label(const struct call *c)
{
    return c->item ? c->tool : STR("_other");
}

void call_measure_answered(struct call *c)
{
    c->outcome = outcome_of(c);
    if (!c->sent_us)
        return;
    metric_observe_us(duration_cell(c), clock_mono_us() - c->sent_us);
    call_trace_end(c, c->outcome == OUTCOME_OK ? STR_NONE : call_outcome_name(c->outcome));
    c->sent_us = 0;
    if (c->kind == EXEC_DURABLE)
        session_metric_executed(c->session->tenant, tool_label(c), -1);
}
