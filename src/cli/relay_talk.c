/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner is a state machine over bytes, because messages come in pieces and may be large.  It
 * need not be strict, because the gateway parses the client's messages strictly.  Text that is not
 * JSON affects only the state that is remembered for its own line. */
#include "cli/relay_talk.h"

#include <stdlib.h>
#include <string.h>

typedef void on_message_fn(struct relay_talk *t, const struct relay_scan *s);

static void scan_line_end(struct relay_scan *s)
{
    s->depth = 0;
    s->level = 1;
    s->in_string = s->is_escaped = s->is_value = s->is_mid_line = false;
    s->n_key = s->n_id = s->n_method = 0;
}

static bool key_is(const struct relay_scan *s, const char *name)
{
    return s->n_key == strlen(name) && memcmp(s->key, name, s->n_key) == 0;
}

static void keep(char *room, size_t size, size_t *n, char c)
{
    if (*n < size)
        room[*n] = c;
    *n += *n <= size;
}

/* Keeps one byte of a member of a message: of its name, or of a value that is remembered. */
static void keep_member(struct relay_scan *s, char c, bool is_text)
{
    if (!s->is_value && is_text)
        keep(s->key, sizeof(s->key), &s->n_key, c);
    else if (s->is_value && key_is(s, "id"))
        keep(s->id, sizeof(s->id), &s->n_id, c);
    else if (s->is_value && key_is(s, "method"))
        keep(s->method, sizeof(s->method), &s->n_method, c);
}

static void scan_string(struct relay_scan *s, char c)
{
    bool ends = c == '"' && !s->is_escaped;

    s->is_escaped = c == '\\' && !s->is_escaped;
    if (s->depth == s->level)
        keep_member(s, c, !ends);
    s->in_string = !ends;
}

static void scan_open(struct relay_scan *s, char c)
{
    if (s->depth == 0)
        s->level = c == '[' ? 2 : 1;
    s->depth++;
    if (c == '{' && s->depth == s->level) {
        s->is_value = false;
        s->n_key = s->n_id = s->n_method = 0;
    }
}

static void scan_byte(struct relay_talk *t, struct relay_scan *s, char c, on_message_fn *on_message)
{
    bool is_member = s->depth == s->level;

    s->is_mid_line = true;
    if (s->in_string) {
        scan_string(s, c);
    } else if (c == '"') {
        s->in_string = true;
        if (is_member)
            keep_member(s, c, false);
    } else if (c == '{' || c == '[') {
        scan_open(s, c);
    } else if (c == '}' || c == ']') {
        if (c == '}' && is_member)
            on_message(t, s);
        s->depth -= s->depth > 0;
    } else if (is_member && c == ':') {
        s->is_value = true;
    } else if (is_member && c == ',') {
        s->is_value = false;
        s->n_key = 0;
    } else if (is_member && c != ' ' && c != '\t' && c != '\r') {
        keep_member(s, c, false);
    }
}

void relay_talk_init(struct relay_talk *t)
{
    *t = (struct relay_talk){0};
    scan_line_end(&t->up);
    scan_line_end(&t->down);
    buf_init(&t->line, RELAY_INITIALIZE_MAX);
    buf_init(&t->initialize, RELAY_INITIALIZE_MAX);
    buf_init(&t->initialize_id, RELAY_ID_MAX);
    t->waiting = xcalloc(RELAY_WAITING_MAX, sizeof(*t->waiting));
}

void relay_talk_release(struct relay_talk *t)
{
    for (size_t i = 0; i < t->n_waiting; i++)
        free(t->waiting[i]);
    free(t->waiting);
    buf_release(&t->line);
    buf_release(&t->initialize);
    buf_release(&t->initialize_id);
}

static bool method_is(const struct relay_scan *s, const char *quoted)
{
    return s->n_method == strlen(quoted) && memcmp(s->method, quoted, s->n_method) == 0;
}

static void on_sent(struct relay_talk *t, const struct relay_scan *s)
{
    bool is_request = s->n_id && s->n_id <= sizeof(s->id) && s->n_method;

    if (method_is(s, "\"initialize\"") && is_request) {
        buf_reset(&t->initialize_id);
        buf_add(&t->initialize_id, s->id, s->n_id);
        t->is_initialized = false;
    }
    if (method_is(s, "\"notifications/initialized\""))
        t->is_initialized = true;
    if (is_request && t->n_waiting < RELAY_WAITING_MAX)
        t->waiting[t->n_waiting++] = strndup(s->id, s->n_id);
}

