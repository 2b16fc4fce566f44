/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: text form, bounds on labels, histograms. */
#include "test.h"

#include "base/metric.h"

#include <pthread.h>

static struct buf page;

static const char *scrape(void)
{
    buf_release(&page);
    buf_init(&page, 1 << 20);
    metric_write(&page);
    return page.p;
}

static void done(void)
{
    buf_release(&page);
}

TEST(test_metric__unlabelled_counter_is_shown_from_the_start)
{
    struct metric *m = metric_register(METRIC_COUNTER, "t_plain_total", "Plain.", "", 1);

    assert_non_null(strstr(scrape(), "# HELP t_plain_total Plain.\n# TYPE t_plain_total counter\n"
                                     "t_plain_total 0\n"));
    metric_add(metric_cell(m, NULL, 0), 5);
    assert_non_null(strstr(scrape(), "\nt_plain_total 5\n"));
    done();
}

TEST(test_metric_register__same_name_is_the_same_metric)
{
    struct metric *m = metric_register(METRIC_GAUGE, "t_same", "Same.", "", 1);

    assert_ptr_equal(metric_register(METRIC_GAUGE, "t_same", "Same.", "", 1), m);
}

TEST(test_metric_cell__labels_are_bounded_and_the_rest_counts_as_other)
{
    struct metric *m = metric_register(METRIC_COUNTER, "t_bound_total", "Bound.", "server,how", 2);
    struct str a[] = {STR("a"), STR("ok")}, b[] = {STR("b"), STR("ok")}, c[] = {STR("c"), STR("x")},
               d[] = {STR("d"), STR("x")};

    metric_add(metric_cell(m, a, 2), 1);
    metric_add(metric_cell(m, b, 2), 2);
    metric_add(metric_cell(m, c, 2), 4);
    metric_add(metric_cell(m, d, 2), 8);
    metric_add(metric_cell(m, a, 2), 16);
    scrape();
    assert_non_null(strstr(page.p, "t_bound_total{server=\"a\",how=\"ok\"} 17\n"));
    assert_non_null(strstr(page.p, "t_bound_total{server=\"b\",how=\"ok\"} 2\n"));
    assert_non_null(strstr(page.p, "t_bound_total{server=\"_other\",how=\"_other\"} 12\n"));
    assert_null(strstr(page.p, "server=\"c\""));
    done();
}

TEST(test_metric_cell__values_cannot_break_the_page)
{
    struct metric *m = metric_register(METRIC_GAUGE, "t_hostile", "Hostile.", "name", 4);
    struct str evil = STR("a\"} 1\nfake 2\\\xff");

    metric_set(metric_cell(m, &evil, 1), 3);
    assert_non_null(strstr(scrape(), "t_hostile{name=\"a\\\"} 1\\nfake 2\\\\?\"} 3\n"));
    done();
}

TEST(test_metric_observe__buckets_are_cumulative_and_in_seconds)
{
    struct metric *m = metric_register(METRIC_HISTOGRAM, "t_took_seconds", "Took.", "op", 4);
    struct str op = STR("x");
    struct metric_cell *c = metric_cell(m, &op, 1);

    metric_observe_us(c, 100); /* exactly on a bound belongs to it */
    metric_observe_us(c, 101);
    metric_observe_us(c, 2000000);
    metric_observe_us(c, 999000000); /* past the last bound */
    metric_observe_us(c, -5);        /* a clock that stepped back counts as nothing */
    scrape();
    assert_non_null(strstr(page.p, "t_took_seconds_bucket{op=\"x\",le=\"0.0001\"} 2\n"));
    assert_non_null(strstr(page.p, "t_took_seconds_bucket{op=\"x\",le=\"0.00025\"} 3\n"));
    assert_non_null(strstr(page.p, "t_took_seconds_bucket{op=\"x\",le=\"60\"} 4\n"));
    assert_non_null(strstr(page.p, "t_took_seconds_bucket{op=\"x\",le=\"+Inf\"} 5\n"));
    assert_non_null(strstr(page.p, "t_took_seconds_sum{op=\"x\"} 1001.000201\n"));
    assert_non_null(strstr(page.p, "t_took_seconds_count{op=\"x\"} 5\n"));
    done();
}

static void *add_many(void *arg)
{
    for (int i = 0; i < 10000; i++)
        metric_add(arg, 1);
    return NULL;
}

TEST(test_metric_add__threads_lose_nothing)
{
    struct metric *m = metric_register(METRIC_COUNTER, "t_threads_total", "Threads.", "", 1);
    struct metric_cell *c = metric_cell(m, NULL, 0);
    pthread_t one, two;

    assert_int_equal(pthread_create(&one, NULL, add_many, c), 0);
    assert_int_equal(pthread_create(&two, NULL, add_many, c), 0);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert_int_equal(metric_value(c), 20000);
}

TEST(test_metric_write_of__leaves_out_other_values_and_takes_no_value_for_a_label)
{
    struct metric *m = metric_register(METRIC_COUNTER, "t_of_total", "Of.", "tool,tenant", 8);
    struct str mine[] = {STR("t"), STR("b")}, longer[] = {STR("t"), STR("bb")},
               sly[] = {STR("x\",tenant=\"b\","), STR("a")};

    metric_add(metric_cell(m, mine, 2), 1);
    metric_add(metric_cell(m, longer, 2), 1);
    metric_add(metric_cell(m, sly, 2), 1);
    buf_release(&page);
    buf_init(&page, 1 << 20);
    metric_write_of(&page, STR("tenant"), STR("b"));
    assert_non_null(strstr(page.p, "t_of_total{tool=\"t\",tenant=\"b\"} 1\n"));
    assert_null(strstr(page.p, "tenant=\"bb\""));
    assert_null(strstr(page.p, "tenant=\"a\""));
    done();
}
