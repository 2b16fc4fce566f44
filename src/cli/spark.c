/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/spark.h"

#include <stdlib.h>
#include <strings.h>

static const char *const blocks_of[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                        "\u2585", "\u2586", "\u2587", "\u2588"};
static const char *const ascii_of[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
#define HEIGHTS 8

bool spark_has_blocks(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < countof(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static size_t height(int64_t number, int64_t most)
{
    if (number <= 0)
        return 0;
    double part = (double)number / (double)most * HEIGHTS;
    size_t whole = (size_t)(part + 0.5);
    return whole < 1 ? 1 : whole > HEIGHTS ? HEIGHTS : whole;
}

struct str spark_line(const int64_t *numbers, size_t n, bool blocks, struct arena *mem)
{
    const char *const *marks = blocks ? blocks_of : ascii_of;
    char *line = arena_alloc(mem, 4 * n + 1), *to = line;
    int64_t most = 1;

    for (size_t i = 0; i < n; i++)
        most = numbers[i] > most ? numbers[i] : most;
    for (size_t i = 0; i < n; i++)
        to = stpcpy(to, marks[height(numbers[i], most)]);
    *to = '\0';
    return str_n(line, (size_t)(to - line));
}
