/* SPDX-License-Identifier: Apache-2.0 */
/* Decimals by their text: compared and divided exactly, whatever their size. */
#include "schema/number.h"

#include "test.h"

static struct decimal read(const char *text)
{
    struct decimal d;

    assert_true(decimal_read(str_of(text), &d));
    return d;
}

static int compare(const char *a, const char *b)
{
    struct decimal x = read(a), y = read(b);

    assert_int_equal(decimal_compare(&y, &x), -decimal_compare(&x, &y));
    return decimal_compare(&x, &y);
}

TEST(test_decimal__equal_numbers_are_equal_however_written)
{
    static const char *const rows[][2] = {
        {"0", "-0.000e5"},
        {"1", "1.0"},
        {"100", "1e2"},
        {"1.50", "15E-1"},
        {"-20.0", "-2e1"},
        {"0.001", "1e-3"},
        {"10.010", "10010e-3"},
        {"0e99999999999", "0"},
        {"12345678901234567890", "1234567890123456789e1"},
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct decimal a = read(rows[i][0]), b = read(rows[i][1]);

        assert_int_equal(decimal_compare(&a, &b), 0);
        assert_true(decimal_hash(&a) == decimal_hash(&b));
    }
}

TEST(test_decimal__is_compared_beyond_what_a_double_holds)
{
    assert_int_equal(compare("9007199254740992", "9007199254740993"), -1);
    assert_int_equal(compare("0.1000000000000000000001", "0.1"), 1);
    assert_int_equal(compare("-9007199254740992", "-9007199254740993"), 1);
    assert_int_equal(compare("1e400", "1e399"), 1);
    assert_int_equal(compare("9.99e2", "1000"), -1);
    assert_int_equal(compare("-1", "0"), -1);
    assert_int_equal(compare("1e-400", "0"), 1);
    assert_int_equal(compare("1.05", "1.5"), -1);
}

TEST(test_decimal__integers_may_be_written_with_a_fraction_or_exponent)
{
    static const struct {
        const char *text;
        bool integer;
    } rows[] = {{"1", true},     {"1.0", true}, {"1e2", true},    {"1.5e1", true}, {"1.5", false},
                {"1e-1", false}, {"0.0", true}, {"100e-2", true}, {"1e308", true}, {"-3.00", true}};
    for (size_t i = 0; i < countof(rows); i++) {
        struct decimal d = read(rows[i].text);
        assert_int_equal(decimal_is_integer(&d), rows[i].integer);
    }
}

static enum schema_answer divides(const char *divisor, const char *value)
{
    struct decimal d = read(divisor), v = read(value);

    return decimal_divides(&d, &v);
}

TEST(test_decimal__is_divided_exactly)
{
    assert_int_equal(divides("0.01", "19.99"), SCHEMA_VALID);
    assert_int_equal(divides("0.0001", "0.0075"), SCHEMA_VALID);
    assert_int_equal(divides("0.0001", "0.00751"), SCHEMA_INVALID);
    assert_int_equal(divides("1e-8", "12391239123"), SCHEMA_VALID);
    assert_int_equal(divides("0.123456789", "1e308"), SCHEMA_INVALID);
    assert_int_equal(divides("3", "1e308"), SCHEMA_INVALID);
    assert_int_equal(divides("7", "70000000000000000000000000000000000007"), SCHEMA_VALID);
    assert_int_equal(divides("20", "10"), SCHEMA_INVALID);
    assert_int_equal(divides("20", "0.0"), SCHEMA_VALID);
    assert_int_equal(divides("2.5", "-7.5"), SCHEMA_VALID);
}

TEST(test_decimal__divisors_of_nineteen_digits_are_the_longest)
{
    assert_int_equal(divides("1000000000000000001", "2000000000000000002"), SCHEMA_VALID);
    assert_int_equal(divides("9999999999999999999", "19999999999999999998"), SCHEMA_VALID);
    assert_int_equal(divides("9999999999999999999", "19999999999999999999"), SCHEMA_INVALID);
    assert_int_equal(divides("10000000000000000001", "20000000000000000002"), SCHEMA_UNSURE);
}

TEST(test_decimal__exponents_have_a_limit)
{
    struct decimal d;

    assert_true(decimal_read(STR("1e999999999"), &d));
    assert_true(decimal_read(STR("1E-999999999"), &d));
    assert_false(decimal_read(STR("1e1000000000"), &d));
    assert_false(decimal_read(STR("1e-1000000000"), &d));
    assert_false(decimal_read(STR("1e99999999999999999999999999"), &d));
}

TEST(test_decimal__counts_are_whole_and_not_negative)
{
    static const struct {
        const char *text;
        bool ok;
        uint64_t count;
    } rows[] = {{"0", true, 0},
                {"2.0", true, 2},
                {"1e3", true, 1000},
                {"9999999999999999999", true, 9999999999999999999u},
                {"1e19", true, UINT64_MAX},
                {"1e999999999", true, UINT64_MAX},
                {"-1", false, 0},
                {"1.5", false, 0}};
    for (size_t i = 0; i < countof(rows); i++) {
        struct decimal d = read(rows[i].text);
        uint64_t count = 0;

        assert_int_equal(decimal_to_count(&d, &count), rows[i].ok);
        assert_true(count == rows[i].count);
    }
}
