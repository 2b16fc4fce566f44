/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of sessions, under the names and labels that the outside knows. */
#include "test.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/metric.h"
#include "session/session_metrics.h"

#include <stdio.h>
#include <unistd.h>

static bool shows(const char *line)
{
    struct buf out;
    buf_init(&out, SIZE_MAX);
    metric_write(&out);
    bool found = strstr(out.p, line) != NULL;
    if (!found)
        print_message("missing: %s\n", line);
    buf_release(&out);
    return found;
}

TEST(test_session_metrics__are_there_before_anything_happens)
{
    session_metrics_start();
    assert_true(shows("# TYPE sessions_created_total counter\n"));
    assert_true(shows("# TYPE tools_executed_total counter\n"));
    assert_true(shows("# TYPE tokens_used_total counter\n"));
    assert_true(shows("\nsessions_terminated_total 0\n"));
    assert_true(shows("\nsessions_expired_total 0\n"));
    assert_true(shows("# TYPE session_duration_seconds histogram\n"));
    assert_true(shows("\nholdfast_session_create_failures_total{reason=\"limit\"} 0\n"));
    assert_true(shows("\nholdfast_session_create_failures_total{reason=\"store\"} 0\n"));
    assert_true(shows("\nholdfast_crypt_failures_total{operation=\"seal\"} 0\n"));
    assert_true(shows("\nholdfast_crypt_failures_total{operation=\"open\"} 0\n"));
}

TEST(test_session_metrics__count_under_their_labels)
{
    for (int i = 0; i < 3; i++)
        session_metric_created(STR("acme"), STR("ide"));
    session_metric_created(STR("acme"), STR_NONE);
    session_metric_executed(STR("acme"), STR("echo"), 40);
    session_metric_executed(STR("acme"), STR("echo"), -1);
    session_metric_executed(STR("acme"), STR("grep"), 2);
    session_metric_create_failed(CREATE_OVER_LIMIT);
    session_metric_crypt_failed(CRYPT_OPEN);
    assert_true(shows("sessions_created_total{tenant_id=\"acme\",client_type=\"ide\"} 3\n"));
    assert_true(shows("sessions_created_total{tenant_id=\"acme\",client_type=\"\"} 1\n"));
    assert_true(shows("tools_executed_total{tenant_id=\"acme\",tool_name=\"echo\"} 2\n"));
    assert_true(shows("tools_executed_total{tenant_id=\"acme\",tool_name=\"grep\"} 1\n"));
    assert_true(shows("tokens_used_total{tenant_id=\"acme\"} 42\n"));
    assert_true(shows("holdfast_session_create_failures_total{reason=\"limit\"} 1\n"));
    assert_true(shows("holdfast_crypt_failures_total{operation=\"open\"} 1\n"));
}

TEST(test_session_metrics__durations_reach_from_seconds_to_days)
{
    session_metric_ended(SESSION_TERMINATED, 500);
    session_metric_ended(SESSION_EXPIRED, INT64_C(2) * 86400 * 1000);
    assert_true(shows("\nsessions_terminated_total 1\n"));
    assert_true(shows("\nsessions_expired_total 1\n"));
    assert_true(shows("session_duration_seconds_bucket{le=\"1\"} 1\n"));
    assert_true(shows("session_duration_seconds_bucket{le=\"86400\"} 1\n"));
    assert_true(shows("session_duration_seconds_bucket{le=\"604800\"} 2\n"));
    assert_true(shows("session_duration_seconds_sum 172800.500000\n"));
    assert_true(shows("session_duration_seconds_count 2\n"));
}

TEST(test_session_metrics__a_tenant_or_tool_too_many_is_one_of_the_others)
{
    char name[32];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "tool-%d", i);
        session_metric_executed(STR("acme"), str_of(name), -1);
    }
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "tenant-%d", i);
        session_metric_created(str_of(name), STR_NONE);
    }
    assert_true(shows("tools_executed_total{tenant_id=\"acme\",tool_name=\"tool-1000\"} 1\n"));
    assert_false(shows("tool_name=\"tool-1999\""));
    assert_true(shows("tools_executed_total{tenant_id=\"_other\",tool_name=\"_other\"} "));
    assert_true(shows("sessions_created_total{tenant_id=\"_other\",client_type=\"_other\"} "));
}

TEST(test_session_tell__says_who_made_it_and_never_its_handle)
{
    struct session_row row = {.id = STR("01890a5d-ac96-774b-bcce-b302099a8057"),
                              .handle = STR("ses_secretsecret"),
                              .tenant = STR("acme"),
                              .edge_mcp_id = STR("edge-1"),
                              .expires_ms = 1794733323456};
    char text[4096];
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    log_set_fd(fds[1]);
    log_setup(LOG_INFO, 1);
    session_report_created(&row);
    session_report_ended(row.id, row.tenant, SESSION_TERMINATED, STR("client request"), 1000);
    session_report_ended(row.id, row.tenant, SESSION_EXPIRED, STR("idle gap"), 1000);
    log_set_fd(2);
    log_setup(LOG_INFO, -1);
    close(fds[1]);
    ssize_t n = read(fds[0], text, sizeof(text) - 1);
    close(fds[0]);
    assert_true(n > 0);
    text[n] = '\0';
    assert_non_null(strstr(text, "\"Session created\""));
    assert_non_null(strstr(text, "\"session_id\":\"01890a5d-ac96-774b-bcce-b302099a8057\""));
    assert_non_null(strstr(text, "\"tenant_id\":\"acme\""));
    assert_non_null(strstr(text, "\"edge_mcp_id\":\"edge-1\""));
    assert_non_null(strstr(text, "\"expires_at\":\"2026-11-15T09:02:03.456Z\""));
    assert_non_null(strstr(text, "\"Session terminated\""));
    assert_non_null(strstr(text, "\"reason\":\"client request\""));
    assert_null(strstr(text, "idle gap"));
    assert_null(strstr(text, "ses_secret"));
}
