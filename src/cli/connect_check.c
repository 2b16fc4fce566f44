/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect_check.h"

#include "base/log.h"
#include "cli/program.h"

#define CHECK_MS 45000
#define WORDS_MAX 200 /* bytes of a line of the client */
#define ARGS_MAX 8

const char *const connect_states[] = {
    [CONNECT_UNCHECKED] = "unchecked", [CONNECT_WORKS] = "works",   [CONNECT_LISTED] = "listed",
    [CONNECT_UNCLEAR] = "unclear",     [CONNECT_FAILED] = "failed",
};

static bool has(struct str line, const char *word)
{
    return word && memmem(line.p, line.n, word, strlen(word));
}

/* A command that lists all servers: only the line of ours counts. */
static bool is_about(const struct client *c, struct str line, struct str name, struct arena *mem)
{
    return c->check_takes_name || has(line, arena_printf(mem, "%.*s:", STR_ARG(name)).p);
}

static enum connect_state state_of(const struct client *c, struct str line)
{
    if (has(line, c->says_failed))
        return CONNECT_FAILED;
    if (has(line, c->says_works))
        return CONNECT_WORKS;
    return has(line, c->says_listed) ? CONNECT_LISTED : CONNECT_UNCLEAR;
}

static void read_answer(const struct client *c, struct str text, struct str name, struct arena *mem,
                        struct connect_check *check)
{
    while (text.n && check->state == CONNECT_UNCLEAR) {
        struct str line = str_trim(str_split(&text, '\n'));
        if (!is_about(c, line, name, mem))
            continue;
        check->state = state_of(c, line);
        if (check->state != CONNECT_UNCLEAR || !c->check_takes_name)
            check->words = arena_dup(mem, str_cut(line, WORDS_MAX));
    }
}

struct connect_check connect_check(const struct client *c, struct str name, struct arena *mem)
{
    struct connect_check check = {0};
    const char *argv[ARGS_MAX] = {c->program};
    struct buf out;
    size_t n = 1;

    if (!c->program || !c->check[0])
        return check;
    check.command = str_of(c->program);
    for (size_t i = 0; i < countof(c->check) && c->check[i]; i++)
        argv[n++] = c->check[i];
    if (c->check_takes_name)
        argv[n++] = arena_dup(mem, name).p;
    for (size_t i = 1; i < n; i++)
        check.command = arena_printf(mem, "%.*s %s", STR_ARG(check.command), argv[i]);
    buf_init(&out, SIZE_MAX / 4);
    struct program program = {.argv = argv, .timeout_ms = CHECK_MS, .out = &out};
    enum program_end end = program_run(&program);
    if (end != PROGRAM_MISSING)
        check.state = CONNECT_UNCLEAR;
    if (end == PROGRAM_EXITED)
        read_answer(c, buf_str(&out), name, mem, &check);
    else if (end == PROGRAM_LATE)
        check.words = arena_printf(mem, "no answer within %d seconds", CHECK_MS / 1000);
    buf_release(&out);
    return check;
}

void connect_check_show(const struct client *c, const struct connect_check *check, struct buf *out)
{
    static const char *const words[] = {
        [CONNECT_WORKS] = "reaches Holdfast",
        [CONNECT_LISTED] = "has read the entry; it connects when it starts",
        [CONNECT_UNCLEAR] = "did not say whether it reaches Holdfast",
        [CONNECT_FAILED] = "does not reach Holdfast",
    };

    if (check->state != CONNECT_UNCHECKED) {
        buf_addf(out, "\n%s %s (%.*s", c->title, words[check->state], STR_ARG(check->command));
        if (check->words.p)
            buf_addz(out, ": ");
        log_escape(out, check->words, WORDS_MAX);
        buf_addc(out, ')');
    }
    if (check->state == CONNECT_FAILED)
        buf_addz(out, "\nLook at `holdfast doctor`, and at what the command of the entry prints.");
    if (check->state != CONNECT_WORKS)
        buf_addf(out, "\nTo check: %s.", c->by_hand);
}
