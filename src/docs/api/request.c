/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about documents: permission, document, author, answers. */
#include "docs/api/request.h"

#include "crypto/hash.h"
#include "identity/logins.h"
#include "identity/scopes.h"
#include "api/cursor.h"
#include "api/page.h"

#define DOCS_MEMORY (256u * 1024 * 1024)
#define AUTHOR_MAX 80
#define MISSING "There is no such document that you may use; list them with GET /api/v1/docs/files."

/* Returns why the caller may not change documents; NULL: it may.  People may, and keys that were
 * made with --review. */
static const char *why_not(const struct principal *who)
{
    bool is_local = !who->credential.p && who->role == ROLE_ADMIN;
    bool is_person = login_of_credential(who->credential).p != NULL;

    if (who->scopes && who->scopes->read_only)
        return "This key may read documents and not change them; use one that is not read-only.";
    if (!is_local && !is_person && !(who->scopes && who->scopes->review))
        return "Documents are changed by people: sign in as a user, or use a key that was made "
               "with --review.";
    return NULL;
}

/* REST shows the documents that the tool `read` shows: a key without that tool sees none. */
static bool may_read(const struct principal *who)
{
    return principal_may_use_server(who, STR("docs")) &&
           principal_may_use_tool(who, STR("docs"), STR("read"));
}

struct docs_request *docs_request_new(struct api_call *c, bool changes)
{
    const char *wrong = changes ? why_not(&c->who) : NULL;
    struct docs_request *q;
    struct arena *mem;

    if (wrong) {
        api_problem(c, ERR_DENIED, "access denied", wrong, STR_NONE);
        return NULL;
    }
    if (!may_read(&c->who)) {
        api_problem(c, ERR_NOT_FOUND, "document not found", MISSING, STR_NONE);
        return NULL;
    }
    mem = arena_new(DOCS_MEMORY);
    q = arena_new_of(mem, struct docs_request);
    q->api = c;
    q->mem = mem;
    q->call.who = &c->who;
    q->call.mem = mem;
    q->call.user = q;
    return q;
}

bool docs_request_at(struct docs_request *q, struct str file_path)
{
    struct error err;

    if (docs_resolve(q->api->sv->docs, &q->call, file_path, &err))
        return true;
    docs_request_missing(q);
    return false;
}

bool docs_request_place(struct docs_request *q)
{
    const struct str *params = q->api->match.params;

    return docs_request_at(
        q, arena_printf(q->mem, "%.*s/%.*s", STR_ARG(params[0]), STR_ARG(params[1])));
}

void docs_request_again(struct docs_request *q, void (*done)(struct docs_call *call))
{
    const struct docs_call *c = &q->call;

    q->call = (struct docs_call){
        .who = c->who,
        .mem = c->mem,
        .place = c->place,
        .set = c->set,
        .author = c->author,
        .done = done,
        .user = q,
    };
}

struct str docs_request_path(const struct docs_request *q)
{
    return arena_printf(q->mem, "%.*s/%.*s", STR_ARG(q->call.place.folder->name),
                        STR_ARG(q->call.place.path));
}

/* Author. */

/* Cuts the name, and removes the characters that the metadata of a comment cannot hold. */
static struct str clean(struct str name, struct arena *mem)
{
    char *text = arena_alloc(mem, AUTHOR_MAX + 1);
    size_t n = 0;

    for (size_t i = 0; i < name.n && n < AUTHOR_MAX; i++)
        if ((unsigned char)name.p[i] >= ' ' && !strchr("{}<>@\"\\\x7f", name.p[i]))
            text[n++] = name.p[i];
    while (n && ((unsigned char)text[n - 1] & 0x80) && n == AUTHOR_MAX)
        n--; /* a character that was cut */
    return str_trim(str_n(text, n));
}

static bool run_name(struct read_job *job, struct store *store)
{
    struct docs_request *q = container_of(job, struct docs_request, name);
    const struct principal *who = q->call.who;
    const struct str prefix = STR("key:");
    struct user_row *user = NULL;
    struct key_row *key = NULL;

    if (who->user_id.p && !store_user_get(store, who->user_id, q->mem, &user, &job->err))
        return false;
    if (!user && str_starts(who->credential, prefix) &&
        !store_key_get(store, str_n(who->credential.p + prefix.n, who->credential.n - prefix.n),
                       q->mem, &key, &job->err))
        return false;
    if (user)
        q->call.author = clean(user->name, q->mem);
    else if (key && key->name.n)
        q->call.author = clean(key->name, q->mem);
    return true;
}

static void on_name(struct read_job *job)
{
    struct docs_request *q = container_of(job, struct docs_request, name);

    if (!job->ok) {
        docs_request_refuse(q, job->err.code, job->err.text, job->err.text, STR_NONE);
        return;
    }
    if (!q->call.author.n)
        q->call.author = q->call.who->owner;
    q->ready(q);
}

