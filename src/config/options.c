/* SPDX-License-Identifier: Apache-2.0 */
/* The option table: every key of the configuration with its kind, default, bounds and help.
 * Parsing, defaults, the effective configuration and the printed reference all use these rows, so
 * an option is added only here.
 *
 * A row with `data` set is an option that this version does not use yet.  Its shape is checked, and
 * a note names it. */
#include "config/config_impl.h"

#define SECOND 1000LL
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define KIB 1024LL
#define MIB (1024 * KIB)

#define AT(member) .offset = offsetof(struct config, member)
#define LIST(member)                                                                               \
    .offset = offsetof(struct config, member), .count_offset = offsetof(struct config, n_##member)
#define OF_PROFILE(member) .offset = offsetof(struct profile_config, member)
#define OF_PROFILE_LIST(member)                                                                    \
    OF_PROFILE(member), .count_offset = offsetof(struct profile_config, n_##member)
#define OF_TOOLSET(member) .offset = offsetof(struct toolset_config, member)
#define OF_TENANT(member) .offset = offsetof(struct tenant_config, member)
#define OF_SERVER(member) .offset = offsetof(struct server_draft, server.member)
#define OF_FOLDER(member) .offset = offsetof(struct folder_config, member)
#define OF_ISSUER(member) .offset = offsetof(struct issuer_config, member)
#define OF_KEY(member) .offset = offsetof(struct issuer_key_config, member)
#define SERVER_LIST(member)                                                                        \
    OF_SERVER(member), .count_offset = offsetof(struct server_draft, server.n_##member)

static const char *const auth_names[] = {"none", "required", NULL};
static const char *const client_id_names[] = {"optional", "required", NULL};
static const char *const share_names[] = {"session", "all", NULL};
static const char *const handles_names[] = {"auto", "always", "never", NULL};
static const char *const audit_names[] = {"full", "redacted", "digest", "none", NULL};
static const char *const era_names[] = {"auto", "legacy", "modern", NULL};
static const char *const token_alg_names[] = {"RS256", "PS256", "ES256", "ES384",
                                              "EdDSA", "HS256", NULL};
static const char *const mode_names[] = {"all", "search", "static", "dynamic", NULL};
static const char *const profile_audit_names[] = {"redacted", "full", NULL};
static const char *const permission_names[] = {"config", "proxy", NULL};
static const char *const agent_names[] = {"read", "comment", "suggest", "write", NULL};

static const struct js_field tls_fields[] = {
    {.name = "cert",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_file,
     AT(tls_cert),
     .help =
         "File with the certificate and its chain (PEM), the certificate of this server first."},
    {.name = "key",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_file,
     AT(tls_key),
     .help = "File with the private key (PEM), without a passphrase. Other users must not be able "
             "to read it."},
    {0},
};

static const struct js_field issuer_key_fields[] = {
    {.name = "kid",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_program,
     OF_KEY(kid),
     .help = "The kid of tokens signed with this key. A key without a kid verifies tokens without "
             "a kid."},
    {.name = "alg",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_one_of,
     OF_KEY(alg),
     .names = token_alg_names,
     .required = true,
     .help = "The only algorithm that the key is used with."},
    {.name = "pem",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_file,
     OF_KEY(pem),
     .help = "File with the public key (PEM)."},
    {.name = "secret",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_secret,
     OF_KEY(secret),
     .help = "For HS256, instead of pem: at least 32 random bytes shared with the issuer. Write "
             "${VARIABLE} to keep the secret out of the file."},
    {0},
};

static const struct js_field issuer_fields[] = {
    {.name = "issuer",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_program,
     OF_ISSUER(issuer),
     .required = true,
     .help = "Issuer of the tokens: exactly the value of their claim iss."},
    {.name = "audience",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_audience,
     OF_ISSUER(audiences),
     .count_offset = offsetof(struct issuer_config, n_audiences),
     .max_items = CONFIG_AUDIENCES_MAX,
     .help = "Value that the claim aud must contain, or an array of which it must contain one. "
             "Default: public_url, and public_url followed by /mcp."},
    {.name = "jwks",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_jwks,
     OF_ISSUER(jwks),
     .help = "The issuer's keys (JWK Set): a file, or an https:// URL. A file is read again when "
             "it changes, a URL every 10 minutes and when a token names a key that is not known."},
    {.name = "keys",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_issuer_keys,
     .fields = issuer_key_fields,
     OF_ISSUER(keys),
     .count_offset = offsetof(struct issuer_config, n_keys),
     .max_items = CONFIG_ISSUER_KEYS_MAX,
     .help = "Keys of the issuer, in addition to jwks or instead of it."},
    {.name = "tenant_claim",
     .kind = JS_BIND_STRING,
     OF_ISSUER(tenant_claim),
     .default_text = "tenant",
     .help = "The claim that names the tenant. If empty, tokens cannot choose a tenant."},
    {.name = "role_claim",
     .kind = JS_BIND_STRING,
     OF_ISSUER(role_claim),
     .default_text = "role",
     .help = "The claim that names the role: admin, member, auditor or service. If it is empty, or "
             "a token does not have it, the role is member."},
    {.name = "tenant",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_name,
     OF_ISSUER(tenant),
     .default_text = "default",
     .help = "The tenant of tokens that name none. If tenants is set, it is the only entry there, "
             "or default if that is an entry; otherwise tokens must name a tenant."},
    {.name = "tenants",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_tenant_names,
     OF_ISSUER(tenants),
     .count_offset = offsetof(struct issuer_config, n_tenants),
     .max_items = CONFIG_ISSUER_TENANTS_MAX,
     .help = "The tenants that tokens of this issuer may name; other tokens are refused. Required "
             "with several issuers, unless tenant_claim is empty."},
    {.name = "roles",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_role_names,
     OF_ISSUER(roles),
     .count_offset = offsetof(struct issuer_config, n_roles),
     .max_items = 4,
     .help = "The roles that tokens of this issuer may name; other tokens are refused. Default: "
             "all roles."},
    {0},
};

static const struct js_field carrier_fields[] = {
    {.name = "meta",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_meta_carriers,
     AT(meta_carriers),
     .count_offset = offsetof(struct config, n_meta_carriers),
     .default_text = CONFIG_META_DEFAULT,
     .help = "Keys of _meta that name a session. The first one found is used. A key is a string, "
             "or an array of strings for a key inside an object."},
    {.name = "headers",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_header_carriers,
     LIST(header_carriers),
     .max_items = CONFIG_CARRIERS_MAX,
     .help =
         "Request headers that name a session, in addition to Mcp-Session-Id and mcp-client-id."},
    {.name = "client_ids",
     .kind = JS_BIND_BOOL,
     AT(client_ids),
     .default_text = "false",
     .help = "Clients may choose their session ids: any value of the Mcp-Session-Id header or of "
             "?session_id= names a session of its owner. The same value in the header, in the "
             "query or in a key of _meta names the same session. A value in the form of an id that "
             "Holdfast issues must be a known id."},
    {0},
};

static const struct js_field cache_fields[] = {
    {.name = "enabled",
     .kind = JS_BIND_BOOL,
     AT(cache_enabled),
     .default_text = "true",
     .help = "Store sessions in the shared cache."},
    {.name = "ttl",
     .kind = JS_BIND_DURATION,
     AT(cache_ttl_ms),
     .min = SECOND,
     .max = DAY,
     .default_text = "5m",
     .help = "How long a cached session may be used."},
    {.name = "prefix",
     .kind = JS_BIND_STRING,
     AT(cache_prefix),
     .default_text = "session:",
     .help = "Prefix of the cache keys."},
    {0},
};

static const struct js_field limit_fields[] = {
    {.name = "max_per_tenant",
     .kind = JS_BIND_INT,
     AT(session_max_per_tenant),
     .min = 1,
     .max = 10000000,
     .default_text = "100",
     .help =
         "Live sessions that a tenant may have. Sessions that MCP transports create do not count."},
    {.name = "default_ttl",
     .kind = JS_BIND_DURATION,
     AT(session_default_ttl_ms),
     .min = SECOND,
     .max = 30 * DAY,
     .default_text = "24h",
     .help = "Time after its last use at which a session ends, if it was created without a ttl."},
    {.name = "idle_timeout",
     .kind = JS_BIND_DURATION,
     AT(session_idle_ms),
     .min = SECOND,
     .max = 30 * DAY,
     .default_text = "30m",
     .help = "Time after its last use at which a session gets the status idle. An idle session can "
             "still be used."},
    {0},
};

static const struct js_field cleanup_fields[] = {
    {.name = "interval",
     .kind = JS_BIND_DURATION,
     AT(cleanup_interval_ms),
     .min = 100,
     .max = DAY,
     .default_text = "5m",
     .help = "How often expired sessions are closed."},
    {.name = "batch_size",
     .kind = JS_BIND_UINT,
     AT(cleanup_batch),
     .min = 1,
     .max = 10000,
     .default_text = "100",
     .help = "How many sessions are closed in one transaction."},
    {.name = "keep",
     .kind = JS_BIND_DURATION,
     AT(session_keep_ms),
     .min = DAY,
     .max = 3650 * DAY,
     .help = "How long a session can be read after its end. Then its row, its context document and "
             "its sealed credentials are deleted; the audit keeps its events. Default: for ever."},
    {.name = "undelivered",
     .kind = JS_BIND_DURATION,
     AT(undelivered_ms),
     .min = 1000,
     .max = DAY,
     .default_text = "10m",
     .help = "How long the result of a call whose client disconnected is stored, sealed, for the "
             "same session to repeat the call."},
    {0},
};

static const struct js_field session_fields[] = {
    {.name = "cache",
     .kind = JS_BIND_OBJECT,
     .fields = cache_fields,
     .data = "holdfast.session.cache"},
    {.name = "limits", .kind = JS_BIND_OBJECT, .fields = limit_fields},
    {.name = "cleanup", .kind = JS_BIND_OBJECT, .fields = cleanup_fields},
    {0},
};

const struct js_field tenant_fields[] = {
    {.name = "max_sessions",
     .kind = JS_BIND_INT,
     OF_TENANT(max_sessions),
     .min = 0,
     .max = 10000000,
     .help = "Live sessions that this tenant may have, instead of session.limits.max_per_tenant."},
    {.name = "sessions",
     .kind = JS_BIND_BOOL,
     OF_TENANT(sessions),
     .default_text = "true",
     .help = "If false, every path under /api/v1/sessions answers 404 for this tenant. MCP is not "
             "affected."},
    {.name = "default_ttl",
     .kind = JS_BIND_DURATION,
     OF_TENANT(default_ttl_ms),
     .min = SECOND,
     .max = 30 * DAY,
     .help = "Value for this tenant instead of session.limits.default_ttl."},
    {.name = "idle_timeout",
     .kind = JS_BIND_DURATION,
     OF_TENANT(idle_ms),
     .min = SECOND,
     .max = 30 * DAY,
     .help = "Value for this tenant instead of session.limits.idle_timeout."},
    {.name = "limits",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_limits,
     .fields = tenant_limits_fields,
     OF_TENANT(limits),
     .help = "Limits of this tenant, instead of those in holdfast.limits."},
    {0},
};

static const struct js_field client_fields[] = {
    {.name = "toolsets",
     .kind = JS_BIND_STRINGS,
     .offset = offsetof(struct client_config, toolsets),
     .count_offset = offsetof(struct client_config, n_toolsets),
     .max_items = PROFILE_TOOLSETS_MAX,
     .required = true,
     .help = "The toolsets of the profile that this client gets."},
    {0},
};

static const struct js_field policy_fields[] = {
    {.name = "max_active",
     .kind = JS_BIND_INT,
     OF_PROFILE(max_active),
     .min = 0,
     .max = PROFILE_TOOLSETS_MAX,
     .default_text = "0",
     .help = "Toolsets that a session may have enabled at the same time; 0 means no limit."},
    {.name = "allow",
     .kind = JS_BIND_STRINGS,
     OF_PROFILE_LIST(allow),
     .max_items = PROFILE_TOOLSETS_MAX,
     .help = "Toolsets that sessions may enable. Default: all of the profile."},
    {.name = "deny",
     .kind = JS_BIND_STRINGS,
     OF_PROFILE_LIST(deny),
     .max_items = PROFILE_TOOLSETS_MAX,
     .help = "Toolsets that sessions may not enable."},
    {0},
};

static const struct js_field context_fields[] = {
    {.name = "keys",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_context_keys,
     OF_PROFILE_LIST(context_keys),
     .max_items = CONTEXT_KEYS_MAX,
     .required = true,
     .help =
         "Keys of the values that a client may send when its session begins, in ?config= or in the "
         "header mcp-config. Servers get a value where env or headers contain ${context:KEY}."},
    {0},
};

static const struct js_field profile_fields[] = {
    {.name = "servers",
     .kind = JS_BIND_STRINGS,
     OF_PROFILE_LIST(servers),
     .help = "Servers of the profile. Default: all."},
    {.name = "toolsets",
     .kind = JS_BIND_STRINGS,
     OF_PROFILE_LIST(toolset_keys),
     .max_items = PROFILE_TOOLSETS_MAX,
     .help = "Toolsets of the profile. Default: every tool of its servers."},
    {.name = "mode",
     .kind = JS_BIND_ENUM,
     OF_PROFILE(mode),
     .names = mode_names,
     .default_text = "all",
     .help = "How the tools are offered. all: every tool is listed. search: only the tools find "
             "and run are listed. static: every tool is listed, and list_tools. dynamic: the tools "
             "of the toolsets that the session has enabled."},
    {.name = "client_id",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_switch,
     OF_PROFILE(client_id_required),
     .names = client_id_names,
     .default_text = "optional",
     .help = "Whether requests to this profile must carry mcp-client-id."},
    {.name = "permissions",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_switch,
     OF_PROFILE(proxy_permits),
     .names = permission_names,
     .default_text = "config",
     .help = "config: every request has all toolsets of the profile. proxy: a request has the "
             "toolsets that one of trusted_proxies lists in the header mcp-toolset-permissions, "
             "separated by commas; without the header it has none."},
    {.name = "policy", .kind = JS_BIND_OBJECT, .fields = policy_fields},
    {.name = "clients",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_clients,
     OF_PROFILE_LIST(clients),
     .fields = client_fields,
     .help = "Client ids (mcp-client-id) that get only a part of the profile; * stands for all "
             "other clients. A client chooses its id itself, so this is not an access control."},
    {.name = "context", .kind = JS_BIND_OBJECT, .fields = context_fields},
    {.name = "audit",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_switch,
     OF_PROFILE(audit_full),
     .names = profile_audit_names,
     .default_text = "redacted",
     .help = "full: the audit stores complete bodies of the sessions that begin through this "
             "profile, where a server's own mode is redacted. The client is told."},
    {.name = "audit_body",
     .kind = JS_BIND_SIZE,
     OF_PROFILE(audit_body),
     .min = 0,
     .max = MIB,
     .default_text = "0",
     .help = "How much of each body is stored with audit full, if more than limits.audit_body; "
             "1KiB to 1MiB, or 0: as limits.audit_body."},
    {0},
};

static const struct js_field toolset_fields[] = {
    {.name = "name",
     .kind = JS_BIND_STRING,
     OF_TOOLSET(name),
     .help = "Name of the toolset for people."},
    {.name = "description",
     .kind = JS_BIND_STRING,
     OF_TOOLSET(description),
     .help = "Purpose of the toolset."},
    {.name = "tools",
     .kind = JS_BIND_STRINGS,
     OF_TOOLSET(tools),
     .count_offset = offsetof(struct toolset_config, n_tools),
     .required = true,
     .help = "Tools of the toolset, written server__tool; * stands for any characters."},
    {0},
};

static const struct js_field docs_fields[] = {
    {.name = "path",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_directory,
     OF_FOLDER(path),
     .required = true,
     .help = "Path of a folder of Markdown files; ~/ is the home directory."},
    {.name = "agent",
     .kind = JS_BIND_ENUM,
     OF_FOLDER(agent),
     .names = agent_names,
     .default_text = "suggest",
     .help = "What agents may do in the folder: only read, comment, suggest changes for review, or "
             "write without review."},
    {.name = "history",
     .kind = JS_BIND_SIZE,
     OF_FOLDER(history),
     .min = 4 * KIB,
     .max = 1024 * 1024 * MIB,
     .default_text = "32MiB",
     .help = "Size of the history of one document in the database. Beyond it the oldest revisions "
             "are deleted."},
    {.name = "tenants",
     .kind = JS_BIND_STRINGS,
     OF_FOLDER(tenants),
     .count_offset = offsetof(struct folder_config, n_tenants),
     .help = "Tenants that may use the folder. Default: all."},
    {0},
};

static const struct js_field server_tls_fields[] = {
    {.name = "ca",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_file,
     OF_SERVER(tls_ca),
     .help = "File with the certificate authorities (PEM) that are trusted for this server instead "
             "of the system's. For a self-signed certificate, the certificate itself."},
    {0},
};

static const struct js_field otlp_fields[] = {
    {.name = "url",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_url,
     OF_SERVER(url),
     .required = true,
     .help = "Address of a collector that takes OTLP over HTTP, such as "
             "\"http://localhost:4318\". /v1/traces is added unless it ends so."},
    {.name = "headers",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_headers,
     SERVER_LIST(headers),
     .help = "Headers sent to the collector, for instance with its key as ${secret:NAME}."},
    {.name = "tls",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_server_tls,
     .fields = server_tls_fields,
     .help = "How the certificate of an https:// collector is checked, as for servers."},
    {0},
};

static const struct js_field size_fields[] = {
    {.name = "body",
     .kind = JS_BIND_SIZE,
     AT(limit_body),
     .min = KIB,
     .max = 64 * MIB,
     .default_text = "4MiB",
     .help = "Largest message accepted from a client or a server."},
    {.name = "audit_body",
     .kind = JS_BIND_SIZE,
     AT(limit_audit_body),
     .min = KIB,
     .max = MIB,
     .default_text = "16KiB",
     .help = "How much of each body the audit stores. Longer bodies are cut and marked as cut."},
    {.name = "disk_reserve",
     .kind = JS_BIND_SIZE,
     AT(disk_reserve),
     .min = 0,
     .max = (int64_t)1 << 50,
     .default_text = "64MiB",
     .help = "Space that stays free on the disk of the data directory. With less, new calls and "
             "sessions are refused until there is more; calls under way end as usual. 0 turns this "
             "off."},
    LIMIT_ROWS(struct config, limits.tenant.of, "a tenant"),
    LIMIT_KEY_ROW(struct config, limits.key),
    {0},
};

const struct js_field option_fields[] = {
    {.name = "listen",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_listen,
     AT(listen),
     .default_text = CONFIG_LISTEN_DEFAULT,
     .help = "Address and port to listen on; port 0 means any free port."},
    {.name = "auth",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_switch,
     AT(auth_required),
     .names = auth_names,
     .default_text = "none",
     .help = "Whether requests need a credential (a key or a token). none is for loopback only: a "
             "listener on another address needs required, and tls or trusted_proxies."},
    {.name = "path_keys",
     .kind = JS_BIND_BOOL,
     AT(path_keys),
     .default_text = "false",
     .help = "Accept keys in the path, as /mcp/k/{key}, for clients that cannot send headers. Note "
             "that other programs write paths to their histories and logs."},
    {.name = "jwt",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_jwt,
     .fields = issuer_fields,
     LIST(issuers),
     .max_items = CONFIG_ISSUERS_MAX,
     .help = "Issuer whose tokens (JWT) are accepted as credentials, or an array of issuers."},
    {.name = "tls",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_tls,
     .fields = tls_fields,
     .help = "Serve TLS 1.2 and 1.3 with this certificate and key. SIGHUP reads both again."},
    {.name = "trusted_proxies",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_proxies,
     LIST(trusted_proxies),
     .help = "Addresses or networks of proxies whose forwarding headers are trusted. Without tls "
             "only they may connect to a listener beyond loopback."},
    {.name = "public_url",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_url,
     AT(public_url),
     .help = "The URL by which clients reach Holdfast, if it differs from the address in listen."},
    {.name = "origins",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_origins,
     LIST(origins),
     .help = "Origins of web pages, other than Holdfast's own, that may send requests and read the "
             "answers."},
    {.name = "client_id",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_switch,
     AT(client_id_required),
     .names = client_id_names,
     .default_text = "optional",
     .help = "Whether MCP requests must carry mcp-client-id."},
    {.name = "metrics",
     .kind = JS_BIND_BOOL,
     AT(metrics),
     .default_text = "true",
     .help = "Serve /metrics."},
    {.name = "otlp",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_otlp,
     .fields = otlp_fields,
     AT(otlp),
     .help = "Send a trace of every request to a collector of OpenTelemetry."},
    {.name = "carriers", .kind = JS_BIND_OBJECT, .fields = carrier_fields},
    {.name = "session", .kind = JS_BIND_OBJECT, .fields = session_fields},
    {.name = "tenants",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_tenants,
     LIST(tenants),
     .fields = tenant_fields,
     .help = "Settings of single tenants, by name."},
    {.name = "profiles",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_profiles,
     LIST(profiles),
     .fields = profile_fields,
     .help = "Named selections of servers and tools. Each has its own endpoint, /mcp/p/NAME."},
    {.name = "toolsets",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_toolsets,
     LIST(toolsets),
     .fields = toolset_fields,
     .help = "Named groups of tools, for profiles."},
    {.name = "docs",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_folders,
     LIST(folders),
     .fields = docs_fields,
     .help = "Folders of the knowledge base, by name. The built-in server docs serves them."},
    {.name = "limits", .kind = JS_BIND_OBJECT, .fields = size_fields},
    {0},
};

static const struct js_field credential_fields[] = {
    {.name = "service",
     .kind = JS_BIND_STRING,
     OF_SERVER(credential_service),
     .required = true,
     .help = "The service whose stored credential is sent."},
    {.name = "as",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_credential_as,
     OF_SERVER(credential_as),
     .required = true,
     .help = "Where the credential is put: header:NAME (servers with a url), env:NAME (the "
             "session's own process) or meta:KEY (a member of _meta). Headers that belong to HTTP "
             "or MCP, variables that choose what a program runs, and members of _meta that belong "
             "to MCP are refused."},
    {.name = "key_names",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_key_names,
     SERVER_LIST(key_names),
     .max_items = 16,
     .help = "Headers that the key_name of a stored credential may select instead of the header in "
             "as, such as [\"X-Api-Key\"]. A key_name that is not listed has no effect. A header "
             "of HTTP or MCP, or one in headers, cannot be listed."},
    {0},
};

#define FOREIGN(key)                                                                               \
    {                                                                                              \
        .name = key, .kind = JS_BIND_IGNORED                                                       \
    }

const struct js_field server_fields[] = {
    {.name = "command",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_command,
     OF_SERVER(command),
     .help =
         "Program to start. It must speak MCP on its standard input and output. No shell is used."},
    {.name = "args",
     .kind = JS_BIND_STRINGS,
     SERVER_LIST(args),
     .help = "Arguments of the program."},
    {.name = "env",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_env,
     SERVER_LIST(env),
     .help =
         "Environment variables of the program, in addition to the few that every program gets."},
    {.name = "inherit_env",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_inherit_env,
     SERVER_LIST(inherit_env),
     .max_items = CONFIG_INHERIT_ENV_MAX,
     .help = "Names of variables that the program gets from Holdfast's own environment, such as "
             "[\"GITHUB_TOKEN\", \"AWS_*\"]; * at the end stands for any characters. Variables in "
             "env take precedence."},
    {.name = "cwd",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_cwd,
     OF_SERVER(cwd),
     .help = "Working directory of the program."},
    {.name = "url",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_url,
     OF_SERVER(url),
     .help = "Address of a server that speaks MCP over HTTP."},
    {.name = "headers",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_headers,
     SERVER_LIST(headers),
     .help = "Headers sent with every request to the server."},
    {.name = "tls",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_server_tls,
     .fields = server_tls_fields,
     .help = "How the certificate of an https:// server is checked. Default: against the system's "
             "authorities, or those in SSL_CERT_FILE and SSL_CERT_DIR. The check cannot be turned "
             "off."},
    {.name = "share",
     .kind = JS_BIND_ENUM,
     OF_SERVER(share),
     .names = share_names,
     .default_text = "session",
     .help =
         "session: each session has its own instance of the server. all: all sessions share one."},
    {.name = "handles",
     .kind = JS_BIND_ENUM,
     OF_SERVER(handles),
     .names = handles_names,
     .default_text = "auto",
     .help = "Whether tools get a session_id argument for clients that name no session. auto: only "
             "for legacy servers with share session."},
    {.name = "pin",
     .kind = JS_BIND_BOOL,
     OF_SERVER(pin),
     .default_text = "false",
     .help = "Refuse calls to tools that are new or changed until they are approved (`holdfast "
             "servers approve`)."},
    {.name = "audit",
     .kind = JS_BIND_ENUM,
     OF_SERVER(audit),
     .names = audit_names,
     .default_text = "redacted",
     .help = "How the audit stores bodies: complete, with secrets replaced, as a digest, or not at "
             "all. The call itself is always recorded."},
    {.name = "era",
     .kind = JS_BIND_ENUM,
     OF_SERVER(era),
     .names = era_names,
     .default_text = "auto",
     .help = "The protocol era of the server: legacy (with initialize) or modern (without). auto "
             "finds out."},
    {.name = "timeout",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_timeout,
     OF_SERVER(timeout_ms),
     .default_text = "60s",
     .help = "How long one call may take, 1ms to 1d. A number without a unit means seconds up to "
             "3600, and milliseconds above."},
    {.name = "tool_timeout_sec",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_timeout_sec,
     OF_SERVER(timeout_ms),
     .help = "The same as timeout, always in seconds."},
    {.name = "envFile",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_env_file,
     OF_SERVER(env_file),
     .help = "File with more environment variables of the program, one NAME=VALUE per line. A "
             "relative path starts at the directory of the configuration file. Variables in env "
             "take precedence."},
    {.name = "enabledTools",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_only_tools,
     SERVER_LIST(only_tools),
     .help = "The only tools of the server that clients can list, find and call, by their own "
             "names; * stands for any characters."},
    {.name = "enabled_tools",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_only_tools_alias,
     SERVER_LIST(only_tools),
     .help = "The same as enabledTools."},
    {.name = "includeTools",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_only_tools_alias,
     SERVER_LIST(only_tools),
     .help = "The same as enabledTools."},
    {.name = "tools",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_only_tools_alias,
     SERVER_LIST(only_tools),
     .help = "The same as enabledTools."},
    {.name = "disabledTools",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_without_tools,
     SERVER_LIST(without_tools),
     .help = "Tools of the server that clients cannot list, find or call, written as in "
             "enabledTools. A tool in both lists is disabled."},
    {.name = "disabled_tools",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_without_tools_alias,
     SERVER_LIST(without_tools),
     .help = "The same as disabledTools."},
    {.name = "excludeTools",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_without_tools_alias,
     SERVER_LIST(without_tools),
     .help = "The same as disabledTools."},
    {.name = "credential",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_server_credential,
     .fields = credential_fields,
     .help =
         "A credential stored with the session (passthrough_auth) that is sent to this server."},
    {.name = "disabled",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_flag,
     .offset = offsetof(struct server_draft, disabled),
     .default_text = "false",
     .help = "If true, the server is left out."},
    {.name = "enabled",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_flag,
     .offset = offsetof(struct server_draft, enabled),
     .default_text = "true",
     .help = "If false, the server is left out."},
    {.name = "type",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_type,
     .offset = offsetof(struct server_draft, type),
     .help =
         "\"sse\" means that the url speaks the HTTP transport of 2024; Holdfast also detects this "
         "by itself. Other values have no effect, as command or url decide the transport."},
    {.name = "transport",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_transport,
     .offset = offsetof(struct server_draft, type),
     .help = "The same as type."},
    {.name = "httpUrl",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_url_alias,
     OF_SERVER(url),
     .help = "The same as url."},
    {.name = "serverUrl",
     .kind = JS_BIND_CUSTOM,
     .read = option_read_url_alias,
     OF_SERVER(url),
     .help = "The same as url."},
    FOREIGN("alwaysAllow"),
    FOREIGN("alwaysLoad"),
    FOREIGN("auth"),
    FOREIGN("authProviderType"),
    FOREIGN("autoApprove"),
    FOREIGN("autoStart"),
    FOREIGN("bearer_token_env_var"),
    FOREIGN("description"),
    FOREIGN("dev"),
    FOREIGN("displayName"),
    FOREIGN("extensionName"),
    FOREIGN("gallery"),
    FOREIGN("headersHelper"),
    FOREIGN("icon"),
    FOREIGN("icons"),
    FOREIGN("id"),
    FOREIGN("initTimeout"),
    FOREIGN("metadata"),
    FOREIGN("name"),
    FOREIGN("networkTimeout"),
    FOREIGN("oauth"),
    FOREIGN("sandbox"),
    FOREIGN("sandboxEnabled"),
    FOREIGN("scope"),
    FOREIGN("startup_timeout_ms"),
    FOREIGN("startup_timeout_sec"),
    FOREIGN("tags"),
    FOREIGN("title"),
    FOREIGN("trust"),
    FOREIGN("version"),
    {0},
};
