/* SPDX-License-Identifier: Apache-2.0 */
/* find: searches the tools of a profile by what they do.  Writes one page of results, as text for a
 * model and as structure for a program.  rank.c selects and orders the tools. */
#include "profile/find.h"

#include "json/write.h"
#include "profile/rank.h"
#include "profile/rank_index.h"

#include <stdlib.h>

#define LIMIT_MAX 100
#define LIMIT_FOUND 5   /* default with a query */
#define LIMIT_LISTED 20 /* default without a query */
#define PAGE_MAX 1000000
#define THRESHOLD 0.1
#define SCHEMA_MAX (32u * 1024)   /* bytes per tool; a larger schema is left out */
#define SCHEMAS_MAX (512u * 1024) /* bytes per page */
#define TEXT_MAX (16u << 20)
#define DESCRIPTION_MAX 2000
#define PARAMETERS_MAX 64 /* listed per tool */
#define PARAMETER_NAME_MAX 256
#define TYPES_MAX 8 /* listed per parameter */
#define TYPE_MAX 64
#define PAGE_BYTES (1u << 20) /* beyond this, tools are only named */

const char find_definition[] =
    "{\"name\":\"find\",\"title\":\"Find tools\",\"description\":\"Finds tools by what they do. "
    "Say what "
    "you want to do in plain words; separate several wishes with |. The name of a server alone "
    "lists "
    "its tools, server: before a wish looks there only, and without a description everything is "
    "listed. Call what was found with run.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"description\":{\"type\":\"string\",\"description\":\"What you want to do, such as: send an "
    "email | read a calendar.\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"description\":\"Tools a page; "
    "5 "
    "with a description, else 20.\"},"
    "\"page\":{\"type\":\"integer\",\"minimum\":1,\"default\":1},"
    "\"depth\":{\"type\":\"integer\",\"enum\":[0,1,2],\"default\":2,\"description\":\"0: names; 1: "
    "descriptions too; 2: parameters too.\"},"
    "\"confidence_threshold\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1,\"default\":0.1,"
    "\"description\":\"How well a tool must fit.\"}}},"
    "\"annotations\":{\"readOnlyHint\":true}}";

struct finding {
    const struct profile_view *v;
    struct str query;
    int64_t limit, page, depth;
    struct rank_candidate *tools;
    size_t n, room, found;
    struct buf text, structured;
    size_t schemas; /* bytes of schemas written */
};

/* Arguments. */

struct reading {
    const struct profile_arguments *a;
    struct arena *mem;
};

/* False when the argument is present and not a whole number in this range. */
static bool read_int(const struct reading *r, const char *name, int64_t min, int64_t max,
                     int64_t *ret)
{
    const struct js_node *v = profile_argument(r->a, name);
    double value;

    if (!v)
        return true;
    if (!js_type_is(v, JS_NUMBER))
        return false;
    /* 5.0 counts as a whole number */
    value = strtod(arena_dup(r->mem, js_raw(r->a->doc, v)).p, NULL);
    if (!(value >= (double)min && value <= (double)max) || (double)(int64_t)value != value)
        return false;
    *ret = (int64_t)value;
    return true;
}

static bool read_threshold(const struct reading *r, double *ret)
{
    const struct js_node *v = profile_argument(r->a, "confidence_threshold");
    double value;

    if (!v)
        return true;
    if (!js_type_is(v, JS_NUMBER))
        return false;
    value = strtod(arena_dup(r->mem, js_raw(r->a->doc, v)).p, NULL);
    if (!(value >= 0 && value <= 1))
        return false;
    *ret = value;
    return true;
}

const char *find_query_read(const struct profile_arguments *a, struct arena *mem,
                            struct find_query *ret)
{
    const struct js_node *query = profile_argument(a, "description");
    const struct reading r = {a, mem};

    if (query && query->type != JS_STRING)
        return "\"description\" must be a string: what you want to do, in plain words.";
    ret->words = query ? str_trim(js_text(a->doc, query, mem)) : STR("");
    ret->limit = ret->words.n ? LIMIT_FOUND : LIMIT_LISTED;
    ret->page = 1;
    ret->depth = 2;
    ret->threshold = THRESHOLD;
    if (!read_int(&r, "limit", 1, LIMIT_MAX, &ret->limit))
        return "\"limit\" must be a whole number from 1 to 100.";
    if (!read_int(&r, "page", 1, PAGE_MAX, &ret->page))
        return "\"page\" must be a whole number from 1.";
    if (!read_int(&r, "depth", 0, 2, &ret->depth))
        return "\"depth\" must be 0, 1 or 2.";
    return read_threshold(&r, &ret->threshold)
               ? NULL
               : "\"confidence_threshold\" must be a number from 0 to 1.";
}

