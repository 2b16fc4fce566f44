/* SPDX-License-Identifier: Apache-2.0 */
/* Links after a move.  Each link that would mean another document afterwards is rewritten: in its
 * own style if that spelling resolves to the right document, else in the nearest style that does.
 * Every spelling is resolved before it is used; "/path" from the root always resolves.
 *
 * The documents after the move are those before it, without `from` and with `to`. */
#include "docs/links.h"

#include "base/buf.h"

struct rewrite {
    struct str source_path, source_to, from, to;
    struct str from_key, to_key;
    bool (*exists)(void *arg, struct str path, struct str *ret_path);
    void *arg;
    struct arena *mem; /* reset after each link, because tried spellings add up */
};

static bool is_same(struct rewrite *r, struct str path, struct str key)
{
    return str_eq(links_fold(path, r->mem), key);
}

static bool exists_after(void *arg, struct str path, struct str *ret_path)
{
    struct rewrite *r = arg;

    if (is_same(r, path, r->to_key)) {
        *ret_path = r->to;
        return true;
    }
    return !is_same(r, path, r->from_key) && r->exists(r->arg, path, ret_path);
}

static bool means(struct rewrite *r, struct str target, struct str want)
{
    struct str now = links_resolve(r->source_to, target, exists_after, r, r->mem);
    return now.p && str_eq(now, want);
}

static size_t name_at(struct str path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return n;
}

/* `path` relative to the folder of `source`. */
static struct str relative_to(struct str source, struct str path, struct arena *mem)
{
    size_t folder = name_at(source), common = 0;
    struct buf b;

    for (size_t i = 0; i < folder && i < path.n && source.p[i] == path.p[i]; i++)
        if (source.p[i] == '/')
            common = i + 1;
    buf_init(&b, SIZE_MAX / 4);
    for (size_t i = common; i < folder; i++)
        if (source.p[i] == '/')
            buf_addz(&b, "../");
    buf_add(&b, path.p + common, path.n - common);
    struct str out = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return out;
}

static bool ends_in_md(struct str s)
{
    return s.n > 3 && str_ieq(str_n(s.p + s.n - 3, 3), STR(".md"));
}

enum style { STYLE_PLAIN, STYLE_DOT, STYLE_ROOT, STYLE_SLASH, STYLES };

/* The style of the link.  A plain link counts as STYLE_ROOT if it resolved from the root, or if its
 * source is in the root. */
static enum style style_of(struct rewrite *r, struct str target, struct str meant)
{
    struct str candidates[2];

    if (str_starts(target, STR("/")))
        return STYLE_SLASH;
    if (str_starts(target, STR("./")))
        return STYLE_DOT;
    size_t n = links_candidates(r->source_path, target, r->mem, candidates);
    bool relative = n > 0 && is_same(r, candidates[0], links_fold(meant, r->mem));
    return relative && name_at(r->source_path) > 0 ? STYLE_PLAIN : STYLE_ROOT;
}

static struct str spell(struct rewrite *r, enum style style, struct str want)
{
    struct str relative = relative_to(r->source_to, want, r->mem);

    if (style == STYLE_SLASH)
        return arena_printf(r->mem, "/%.*s", STR_ARG(want));
    if (style == STYLE_DOT && !str_starts(relative, STR("../")))
        return arena_printf(r->mem, "./%.*s", STR_ARG(relative));
    return style == STYLE_ROOT ? want : relative;
}

/* Spellings with "../" are tried first only for links that were relative; others prefer a path from
 * the root. */
static struct str spell_anew(struct rewrite *r, struct str target, struct str meant,
                             struct str want)
{
    static const enum style order[STYLES][STYLES] = {
        [STYLE_PLAIN] = {STYLE_PLAIN, STYLE_DOT, STYLE_ROOT, STYLE_SLASH},
        [STYLE_DOT] = {STYLE_DOT, STYLE_PLAIN, STYLE_ROOT, STYLE_SLASH},
        [STYLE_ROOT] = {STYLE_ROOT, STYLE_SLASH, STYLE_PLAIN, STYLE_DOT},
        [STYLE_SLASH] = {STYLE_SLASH, STYLE_ROOT, STYLE_PLAIN, STYLE_DOT},
    };
    enum style style = style_of(r, target, meant);
    bool bare = !ends_in_md(target) && ends_in_md(want);

