/* SPDX-License-Identifier: Apache-2.0 */
/* The typed, immutable configuration.  It is reference-counted: an exchange holds the configuration
 * it began with, and a reload swaps the whole configuration (loop thread only).  It is read from
 * JSON with comments and trailing commas through the table in options.c.  The same table prints the
 * reference. */
#ifndef HOLDFAST_CONFIG_CONFIG_H
#define HOLDFAST_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"

/* A placeholder ${context:KEY} in a value.  Each session fills it. */
struct context_placeholder {
    size_t at; /* offset in the value; the filling is inserted before this byte */
    struct str key;
    struct str fallback; /* absent: the session must have the key */
};
struct config_pair {
    struct str name, value;
    struct context_placeholder *placeholders; /* sorted by offset */
    size_t n_placeholders;
    bool is_from_file; /* read from an "envFile"; its value is never shown */
};
enum server_share { SHARE_SESSION, SHARE_ALL };
enum server_handles { HANDLES_AUTO, HANDLES_ALWAYS, HANDLES_NEVER };
enum server_audit { AUDIT_FULL, AUDIT_REDACTED, AUDIT_DIGEST, AUDIT_NONE };
enum server_era { ERA_AUTO, ERA_LEGACY, ERA_MODERN };
enum server_kind { SERVER_STDIO, SERVER_HTTP, SERVER_BUILTIN };

/* The name of a secret in ${secret:NAME} or ${input:NAME}. */
#define CONFIG_SECRET_NAME_MAX 200 /* SERVER.VARIABLE */
#define CONFIG_SECRET_BYTES_MAX (64u << 10)
#define CONFIG_SECRETS_MAX 1000
struct config_secret {
    struct str name;
    struct str value; /* absent: it is stored, but cannot be opened */
};
struct secret_use {
    struct str name;
    struct str at; /* "FILE:LINE:COLUMN" of the first value that uses it */
    bool is_input; /* written ${input:NAME} */
};
/* An entry of "inputs", as VS Code writes them. */
struct config_input {
    struct str name, description; /* description may be absent */
};

struct server_config {
    struct str name;
    enum server_kind kind;
    struct str command;
    struct str *args;
    size_t n_args;
    struct config_pair *env;
    size_t n_env;
    /* Variables of our environment that the server inherits; a name that ends with * is a
     * prefix. */
    struct str *inherit_env;
    size_t n_inherit_env;
    struct str cwd;
    struct str url;
    bool sse;        /* "type" selects the HTTP+SSE transport of 2024 */
    bool is_outward; /* no server, but an address that Holdfast itself sends to */
    struct config_pair *headers;
    size_t n_headers;
    struct str secret; /* of an address outside: the key that signs requests; absent: none */
    struct str tls_ca; /* absent: the authorities of the system */
    /* The service of the stored credential to send; absent: no credential. */
    struct str credential_service;
    struct str credential_as; /* "header:NAME", "env:NAME", "meta:KEY" */
    struct str *key_names;    /* header names that the key_name of a credential may choose */
    size_t n_key_names;
    enum server_share share;
    enum server_handles handles;
    enum server_audit audit;
    enum server_era era;
    bool pin;
    bool takes_context;  /* a used entry of env (stdio) or headers (HTTP) has a placeholder */
    int64_t timeout_ms;  /* per call; default 60 s */
    struct str env_file; /* the file that added its variables to `env`; absent: none */
    /* Patterns of tool names, without the server's prefix.  Listing, searching and calling tools
     * all use config_shows_tool(). */
    struct str *only_tools; /* empty: all tools */
    size_t n_only_tools;
    struct str *without_tools;
    size_t n_without_tools;
    struct secret_use *secrets; /* each name once */
    size_t n_secrets;
    /* Why the server cannot be started, by config_resolve(); absent: it can. */
    struct str refusal;
    /* Digest of the definition; a reload leaves servers with the same digest alone. */
    uint8_t definition[32];
    /* "FILE:LINE:COLUMN" for error messages; absent: the option is not set, or there is no file */
    struct str command_at, cwd_at, tls_at;
};

