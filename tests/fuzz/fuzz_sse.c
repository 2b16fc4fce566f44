/* SPDX-License-Identifier: Apache-2.0 */
/* Event streams from arbitrary bytes.
 *
 * Held to: the same events and the same verdict in one piece and in many; nothing above the
 * ceiling; and what the writer writes, the reader reads back as one event whose data has its line
 * ends made LF. */
#include "http/sse.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define require(claim)                                                                             \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim);                    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct seen {
    struct buf text; /* every event, with its lengths, so that equal text is equal events */
    unsigned count;
    size_t max;
};

static void note(struct seen *s, char mark, struct str value)
{
    buf_addc(&s->text, value.p ? mark : '-');
    buf_addu(&s->text, value.n);
    buf_addc(&s->text, ':');
    buf_addstr(&s->text, value);
}

static bool on_event(void *arg, const struct sse_event *e)
{
    struct seen *s = arg;
    s->count++;
    require(e->data.n <= s->max && e->type.n > 0 && (e->data.n > 0 || e->id.p));
    note(s, 't', e->type);
    note(s, 'i', e->id);
    note(s, 'd', e->data);
    buf_addu(&s->text, e->has_retry ? e->retry_ms + 1 : 0);
    return true;
}

static bool feed(struct str bytes, size_t piece, size_t max, struct seen *ret)
{
    *ret = (struct seen){.max = max};
    buf_init(&ret->text, 64 * (bytes.n + 1));
    struct sse_reader r;
    sse_reader_init(&r, max);
    bool is_good = true;
    for (size_t i = 0; i < bytes.n && is_good; i += piece) {
        size_t n = bytes.n - i < piece ? bytes.n - i : piece;
        is_good = sse_feed(&r, str_n(bytes.p + i, n), on_event, ret);
    }
    sse_reader_release(&r);
    return is_good;
}

static void check_cuts(struct str bytes, size_t max)
{
    struct seen whole;
    bool is_good = feed(bytes, bytes.n + 1, max, &whole);
    static const size_t pieces[] = {1, 2, 5};
    for (size_t i = 0; i < countof(pieces); i++) {
        struct seen cut;
        require(feed(bytes, pieces[i], max, &cut) == is_good);
        require(cut.count == whole.count && str_eq(buf_str(&cut.text), buf_str(&whole.text)));
        buf_release(&cut.text);
    }
    buf_release(&whole.text);
}

/* What is left of CR LF, CR and LF after a trip: LF. */
static void add_normalised(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\r' && i + 1 < s.n && s.p[i + 1] == '\n')
            continue;
        buf_addc(out, s.p[i] == '\r' ? '\n' : s.p[i]);
    }
}

static void check_round_trip(struct str data)
{
    struct buf out;
    buf_init(&out, 16 * (data.n + 16));
    sse_write_comment(&out, data);
    sse_write(&out, STR("event"), STR("7"), data);
    struct seen got, expected = {.max = data.n + 1};
    require(feed(buf_str(&out), 1000, data.n + 16, &got));
    struct buf text;
    buf_init(&text, data.n + 1);
    buf_init(&expected.text, data.n + 64);
    add_normalised(&text, data);
    on_event(&expected,
             &(struct sse_event){.type = STR("event"), .id = STR("7"), .data = buf_str(&text)});
    require(got.count == 1 && str_eq(buf_str(&got.text), buf_str(&expected.text)));
    buf_release(&text);
    buf_release(&expected.text);
    buf_release(&got.text);
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str bytes = str_n((const char *)data + 1, size - 1);
    check_cuts(bytes, data[0]); /* small ceilings, so that they are met */
    check_cuts(bytes, 1 << 20);
    check_round_trip(bytes);
    return 0;
}
