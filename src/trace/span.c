/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol Buffers by hand: OTLP needs five small messages.  A message inside of a message has its
 * length before it, so lengths of attributes are computed first.  The tests decode the bytes with the definitions of OpenTelemetry. */
#include "trace/span.h"

#include "base/utf8.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* Field numbers, by message. */
enum { REQUEST_RESOURCE_SPANS = 1 };
enum { RESOURCE_SPANS_RESOURCE = 1, RESOURCE_SPANS_SCOPE_SPANS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_SPANS_SCOPE = 1, SCOPE_SPANS_SPANS = 2 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum {
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT_SPAN_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_LINKS = 13,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16,
};
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2, LINK_FLAGS = 6 };
enum { STATUS_CODE = 3, STATUS_CODE_ERROR = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_INT = 3 };
enum { RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };

/* Bits of Span.flags and Link.flags. */
#define FLAG_REMOTE_IS_KNOWN 0x100u
#define FLAG_IS_REMOTE 0x200u

static size_t varint_size(uint64_t v)
{
    size_t n = 1;

    while (v >>= 7)
        n++;
    return n;
}

/* The writers move *to behind what they write; span_write() and span_write_head() make the room. */
static void add_varint(char **to, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        *(*to)++ = (char)((v & 0x7f) | 0x80);
    *(*to)++ = (char)v;
}

static void add_tag(char **to, unsigned field, enum wire wire)
{
    add_varint(to, field << 3 | wire);
}

static void add_raw(char **to, const void *p, size_t n)
{
    if (n)
        memcpy(*to, p, n);
    *to += n;
}

static size_t bytes_size(unsigned field, size_t n)
{
    return varint_size(field << 3) + varint_size(n) + n;
}

static void add_bytes(char **to, unsigned field, const void *p, size_t n)
{
    add_tag(to, field, WIRE_BYTES);
    add_varint(to, n);
    add_raw(to, p, n);
}

static void add_text(char **to, unsigned field, struct str s)
{
    add_bytes(to, field, s.p, s.n);
}

static void add_fixed(char **to, unsigned field, uint64_t v, unsigned bytes)
{
    add_tag(to, field, bytes == 8 ? WIRE_FIXED64 : WIRE_FIXED32);
    for (unsigned i = 0; i < bytes; i++)
        *(*to)++ = (char)(v >> (8 * i));
}

static size_t value_size(const struct span_attribute *a)
{
    return a->text.p ? bytes_size(ANY_STRING, a->text.n)
                     : varint_size(ANY_INT << 3) + varint_size((uint64_t)a->number);
}

static size_t attribute_size(const struct span_attribute *a)
{
    return bytes_size(KEY_VALUE_KEY, strlen(a->key)) + bytes_size(KEY_VALUE_VALUE, value_size(a));
}

static void add_attribute(char **to, unsigned field, const struct span_attribute *a)
{
    struct str key = str_of(a->key);
    size_t value = value_size(a);

    add_tag(to, field, WIRE_BYTES);
    add_varint(to, bytes_size(KEY_VALUE_KEY, key.n) + bytes_size(KEY_VALUE_VALUE, value));
    add_text(to, KEY_VALUE_KEY, key);
    add_tag(to, KEY_VALUE_VALUE, WIRE_BYTES);
    add_varint(to, value);
    if (a->text.p) {
        add_text(to, ANY_STRING, a->text);
        return;
    }
    add_tag(to, ANY_INT, WIRE_VARINT);
    add_varint(to, (uint64_t)a->number);
}

/* Fields of type string must be UTF-8, or a receiver refuses the whole request. */
static struct str valid_text(struct str s)
{
    return utf8_is_valid(s) ? str_cut(s, SPAN_TEXT_MAX) : STR("(not UTF-8)");
}

void span_text(struct span *s, const char *key, struct str text)
{
    if (text.p && s->n_attributes < SPAN_ATTRIBUTES_MAX)
        s->attributes[s->n_attributes++] =
            (struct span_attribute){.key = key, .text = valid_text(text)};
}

void span_number(struct span *s, const char *key, int64_t number)
{
    if (s->n_attributes < SPAN_ATTRIBUTES_MAX)
        s->attributes[s->n_attributes++] = (struct span_attribute){.key = key, .number = number};
}

static size_t find_any(struct str s, const char *characters)
{
    size_t at = 0;

    while (at < s.n && !strchr(characters, s.p[at]))
        at++;
    return at;
}

