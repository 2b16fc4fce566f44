/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the operation: parameters and answers. */
#include "analytics/api/table.h"

#include "analytics/report.h"

static const struct api_param params[] = {
    {.name = "group_by",
     .in = "query",
     .type = "string",
     .names = report_by_names,
     .default_text = "server",
     .help = "The label by which calls are grouped."},
    {.name = "bucket",
     .in = "query",
     .type = "string",
     .names = report_step_names,
     .default_text = "1h",
     .help = "Length of a bucket. Buckets of 5m are kept for 2 days, of 1h for 400 days, of 1d "
             "for ever."},
    {.name = "since",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "A time, or a duration before now such as 24h or 7d (default: 24h). Moved back to the "
             "border of a bucket."},
    {.name = "until",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "Likewise (default: now). Moved forward to the border of a bucket."},
    {.name = "limit",
     .in = "query",
     .type = "integer",
     .min = 1,
     .max = REPORT_GROUPS_MAX,
     .default_text = "50",
     .help = "Largest number of groups; those with the most calls come first."},
    {.name = "tenant",
     .in = "query",
     .type = "string",
     .min = 1,
     .max = 64,
     .help = "The caller's tenant. On the unix socket: any tenant (default: all)."},
    {0},
};

#define TALLY                                                                                      \
    {"calls", "integer", NULL, true, NULL, NULL, "Number of calls."},                              \
        {"errors",                                                                                 \
         "integer",                                                                                \
         NULL,                                                                                     \
         true,                                                                                     \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "Calls whose outcome is neither ok, redelivered nor cancelled."},                         \
        {"outcomes", "object", NULL, true, NULL, NULL, "Number of calls by outcome."},             \
        {"timed_calls", "integer", NULL, true, NULL, NULL, "Calls with a known duration."},        \
        {"p50_us",                                                                                 \
         "integer",                                                                                \
         NULL,                                                                                     \
         false,                                                                                    \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "Duration in microseconds that half of them did not exceed; absent: there are none."},    \
        {"p95_us", "integer", NULL, false, NULL, NULL, "Likewise for 95 in 100."},                 \
        {"p99_us", "integer", NULL, false, NULL, NULL, "Likewise for 99 in 100."},                 \
        {"request_bytes", "integer", NULL, true, NULL, NULL, "Bytes of the requests' params."},    \
        {"response_bytes", "integer", NULL, true, NULL, NULL, "Bytes of the results."},            \
        {"tokens", "integer", NULL, true, NULL, NULL, "Tokens that servers or clients reported."}, \
        {"tokens_estimated",                                                                       \
         "integer",                                                                                \
         NULL,                                                                                     \
         true,                                                                                     \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "Estimated tokens of the other calls: a quarter of their bytes."},                        \
        {"sessions", "integer", NULL, true, NULL, NULL, "Number of different sessions."},          \
    {                                                                                              \
        "sessions_are_estimated", "boolean", NULL, true, NULL, NULL,                               \
            "Whether `sessions` is an estimate (see sessions_error) or exact."                     \
    }

static const struct api_member total_members[] = {TALLY, {0}};
static const struct api_member bucket_members[] = {
    {"at", "string", NULL, true, "date-time", NULL, "Beginning of the bucket."}, TALLY, {0}};
static const struct api_member group_members[] = {
    {"label", "string|null", NULL, true, NULL, NULL,
     "Server, tool, client, owner, tenant, protocol versions, carrier or outcome, by group_by; "
     "null: "
     "the calls have none."},
    {"server", "string", NULL, false, NULL, NULL, "Server of the tool, with group_by=tool."},
    {"name", "string", NULL, false, NULL, NULL, "Name of the user or key, with group_by=user."},
    TALLY,
    {"buckets", "array", "AnalyticsBucket", true, NULL, NULL,
     "Buckets that have calls, in the order of time."},
    {0},
};
static const struct api_member members[] = {
    {"group_by", "string", NULL, true, NULL, report_by_names, "As in the request."},
    {"bucket", "string", NULL, true, NULL, report_step_names, "As in the request."},
    {"since", "string", NULL, true, "date-time", NULL, "Beginning of the first bucket."},
    {"until", "string", NULL, true, "date-time", NULL, "End of the last bucket."},
    {"quantile_error", "number", NULL, true, NULL, NULL,
     "Quantiles are off by at most this part of their value."},
    {"sessions_error", "number", NULL, true, NULL, NULL,
     "Standard error of estimated numbers of sessions, as a part of their value."},
    {"total", "object", "AnalyticsTotal", true, NULL, NULL, "All calls of the time."},
    {"groups", "array", "AnalyticsGroup", true, NULL, NULL,
     "The groups, those with the most calls first."},
    {"more_groups", "integer", NULL, true, NULL, NULL, "Number of groups beyond the limit."},
    {0},
};
static const struct api_schema schemas[] = {
    {"Analytics", members, "Calls, grouped by a label and by buckets of time."},
    {"AnalyticsTotal", total_members, "What was counted of calls."},
    {"AnalyticsGroup", group_members, "The calls with the same label."},
    {"AnalyticsBucket", bucket_members, "The calls of a group in one bucket."},
    {0},
};

static const struct api_answer answers[] = {{200, "Analytics", "The calls."}, {0}};

static const struct api_operation operations[] = {
    {.method = "GET",
     .pattern = "/api/v1/analytics",
     .id = "getAnalytics",
     .access = API_READ,
     .run = api_get_analytics,
     .summary = "Counts calls by a label and by buckets of time. Admins and auditors see their "
                "tenant, others their own calls.",
     .params = params,
     .answers = answers},
    {0},
};

static const struct api_tag tag = {
    "/v1/analytics", "Analytics",
    "Numbers of calls: outcomes, durations, bytes, tokens, sessions."};

static const struct api_example examples[] = {
    {"label", "\"files\""},
    {"outcomes", "{\"ok\": 41, \"tool_error\": 1}"},
    {"quantile_error", "0.0625"},
    {"sessions_error", "0.092"},
    {0},
};

const struct api_part analytics_api = {
    .operations = operations,
    .after = "verifyAudit",
    .schemas = schemas,
    .after_schema = "AuditProof",
    .tag = &tag,
    .after_tag = "Administration",
    .examples = examples,
};