static bool count_tool(void *arg, const struct seen_tool *tool unused_arg)
{
    ((struct finding *)arg)->room++;
    return true;
}

static bool take_tool(void *arg, const struct seen_tool *t)
{
    struct finding *f = arg;

    f->tools[f->n++] = (struct rank_candidate){upstream_name(t->up), t->catalog, t->item, 0};
    return true;
}

/* States of the servers. */

static bool is_healthy(const struct plan_part *part)
{
    return part->catalog && upstream_health(part->up).state != HEALTH_DOWN;
}

static bool server_is_healthy(const struct profile_view *v, struct str server)
{
    for (size_t i = 0; i < profile_view_parts(v); i++)
        if (str_eq(upstream_name(v->plan->parts[i].up), server))
            return is_healthy(&v->plan->parts[i]);
    return false;
}

static bool is_asked(const struct plan_part *part)
{
    const char *why;
    return !part->catalog && upstream_absence(part->up, &why) == ABSENCE_STARTING;
}

/* Neither up nor starting. */
static bool is_unavailable(const struct plan_part *part)
{
    return !is_healthy(part) && !is_asked(part);
}

/* Writes the names of the parts for which `which` returns `wanted`, after `before`; returns how
 * many. */
static size_t write_names(const struct profile_view *v, bool (*which)(const struct plan_part *),
                          bool wanted, const char *before, struct buf *out)
{
    size_t n = 0;

    for (size_t i = 0; i < profile_view_parts(v); i++)
        if (which(&v->plan->parts[i]) == wanted)
            buf_addf(out, "%s%.*s", n++ ? ", " : before,
                     STR_ARG(upstream_name(v->plan->parts[i].up)));
    return n;
}

static void write_health_text(const struct profile_view *v, struct buf *out)
{
    size_t healthy = 0;

    for (size_t i = 0; i < profile_view_parts(v); i++)
        healthy += is_healthy(&v->plan->parts[i]);
    buf_addf(out, "✅ **MCPs**: %zu/%zu healthy", healthy, profile_view_parts(v));
    if (write_names(v, is_unavailable, true, " (", out))
        buf_addz(out, " unavailable)");
    if (write_names(v, is_asked, true, "\n⏳ still starting: ", out))
        buf_addz(out, "; call find again in a moment");
    buf_addz(out, "\n\n");
}

static void write_name_array(const struct profile_view *v, bool (*which)(const struct plan_part *),
                             bool wanted, struct buf *out)
{
    const char *comma = "";

    buf_addc(out, '[');
    for (size_t i = 0; i < profile_view_parts(v); i++)
        if (which(&v->plan->parts[i]) == wanted) {
            buf_addz(out, comma);
            js_quote(out, upstream_name(v->plan->parts[i].up));
            comma = ",";
        }
    buf_addc(out, ']');
}

static void write_tail(struct finding *f)
{
    const struct profile_view *v = f->v;
    struct buf *out = &f->structured;
    size_t healthy = 0, pages = (f->found + (size_t)f->limit - 1) / (size_t)f->limit;

    for (size_t i = 0; i < profile_view_parts(v); i++)
        healthy += is_healthy(&v->plan->parts[i]);
    buf_addf(out,
             "],\"pagination\":{\"page\":%lld,\"limit\":%lld,\"total\":%zu,\"pages\":%zu,"
             "\"has_more\":%s},\"health\":{\"total\":%zu,\"healthy\":%zu,\"unavailable\":",
             (long long)f->page, (long long)f->limit, f->found, pages,
             (size_t)f->page < pages ? "true" : "false", profile_view_parts(v), healthy);
    write_name_array(v, is_unavailable, true, out);
    buf_addz(out, "},\"indexing\":{\"pending\":");
    write_name_array(v, is_asked, true, out);
    buf_addz(out, "}}");
}

/* One tool. */

/* "string" or "string|null". */
static struct str type_of(const struct js_doc *doc, const struct js_node *schema, struct arena *mem)
{
    const struct js_node *type = js_get(doc, schema, STR("type"));
    struct str text = js_text(doc, type, mem);
    unsigned n = 0;