struct str span_uri(struct str uri, struct arena *mem)
{
    uri = str_n(uri.p, find_any(uri, "?#"));
    size_t scheme = find_any(uri, ":/");
    if (uri.n < scheme + 3 || memcmp(uri.p + scheme, "://", 3) != 0 || scheme > SPAN_TEXT_MAX)
        return str_cut(uri, SPAN_TEXT_MAX);
    struct str rest = str_n(uri.p + scheme + 3, uri.n - scheme - 3);
    size_t host = find_any(rest, "/\\");
    while (host > 0 && rest.p[host - 1] != '@')
        host--;
    if (host == 0)
        return uri;
    rest = str_cut(str_n(rest.p + host, rest.n - host), SPAN_TEXT_MAX);
    return arena_printf(mem, "%.*s%.*s", (int)scheme + 3, uri.p, STR_ARG(rest));
}

static void add_name(char **to, const struct span *s)
{
    struct str method = valid_text(s->method), target = valid_text(s->target);

    add_tag(to, SPAN_NAME, WIRE_BYTES);
    add_varint(to, method.n + (s->target.p ? 1 + target.n : 0));
    add_raw(to, method.p, method.n);
    if (!s->target.p)
        return;
    *(*to)++ = ' ';
    add_raw(to, target.p, target.n);
}

static void add_link(char **to, const struct trace_context *link)
{
    size_t n = bytes_size(LINK_TRACE_ID, sizeof(link->trace_id)) +
               bytes_size(LINK_SPAN_ID, sizeof(link->span_id)) + 1 + 4;

    add_tag(to, SPAN_LINKS, WIRE_BYTES);
    add_varint(to, n);
    add_bytes(to, LINK_TRACE_ID, link->trace_id, sizeof(link->trace_id));
    add_bytes(to, LINK_SPAN_ID, link->span_id, sizeof(link->span_id));
    add_fixed(to, LINK_FLAGS, link->flags | FLAG_REMOTE_IS_KNOWN | FLAG_IS_REMOTE, 4);
}

static void add_error_status(char **to)
{
    add_tag(to, SPAN_STATUS, WIRE_BYTES);
    add_varint(to, 2);
    add_tag(to, STATUS_CODE, WIRE_VARINT);
    add_varint(to, STATUS_CODE_ERROR);
}

static void write_fields(const struct span *s, char **to)
{
    unsigned flags = s->context.flags | FLAG_REMOTE_IS_KNOWN;

    add_bytes(to, SPAN_TRACE_ID, s->context.trace_id, sizeof(s->context.trace_id));
    add_bytes(to, SPAN_SPAN_ID, s->context.span_id, sizeof(s->context.span_id));
    if (s->state.p)
        add_text(to, SPAN_TRACE_STATE, s->state);
    if (s->parent)
        add_bytes(to, SPAN_PARENT_SPAN_ID, s->parent->span_id, sizeof(s->parent->span_id));
    add_name(to, s);
    add_tag(to, SPAN_KIND, WIRE_VARINT);
    add_varint(to, s->kind);
    add_fixed(to, SPAN_START, (uint64_t)s->start_us * 1000, 8);
    add_fixed(to, SPAN_END, (uint64_t)s->end_us * 1000, 8);
    for (size_t i = 0; i < s->n_attributes; i++)
        add_attribute(to, SPAN_ATTRIBUTES, &s->attributes[i]);
    if (s->link)
        add_link(to, s->link);
    if (s->is_error)
        add_error_status(to);
    add_fixed(to, SPAN_FLAGS, s->parent && s->parent_is_remote ? flags | FLAG_IS_REMOTE : flags, 4);
}

#define FIELD_MOST 32 /* tags, lengths and numbers of one field */

/* At least the bytes of write_fields(). */
static size_t most_bytes(const struct span *s)
{
    size_t n = 16 * FIELD_MOST + s->state.n + s->method.n + s->target.n;

    for (size_t i = 0; i < s->n_attributes; i++)
        n += FIELD_MOST + strlen(s->attributes[i].key) + s->attributes[i].text.n;
    return n;
}

static char *room_for(struct buf *out, size_t n)
{
    char *room = buf_room(out, n);

    if (!room)
        die("spans need %zu bytes more than their ceiling; this is a bug, please report it", n);
    return room;
}

/* The length stands before the fields.  It gets the bytes of the longest length; if it needs fewer, the
 * fields move. */
