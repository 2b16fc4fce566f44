/* SPDX-License-Identifier: Apache-2.0 */
/* Each session of the file is one import: its lines are sent when the next session begins, or the
 * file ends; those of a long one in pieces, so that no file needs memory.  The other side checks them; here only the beginnings of sessions are looked for. */
#include "cli/sessions_import.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/random.h"
#include "cli/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_MS (INT64_C(10) * 60 * 1000)
/* A longer session is sent in pieces.  A piece may be this much longer: READ. */
#define PIECE ((size_t)2 << 20)
#define READ ((size_t)256 << 10)
#define LINE_BEGINS 64

struct importing {
    const struct sessions_import *i;
    FILE *in;
    int64_t line, first_line; /* of the file; of the session that is being read, from 1 */
    struct buf window;        /* bytes of the file that are not sent yet */
    size_t taken;             /* of them, those of the session that is being read */
    bool in_line;             /* they do not end with a newline */
    char upload[UUID_TEXT];   /* the pieces of that session that were sent; "": none */
    int64_t sent;             /* their bytes */
    size_t n;                 /* sessions so far */
};

/* Where the file is at fault the other side says "line 7", so a person can look. */
static struct str path_of(const struct importing *x, bool is_last, struct arena *mem)
{
    const struct sessions_import *i = x->i;
    const char *key = cli_flag(i->cli, "--key");
    struct str piece = x->upload[0] ? arena_printf(mem, "&upload=%s&at=%lld&last=%d", x->upload,
                                                   (long long)x->sent, is_last)
                                    : STR("");

    return arena_printf(mem, "/api/v1/sessions/import?line=%lld&again=%d%s%.*s%s%.*s%s%.*s",
                        (long long)x->first_line, cli_flag(i->cli, "--again") != NULL,
                        cli_flag(i->cli, "--as-recorded") ? "&as_recorded=1" : "", STR_ARG(piece),
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

/* Sends what was taken; as the end of the session, or as a piece of a longer one. */
static bool send_taken(struct importing *x, bool is_last, struct error *err)
{
    struct arena *mem = arena_new(SIZE_MAX / 4);
    struct str json = STR_NONE;

    if (!is_last && !x->upload[0])
        random_uuid4(x->upload);
    const struct control_request r = {.method = "POST",
                                      .path = path_of(x, is_last, mem),
                                      .type = "application/x-ndjson",
                                      .body = str_n(x->window.p, x->taken)};
    bool ok = control_send(x->i->control, &r, mem, &json, err) &&
              (!is_last || print_answer(x, json, mem, err));
    arena_free(mem);
    x->sent += (int64_t)x->taken;
    buf_consume(&x->window, x->taken);
    x->taken = 0;
    if (is_last) {
        x->upload[0] = '\0';
        x->sent = 0;
        x->n += ok;
    }
    return ok;
}

/* Takes the bytes up to the end of the line, or all there are of a long one. */
static bool take_line(struct importing *x, struct error *err)
{
    struct str rest = str_n(x->window.p + x->taken, x->window.n - x->taken);
    bool has_session = x->taken || x->sent;

    if (!x->in_line && str_starts(rest, STR("{\"type\":\"session\",")) && has_session) {
        if (!send_taken(x, true, err))
            return false;
        has_session = false;
        rest = str_n(x->window.p, x->window.n);
    }
    if (!has_session)
        x->first_line = x->line + 1;
    size_t n = str_find(rest, '\n');
    x->in_line = n == rest.n;
    x->line += !x->in_line;
    x->taken += x->in_line ? rest.n : n + 1;
    return x->taken < PIECE || send_taken(x, false, err);
}

static bool take_lines(struct importing *x, struct error *err)
{
    for (bool is_end = false; !is_end;) {
        char *room = buf_room(&x->window, READ);
        size_t n = fread(room, 1, READ, x->in);
        buf_grown(&x->window, n);
        is_end = n < READ;
        if (is_end && ferror(x->in))
            return error_sys(err, ERR_CONFIG, errno, "cannot read %s", x->i->file);
        /* The beginning of a line is seen whole. */
        while (x->window.n > x->taken && (is_end || x->window.n - x->taken > LINE_BEGINS))
            if (!take_line(x, err))
                return false;
    }
    return (!x->taken && !x->sent) || send_taken(x, true, err);
}

bool sessions_import(const struct sessions_import *i, struct error *err)
{
    struct importing x = {.i = i, .in = stdin};
    bool is_file = strcmp(i->file, "-") != 0;

    if (is_file && !(x.in = fopen(i->file, "re")))
        return error_sys(err, ERR_CONFIG, errno, "cannot read %s", i->file);
    control_set_deadline(i->control, PATIENCE_MS);
    buf_init(&x.window, SIZE_MAX / 4);
    bool ok = take_lines(&x, err);
    if (ok && !x.n)
        ok = error_set(err, ERR_BAD_INPUT, "%s is empty; nothing was imported", i->file);
    else if (!ok && x.n)
        fprintf(stderr, "%zu session%s of the file %s imported before that\n", x.n,
                x.n == 1 ? "" : "s", x.n == 1 ? "was" : "were");
    buf_release(&x.window);
    if (is_file)
        fclose(x.in);
    return ok;
}