    if (!js_type_is(type, JS_ARRAY))
        return text.p ? str_cut(text, TYPE_MAX) : STR("any");
    text = STR_NONE;
    for (const struct js_node *v = js_first(doc, type); v && n < TYPES_MAX;
         v = js_next(doc, type, v), n++) {
        struct str one = str_cut(js_text(doc, v, mem), TYPE_MAX);
        if (one.p)
            text = text.p ? arena_printf(mem, "%.*s|%.*s", STR_ARG(text), STR_ARG(one)) : one;
    }
    return text.p ? text : STR("any");
}

static bool is_required(const struct js_doc *doc, const struct js_node *schema, struct str name)
{
    const struct js_node *required = js_get(doc, schema, STR("required"));

    if (!js_type_is(required, JS_ARRAY))
        return false;
    for (const struct js_node *v = js_first(doc, required); v; v = js_next(doc, required, v))
        if (js_is(doc, v, name))
            return true;
    return false;
}

struct parameter {
    struct str name, type, about;
    bool required;
};

static struct parameter read_parameter(const struct js_doc *doc, const struct js_node *schema,
                                       const struct js_node *key, struct arena *mem)
{
    const struct js_node *value = js_value_of(key);
    struct str about = js_text(doc, js_get(doc, value, STR("description")), mem);
    struct str name = js_text(doc, key, mem);

    return (struct parameter){str_cut(name, PARAMETER_NAME_MAX), type_of(doc, value, mem),
                              str_cut(about, DESCRIPTION_MAX), is_required(doc, schema, name)};
}

static void write_parameter(struct js_writer *w, const struct parameter *p)
{
    js_object(w);
    js_kv_string(w, "name", p->name);
    js_kv_string(w, "type", p->type);
    js_kv_bool(w, "required", p->required);
    js_kv_string(w, "description", p->about);
    js_object_end(w);
}

static void write_parameter_text(struct buf *out, const struct parameter *p)
{
    buf_addf(out, "   %.*s (%.*s%s)%s%.*s\n", STR_ARG(p->name), STR_ARG(p->type),
             p->required ? ", required" : "", p->about.n ? ": " : "", STR_ARG(p->about));
}

/* The text always lists the parameters.  The structure lists them only when the schema, which says
 * the same, is left out. */
static void write_each_parameter(struct finding *f, const struct js_doc *doc,
                                 const struct js_node *schema, bool structured)
{
    const struct js_node *properties = js_get(doc, schema, STR("properties"));
    const struct js_node *key =
        js_type_is(properties, JS_OBJECT) ? js_first(doc, properties) : NULL;
    struct js_writer w;

    if (structured) {
        buf_addz(&f->structured, ",\"parameters\":");
        js_begin(&w, &f->structured);
        js_array(&w);
    }
    for (unsigned n = 0; key && n < PARAMETERS_MAX; n++) {
        struct parameter p = read_parameter(doc, schema, key, f->v->mem);
        write_parameter_text(&f->text, &p);
        if (structured)
            write_parameter(&w, &p);
        key = js_next(doc, properties, js_value_of(key));
    }
    if (structured)
        js_array_end(&w);
}

static void write_parameters(struct finding *f, const struct js_doc *doc,
                             const struct js_node *schema)
{
    struct str raw = schema ? js_raw(doc, schema) : STR_NONE;
    bool fits = raw.p && raw.n <= SCHEMA_MAX && f->schemas + raw.n <= SCHEMAS_MAX;

    write_each_parameter(f, doc, schema, !fits);
    if (fits) {
        f->schemas += raw.n;
        buf_addf(&f->structured, ",\"schema\":%.*s", STR_ARG(raw));
    } else if (raw.p) {
        buf_addz(&f->structured, ",\"schema_omitted\":true");
        buf_addz(&f->text, "   (its schema is too long to stand here; look for the tool alone)\n");
    }
}

static struct str definition_of(struct finding *f, const struct rank_candidate *c)
{
    struct upstream *up = upstreams_find(f->v->upstreams, c->server);
    struct catalog_writing w = {.from = c->item, .max = 1, .short_handles = true};
    struct buf raw;

    w.with_handles = up && f->v->adds_session_id(f->v->request, up, c->catalog);
    buf_init(&raw, 2 * CATALOG_MAX_BYTES);
    catalog_write_items(c->catalog, CATALOG_TOOLS, &w, &raw);
    struct str text = arena_dup(f->v->mem, buf_str(&raw));
    buf_release(&raw);
    return text;
}