/* A key of an issuer in the configuration: a file with a public key, or a secret. */
struct issuer_key_config {
    struct str kid; /* absent: the key has no kid */
    struct str alg; /* "RS256" */
    struct str pem; /* a file; absent: `secret` is given */
    struct str secret;
    struct str at; /* "FILE:LINE:COLUMN", for error messages about `pem` and `secret` */
};
/* An issuer of tokens (JWT) that Holdfast accepts. */
struct issuer_config {
    struct str issuer;
    struct str *audiences; /* accepted values of the claim "aud"; never empty */
    size_t n_audiences;
    struct str jwks; /* a file or a URL; absent: the issuer has only `keys` */
    bool jwks_is_url;
    struct issuer_key_config *keys;
    size_t n_keys;
    struct str tenant_claim, role_claim; /* empty: the claim is not read */
    /* Tenant of tokens without the claim; absent: the claim is required. */
    struct str tenant;
    /* Tenants that the tokens may name.  Empty: any; with several issuers it may be empty only
     * without tenant_claim. */
    struct str *tenants;
    size_t n_tenants;
    struct str *roles; /* roles that the tokens may name; empty: any role */
    size_t n_roles;
    struct str at, jwks_at; /* "FILE:LINE:COLUMN" */
};

struct meta_carrier {
    struct str path[4];
    size_t n;
    struct str label;
}; /* label: "meta:a.b" */

/* The limits of each tenant, and of each key of a tenant (config/limits.h). */
struct limits_config {
    struct limits tenant, key;
};

/* How much the audit keeps of a tenant; 0: all, and in a tenant: as for all tenants. */
struct audit_keep {
    int64_t keep_ms, bodies_ms;
    size_t max_size; /* bytes of events and bodies */
};

/* Options of one tenant that override those of all tenants. */
struct tenant_config {
    struct str name;
    int64_t max_sessions;            /* < 0: use the option of all tenants */
    bool sessions;                   /* false: the registry answers as if it did not exist */
    int64_t default_ttl_ms, idle_ms; /* 0: use the option of all tenants */
    struct limits_config limits;
    struct str *secrets; /* those that templates of the tenant may name */
    size_t n_secrets;
    struct audit_keep audit;
};

/* The rights of agents in a folder of documents, from least to most. */
enum docs_agent { AGENT_READ, AGENT_COMMENT, AGENT_SUGGEST, AGENT_WRITE };
struct folder_config {
    struct str name, path;
    int agent;               /* enum docs_agent */
    size_t history;          /* maximum size in bytes of one document's history */
    int64_t history_keep_ms; /* how long replaced texts stay; 0: for ever */
    struct str *tenants;     /* tenants that may use the folder; empty: all tenants */
    size_t n_tenants;
    struct str at; /* "FILE:LINE:COLUMN" of its path */
};

/* A named group of tools. */
struct toolset_config {
    struct str key;
    struct str name, description; /* shown to people; absent: not set */
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
    struct str *servers; /* empty: all servers */
    size_t n_servers;
    struct str *toolset_keys; /* empty: all tools of the profile's servers */
    size_t n_toolset_keys;
    const struct toolset_config **toolsets; /* the toolsets of `toolset_keys`, in the same order */
    int mode;                               /* enum profile_mode */
    bool client_id_required;
    /* A header of a trusted proxy says which toolsets a request may use; without the header,
     * none. */
    bool proxy_permits;
    int64_t max_active; /* maximum number of toolsets enabled in a session; 0: no maximum */
    struct str *allow;  /* toolset keys that may be enabled; empty: all */
    size_t n_allow;
    struct str *deny; /* toolset keys that may not be enabled */
    size_t n_deny;
    struct client_config *clients; /* restrictions of client ids */
    size_t n_clients;
    struct str *context_keys; /* keys that clients may set in their sessions; empty: none */
    size_t n_context_keys;
    /* Sessions that begin through the profile are recorded completely (session/setup.h). */
    bool audit_full;
    size_t audit_body; /* stored bytes of one body with audit_full; 0: limits.audit_body */
    /* "NAME" or "NAME@VERSION": the template of sessions that begin on this profile; absent: none */
    struct str template;
};
/* A client id and the keys of its toolsets.  "*" stands for all client ids without an entry. */
struct client_config {
    struct str id;
    struct str *toolsets;
    size_t n_toolsets;
};

struct sink_config; /* config/sinks.h */

/* The path and digest of a configuration file; they distinguish the files of two projects. */
struct config_identity {
    struct str path; /* absolute, symbolic links resolved; absent: there is no file */
    char digest[65]; /* SHA-256 of the file's bytes, in hex */
};

