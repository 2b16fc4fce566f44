/* SPDX-License-Identifier: Apache-2.0 */
/* The typed, immutable configuration.  Counted: an exchange keeps the one it began with; reload
 * swaps the whole (loop thread only).  Read from JSON with comments and trailing commas through the
 * table in options.c, which also prints the reference. */
#ifndef HOLDFAST_CONFIG_CONFIG_H
#define HOLDFAST_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

/* A place in a value that each session fills: ${context:KEY}. */
struct context_placeholder {
    size_t at; /* before this byte of the value */
    struct str key;
    struct str fallback; /* absent: the session must have the key */
};
struct config_pair {
    struct str name, value;
    struct context_placeholder *placeholders; /* by place */
    size_t n_placeholders;
    bool is_from_file; /* of an "envFile": never shown */
};
enum server_share { SHARE_SESSION, SHARE_ALL };
enum server_handles { HANDLES_AUTO, HANDLES_ALWAYS, HANDLES_NEVER };
enum server_audit { AUDIT_FULL, AUDIT_REDACTED, AUDIT_DIGEST, AUDIT_NONE };
enum server_era { ERA_AUTO, ERA_LEGACY, ERA_MODERN };
enum server_kind { SERVER_STDIO, SERVER_HTTP, SERVER_BUILTIN };

struct server_config {
    struct str name;
    enum server_kind kind;
    struct str command;
    struct str *args;
    size_t n_args;
    struct config_pair *env;
    size_t n_env;
    struct str *inherit_env; /* names of ours that it gets too; one that ends with * is a prefix */
    size_t n_inherit_env;
    struct str cwd;
    struct str url;
    bool sse; /* its "type" says that it speaks the HTTP transport of 2024 */
    struct config_pair *headers;
    size_t n_headers;
    struct str tls_ca;             /* absent: the system's authorities */
    struct str credential_service; /* whose stored credential goes along; absent: none does */
    struct str credential_as;      /* "header:NAME", "env:NAME", "meta:KEY" */
    struct str *key_names;         /* headers that a credential's own key_name may choose */
    size_t n_key_names;
    enum server_share share;
    enum server_handles handles;
    enum server_audit audit;
    enum server_era era;
    bool pin;
    bool takes_context;  /* one of its env or headers, whichever it uses, has a placeholder */
    int64_t timeout_ms;  /* per call; 60 s unless told */
    struct str env_file; /* whose variables are in `env`; absent: none */
    /* Patterns of its tools' own names.  Everything that lists, finds or calls tools goes by
     * config_shows_tool(). */
    struct str *only_tools; /* none: all of them */
    size_t n_only_tools;
    struct str *without_tools;
    size_t n_without_tools;
    uint8_t definition[32]; /* digest of everything above: same ⇒ untouched by reload */
    /* "FILE:LINE:COLUMN", for complaints; absent: none was given, or there is no file */
    struct str command_at, cwd_at, tls_at;
};

/* A key of an issuer, given here: a file with a public one, or a secret. */
struct issuer_key_config {
    struct str kid; /* absent: none */
    struct str alg; /* "RS256" */
    struct str pem; /* a file; absent: `secret` is given */
    struct str secret;
    struct str at; /* "FILE:LINE:COLUMN", for complaints about what it names */
};
/* Somebody whose tokens (JWT) are taken. */
struct issuer_config {
    struct str issuer;
    struct str *audiences; /* as whom the token must address us; never empty */
    size_t n_audiences;
    struct str jwks; /* a file or a URL; absent: `keys` are all there are */
    bool jwks_is_url;
    struct issuer_key_config *keys;
    size_t n_keys;
    struct str tenant_claim, role_claim; /* empty: its tokens do not say */
    struct str tenant;                   /* of tokens that name none; absent: they must name one */
    struct str *tenants; /* that its tokens may name; none: any, where it is the only issuer */
    size_t n_tenants;
    struct str *roles; /* that its tokens may name; none: any */
    size_t n_roles;
    struct str at, jwks_at; /* "FILE:LINE:COLUMN" */
};

struct meta_carrier {
    struct str path[4];
    size_t n;
    struct str label;
}; /* label: "meta:a.b" */