static void on_received(struct relay_talk *t, const struct relay_scan *s)
{
    if (!s->n_id || s->n_id > sizeof(s->id) || s->n_method)
        return;
    for (size_t i = 0; i < t->n_waiting; i++)
        if (strlen(t->waiting[i]) == s->n_id && memcmp(t->waiting[i], s->id, s->n_id) == 0) {
            free(t->waiting[i]);
            t->waiting[i] = t->waiting[--t->n_waiting];
            return;
        }
}

/* Called when a line was sent; `up` still has its last message.  A batch holds no initialize. */
static void line_sent(struct relay_talk *t)
{
    bool is_whole = t->line.n && t->line.p[t->line.n - 1] == '\n';

    if (is_whole && t->up.level == 1 && method_is(&t->up, "\"initialize\"")) {
        buf_reset(&t->initialize);
        buf_add(&t->initialize, t->line.p, t->line.n);
    }
    buf_reset(&t->line);
}

/* How many bytes the scanner can skip: those inside a string that is not remembered, which are most
 * of a large message. */
static size_t dull_bytes(const struct relay_scan *s, struct str bytes)
{
    size_t n = 0;

    if (!s->in_string || s->is_escaped || s->depth == s->level)
        return 0;
    while (n < bytes.n && bytes.p[n] != '"' && bytes.p[n] != '\\' && bytes.p[n] != '\n')
        n++;
    return n;
}

/* One line, or a part of it, without its LF. */
static void scan_part(struct relay_talk *t, struct relay_scan *s, struct str part,
                      on_message_fn *on_message)
{
    for (size_t i = 0; i < part.n; i++) {
        i += dull_bytes(s, str_n(part.p + i, part.n - i));
        if (i < part.n)
            scan_byte(t, s, part.p[i], on_message);
    }
}

/* Keeps as much of the line as fits.  A longer line is kept without its LF, so line_sent() drops
 * it. */
static void keep_line(struct relay_talk *t, struct str part)
{
    size_t room = RELAY_INITIALIZE_MAX - t->line.n;
    buf_add(&t->line, part.p, part.n < room ? part.n : room);
}

void relay_talk_sent(struct relay_talk *t, struct str bytes)
{
    while (bytes.n) {
        size_t n = str_find(bytes, '\n');
        bool is_whole = n < bytes.n;
        scan_part(t, &t->up, str_n(bytes.p, n), on_sent);
        keep_line(t, str_n(bytes.p, n + is_whole));
        bytes = str_n(bytes.p + n + is_whole, bytes.n - n - is_whole);
        if (!is_whole)
            return;
        line_sent(t);
        scan_line_end(&t->up);
    }
}

void relay_talk_received(struct relay_talk *t, struct str bytes)
{
    while (bytes.n) {
        size_t n = str_find(bytes, '\n');
        bool is_whole = n < bytes.n;
        scan_part(t, &t->down, str_n(bytes.p, n), on_received);
        bytes = str_n(bytes.p + n + is_whole, bytes.n - n - is_whole);
        if (is_whole)
            scan_line_end(&t->down);
    }
}

bool relay_talk_waits_for(const struct relay_talk *t, struct str id)
{
    for (size_t i = 0; i < t->n_waiting; i++)
        if (str_eq(str_of(t->waiting[i]), id))
            return true;
    return false;
}

size_t relay_talk_lose(struct relay_talk *t, struct buf *out)
{
    size_t answered = 0, kept = 0;

    if (t->down.is_mid_line)
        buf_addc(out, '\n');
    scan_line_end(&t->down);
    for (size_t i = 0; i < t->n_waiting; i++) {
        if (str_eq(str_of(t->waiting[i]), buf_str(&t->initialize_id))) {
            t->waiting[kept++] = t->waiting[i];
            continue;
        }
        buf_addf(
            out,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32000,\"message\":\"Holdfast "
            "was restarted while this request was under way; whether it was carried out is not "
            "known here, `holdfast audit list` shows it\"}}\n",
            t->waiting[i]);
        free(t->waiting[i]);
        answered++;
    }
    t->n_waiting = kept;
    return answered;
}

struct line_answer {
    struct relay_talk talk; /* on_answer() gets this member */
    struct str id;
    bool found;
};

static void on_answer(struct relay_talk *t, const struct relay_scan *s)
{
    struct line_answer *a = container_of(t, struct line_answer, talk);
    a->found = a->found || (!s->n_method && str_eq(str_n(s->id, s->n_id), a->id));
}

bool relay_line_answers(struct str line, struct str id)
{
    static struct line_answer a; /* static, because it is large */

    a = (struct line_answer){.id = id};
    scan_line_end(&a.talk.down);
    for (size_t i = 0; i < line.n; i++)
        scan_byte(&a.talk, &a.talk.down, line.p[i], on_answer);
    return a.found;
}
