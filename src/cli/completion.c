/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts know commands, their verbs and their flags.  They never run holdfast, so a key press
 * costs nothing.  Summaries are plain ASCII sentences of the table; quotes in them are escaped. */
#include "cli/completion.h"

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || c == '-';
}

static int open_brackets(struct str text)
{
    int n = 0;

    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == '[' || text.p[i] == '(';
        n -= text.p[i] == ']' || text.p[i] == ')';
    }
    return n;
}

bool completion_next_verb(struct str *rest, struct str *ret)
{
    while (rest->n) {
        struct str part = str_split(rest, '|');
        size_t n = 0;
        int depth = part.n && part.p[0] == '[' ? 0 : open_brackets(part);

        while (depth > 0 && rest->n) /* alternatives of an argument are no verbs */
            depth += open_brackets(str_split(rest, '|'));

        while (part.n && part.p[0] == ' ')
            part = str_n(part.p + 1, part.n - 1);
        while (n < part.n && is_word(part.p[n]))
            n++;
        bool ends = n == part.n || part.p[n] == ' ' || part.p[n] == ']';
        if (n && ends && part.p[0] != '-') {
            *ret = str_n(part.p, n);
            return true;
        }
    }
    return false;
}

static void add_commands(struct buf *out)
{
    const struct cli_command *c;

    for (size_t i = 0; (c = cli_command_at(i)); i++)
        buf_addf(out, "%s%s", i ? " " : "", c->name);
}

/* Verbs, separated by blanks.  `help` explains commands too. */
static void add_verbs(struct buf *out, const struct cli_command *c)
{
    struct str rest = str_of(c->usage), verb;
    const char *before = "";

    while (completion_next_verb(&rest, &verb)) {
        buf_addf(out, "%s%.*s", before, STR_ARG(verb));
        before = " ";
    }
    if (strcmp(c->name, "help") == 0) {
        buf_addc(out, ' ');
        add_commands(out);
    }
}

/* A value that is the name of a file or directory. */
static bool names_file(const struct cli_flag *f)
{
    return f->value && (strcmp(f->value, "FILE") == 0 || strcmp(f->value, "DIR") == 0);
}

static void add_flags(struct buf *out, const struct cli_command *c)
{
    buf_addz(out, "--help");
    for (const struct cli_flag *f = c->flags; f && f->name; f++)
        buf_addf(out, " %s", f->name);
}

/* Text in single quotes: ' becomes '\'' in bash and zsh, and \' in fish. */
static void add_quoted(struct buf *out, const char *text, const char *quote, const char *special)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            buf_addz(out, quote);
        else if (strchr(special, *p))
            buf_addf(out, "\\%c", *p);
        else
            buf_addc(out, *p);
    }
}

/* bash. */

static void bash_cases(struct buf *out, const char *name,
                       void (*add)(struct buf *out, const struct cli_command *c))
{
    const struct cli_command *c;

    buf_addf(out, "    case $command in\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        buf_addf(out, "    %s) %s='", c->name, name);
        add(out, c);
        buf_addz(out, "' ;;\n");
    }
    buf_addz(out, "    esac\n");
}

static void add_values(struct buf *out, const struct cli_command *c)
{
    const char *before = "";

    for (const struct cli_flag *f = c->flags; f && f->name; f++) {
        if (!f->value)
            continue;
        buf_addf(out, "%s%s", before, f->name);
        before = " ";
    }
}

static void write_bash(struct buf *out)
{
    buf_addz(out, "# bash completion for holdfast; printed by `holdfast help --completion bash`\n"
                  "_holdfast()\n{\n"
                  "    local word=${COMP_WORDS[COMP_CWORD]} before= command= verbs= flags= "
                  "values=\n"
                  "    COMPREPLY=()\n"
                  "    if [ \"$COMP_CWORD\" -le 1 ]; then\n"
                  "        COMPREPLY=($(compgen -W '");
    add_commands(out);
    buf_addz(out, "' -- \"$word\"))\n        return\n    fi\n"
                  "    command=${COMP_WORDS[1]}\n"
                  "    before=${COMP_WORDS[COMP_CWORD - 1]}\n");
    bash_cases(out, "verbs", add_verbs);
    bash_cases(out, "flags", add_flags);
    bash_cases(out, "values", add_values);
    buf_addz(out, "    if [[ $word == -* ]]; then\n"
                  "        COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
                  "    elif [[ \" $values \" == *\" $before \"* ]]; then\n"
                  "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
                  "    elif [ \"$COMP_CWORD\" = 2 ] && [ -n \"$verbs\" ]; then\n"
                  "        COMPREPLY=($(compgen -W \"$verbs\" -- \"$word\"))\n"
                  "    else\n"
                  "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
                  "    fi\n}\n"
                  "complete -o filenames -F _holdfast holdfast\n");
}

