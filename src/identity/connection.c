/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the server's members over the client's metadata as a merge patch. */
#include "identity/connection.h"

#include "identity/proxy.h"
#include "json/merge.h"
#include "json/write.h"

#define METADATA_BYTES (256 * 1024)
#define AGENT_MAX 512

static const char *const server_members[] = {"ip_address", "user_agent", "protocol", "tls_version"};

static struct str lay_over(struct str metadata, struct buf *ours, struct arena *mem)
{
    struct buf out;
    struct str text = STR_NONE;

    buf_init(&out, METADATA_BYTES);
    if (json_merge(metadata.p ? metadata : STR("{}"), buf_str(ours), MERGE_PATCH, mem, &out))
        text = arena_dup(mem, buf_str(&out));
    buf_release(&out);
    buf_release(ours);
    return text;
}

static void write_http(const struct config *c, const struct http_request *r, struct arena *mem,
                       struct js_writer *w)
{
    struct str agent = http_header_get(r->head, STR("user-agent"));
    js_kv_string(w, "ip_address", client_address(c, r, mem));
    js_key(w, STR("user_agent"));
    if (agent.n)
        js_string(w, str_n(agent.p, agent.n < AGENT_MAX ? agent.n : AGENT_MAX));
    else
        js_null(w); /* overrides a user_agent in the client's metadata */
    js_kv_string(w, "protocol", r->head->minor ? STR("HTTP/1.1") : STR("HTTP/1.0"));
    js_kv_string(w, "tls_version", str_of(http_request_tls_version(r)));
}

struct str connection_metadata(const struct config *c, const struct http_request *r,
                               struct str metadata, struct arena *mem)
{
    struct js_writer w;
    struct buf ours;

    buf_init(&ours, METADATA_BYTES);
    js_begin(&w, &ours);
    js_object(&w);
    write_http(c, r, mem, &w);
    js_object_end(&w);
    return lay_over(metadata, &ours, mem);
}

struct str connection_metadata_again(struct str before, struct str metadata, struct arena *mem)
{
    struct js_doc doc;
    struct js_writer w;
    struct buf ours;
    bool has_before = before.n && js_parse(before, &js_limits_request, mem, &doc, NULL);

    buf_init(&ours, METADATA_BYTES);
    js_begin(&w, &ours);
    js_object(&w);
    for (size_t i = 0; has_before && i < countof(server_members); i++) {
        const struct js_node *v = js_get(&doc, js_root(&doc), str_of(server_members[i]));
        js_key(&w, str_of(server_members[i]));
        if (v)
            js_raw_value(&w, js_raw(&doc, v));
        else
            js_null(&w); /* removes a member that the client's metadata invents */
    }
    js_object_end(&w);
    return lay_over(metadata, &ours, mem);
}