/* What tenants may use, and each key inside of one (config/limits.h). */
struct limits_config {
    struct limits tenant, key;
};

/* What differs for one tenant; the rest is as for all. */
struct tenant_config {
    struct str name;
    int64_t max_sessions;            /* < 0: as for all */
    bool sessions;                   /* false: the registry answers as if it were not there */
    int64_t default_ttl_ms, idle_ms; /* 0: as for all */
    struct limits_config limits;
};

/* What agents may do in a folder of documents, from least to most. */
enum docs_agent { AGENT_READ, AGENT_COMMENT, AGENT_SUGGEST, AGENT_WRITE };
struct folder_config {
    struct str name, path;
    int agent;           /* enum docs_agent */
    size_t history;      /* bytes that one document's history may take */
    struct str *tenants; /* whose it is; none: everybody's */
    size_t n_tenants;
    struct str at; /* "FILE:LINE:COLUMN" of its path */
};

/* A named group of tools. */
struct toolset_config {
    struct str key;
    struct str name, description; /* for people; absent: none */
    struct str *tools;            /* patterns of server__tool */
    size_t n_tools;
};
/* A selection of servers and tools with an endpoint of its own, /mcp/p/{name}. */
enum profile_mode { PROFILE_ALL, PROFILE_SEARCH, PROFILE_STATIC, PROFILE_DYNAMIC };
#define PROFILE_TOOLSETS_MAX 64
#define CONTEXT_KEYS_MAX 64
#define CONTEXT_KEY_MAX 64 /* bytes */
struct profile_config {
    struct str name;
    struct str *servers; /* none: all of them */
    size_t n_servers;
    struct str *toolset_keys; /* none: every tool of its servers */
    size_t n_toolset_keys;
    const struct toolset_config **toolsets; /* what those keys name, in their order */
    int mode;                               /* enum profile_mode */
    bool client_id_required;
    bool proxy_permits; /* a trusted proxy says which toolsets a request has; without one, none */
    int64_t max_active; /* toolsets enabled at once in a session; 0: all */
    struct str *allow;  /* toolset keys that may be enabled; none: all */
    size_t n_allow;
    struct str *deny; /* … and those that may not */
    size_t n_deny;
    struct client_config *clients; /* what client ids are narrowed to */
    size_t n_clients;
    struct str *context_keys; /* what clients may tell their sessions; none: nothing */
    size_t n_context_keys;
};
/* A client id, or "*" for those that are not named, and the keys of its toolsets. */
struct client_config {
    struct str id;
    struct str *toolsets;
    size_t n_toolsets;
};

/* Which file a configuration is, and what it held: tells one project's from another's. */
struct config_identity {
    struct str path;    /* absolute, symbolic links resolved; absent: there is no file */
    uint8_t digest[32]; /* SHA-256 of its bytes */
};

struct config {
    unsigned refs;
    struct arena *mem;
    struct str file;                 /* absent: built-in defaults */
    struct config_identity identity; /* of that file, as it was read */
    struct str listen;               /* "127.0.0.1:4653" */
    bool listens_on_loopback;        /* … and then nobody but this machine reaches us */
    bool auth_required;
    bool path_keys; /* /mcp/k/{key} */
    struct str tls_cert, tls_key;
    struct str listen_at, tls_at; /* "FILE:LINE:COLUMN", for complaints; absent: not in the file */
    struct str public_url;
    struct issuer_config *issuers;
    size_t n_issuers;
    struct str *origins;
    size_t n_origins;
    struct str *trusted_proxies;
    size_t n_trusted_proxies;
    bool client_id_required;
    bool metrics;
    struct meta_carrier *meta_carriers;
    size_t n_meta_carriers;
    struct str *header_carriers;
    size_t n_header_carriers;
    bool client_ids; /* one value in header, query or _meta is one session */
    int64_t session_default_ttl_ms, session_idle_ms;
    int64_t session_max_per_tenant;
    int64_t cleanup_interval_ms;
    unsigned cleanup_batch;
    bool cache_enabled;
    int64_t cache_ttl_ms;
    struct str cache_prefix;
    struct tenant_config *tenants; /* by name */
    size_t n_tenants;
    struct folder_config *folders; /* of the knowledge base, by name */
    size_t n_folders;
    struct profile_config *profiles; /* by name */
    size_t n_profiles;
    struct toolset_config *toolsets; /* by key */
    size_t n_toolsets;
    size_t limit_body, limit_audit_body;
    struct limits_config limits; /* of each tenant, and of each key */
    bool is_limited;             /* anybody is, here or in `tenants` */
    struct server_config *servers;
    size_t n_servers;
    struct server_config *builtins; /* servers of our own, always there beside those */
    size_t n_builtins;
    struct str *notes;
    size_t n_notes;            /* accepted but unused keys etc., said once at start */
    struct str literal_secret; /* the first that stands in the file itself; absent: none does */
    struct str warning;        /* said at start and by config check; absent: there is none */
};

