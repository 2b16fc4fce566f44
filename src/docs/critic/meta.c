/* SPDX-License-Identifier: Apache-2.0 */
/* Author and time of a mark: a small JSON object and "@@" at its beginning.  Two dialects are read,
 * "time" in seconds and "timestamp" in milliseconds; the first is written.  If it does not parse as
 * metadata, it is part of the mark's text. */
#include "base/utf8.h"
#include "docs/critic/critic_impl.h"
#include "json/read.h"
#include "json/write.h"

#define AUTHOR_MAX 80
#define META_ARENA (256u * 1024) /* room for meta_limits */

#define META_DEPTH 8

/* Parsers differ on duplicate keys, so an object with duplicate keys is not metadata. */
static const struct js_limits meta_limits = {
    .depth = META_DEPTH, .keys = 64, .nodes = 256, .flags = JS_NO_DUPLICATES};

/* The end of the object at the start of `text`, by its braces and strings alone; 0 when it does not
 * end within the limits.  Every "{>>{" adds two braces to the depth of searches that began before
 * it, so the depth limit also bounds how many searches examine one byte. */
static size_t object_end(struct str text, size_t *steps)
{
    unsigned depth = 0;
    bool quoted = false;
    size_t i = 0, end = 0;

    for (; !end && i < text.n && i < CRITIC_META_MAX && depth <= META_DEPTH; i++) {
        char c = text.p[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == '{')
            depth++;
        else if (!quoted && c == '}' && --depth == 0)
            end = i + 1;
    }
    *steps += i;
    return end;
}

static int64_t read_time(const struct js_doc *doc)
{
    int64_t value;

    if (js_to_i64(doc, js_get(doc, js_root(doc), STR("time")), &value))
        return value;
    if (js_to_i64(doc, js_get(doc, js_root(doc), STR("timestamp")), &value))
        return value / 1000;
    return 0;
}

size_t critic_meta_read(struct str text, struct arena *mem, struct critic_meta *ret, size_t *steps)
{
    struct arena *scratch; /* separate, so that the meaning of a mark does not depend on free space
                            * in `mem` */
    struct js_doc doc;
    size_t end;
    bool ok;

    if (!text.n || text.p[0] != '{')
        return 0;
    end = object_end(text, steps);
    if (!end || !critic_has_at(text, end, STR("@@")))
        return 0;
    scratch = arena_new(META_ARENA);
    ok = js_parse(str_n(text.p, end), &meta_limits, scratch, &doc, NULL);
    if (ok) {
        ret->author = js_text(&doc, js_get(&doc, js_root(&doc), STR("author")), mem);
        ret->time_s = read_time(&doc);
    }
    arena_free(scratch);
    return ok ? end + 2 : 0;
}

void critic_meta_write(struct buf *out, const struct critic_author *author)
{
    buf_addz(out, "{\"author\":");
    js_quote(out, author->name.n ? author->name : STR("AI"));
    buf_addf(out, ",\"time\":%lld}@@", (long long)author->time_s);
}

void critic_comment_write(struct buf *out, struct str text, const struct critic_author *author)
{
    buf_addz(out, "{>>");
    critic_meta_write(out, author);
    buf_addstr(out, text);
    buf_addz(out, "<<}");
}

bool critic_meta_is_agent(const struct critic_meta *meta)
{
    static const struct str ending = {"'s AI", 5};
    struct str a = meta->author;

    return str_eq(a, STR("AI")) || (a.n > ending.n && critic_has_at(a, a.n - ending.n, ending));
}

static bool is_kept(uint32_t code)
{
    return code >= 0x20 && !(code >= 0x7f && code < 0xa0) && code != 0x2028 && code != 0x2029 &&
           code != '"' && code != '\\' && code != '{' && code != '}' && code != '`' &&
           !utf8_is_bidi_control(code);
}

struct str critic_author_name(struct str person, struct arena *mem)
{
    char kept[AUTHOR_MAX];
    size_t n = 0, width;
    struct str name;

    for (size_t i = 0; i < person.n; i += width) {
        uint32_t code = 0;
        size_t valid = utf8_decode(person.p + i, person.p + person.n, &code);

        width = valid ? valid : 1;
        if (!valid || !is_kept(code) || (n == 0 && code == ' '))
            continue;
        if (n + width > AUTHOR_MAX - 5)
            break;
        memcpy(kept + n, person.p + i, width);
        n += width;
    }
    name = str_trim(str_n(kept, n));
    return name.n ? arena_printf(mem, "%.*s's AI", STR_ARG(name)) : STR("AI");
}