struct config {
    unsigned refs;
    struct arena *mem;
    struct str file;                 /* absent: the built-in defaults */
    struct config_identity identity; /* of `file`, taken when it was read */
    struct str listen;               /* "127.0.0.1:4653" */
    bool listens_on_loopback;        /* only this machine can reach the listener */
    bool auth_required;
    bool path_keys; /* /mcp/k/{key} */
    struct str tls_cert, tls_key;
    /* "FILE:LINE:COLUMN" for error messages; absent: not in the file. */
    struct str listen_at, tls_at;
    struct str public_url;
    struct issuer_config *issuers;
    size_t n_issuers;
    /* The collector of traces; NULL: traces are off.  Of a server entry it has the name, url,
     * headers, tls_ca, the secrets, their refusal, and the definition. */
    struct server_config *otlp;
    struct sink_config *sinks;
    size_t n_sinks;
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
    bool client_ids; /* the same value in header, query or _meta names the same session */
    int64_t session_default_ttl_ms, session_idle_ms;
    int64_t session_max_per_tenant;
    int64_t session_keep_ms; /* how long ended sessions stay; 0: for ever */
    int64_t undelivered_ms;  /* how long results that no client received stay */
    int64_t cleanup_interval_ms;
    unsigned cleanup_batch;
    bool cache_enabled;
    int64_t cache_ttl_ms;
    struct str cache_prefix;
    struct tenant_config *tenants; /* sorted by name */
    size_t n_tenants;
    struct folder_config *folders; /* of the knowledge base, sorted by name */
    size_t n_folders;
    struct profile_config *profiles; /* sorted by name */
    size_t n_profiles;
    struct toolset_config *toolsets; /* sorted by key */
    size_t n_toolsets;
    struct {
        unsigned max_streams, max_per_tenant, max_per_owner;
        int64_t patience_ms;
    } events; /* live events: open streams */
    size_t limit_body, limit_audit_body;
    size_t disk_reserve;         /* bytes that stay free in the data directory */
    struct limits_config limits; /* of each tenant and of each key */
    struct audit_keep audit;
    bool is_limited; /* a limit is set, here or in `tenants` */
    struct server_config *servers;
    size_t n_servers;
    struct server_config *builtins; /* built-in servers, present in every configuration */
    size_t n_builtins;
    struct config_input *inputs;
    size_t n_inputs;
    struct config_secret *secrets; /* those that config_resolve() filled in */
    size_t n_secrets;
    struct str *notes;
    size_t n_notes; /* for example accepted but unused keys; logged once at start */
    /* The first secret that is written in the file itself; absent: none. */
    struct str literal_secret;
    struct str warning; /* shown at start and by `config check`; absent: none */
};

/* A program, directory or folder of the configuration that is missing or unusable on this
 * machine. */
struct config_finding {
    bool is_error; /* false: a warning, because the service may run in another environment */
    struct str text;
};
/* Checks the programs, the working directories and, with `with_folders`, the folders of documents.
 * Changes nothing.  *ret is in mem. */
size_t config_check_machine(const struct config *c, bool with_folders, struct arena *mem,
                            struct config_finding **ret);

struct config_source {
    struct str file;   /* --config; absent: HOLDFAST_CONFIG, or the search of load.c */
    struct str listen; /* --listen; absent: use the file's value */
    bool must_exist;   /* the path was set by --config or HOLDFAST_CONFIG */
    /* For a command that changes the file: variables and credentials stay as they are written, an
     * envFile is not read, and what depends on them is not checked, because the service has another
     * environment than the command.  Such a configuration is not run. */
    bool is_for_edit;
};
/* Finds, reads, expands and checks the configuration.  Errors are ERR_CONFIG and name
 * file:line:column and the nearest valid key.  The caller gets one reference. */
must_check bool config_load(const struct config_source *source, struct config **ret,
                            struct error *err);
/* 1 to CONFIG_SECRET_NAME_MAX letters, digits and . _ -. */
bool config_is_secret_name(struct str name);
/* Replaces ${secret:NAME} and ${input:NAME} by the values of these secrets, which are copied, and
 * computes the definitions of the servers again.  Sets the refusal of a server whose secret is
 * missing or does not fit.  Once per configuration, before it is used. */
