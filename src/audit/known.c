/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of known values.  The bytes of all values and their encoded forms are concatenated in secret
 * memory; scanners hold four bytes of each. */
#include "audit/known.h"

#include "audit/redact_impl.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/secret.h"
#include "base/utf8.h"
#include "crypto/base64.h"
#include "json/write.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NAME_MAX_BYTES 160 /* longest name between the brackets */
#define VALUE_MAX (64u * 1024)
#define FORMS_MAX (12 * VALUE_MAX) /* the longest form of a value */

struct pattern {
    size_t at, n;
    uint32_t marker;
};

struct known {
    atomic_uint refs;
    bool with_table;
    struct buf building; /* wiped when finished */
    /* Until finished: patterns by hash, as index plus one; a power of two, at most half full. */
    uint32_t *places;
    size_t n_places;
    struct secret bytes;
    struct pattern *patterns;
    size_t n, room;
    struct str *markers;
    size_t n_markers;
    struct arena *names;
    struct scanner scan;
};

struct known *known_new(bool with_table)
{
    struct known *k = xcalloc(1, sizeof(*k));

    k->refs = 1;
    k->with_table = with_table;
    k->names = arena_new(SIZE_MAX / 4);
    buf_init_secret(&k->building, SIZE_MAX / 4);
    return k;
}

static struct str pattern_bytes(const struct known *k, size_t i)
{
    const char *from = k->bytes.p ? k->bytes.p : k->building.p;

    return str_n(from + k->patterns[i].at, k->patterns[i].n);
}

/* Returns the place of these bytes, or the empty one where they belong. */
static uint32_t *place_of(const struct known *k, struct str bytes)
{
    size_t at = map_hash(bytes) & (k->n_places - 1);

    while (k->places[at] && !str_eq(pattern_bytes(k, k->places[at] - 1), bytes))
        at = (at + 1) & (k->n_places - 1);
    return &k->places[at];
}

static void grow_places(struct known *k)
{
    free(k->places);
    k->n_places = k->n_places ? 2 * k->n_places : 64;
    k->places = xcalloc(k->n_places, sizeof(*k->places));
    for (size_t i = 0; i < k->n; i++)
        *place_of(k, pattern_bytes(k, i)) = (uint32_t)i + 1;
}

/* Adds bytes that are not there yet. */
static void add_pattern(struct known *k, struct str bytes, uint32_t marker)
{
    if (bytes.n < KNOWN_LEAST)
        return;
    if (2 * k->n >= k->n_places)
        grow_places(k);
    uint32_t *place = place_of(k, bytes);
    if (*place)
        return;
    *place = (uint32_t)k->n + 1;
    if (k->n == k->room) {
        k->room = k->room ? 2 * k->room : 16;
        k->patterns = xrealloc(k->patterns, k->room * sizeof(*k->patterns));
    }
    k->patterns[k->n++] = (struct pattern){k->building.n, bytes.n, marker};
    buf_addstr(&k->building, bytes);
}

/* Replaces bytes that JSON would escape. */
static uint32_t add_marker(struct known *k, struct str name)
{
    struct buf b;

    buf_init(&b, 1024);
    buf_addz(&b, "[redacted: ");
    for (size_t i = 0; i < name.n && i < NAME_MAX_BYTES; i++) {
        unsigned char c = (unsigned char)name.p[i];
        buf_addc(&b, c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == ']' ? '?' : (char)c);
    }
    buf_addc(&b, ']');
    if (!k->n_markers || !str_eq(k->markers[k->n_markers - 1], buf_str(&b))) {
        k->markers = xrealloc(k->markers, (k->n_markers + 1) * sizeof(*k->markers));
        k->markers[k->n_markers++] = arena_dup(k->names, buf_str(&b));
    }
    buf_release(&b);
    return (uint32_t)k->n_markers - 1;
}

/* Adds the JSON string form, without its quotes. */
static void add_quoted(struct known *k, struct str value, uint32_t marker, struct buf *ret)
{
    buf_reset(ret);
    js_quote(ret, value);
    add_pattern(k, str_n(ret->p + 1, ret->n - 2), marker);
}

/* Writes a code point as \uXXXX, or as two of them. */
static void add_unicode(struct buf *b, uint32_t code, bool upper)
{
    const char *form = upper ? "\\u%04X" : "\\u%04x";

    if (code > 0xffff) {
        buf_addf(b, form, 0xd800 + ((code - 0x10000) >> 10));
        code = 0xdc00 + ((code - 0x10000) & 0x3ff);
    }
    buf_addf(b, form, code);
}

