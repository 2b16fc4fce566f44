/* SPDX-License-Identifier: Apache-2.0 */
/* Pages in the man macros of roff.  Text of tables is escaped, so no sentence becomes a request. */
#include "cli/man.h"

#include "api/api.h"
#include "config/config.h"

#define REFERENCE_MAX (1024 * 1024)

/* A byte of text; `at_start`: it begins a line. */
static void add_char(struct buf *out, char c, bool at_start)
{
    if (at_start && (c == '.' || c == '\''))
        buf_addz(out, "\\&");
    if (c == '\\')
        buf_addz(out, "\\e");
    else if (c == '-')
        buf_addz(out, "\\-");
    else if (c == '\'')
        buf_addz(out, "\\(aq");
    else if (c == '^')
        buf_addz(out, "\\(ha");
    else if (c == '~')
        buf_addz(out, "\\(ti");
    else
        buf_addc(out, c);
}

/* Whether a "[words](link)" begins at s.p[at]. */
static bool is_link(struct str s, size_t at)
{
    struct str rest = str_n(s.p + at, s.n - at);
    size_t end = str_find(rest, ']');

    return rest.p[0] == '[' && end + 1 < rest.n && rest.p[end + 1] == '(';
}

/* Text in which `code` of Markdown is bold and [words](link) are the words. */
static void add_text(struct buf *out, struct str s)
{
    bool bold = false, link = false;

    for (size_t i = 0; i < s.n; i++) {
        bool at_start = out->n == 0 || out->p[out->n - 1] == '\n';
        if (s.p[i] == '`') {
            bold = !bold;
            buf_addz(out, bold ? "\\fB" : "\\fR");
        } else if (!bold && is_link(s, i)) {
            link = true;
        } else if (link && s.p[i] == ']') {
            link = false;
            while (i + 1 < s.n && s.p[i] != ')')
                i++;
        } else {
            add_char(out, s.p[i], at_start);
        }
    }
    if (bold)
        buf_addz(out, "\\fR");
}

static void add_line(struct buf *out, const char *text)
{
    add_text(out, str_of(text));
    buf_addc(out, '\n');
}

static void add_head(struct buf *out, const char *title, const char *section, const char *name,
                     const char *what)
{
    buf_addf(out,
             ".\\\" SPDX-License-Identifier: Apache-2.0\n"
             ".\\\" Printed by holdfast help --man %s\n"
             ".TH %s %s \"\" \"holdfast " HOLDFAST_VERSION "\" \"Holdfast\"\n.SH NAME\n",
             name, title, section);
    add_text(out, str_of(name));
    buf_addz(out, " \\- ");
    add_line(out, what);
}

/* ".TP", a bold name, an italic value, and the sentence. */
static void add_item(struct buf *out, const char *name, const char *value, const char *help)
{
    buf_addz(out, ".TP\n\\fB");
    add_text(out, str_of(name));
    buf_addz(out, "\\fR");
    if (value) {
        buf_addz(out, " \\fI");
        add_text(out, str_of(value));
        buf_addz(out, "\\fR");
    }
    buf_addc(out, '\n');
    add_line(out, help);
}

static void add_command(struct buf *out, const struct cli_command *c)
{
    buf_addf(out, ".SS holdfast %s\n", c->name);
    add_line(out, c->summary);
    buf_addf(out, ".PP\n\\fBholdfast %s\\fR ", c->name);
    add_line(out, c->usage);
    for (const struct cli_flag *f = c->flags; f && f->name; f++)
        add_item(out, f->name, f->value, f->help);
    buf_addz(out, ".PP\nExamples:\n.PP\n.RS\n.nf\n");
    for (size_t i = 0; i < countof(c->examples); i++)
        if (c->examples[i])
            add_line(out, c->examples[i]);
    buf_addz(out, ".fi\n.RE\n");
}

static void add_topic(struct buf *out, const char *head, const char *topic)
{
    const char *name, *help;

    buf_addf(out, ".SH %s\n", head);
    for (size_t i = 0; cli_topic_row(topic, i, &name, &help); i++)
        add_item(out, name, NULL, help);
}