/* Something that a configuration names and that is not on this machine as it should be. */
struct config_finding {
    bool is_error; /* else a warning: it may be right where Holdfast runs as a service */
    struct str text;
};
/* Looks for the programs, working directories and (with_folders) folders of documents.  Changes
 * nothing; *ret is in mem. */
size_t config_check_machine(const struct config *c, bool with_folders, struct arena *mem,
                            struct config_finding **ret);

struct config_source {
    struct str file;   /* --config; absent: the search of INTERFACE §1 */
    struct str listen; /* --listen; absent: from the file */
    bool must_exist;   /* --config or HOLDFAST_CONFIG named it */
};
/* Finds, reads, expands, checks.  Errors are ERR_CONFIG and name file:line:column and the nearest
 * valid key.  The result has one reference. */
must_check bool config_load(const struct config_source *source, struct config **ret,
                            struct error *err);
/* The file that config_load() would read, which is not parsed.  *ret is in mem. */
must_check bool config_identify(const struct config_source *source, struct arena *mem,
                                struct config_identity *ret, struct error *err);
/* Parses text as if it stood in `file`; for tests, fuzzing and reload. */
must_check bool config_parse(struct str text, struct str file, const struct config_source *source,
                             struct config **ret, struct error *err);
struct config *config_ref(struct config *c);
void config_unref(struct config *c);
/* One of ours too. */
const struct server_config *config_server(const struct config *c, struct str name);
/* NULL: the tenant is not named in the configuration. */
const struct tenant_config *config_tenant(const struct config *c, struct str name);
/* find and run over all servers, for `holdfast stdio --search`.  Every configuration has it, and no
 * profile of a file can have this name. */
#define CONFIG_SEARCH_PROFILE ":search"
const struct profile_config *config_profile(const struct config *c, struct str name); /* or NULL */
const struct toolset_config *config_toolset(const struct config *c, struct str key);  /* or NULL */
/* What holds for a tenant, named or not. */
int64_t config_max_sessions(const struct config *c, struct str tenant);
/* Can this pattern of server__tool be the name of a tool of this server? */
bool config_pattern_reaches(struct str pattern, struct str server);
/* Does the pattern, in which * is any run of characters, fit the whole name? */
bool config_pattern_fits(struct str pattern, struct str name);
static inline bool config_limits_tools(const struct server_config *s)
{
    return s->n_only_tools || s->n_without_tools;
}
bool config_shows_tool(const struct server_config *s, struct str tool);
int64_t config_default_ttl_ms(const struct config *c, struct str tenant);
int64_t config_idle_ms(const struct config *c, struct str tenant);
bool config_has_sessions(const struct config *c, struct str tenant);
/* The value with its placeholders filled by the context values.  false: a placeholder without a
 * default has nothing, and *ret_missing is its key; what is in `out` then is of no use. */
must_check bool config_pair_fill(const struct config_pair *pair,
                                 const struct config_pair *context_values, size_t n,
                                 struct buf *out, struct str *ret_missing);
/* May this stand in a header? */
bool config_is_header_value(struct str value);
/* Effective configuration as JSON, secrets masked (headers, env values whose name looks secret). */
void config_write(const struct config *c, struct buf *out);
/* The reference of all options as Markdown, from the same table that reads them. */
void config_write_reference(struct buf *out);
/* The data directory of INTERFACE §1; created 0700 by its owner. `flag` absent: the default. */
must_check bool config_data_dir(struct str flag, struct arena *mem, struct str *ret,
                                struct error *err);

#endif