/* Adds the form of JSON writers that emit only ASCII or escape slashes. */
static void add_escaped(struct known *k, struct str value, uint32_t marker, struct buf *quoted,
                        struct buf *b)
{
    bool slashes = false, ascii = true;

    for (size_t i = 0; i < value.n; i++) {
        slashes |= value.p[i] == '/';
        ascii &= (unsigned char)value.p[i] < 0x80;
    }
    if (!slashes && ascii)
        return;
    buf_reset(b);
    for (size_t i = 1; i + 1 < quoted->n;) {
        uint32_t code;
        size_t n = utf8_decode(quoted->p + i, quoted->p + quoted->n, &code);
        if (n > 1)
            add_unicode(b, code, false);
        else if (quoted->p[i] == '/' && ascii)
            buf_addz(b, "\\/");
        else
            buf_addc(b, quoted->p[i]);
        i += n ? n : 1;
    }
    add_pattern(k, buf_str(b), marker);
}

/* Adds the form of JSON writers that escape more characters than JSON asks for, so that the text
 * may stand in HTML: `set`, and with `ascii` everything beyond ASCII. */
static void add_html_safe(struct known *k, struct str value, uint32_t marker, const char *set,
                          bool ascii, struct buf *b)
{
    buf_reset(b);
    for (size_t i = 0; i < value.n;) {
        uint32_t code = (unsigned char)value.p[i];
        size_t n = code < 0x80 ? 1 : utf8_decode(value.p + i, value.p + value.n, &code);
        if (n == 0)
            return; /* not UTF-8: JSON cannot hold it */
        if (n > 1 ? ascii : strchr(set, (int)code) != NULL)
            add_unicode(b, code, ascii);
        else if (n == 1 && (code == '"' || code == '\\' || code < ' '))
            return; /* the plain JSON form has it */
        else
            buf_addstr(b, str_n(value.p + i, n));
        i += n;
    }
    add_pattern(k, buf_str(b), marker);
}

/* Adds the percent-encoded form of writers that leave `kept` as it is, beside letters, digits and
 * "-_.~". */