static void write_tool(struct finding *f, const struct rank_candidate *c, size_t number)
{
    struct str name = c->catalog->lists[CATALOG_TOOLS].items[c->item].name;
    struct buf *out = &f->structured;
    struct str about = STR_NONE;
    struct js_doc doc;
    bool full = f->text.n > PAGE_BYTES || f->structured.n > PAGE_BYTES;
    bool parsed = f->depth > 0 && !full &&
                  js_parse(definition_of(f, c), &js_limits_upstream, f->v->mem, &doc, NULL);

    if (parsed)
        about = js_text(&doc, js_get(&doc, js_root(&doc), STR("description")), f->v->mem);
    about = str_cut(about, DESCRIPTION_MAX);
    buf_addf(&f->text, "%zu. %.*s:%.*s", number, STR_ARG(c->server), STR_ARG(name));
    if (f->query.n)
        buf_addf(&f->text, " (%.2f)", c->confidence);
    buf_addf(&f->text, "%s%.*s\n", about.n ? " " : "", STR_ARG(about));
    if (f->depth > 0 && !parsed)
        buf_addz(&f->text, "   (this page is full; ask for fewer tools to see more of this one)\n");
    buf_addz(out, "{\"name\":");
    js_quote(out, arena_printf(f->v->mem, "%.*s:%.*s", STR_ARG(c->server), STR_ARG(name)));
    buf_addz(out, ",\"mcp\":");
    js_quote(out, c->server);
    buf_addz(out, ",\"tool\":");
    js_quote(out, name);
    if (about.p) {
        buf_addz(out, ",\"description\":");
        js_quote(out, about);
    }
    buf_addf(out, ",\"confidence\":%.2f", c->confidence);
    if (f->depth == 2 && parsed)
        write_parameters(f, &doc, js_get(&doc, js_root(&doc), STR("inputSchema")));
    if (f->depth > 0 && !parsed)
        buf_addz(out, ",\"schema_omitted\":true");
    buf_addf(out, ",\"healthy\":%s}", server_is_healthy(f->v, c->server) ? "true" : "false");
}

static void write_head(struct finding *f, size_t from, size_t to)
{
    size_t pages = (f->found + (size_t)f->limit - 1) / (size_t)f->limit;

    write_health_text(f->v, &f->text);
    if (f->found == 0 && !f->query.n)
        buf_addz(&f->text, "There are no tools here now.\n");
    else if (f->found == 0)
        buf_addf(
            &f->text,
            "No tool fits \"%.*s\". Say it in other words, name a server alone to see its tools "
            "(%.*s), or leave the description out to see all.\n",
            STR_ARG(str_cut(f->query, 200)), STR_ARG(profile_servers(f->v)));
    else if (from >= to)
        buf_addf(&f->text, "There is no page %lld; the last is %zu.\n", (long long)f->page, pages);
    else
        buf_addf(&f->text, "Tools %zu to %zu of %zu (page %lld of %zu):\n\n", from + 1, to,
                 f->found, (long long)f->page, pages);
}

static void write_page(struct finding *f)
{
    size_t from = (size_t)(f->page - 1) * (size_t)f->limit;
    size_t to = from + (size_t)f->limit < f->found ? from + (size_t)f->limit : f->found;

    buf_init(&f->text, TEXT_MAX);
    buf_init(&f->structured, TEXT_MAX);
    write_head(f, from, to);
    buf_addz(&f->structured, "{\"tools\":[");
    for (size_t i = from; i < to; i++) {
        if (i > from)
            buf_addc(&f->structured, ',');
        write_tool(f, &f->tools[i], i + 1);
    }
    write_tail(f);
    if (from < to)
        buf_addz(&f->text, "\nCall one with run: {\"tool\":\"server:tool\",\"parameters\":{…}}.");
}

bool find_index_step(const struct profile_view *v)
{
    for (size_t i = 0; i < profile_view_parts(v); i++) {
        struct catalog *c = v->listed(v->request, i);
        if (c && !rank_index_step(c))
            return false;
    }
    return true;
}

void find_answer(const struct profile_view *v, const struct find_query *q,
                 struct profile_answer *ret)
{
    struct finding f = {
        .v = v, .query = q->words, .limit = q->limit, .page = q->page, .depth = q->depth};

    profile_each_tool(v, count_tool, &f);
    f.tools = arena_alloc(v->mem, (f.room + 1) * sizeof(*f.tools));
    profile_each_tool(v, take_tool, &f);
    f.found = rank_tools(f.tools, f.n, f.query, f.query.n ? q->threshold : 0, v->mem);
    write_page(&f);
    *ret = (struct profile_answer){.text = f.text, .structured = f.structured};
}