void docs_request_author(struct docs_request *q, struct str claimed,
                         void (*ready)(struct docs_request *q))
{
    q->ready = ready;
    q->call.author = STR_NONE;
    if (!q->call.who->credential.p) {
        q->call.author = claimed.n ? clean(claimed, q->mem) : STR_NONE;
        if (!q->call.author.n)
            q->call.author = q->call.who->owner;
        ready(q);
        return;
    }
    q->name = (struct read_job){.run = run_name, .done = on_name};
    if (!lane_lookup(q->api->sv->lanes, &q->name))
        docs_request_refuse(q, ERR_UNAVAILABLE, "too much is waiting for the store",
                            "Too much is waiting for the store; try again in a moment.",
                            STR("Retry-After: 1\r\n"));
}

/* Answers. */

void docs_request_drop(struct docs_request *q)
{
    if (q->call.set)
        docs_end(&q->call);
    arena_free(q->mem);
}

void docs_request_reply(struct docs_request *q, int status, struct str headers, struct str body)
{
    api_reply(q->api, status, headers, body);
    docs_request_drop(q);
}

void docs_request_refuse(struct docs_request *q, enum err_code code, const char *error,
                         const char *detail, struct str headers)
{
    api_problem(q->api, code, error, detail, headers);
    docs_request_drop(q);
}

void docs_request_missing(struct docs_request *q)
{
    docs_request_refuse(q, ERR_NOT_FOUND, "document not found", MISSING, STR_NONE);
}

void docs_request_not_found(struct docs_request *q, const char *error)
{
    const struct str prefix = STR("Error: ");
    const char *text = q->call.err.text;

    docs_request_refuse(q, ERR_NOT_FOUND, error,
                        str_starts(str_of(text), prefix) ? text + prefix.n : text, STR_NONE);
}

void docs_request_fail(struct docs_request *q)
{
    const struct error *err = &q->call.err;

    if (err->code == ERR_NOT_FOUND)
        docs_request_missing(q);
    else
        docs_request_refuse(q, err->code, err->text, err->text,
                            error_info(err->code)->http_status == 503 ? STR("Retry-After: 1\r\n")
                                                                      : STR_NONE);
}

/* Tags. */

struct str docs_tag(const uint8_t sha256[32], char ret[DOCS_TAG_TEXT])
{
    ret[0] = '"';
    hex_encode(sha256, 32, ret + 1);
    memcpy(ret + 65, "\"", 2);
    return str_n(ret, 66);
}

bool docs_tag_matches(struct str header, struct str tag)
{
    while (header.p) {
        struct str one = str_trim(str_split(&header, ','));
        if (str_eq(one, STR("*")) || str_eq(one, tag))
            return true;
    }
    return false;
}

bool docs_query_bool(struct api_call *c, const char *name, bool *ret)
{
    struct str text;

    if (!api_query(c, name, &text))
        return false;
    *ret = text.p && str_eq(text, STR("true"));
    if (text.p && !*ret && !str_eq(text, STR("false"))) {
        api_refuse(c, ERR_BAD_INPUT, "?%s= is true or false", name);
        return false;
    }
    return true;
}

/* Pages. */

bool docs_page_read(struct api_call *c, const char *list, struct str about, struct docs_page *ret)
{
    struct str cursor;

    if (!api_query(c, "folder", &ret->folder) || !api_query(c, "cursor", &cursor) ||
        !api_query_number(c, "limit", 1, STORE_PAGE_MAX, DOCS_PAGE_DEFAULT, &ret->limit))
        return false;
    ret->about = arena_printf(c->mem, "%s %.*s %.*s", list, STR_ARG(about), STR_ARG(ret->folder));
    if (cursor.p && !cursor_read(cursor, &c->who, ret->about, c->mem, &ret->after))
        return page_refuse_cursor(c);
    return true;
}

struct str docs_page_end(struct docs_request *q, const struct docs_page *p, struct js_writer *w,
                         size_t count, struct str last, const char *path)
{
    struct page_place place = {.who = q->call.who, .about = p->about};
    struct str folder =
        p->folder.p ? arena_printf(q->mem, "&folder=%.*s", STR_ARG(api_in_path(q->api, p->folder)))
                    : STR("");

    place.url =
        arena_printf(q->mem, "%s?limit=%lld%.*s", path, (long long)p->limit, STR_ARG(folder));
    return page_end(&place, w, count, last, q->mem);
}

struct str docs_take(struct buf *out, struct arena *mem)
{
    struct str text = arena_dup(mem, buf_str(out));
    buf_release(out);
    return text;
}
