/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles and matches the output of regex_translate.c.  PCRE2 makes a callout before each item of
 * the pattern, and the callouts count the work, weighted by the remaining text.  PCRE2's own match
 * limit starts anew at every position of the text, so it does not bound a match. */
#include "schema/regex.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct regex {
    pcre2_code *code;
    bool lenient;
};
struct regex_run {
    pcre2_match_context *context;
    pcre2_match_data *data;
    uint32_t left; /* steps left for this match */
};

static void free_code(void *arg)
{
    pcre2_code_free(arg);
}

size_t regex_size(const struct regex *re)
{
    size_t n = 0;

    pcre2_pattern_info(re->code, PCRE2_INFO_SIZE, &n);
    return n;
}

struct regex *regex_compile(struct str pattern, struct arena *mem, const char **ret_reason)
{
    struct regex *re = NULL;
    PCRE2_SIZE offset;
    pcre2_code *code;
    struct buf text;
    bool lenient;
    int error;

    buf_init(&text, SIZE_MAX);
    if (regex_translate(pattern, &text, &lenient, ret_reason)) {
        code = pcre2_compile((PCRE2_SPTR)buf_str(&text).p, text.n,
                             PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_AUTO_CALLOUT, &error, &offset,
                             NULL);
        if (code) {
            arena_on_free(mem, free_code, code);
            re = arena_new_of(mem, struct regex);
            *re = (struct regex){code, lenient};
        } else {
            *ret_reason = "the regular expression is wrong or past what we support";
        }
    }
    buf_release(&text);
    return re;
}

static int on_item(pcre2_callout_block *at, void *arg)
{
    struct regex_run *run = arg;
    size_t cost = 1 + (at->subject_length - at->current_position) / SCHEMA_STEP_BYTES;

    if (cost > run->left) {
        run->left = 0;
        return PCRE2_ERROR_CALLOUT;
    }
    run->left -= (uint32_t)cost;
    return 0;
}

struct regex_run *regex_run_new(void)
{
    struct regex_run *run = xcalloc(1, sizeof(*run));

    run->context = pcre2_match_context_create(NULL);
    run->data = pcre2_match_data_create(1, NULL);
    if (!run->context || !run->data)
        die("out of memory");
    pcre2_set_callout(run->context, on_item, run);
    pcre2_set_heap_limit(run->context, 4096); /* KiB */
    return run;
}

void regex_run_free(struct regex_run *run)
{
    if (!run)
        return;
    pcre2_match_data_free(run->data);
    pcre2_match_context_free(run->context);
    free(run);
}

static bool has_long_character(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] >= 0xf0)
            return true;
    return false;
}

enum schema_answer regex_match(struct regex_run *run, const struct regex *re, struct str text,
                               uint32_t *steps)
{
    uint32_t most = *steps < SCHEMA_PATTERN_STEPS_MAX ? *steps : SCHEMA_PATTERN_STEPS_MAX;
    int found;

    if (re->lenient && has_long_character(text))
        return SCHEMA_UNSURE;
    run->left = most;
    /* The JSON reader has checked that the text is UTF-8. */
    found = pcre2_match(re->code, (PCRE2_SPTR)text.p, text.n, 0, PCRE2_NO_UTF_CHECK, run->data,
                        run->context);
    *steps -= most - run->left;
    return found >= 0                     ? SCHEMA_VALID
           : found == PCRE2_ERROR_NOMATCH ? SCHEMA_INVALID
                                          : SCHEMA_UNSURE;
}
