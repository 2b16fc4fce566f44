/* SPDX-License-Identifier: Apache-2.0 */
/* Accessors of a parsed head: headers by name, list members, query values, percent-encoding; and
 * the reason phrase of a status.  Values are decoded once and in one place, so that the checked
 * value is the value used. */
#include "http/codec.h"

#include <limits.h>

static bool is_absent(const struct http_head *h, struct str name)
{
    return h->marks && !(h->marks & http_header_mark(name));
}

struct str http_header_get(const struct http_head *h, struct str name)
{
    if (is_absent(h, name))
        return STR_NONE;
    for (unsigned i = 0; i < h->n_headers; i++) {
        if (h->headers[i].name.n == name.n && str_ieq(h->headers[i].name, name))
            return h->headers[i].value;
    }
    return STR_NONE;
}

unsigned http_header_count(const struct http_head *h, struct str name)
{
    unsigned count = 0;
    if (is_absent(h, name))
        return 0;
    for (unsigned i = 0; i < h->n_headers; i++)
        count += h->headers[i].name.n == name.n && str_ieq(h->headers[i].name, name);
    return count;
}

/* Returns the length of the first list member: up to a comma outside of quotes. */
static size_t member_length(struct str list)
{
    bool is_quoted = false;
    for (size_t i = 0; i < list.n; i++) {
        if (list.p[i] == '"')
            is_quoted = !is_quoted;
        else if (list.p[i] == '\\' && is_quoted)
            i++;
        else if (list.p[i] == ',' && !is_quoted)
            return i;
    }
    return list.n;
}

bool http_list_has(struct str value, struct str token)
{
    while (value.n > 0) {
        size_t n = member_length(value);
        struct str member = str_n(value.p, n);
        member.n = str_find(member, ';');
        if (str_ieq(str_trim(member), token))
            return true;
        size_t next = n < value.n ? n + 1 : n;
        value = str_n(value.p + next, value.n - next);
    }
    return false;
}

static const struct {
    int status;
    const char *text;
} reasons[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *http_reason(int status)
{
    for (size_t i = 0; i < countof(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "Unknown";
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_dot_segment(const char *p, size_t n)
{
    return (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.');
}

int http_percent_decode(struct str in, char *out, bool is_path)
{
    if (in.n > INT_MAX)
        return -1;
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        char c = in.p[i];
        if (c == '%') {
            int high = i + 1 < in.n ? hex_value(in.p[i + 1]) : -1;
            int low = i + 2 < in.n ? hex_value(in.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && !is_path) {
            c = ' ';
        }
        if (c == '\0' || (is_path && (c == '/' || c == '\\')))
            return -1;
        out[n++] = c;
    }
    return is_path && is_dot_segment(out, n) ? -1 : (int)n;
}

static bool stands_in_a_segment(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~!$&'()*+,;=:@", c));
}

size_t http_percent_encode(struct str in, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < in.n; i++) {
        unsigned char c = (unsigned char)in.p[i];
        if (stands_in_a_segment(in.p[i])) {
            out[n++] = in.p[i];
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    return n;
}

struct str http_query_get(struct str query, struct str name, unsigned *ret_count)
{
    struct str found = STR_NONE;
    unsigned count = 0;
    while (query.p) {
        struct str value = str_split(&query, '&');
        struct str key = str_split(&value, '=');
        if (!str_eq(key, name))
            continue;
        if (count++ == 0)
            found = value.p ? value : str_n(key.p + key.n, 0);
    }
    if (ret_count)
        *ret_count = count;
    return found;
}

bool http_value_is_safe(struct str value)
{
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if ((c < 0x20 && c != '\t') || c > 0x7e)
            return false;
    }
    return true;
}

bool http_takes_events(const struct http_head *head, bool if_absent)
{
    struct str accept = http_header_get(head, STR("accept"));
    return accept.p ? http_list_has(accept, STR("text/event-stream")) ||
                          http_list_has(accept, STR("*/*"))
                    : if_absent;
}