static void add_percent(struct known *k, struct str value, uint32_t marker, const char *kept,
                        bool lower, struct buf *b)
{
    const char *hex = lower ? "0123456789abcdef" : "0123456789ABCDEF";

    buf_reset(b);
    for (size_t i = 0; i < value.n; i++) {
        unsigned char c = (unsigned char)value.p[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' ||
                     c == '_' || c == '.' || c == '~' || (c && strchr(kept, c));
        if (plain) {
            buf_addc(b, (char)c);
            continue;
        }
        buf_addc(b, '%');
        buf_addc(b, hex[c >> 4]);
        buf_addc(b, hex[c & 15]);
    }
    add_pattern(k, buf_str(b), marker);
}

/* Adds the base64 forms for each of the three possible alignments in a longer text.  A form
 * includes only characters that depend on nothing but the value's own bytes. */
static void add_base64(struct known *k, struct str value, uint32_t marker, struct buf *b)
{
    for (size_t cut = 0; cut < 3 && cut < value.n; cut++) {
        size_t n = value.n - cut;
        buf_reset(b);
        char *room = buf_room(b, n * 4 / 3 + 8);
        if (!room)
            return;
        (void)base64_encode(value.p + cut, n, room);
        add_pattern(k, str_n(room, n * 4 / 3), marker);
        for (size_t i = 0; i < n * 4 / 3; i++)
            room[i] = (char)(room[i] == '+' ? '-' : room[i] == '/' ? '_' : room[i]);
        add_pattern(k, str_n(room, n * 4 / 3), marker);
    }
}

void known_add(struct known *k, struct str value, struct str name)
{
    struct buf quoted, b;

    if (value.n < KNOWN_LEAST || value.n > VALUE_MAX)
        return;
    uint32_t marker = add_marker(k, name);
    buf_init_secret(&quoted, FORMS_MAX);
    buf_init_secret(&b, FORMS_MAX);
    add_pattern(k, value, marker);
    add_quoted(k, value, marker, &quoted);
    add_escaped(k, value, marker, &quoted, &b);
    if (quoted.n != value.n + 2) {
        struct str inside = str_n(quoted.p + 1, quoted.n - 2);
        add_quoted(k, inside, marker, &b); /* JSON inside of JSON */
    }
    add_html_safe(k, value, marker, "&<>", false, &b);     /* Go */
    add_html_safe(k, value, marker, "\"&'+<>`", true, &b); /* .NET */
    add_percent(k, value, marker, "", false, &b);
    add_percent(k, value, marker, "", true, &b);
    add_percent(k, value, marker, "/", false, &b);                /* Python's quote() */
    add_percent(k, value, marker, "!'()*", false, &b);            /* encodeURIComponent() */
    add_percent(k, value, marker, ";/?:@&=+$,#!'()*", false, &b); /* encodeURI() */
    add_base64(k, value, marker, &b);
    buf_release(&quoted);
    buf_release(&b);
}

/* Returns the password in scheme://user:password@host. */
static struct str url_password(struct str value)
{
    const char *mark = memmem(value.p, value.n, "://", 3);

    if (!mark)
        return STR_NONE;
    struct str rest = str_n(mark + 3, value.n - (size_t)(mark + 3 - value.p));
    rest.n = str_find(rest, '/');
    size_t colon = str_find(rest, ':'), at = rest.n;
    while (at > 0 && rest.p[at - 1] != '@')
        at--;
    return at > 0 && colon + 1 < at ? str_n(rest.p + colon + 1, at - 1 - (colon + 1)) : STR_NONE;
}

void known_add_setting(struct known *k, struct str value, struct str name)
{
    struct str scheme, rest = value;

    if (!value.p)
        return;
    known_add(k, value, name);
    known_add(k, url_password(value), name);
    scheme = str_split(&rest, ' ');
    bool has_scheme = scheme.n < value.n && str_find(rest, ' ') == rest.n;
    if (has_scheme)
        known_add(k, rest, name);
    if (!has_scheme || str_ieq(scheme, STR("Basic"))) {
        struct arena *mem = arena_new(SIZE_MAX / 4);
        arena_wipe_later(mem);
        struct str both = base64_decode(has_scheme ? rest : value, mem);
        size_t colon = both.p ? str_find(both, ':') : 0;
        if (both.p && colon < both.n)
            known_add(k, str_n(both.p + colon + 1, both.n - colon - 1), name);
        arena_free(mem);
    }
}

void known_finish(struct known *k)
{
    if (k->with_table)
        scanner_copy(&k->scan, redact_table_scanner());
    else
        scanner_init(&k->scan);
    secret_set(&k->bytes, buf_str(&k->building));
    buf_release(&k->building);
    free(k->places);
    k->places = NULL;
    for (size_t i = 0; i < k->n; i++) {
        struct str bytes = pattern_bytes(k, i);
        size_t at = scanner_rarest(bytes);
        scanner_add(&k->scan, bytes.p + at, 0, false, at, WINDOW_VALUE, i);
    }
    scanner_finish(&k->scan);
}

size_t known_count(const struct known *k)
{
    return k ? k->n : 0;
}

struct known *known_ref(struct known *k)
{
    if (k)
        atomic_fetch_add(&k->refs, 1);
    return k;
}

void known_unref(struct known *k)
{
    if (!k || atomic_fetch_sub(&k->refs, 1) > 1)
        return;
    buf_release(&k->building);
    free(k->places);
    secret_release(&k->bytes);
    scanner_release(&k->scan);
    arena_free(k->names);
    free(k->patterns);
    free(k->markers);
    free(k);
}

size_t known_size(const struct known *k)
{
    return k ? sizeof(*k) + k->bytes.n + k->room * sizeof(*k->patterns) +
                   k->scan.room * sizeof(*k->scan.windows)
             : 0;
}

void own_secrets_ref(const struct own_secrets *own)
{
    (void)known_ref(own->known);
    (void)known_ref(own->session);
}

void own_secrets_unref(struct own_secrets *own)
{
    known_unref(own->known);
    known_unref(own->session);
    own->known = own->session = NULL;
}

const struct scanner *known_scanner(const struct known *k)
{
    return &k->scan;
}

bool known_matches(const struct known *k, size_t value, struct str in, size_t at, size_t *ret_n,
                   struct str *ret_marker)
{
    struct str bytes = pattern_bytes(k, value);

    if (in.n - at < bytes.n || memcmp(in.p + at, bytes.p, bytes.n) != 0)
        return false;
    *ret_n = bytes.n;
    *ret_marker = k->markers[k->patterns[value].marker];
    return true;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *published;
static _Atomic uint64_t version = 1;

void known_publish(struct known *k)
{
    pthread_mutex_lock(&lock);
    struct known *old = published;
    published = k;
    atomic_fetch_add(&version, 1);
    pthread_mutex_unlock(&lock);
    known_unref(old);
}

struct known *known_published(uint64_t *ret_version)
{
    pthread_mutex_lock(&lock);
    struct known *k = known_ref(published);
    *ret_version = atomic_load(&version);
    pthread_mutex_unlock(&lock);
    return k;
}

uint64_t known_version(void)
{
    return atomic_load_explicit(&version, memory_order_acquire);
}