    for (int whole = !bare; whole <= 1; whole++)
        for (size_t i = 0; i < STYLES; i++) {
            struct str s = spell(r, order[style][i], want);
            s.n -= whole ? 0 : 3;
            if (means(r, s, want))
                return s;
        }
    return STR_NONE;
}

/* Characters that would end a wiki link, begin its anchor or alias, or be read as CriticMarkup or
 * HTML in the linking document make it impossible. */
static bool wiki_can_hold(struct str target)
{
    for (size_t i = 0; i < target.n; i++)
        if ((unsigned char)target.p[i] < 0x20 || strchr("[]|#`\\{}<>\x7f", target.p[i]))
            return false;
    return target.n > 0 && target.p[0] != ' ' && target.p[target.n - 1] != ' ' &&
           !str_starts(target, STR("//")) &&
           !(target.n >= 7 && str_ieq(str_n(target.p, 7), STR("mailto:")));
}

/* Writes characters that end a destination, or have a meaning in it, as %XX.  Within <…>, blanks,
 * parentheses and quotes stay. */
static struct str encode(struct str target, bool angled, struct arena *mem)
{
    struct buf b;

    buf_init(&b, SIZE_MAX / 4);
    for (size_t i = 0; i < target.n; i++) {
        unsigned char c = (unsigned char)target.p[i];
        bool stands = c > ' ' && c != 0x7f && !strchr("()<>{}[]%#?:\\`\"", c);
        if (stands || (angled && strchr(" ()\"", c) && c))
            buf_addc(&b, (char)c);
        else
            buf_addf(&b, "%%%02X", c);
    }
    struct str out = arena_dup(mem, buf_str(&b));
    buf_release(&b);
    return out;
}

/* The bytes that replace the link's target; absent: the link stays unchanged. */
static struct str replacement(struct rewrite *r, struct str text, const struct link_found *link)
{
    struct str meant = links_resolve(r->source_path, link->target, r->exists, r->arg, r->mem);
    if (!meant.p)
        return STR_NONE;
    struct str want = is_same(r, meant, r->from_key) ? r->to : meant;
    if (means(r, link->target, want))
        return STR_NONE;
    struct str fresh = spell_anew(r, link->target, meant, want);
    if (!fresh.p || !link->is_wiki)
        return fresh.p ? encode(fresh, link->at > 0 && text.p[link->at - 1] == '<', r->mem)
                       : STR_NONE;
    return wiki_can_hold(fresh) ? fresh : STR_NONE;
}

struct str links_rewrite(struct str text, struct str source_path, struct str source_to,
                         struct str from, struct str to,
                         bool (*exists)(void *arg, struct str path, struct str *ret_path),
                         void *arg, struct arena *mem, size_t *ret_n)
{
    struct rewrite r = {.source_path = source_path,
                        .source_to = source_to.p ? source_to : source_path,
                        .from = from,
                        .to = to,
                        .from_key = links_fold(from, mem),
                        .to_key = links_fold(to, mem),
                        .exists = exists,
                        .arg = arg,
                        .mem = arena_new(SIZE_MAX / 4)};
    struct link_found *links = NULL;
    size_t n = links_find(text, mem, &links), done = 0, copied = 0;
    struct buf b;

    buf_init(&b, SIZE_MAX / 4);
    for (size_t i = 0; i < n; i++) {
        struct str fresh = replacement(&r, text, &links[i]);
        if (fresh.p) {
            buf_add(&b, text.p + copied, links[i].at - copied);
            buf_addstr(&b, fresh);
            copied = links[i].at + links[i].n;
            done++;
        }
        arena_reset(r.mem);
    }
    arena_free(r.mem);
    if (done)
        buf_add(&b, text.p + copied, text.n - copied);
    struct str out = done ? arena_dup(mem, buf_str(&b)) : text;
    buf_release(&b);
    *ret_n = done;
    return out;
}