static void write_holdfast(struct buf *out)
{
    const struct cli_command *c;

    add_head(out, "HOLDFAST", "1", "holdfast", "the session layer for MCP");
    buf_addz(out, ".SH SYNOPSIS\n\\fBholdfast\\fR \\fICOMMAND\\fR [\\fIflags\\fR]\n"
                  ".SH DESCRIPTION\nHoldfast serves MCP servers to MCP clients, and keeps their "
                  "sessions, an audit of their calls and their documents.\n"
                  "Data goes to standard output, messages go to standard error.\n.SH COMMANDS\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++)
        add_command(out, c);
    add_topic(out, "EXIT STATUS", "exit-codes");
    add_topic(out, "ENVIRONMENT", "environment");
    buf_addz(out, ".SH FILES\n");
    add_item(out, "/etc/holdfast/holdfast.json", NULL, "configuration of the system service");
    add_item(out, "~/.config/holdfast/holdfast.json", NULL, "configuration of a user");
    add_item(out, "/var/lib/holdfast", NULL, "data of the system service");
    add_item(out, "~/.local/share/holdfast", NULL, "data of a user");
    buf_addz(out, ".SH SEE ALSO\n\\fBholdfast.json\\fR(5), \\fBholdfast\\-api\\fR(7)\n");
}

/* One cell of a Markdown row, without blanks around it. */
static struct str take_cell(struct str *row)
{
    struct str cell = str_split(row, '|');

    while (cell.n && cell.p[0] == ' ')
        cell = str_n(cell.p + 1, cell.n - 1);
    while (cell.n && cell.p[cell.n - 1] == ' ')
        cell.n--;
    return cell;
}

/* "| `key` | takes | default | help |" */
static void add_option(struct buf *out, struct str row)
{
    (void)take_cell(&row);
    struct str key = take_cell(&row), takes = take_cell(&row), otherwise = take_cell(&row);

    buf_addz(out, ".TP\n");
    add_text(out, key);
    buf_addz(out, "\n");
    struct str help = take_cell(&row);
    if (help.n) {
        add_text(out, help);
        buf_addc(out, '\n');
    }
    buf_addz(out, "Takes ");
    add_text(out, takes);
    if (otherwise.n) {
        buf_addz(out, "; default: ");
        add_text(out, otherwise);
    }
    buf_addz(out, ".\n");
}

/* The text of docs/generated/config.md: paragraphs and the rows of its table. */
static void write_config(struct buf *out)
{
    struct buf page;
    struct str rest;

    add_head(out, "HOLDFAST.JSON", "5", "holdfast.json", "configuration of Holdfast");
    buf_addz(out, ".SH DESCRIPTION\n");
    buf_init(&page, REFERENCE_MAX);
    bool found = cli_help_page("config", &page);
    rest = found ? buf_str(&page) : STR_NONE;
    while (rest.n) {
        struct str line = str_split(&rest, '\n');
        if (str_starts(line, STR("# ")) || str_starts(line, STR("Printed by")) ||
            str_starts(line, STR("|---")))
            continue;
        if (str_starts(line, STR("| key")))
            buf_addz(out, ".SH OPTIONS\n");
        else if (str_starts(line, STR("| ")))
            add_option(out, line);
        else if (line.n) {
            add_text(out, line);
            buf_addc(out, '\n');
        } else if (!str_ends(buf_str(out), STR(".PP\n")) &&
                   !str_ends(buf_str(out), STR("DESCRIPTION\n")) && rest.n && rest.p[0] != '|') {
            buf_addz(out, ".PP\n");
        }
    }
    buf_release(&page);
    buf_addz(out, ".SH SEE ALSO\n\\fBholdfast\\fR(1), \\fBholdfast\\-api\\fR(7)\n");
}

static void add_operation(struct buf *out, const struct api_operation *op)
{
    buf_addz(out, ".TP\n\\fB");
    add_text(out, str_of(op->method));
    buf_addc(out, ' ');
    for (const char *p = op->pattern; *p; p++) { /* the router's {+path:.md} is {path} for people */
        if (*p == ':')
            p += strcspn(p, "}");
        if (*p != '+')
            add_char(out, *p, false);
    }
    buf_addz(out, "\\fR\n");
    add_line(out, op->summary);
    for (const struct api_param *p = op->params; p && p->name; p++) {
        buf_addz(out, ".RS\n.TP\n\\fI");
        add_text(out, str_of(p->name));
        buf_addf(out, "\\fR (%s%s)\n", p->in, p->is_required ? ", required" : "");
        add_line(out, p->help ? p->help : "");
        buf_addz(out, ".RE\n");
    }
    for (const struct api_answer *a = op->answers; a && a->status; a++) {
        buf_addf(out, ".RS\n.TP\n%d\n", a->status);
        add_line(out, a->help ? a->help : "The operation is done.");
        buf_addz(out, ".RE\n");
    }
}

static void write_api(struct buf *out)
{
    size_t n;
    const struct api_operation *const *all = api_operations(&n);

    add_head(out, "HOLDFAST\\-API", "7", "holdfast-api", "the REST interface of Holdfast");
    buf_addz(out, ".SH DESCRIPTION\nThe operations under /api/v1. A credential is sent as "
                  "\\fBAuthorization: Bearer\\fR or as \\fBX\\-API\\-Key\\fR.\nErrors are "
                  "application/problem+json; \\fBholdfast help\\fR \\fICODE\\fR explains their "
                  "codes.\n\\fBholdfast help openapi\\fR prints the whole description, with the "
                  "schemas of bodies and answers.\n.SH OPERATIONS\n");
    for (size_t i = 0; i < n; i++)
        add_operation(out, all[i]);
    buf_addz(out, ".SH SEE ALSO\n\\fBholdfast\\fR(1), \\fBholdfast.json\\fR(5)\n");
}

bool man_write(const char *page, struct buf *out)
{
    static const struct {
        const char *name;
        void (*write)(struct buf *out);
    } pages[] = {
        {"holdfast", write_holdfast}, {"holdfast.json", write_config}, {"holdfast-api", write_api}};

    for (size_t i = 0; i < countof(pages); i++) {
        if (strcmp(pages[i].name, page) == 0) {
            pages[i].write(out);
            return true;
        }
    }
    return false;
}