void config_resolve(struct config *c, const struct config_secret *list, size_t n);
bool config_uses_secrets(const struct config *c);
/* Whether "secrets" of the tenant lists it: templates of the tenant may name it then. */
bool config_tenant_may(const struct config *c, struct str tenant, struct str secret);
/* The value of a secret that config_tenant_may(); absent: it is not set. */
struct str config_secret_value(const struct config *c, struct str secret);
/* Whether the whole text is one ${secret:NAME}. */
bool config_is_secret_reference(struct str text, struct str *ret_name);
/* Of an entry of "inputs"; absent: there is none. */
struct str config_input_description(const struct config *c, struct str name);
/* Before a reload: `fresh` gets the listener of `open`, which stays until a restart.  Fails if the
 * listener would not be safe with the rest of `fresh`. */
must_check bool config_keep_listener(struct config *fresh, const struct config *open,
                                     struct error *err);
/* Identifies the file that config_load() would read, without parsing it.  *ret is in mem. */
must_check bool config_identify(const struct config_source *source, struct arena *mem,
                                struct config_identity *ret, struct error *err);
/* The file that config_load() would read, and its text, in mem.  While there is none: *ret_text is
 * absent, and *ret_path is the file to create, in the user's configuration directory. */
must_check bool config_find_file(const struct config_source *source, struct arena *mem,
                                 struct str *ret_path, struct str *ret_text, struct error *err);
/* Whether a header, variable or argument of this name usually holds a secret. */
bool credential_is_named(struct str name);
/* Parses `text` as the content of `file`; for tests, fuzzing and reload. */
must_check bool config_parse(struct str text, struct str file, const struct config_source *source,
                             struct config **ret, struct error *err);
/* Whether a server may have this name; the reserved names of built-in servers count too. */
bool config_is_server_name(struct str name);
/* Replaces its servers by built-in ones of these names, each with a state per session.  Before the
 * configuration is used. */
void config_serve_builtins(struct config *c, const struct str *names, size_t n);
struct config *config_ref(struct config *c);
void config_unref(struct config *c);
/* Finds configured and built-in servers; NULL when there is no such server. */
const struct server_config *config_server(const struct config *c, struct str name);
/* NULL: the tenant is not named in the configuration. */
const struct tenant_config *config_tenant(const struct config *c, struct str name);
/* The profile of `holdfast stdio --search`: the tools find and run over all servers.  Every
 * configuration has it.  A file cannot define a profile of this name. */
#define CONFIG_SEARCH_PROFILE ":search"
/* NULL: not found. */
const struct profile_config *config_profile(const struct config *c, struct str name);
/* NULL: not found. */
const struct toolset_config *config_toolset(const struct config *c, struct str key);
/* The tenant's own value, or the value of all tenants. */
int64_t config_max_sessions(const struct config *c, struct str tenant);
struct audit_keep config_audit_keep(const struct config *c, struct str tenant);
/* Whether this pattern of server__tool can match a tool of this server. */
bool config_pattern_reaches(struct str pattern, struct str server);
/* Whether the pattern matches the whole name; * matches any run of characters. */
bool config_pattern_fits(struct str pattern, struct str name);
static inline bool config_limits_tools(const struct server_config *s)
{
    return s->n_only_tools || s->n_without_tools;
}
bool config_shows_tool(const struct server_config *s, struct str tool);
int64_t config_default_ttl_ms(const struct config *c, struct str tenant);
int64_t config_idle_ms(const struct config *c, struct str tenant);
bool config_has_sessions(const struct config *c, struct str tenant);
/* Writes the value to `out` with its placeholders replaced by the context values.  Returns false
 * when a placeholder without a default has no context value: *ret_missing is its key, and `out`
 * must not be used. */
must_check bool config_pair_fill(const struct config_pair *pair,
                                 const struct config_pair *context_values, size_t n,
                                 struct buf *out, struct str *ret_missing);
/* Whether the value is allowed in an HTTP header. */
bool config_is_header_value(struct str value);
/* Writes the effective configuration as JSON.  Masks secrets: headers, and env values with a name
 * that looks secret. */
void config_write(const struct config *c, struct buf *out);
/* The data directory of the service that reads this file; absent: it is not the file of the system
 * service. */
struct str config_service_data_dir(struct str file);
/* Writes the reference of all options as Markdown, from the table that reads them. */
void config_write_reference(struct buf *out);
/* The data directory: --data (`flag`), or the default when `flag` is absent (load.c).
 * datadir_own() creates it with mode 0700. */
must_check bool config_data_dir(struct str flag, struct arena *mem, struct str *ret,
                                struct error *err);

#endif