/* zsh. */

static void zsh_command(struct buf *out, const struct cli_command *c)
{
    struct str rest = str_of(c->usage), verb;

    buf_addf(out, "    %s)\n        _arguments -s '--help[explain the command]' \\\n", c->name);
    for (const struct cli_flag *f = c->flags; f && f->name; f++) {
        buf_addf(out, "            '*%s%s[", f->name, f->value && f->name[1] == '-' ? "=" : "");
        add_quoted(out, f->help, "'\\''", "[]\\:");
        buf_addz(out, "]");
        if (f->value)
            buf_addf(out, ":%s:%s", f->value, names_file(f) ? "_files" : "");
        buf_addz(out, "' \\\n");
    }
    bool has_verbs = completion_next_verb(&rest, &verb);
    if (has_verbs) {
        buf_addz(out, "            '1:verb:(");
        add_verbs(out, c);
        buf_addz(out, ")' '*: :_files'\n        ;;\n");
    } else {
        buf_addz(out, "            '*: :_files'\n        ;;\n");
    }
}

static void write_zsh(struct buf *out)
{
    const struct cli_command *c;

    buf_addz(out, "#compdef holdfast\n"
                  "# zsh completion for holdfast; printed by `holdfast help --completion zsh`\n"
                  "_holdfast() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        buf_addf(out, "        '%s:", c->name);
        add_quoted(out, c->summary, "'\\''", "\\:");
        buf_addz(out, "'\n");
    }
    buf_addz(out, "    )\n    if (( CURRENT == 2 )); then\n"
                  "        _describe command commands\n        return\n    fi\n"
                  "    local name=$words[2]\n"
                  "    shift words\n    (( CURRENT-- ))\n    case $name in\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++)
        zsh_command(out, c);
    buf_addz(out, "    esac\n}\n"
                  "if [ \"$funcstack[1]\" = _holdfast ]; then\n    _holdfast \"$@\"\nelse\n"
                  "    compdef _holdfast holdfast\nfi\n");
}

/* fish. */

static void fish_flag(struct buf *out, const struct cli_command *c, const struct cli_flag *f)
{
    bool is_long = f->name[1] == '-';

    buf_addf(out, "complete -c holdfast -n '__holdfast_command %s' -%c %s", c->name,
             is_long ? 'l' : 's', f->name + (is_long ? 2 : 1));
    if (f->value)
        buf_addz(out, names_file(f) ? " -rF" : " -x");
    buf_addz(out, " -d '");
    add_quoted(out, f->help, "\\'", "\\");
    buf_addz(out, "'\n");
}

static void fish_command(struct buf *out, const struct cli_command *c)
{
    struct str rest = str_of(c->usage), verb;

    buf_addf(out, "complete -c holdfast -n __fish_use_subcommand -fa %s -d '", c->name);
    add_quoted(out, c->summary, "\\'", "\\");
    buf_addz(out, "'\n");
    bool has_verbs = completion_next_verb(&rest, &verb);
    if (has_verbs) {
        buf_addf(out,
                 "complete -c holdfast -n '__holdfast_command %s; and test (count "
                 "(commandline -opc)) -eq 2' -fa '",
                 c->name);
        add_verbs(out, c);
        buf_addz(out, "'\n");
    }
    for (const struct cli_flag *f = c->flags; f && f->name; f++)
        fish_flag(out, c, f);
    buf_addf(out,
             "complete -c holdfast -n '__holdfast_command %s' -l help -d 'explain the "
             "command'\n",
             c->name);
}

static void write_fish(struct buf *out)
{
    const struct cli_command *c;

    /* The first word decides: `docs add` is not `add`. */
    buf_addz(out, "# fish completion for holdfast; printed by `holdfast help --completion fish`\n"
                  "function __holdfast_command\n    set -l words (commandline -opc)\n"
                  "    test (count $words) -gt 1; and test $words[2] = $argv[1]\nend\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++)
        fish_command(out, c);
}

bool completion_write(const char *shell, struct buf *out)
{
    static const struct {
        const char *shell;
        void (*write)(struct buf *out);
    } scripts[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

    for (size_t i = 0; i < countof(scripts); i++) {
        if (strcmp(scripts[i].shell, shell) == 0) {
            scripts[i].write(out);
            return true;
        }
    }
    return false;
}
