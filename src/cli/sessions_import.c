/* SPDX-License-Identifier: Apache-2.0 */
/* Each session of the file is one import: its lines are sent when the next session begins, or the
 * file ends.  The other side checks them; here only the beginnings of sessions are looked for. */
#include "cli/sessions_import.h"

#include "base/buf.h"
#include "base/log.h"
#include "cli/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_MS (INT64_C(10) * 60 * 1000)
/* What one request takes. */
#define BODY_MAX ((size_t)4 << 20)

struct importing {
    const struct sessions_import *i;
    FILE *in;
    int64_t line, first_line; /* of the file; of the session that is being read, from 1 */
    struct buf lines;         /* of that session */
    size_t n;                 /* sessions so far */
};

/* Where the file is at fault it says "line 7", so a person can look. */
static struct str path_of(const struct importing *x, struct arena *mem)
{
    const struct sessions_import *i = x->i;
    const char *key = cli_flag(i->cli, "--key");

    return arena_printf(mem, "/api/v1/sessions/import?line=%lld&again=%d%s%s%.*s%s%.*s",
                        (long long)x->first_line, cli_flag(i->cli, "--again") != NULL,
                        cli_flag(i->cli, "--as-recorded") ? "&as_recorded=1" : "",
                        key ? "&key=" : "", STR_ARG(source_encoded(str_of(key), mem)),
                        i->tenant.p ? "&tenant=" : "", STR_ARG(source_encoded(i->tenant, mem)));
}

/* A text of the answer, for a terminal. */
static struct str shown(struct str text, struct arena *mem)
{
    struct buf out;

    buf_init(&out, 4096);
    log_escape(&out, text, 255);
    struct str copy = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    return copy;
}

static void print_signer(const struct js_doc *doc, struct arena *mem)
{
    const struct js_node *root = js_root(doc);
    struct str signer = source_text(doc, root, "signer", mem),
               key = source_text(doc, root, "key", mem);

    if (str_eq(signer, STR("named")))
        printf("  signed by the key that you named\n");
    else if (str_eq(signer, STR("this")))
        printf("  signed by this Holdfast\n");
    else
        printf("  signed by the key %.*s, which is not known here: its holder vouches for the "
               "file; --key KEY asks for that key\n",
               STR_ARG(key));
}

static bool print_answer(const struct importing *x, struct str json, struct arena *mem,
                         struct error *err)
{
    int64_t calls = 0;
    struct js_doc doc;

    if (x->i->json) {
        printf("%.*s\n", STR_ARG(json));
        return true;
    }
    if (!source_parse(json, mem, &doc, err))
        return false;
    const struct js_node *root = js_root(&doc);
    struct str name = shown(source_text(&doc, root, "session_id", mem), mem),
               from = shown(source_text(&doc, root, "from_session", mem), mem);
    if (!js_to_i64(&doc, js_get(&doc, root, STR("calls")), &calls))
        calls = 0;
    if (js_type_is(js_get(&doc, root, STR("is_new")), JS_FALSE))
        printf("%.*s was imported before as %.*s; --again makes a further session\n", STR_ARG(from),
               STR_ARG(name));
    else
        printf("%.*s is imported as %.*s, with %lld call%s\n", STR_ARG(from), STR_ARG(name),
               (long long)calls, calls == 1 ? "" : "s");
    print_signer(&doc, mem);
    return true;
}

static bool send_session(struct importing *x, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    const struct control_request r = {.method = "POST",
                                      .path = path_of(x, mem),
                                      .type = "application/x-ndjson",
                                      .body = buf_str(&x->lines)};
    struct str json = STR_NONE;

    bool ok = control_send(x->i->control, &r, mem, &json, err) && print_answer(x, json, mem, err);
    x->n += ok;
    arena_free(mem);
    buf_reset(&x->lines);
    return ok;
}

/* Takes one line, with its newline. */
static bool take_line(struct importing *x, struct str line, struct error *err)
{
    if (str_starts(line, STR("{\"type\":\"session\",")) && x->lines.n && !send_session(x, err))
        return false;
    if (!x->lines.n)
        x->first_line = x->line + 1;
    x->line++;
    if (buf_try_add(&x->lines, line.p, line.n))
        return true;
    return error_set(err, ERR_TOO_LARGE,
                     "the session that begins in line %lld of %s is longer than %zu MiB",
                     (long long)x->first_line, x->i->file, BODY_MAX >> 20);
}

static bool take_lines(struct importing *x, struct error *err)
{
    char *line = NULL;
    size_t room = 0;
    bool ok = true;
    ssize_t n;

    while (ok && (n = getline(&line, &room, x->in)) > 0)
        ok = take_line(x, str_n(line, (size_t)n), err);
    if (ok && ferror(x->in))
        ok = error_sys(err, ERR_CONFIG, errno, "cannot read %s", x->i->file);
    free(line);
    return ok && (!x->lines.n || send_session(x, err));
}

bool sessions_import(const struct sessions_import *i, struct error *err)
{
    struct importing x = {.i = i, .in = stdin};
    bool is_file = strcmp(i->file, "-") != 0;

    if (is_file && !(x.in = fopen(i->file, "re")))
        return error_sys(err, ERR_CONFIG, errno, "cannot read %s", i->file);
    control_set_deadline(i->control, PATIENCE_MS);
    buf_init(&x.lines, BODY_MAX);
    bool ok = take_lines(&x, err);
    if (ok && !x.n)
        ok = error_set(err, ERR_BAD_INPUT, "%s is empty; nothing was imported", i->file);
    else if (!ok && x.n)
        fprintf(stderr, "%zu session%s of the file %s imported before that\n", x.n,
                x.n == 1 ? "" : "s", x.n == 1 ? "was" : "were");
    buf_release(&x.lines);
    if (is_file)
        fclose(x.in);
    return ok;
}