void span_write(const struct span *s, struct buf *out)
{
    size_t most = most_bytes(s), head = bytes_size(SCOPE_SPANS_SPANS, most) - most;
    char *room = room_for(out, head + most), *at = room, *end = room + head;

    write_fields(s, &end);
    size_t n = (size_t)(end - room) - head;
    add_tag(&at, SCOPE_SPANS_SPANS, WIRE_BYTES);
    add_varint(&at, n);
    if (at != room + head)
        memmove(at, room + head, n);
    buf_grown(out, (size_t)(at - room) + n);
}

void span_write_head(struct str version, struct str instance, size_t spans, struct buf *out)
{
    const struct span_attribute resource[] = {
        {.key = "service.name", .text = STR("holdfast")},
        {.key = "service.version", .text = valid_text(version)},
        {.key = "service.instance.id", .text = valid_text(instance)},
    };
    size_t resource_size = 0;
    for (size_t i = 0; i < countof(resource); i++)
        resource_size += bytes_size(RESOURCE_ATTRIBUTES, attribute_size(&resource[i]));
    size_t scope = bytes_size(SCOPE_NAME, 8) + bytes_size(SCOPE_VERSION, version.n);
    size_t scope_spans = bytes_size(SCOPE_SPANS_SCOPE, scope) + spans;
    size_t all = bytes_size(RESOURCE_SPANS_RESOURCE, resource_size) +
                 bytes_size(RESOURCE_SPANS_SCOPE_SPANS, scope_spans);
    char *room = room_for(out, resource_size + scope + 8 * FIELD_MOST), *at = room;

    add_tag(&at, REQUEST_RESOURCE_SPANS, WIRE_BYTES);
    add_varint(&at, all);
    add_tag(&at, RESOURCE_SPANS_RESOURCE, WIRE_BYTES);
    add_varint(&at, resource_size);
    for (size_t i = 0; i < countof(resource); i++)
        add_attribute(&at, RESOURCE_ATTRIBUTES, &resource[i]);
    add_tag(&at, RESOURCE_SPANS_SCOPE_SPANS, WIRE_BYTES);
    add_varint(&at, scope_spans);
    add_tag(&at, SCOPE_SPANS_SCOPE, WIRE_BYTES);
    add_varint(&at, scope);
    add_text(&at, SCOPE_NAME, STR("holdfast"));
    add_text(&at, SCOPE_VERSION, version);
    buf_grown(out, (size_t)(at - room));
}

/* Reading. */

static bool take_varint(struct str *in, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && in->n; shift += 7) {
        uint8_t byte = (uint8_t)*in->p;
        *in = str_n(in->p + 1, in->n - 1);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

/* One field of a message.  *ret_bytes is absent unless it is a string, bytes or a message. */
static bool take_field(struct str *in, unsigned *ret_field, uint64_t *ret_number,
                       struct str *ret_bytes)
{
    uint64_t tag, n = 0;

    *ret_bytes = STR_NONE;
    *ret_number = 0;
    if (!take_varint(in, &tag) || tag >> 3 > UINT32_MAX)
        return false;
    *ret_field = (unsigned)(tag >> 3);
    switch ((enum wire)(tag & 7)) {
    case WIRE_VARINT:
        return take_varint(in, ret_number);
    case WIRE_BYTES:
        if (!take_varint(in, &n) || n > in->n)
            return false;
        *ret_bytes = str_n(in->p, (size_t)n);
        break;
    case WIRE_FIXED64:
        n = 8;
        break;
    case WIRE_FIXED32:
        n = 4;
        break;
    default:
        return false;
    }
    if (n > in->n)
        return false;
    *in = str_n(in->p + n, in->n - (size_t)n);
    return true;
}

static bool read_partial(struct str in, int64_t *ret_rejected, struct str *ret_message)
{
    while (in.n) {
        unsigned field;
        uint64_t number;
        struct str bytes;
        if (!take_field(&in, &field, &number, &bytes))
            return false;
        if (field == PARTIAL_REJECTED && !bytes.p)
            *ret_rejected = number > INT64_MAX ? 0 : (int64_t)number;
        else if (field == PARTIAL_MESSAGE && bytes.p)
            *ret_message = bytes;
    }
    return true;
}

bool span_read_response(struct str body, int64_t *ret_rejected, struct str *ret_message)
{
    *ret_rejected = 0;
    *ret_message = STR_NONE;
    while (body.n) {
        unsigned field;
        uint64_t number;
        struct str bytes;
        if (!take_field(&body, &field, &number, &bytes))
            return false;
        if (field == RESPONSE_PARTIAL_SUCCESS && bytes.p &&
            !read_partial(bytes, ret_rejected, ret_message))
            return false;
    }
    return true;
}
