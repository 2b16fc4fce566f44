/* SPDX-License-Identifier: Apache-2.0 */
/* The declarations that the files of config/ share while they read a text: the state of one
 * reading, the tables of options.c, and the reader functions that the tables name.
 *
 *   load.c ──text──> config.c ──entries──> server.c
 *                        └──── options.c (tables) ──> value.c (checked values) ──> expand.c
 *
 * `struct reading` is the binding's `user` everywhere below config_parse(). */
#ifndef HOLDFAST_CONFIG_CONFIG_IMPL_H
#define HOLDFAST_CONFIG_CONFIG_IMPL_H

#include "config/config.h"
#include "json/bind.h"

#include <stddef.h>

#define CONFIG_FILE_MAX (1u << 20)
#define CONFIG_SERVERS_MAX 1000
#define CONFIG_NAME_MAX 64
#define CONFIG_CARRIERS_MAX 16
#define CONFIG_CARRIER_KEY_MAX 128
#define CONFIG_PAIRS_MAX 256
#define CONFIG_INHERIT_ENV_MAX 64
#define CONFIG_HEADERS_BYTES_MAX (48u << 10) /* of one server, including default headers */
#define CONFIG_ENV_FILE_MAX (64u << 10)      /* bytes of an envFile */
#define CONFIG_ISSUERS_MAX 16
#define CONFIG_ISSUER_KEYS_MAX 64
#define CONFIG_AUDIENCES_MAX 16
#define CONFIG_ISSUER_TENANTS_MAX 256
#define CONFIG_EXPANDED_ONE_MAX (64u << 10) /* one value after expansion */
/* Sum of all values of a file that contain a variable. */
#define CONFIG_EXPANDED_ALL_MAX (4u << 20)

/* Defaults of options with custom readers. */
#define CONFIG_LISTEN_DEFAULT "127.0.0.1:4653"
#define CONFIG_META_DEFAULT                                                                        \
    "[\"session_id\", \"openai/session\", \"vscode.conversationId\", "                             \
    "[\"x-codex-turn-metadata\", \"session_id\"], \"threadId\", \"sessionID\"]"

/* A message to log once at start.  Notes about a key of server entries collect the servers'
 * names. */
struct note {
    struct note *next;
    const struct js_field *field; /* NULL: `text` is the whole message */
    struct str text;              /* with a field: the names of the first few servers */
    size_t n_servers;
};

/* The placeholders of one value, while it is read. */
struct context_placeholders {
    struct context_placeholder *list;
    size_t n;
};

struct reading {
    struct config *config;
    struct str server; /* the entry being read, for messages; absent outside of entries */
    bool is_outward;   /* it is no server, but an address outside */
    size_t expanded;   /* bytes of values that contained a variable */
    bool is_for_edit;  /* as in struct config_source */
    /* The last value with a variable that stays as it is written; NULL: there is none. */
    const struct js_node *unexpanded;
    struct secret_use *secrets; /* of the entry being read */
    size_t n_secrets;
    /* Of the value being read; NULL when the value may not contain placeholders. */
    struct context_placeholders *placeholders;
    struct note *notes, **notes_end;
};

static inline struct reading *reading_of(const struct js_binding *b)
{
    return b->user;
}

/* A server entry while it is read: the server, and keys of other clients that are not stored. */
struct server_draft {
    struct server_config server;
    bool disabled, enabled;
    bool has_timeout;
    const struct js_node *env_file_at;
    struct str type; /* "type" or "transport" */
};

/* options.c.  A row's `data`, when set, is the full name of an option that is not used yet. */
extern const struct js_field option_fields[]; /* fields of "holdfast", for struct config */
extern const struct js_field server_fields[]; /* fields of one entry, for struct server_draft */
extern const struct js_field tenant_fields[]; /* fields of one tenant, for struct tenant_config */

/* folder.c */
bool option_read_folders(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
bool option_read_directory(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err);

/* profile.c */
bool option_read_profiles(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err);
bool option_read_toolsets(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err);
bool option_read_clients(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
/* profile_check.c: finds toolsets by their keys, after the whole file has been read. */
must_check bool profiles_finish(const struct js_binding *b, struct error *err);

/* outward.c: addresses outside that Holdfast itself sends to. */
bool option_read_otlp(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err);
/* Reads the object of an address outside into *s, and into what follows it in a larger struct: the
 * offsets of f->fields count from s. */
must_check bool outward_read(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, struct str name, struct server_config *s,
                             struct error *err);
/* sinks.c */
bool option_read_sinks(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, void *place, struct error *err);
bool option_read_sink_name(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err);
bool option_read_sink_url(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err);
bool option_read_sink_path(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err);
bool option_read_sink_secret(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, void *place, struct error *err);
/* Calls fn for each server and each address outside. */
void config_each_target(struct config *c, void (*fn)(void *arg, struct server_config *s),
                        void *arg);

/* value.c: JS_BIND_CUSTOM readers. */
bool option_read_listen(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err);
bool option_read_switch(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err);
bool option_read_tls(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err);
bool option_read_file(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err);
bool option_read_url(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err);
bool option_read_url_alias(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err);
bool option_read_origins(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
bool option_read_proxies(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
/* Reads and checks the name of an entry in an object of named entries. */
must_check bool value_name(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *key, struct str *ret, struct error *err);
/* limits.c: readers of one limit, and of an object of limits. */
bool option_read_limit(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, void *place, struct error *err);
bool option_read_limits(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err);
#define LIMIT_ROW(key, type, member, which, text)                                                  \
    {                                                                                              \
        .name = key, .kind = JS_BIND_CUSTOM, .read = option_read_limit,                            \
        .offset = offsetof(type, member[which]), .help = text                                      \
    }
#define LIMIT_ROWS(type, member, who)                                                              \
    LIMIT_ROW("requests", type, member, LIMIT_REQUESTS,                                            \
              "Requests, MCP and REST, that " who                                                  \
              " may make per s, m, h or d, such as 600/m. 600/m burst 100 allows at most 100 of "  \
              "them at once; without burst all of them may come at once. none means no limit."),   \
        LIMIT_ROW("bytes", type, member, LIMIT_BYTES,                                              \
                  "Bytes of requests and answers together, written like requests: 50MiB/m. A "     \
                  "request that passes the limit is still answered; later ones are refused until " \
                  "the limit allows them."),                                                       \
        LIMIT_ROW("calls", type, member, LIMIT_CALLS,                                              \
                  "Calls that " who " may have under way at once."),                               \
        LIMIT_ROW("children", type, member, LIMIT_CHILDREN,                                        \
                  "Server processes that may run for " who                                         \
                  " at once. Processes that all sessions share do not count.")
#define LIMIT_KEY_ROW(type, member)                                                                \
    {                                                                                              \
        .name = "key", .kind = JS_BIND_CUSTOM, .read = option_read_limits,                         \
        .fields = limits_fields, .offset = offsetof(type, member),                                 \
        .help = "The same for each key, or each user of a token, that has no limits of its own "   \
                "(`holdfast key create --limit`)."                                                 \
    }
extern const struct js_field limits_fields[], tenant_limits_fields[];
void limits_finish(struct config *c); /* after the whole file has been read */
struct js_writer;
void limit_value_write(struct js_writer *w, enum limit_kind kind, const struct limit *l);
/* tenant.c */
bool option_read_tenants(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
/* value_server.c: JS_BIND_CUSTOM readers of server entries and carriers. */
bool option_read_program(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
bool option_read_command(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
bool option_read_cwd(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err);
bool option_read_env_file(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err);
bool option_read_only_tools(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, void *place, struct error *err);
bool option_read_without_tools(const struct js_binding *b, const struct js_field *f,
                               const struct js_node *v, void *place, struct error *err);
/* Aliases that other clients use; config_write() writes the main name. */
bool option_read_only_tools_alias(const struct js_binding *b, const struct js_field *f,
                                  const struct js_node *v, void *place, struct error *err);
bool option_read_without_tools_alias(const struct js_binding *b, const struct js_field *f,
                                     const struct js_node *v, void *place, struct error *err);
/* Seconds, milliseconds or a duration: see docs/other-clients.md. */
bool option_read_timeout(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
bool option_read_timeout_sec(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, void *place, struct error *err);
bool option_read_server_tls(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, void *place, struct error *err);
bool option_read_env(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err);
bool option_read_headers(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
bool option_read_server_credential(const struct js_binding *b, const struct js_field *f,
                                   const struct js_node *v, void *place, struct error *err);
bool option_read_credential_as(const struct js_binding *b, const struct js_field *f,
                               const struct js_node *v, void *place, struct error *err);
bool option_read_inherit_env(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, void *place, struct error *err);
bool option_read_key_names(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err);
bool option_read_flag(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err);
bool option_read_type(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err);
/* Alias of "type"; config_write() writes "type". */
bool option_read_transport(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err);
bool option_read_meta_carriers(const struct js_binding *b, const struct js_field *f,
                               const struct js_node *v, void *place, struct error *err);
bool option_read_header_carriers(const struct js_binding *b, const struct js_field *f,
                                 const struct js_node *v, void *place, struct error *err);

/* value_issuer.c: JS_BIND_CUSTOM readers of "jwt" and its members. */
bool option_read_jwt(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err);
bool option_read_tenant_names(const struct js_binding *b, const struct js_field *f,
                              const struct js_node *v, void *place, struct error *err);
bool option_read_secret_names(const struct js_binding *b, const struct js_field *f,
                              const struct js_node *v, void *place, struct error *err);
bool option_read_role_names(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, void *place, struct error *err);
bool option_read_audience(const struct js_binding *b, const struct js_field *f,
                          const struct js_node *v, void *place, struct error *err);
bool option_read_jwks(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err);
bool option_read_issuer_keys(const struct js_binding *b, const struct js_field *f,
                             const struct js_node *v, void *place, struct error *err);
bool option_read_one_of(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err);
bool option_read_secret(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err);
bool option_read_name(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                      void *place, struct error *err);
/* After the whole file has been read: derives missing audiences of issuers from public_url. */
must_check bool issuers_finish(struct config *c, struct error *err);

/* "FILE:LINE:COLUMN" of a value; absent when the text does not come from a file. */
struct str value_place(const struct js_binding *b, const struct js_node *v);
/* Shared by the readers.  Reads a string, expands and copies it; `what` names it in an error. */
must_check bool value_string(const struct js_binding *b, const struct js_node *v, const char *what,
                             struct str *ret, struct error *err);
/* Checks one entry of a list; the fault names the entry. */
typedef bool (*value_check)(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, struct str text, struct error *err);
must_check bool value_list(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, value_check check,
                           struct error *err);
/* named.c: reads an object of named objects into an array sorted by name.  The first member of each
 * item is its name, a struct str. */
struct named_list {
    size_t size, max;
    const char *what;  /* plural noun for the items, for messages */
    const void *blank; /* initial value of an item; NULL: all zero */
    value_check check; /* checks the item's name; NULL: any name is accepted */
    void *items;       /* output, as is n */
    size_t n;
};
must_check bool named_list_read(const struct js_binding *b, const struct js_field *f,
                                const struct js_node *v, struct named_list *l, struct error *err);
/* NULL: not found. */
const void *named_list_find(const void *items, size_t n, size_t size, struct str name);
bool value_is_header_name(struct str name);
bool value_is_loopback(const char *host);        /* an address, or localhost */
bool value_url_is_on_loopback(struct str url);   /* of an http:// URL */
const char *value_url_complaint(struct str url); /* the reason the URL is invalid, or NULL */
bool value_is_name(struct str name);             /* 1 to 64 letters, digits and . _ - */
must_check bool value_check_listen(struct str text, bool *ret_is_loopback, struct error *err);
/* exposure.c: after the whole file has been read, checks that the listener is safe. */
must_check bool exposure_check(const struct config *c, struct error *err);

/* expand.c: js_binding.text of the configuration; replaces variables with their values. */
bool expand_text(const struct js_binding *b, const struct js_node *v, struct str *text,
                 struct error *err);

/* env_file.c: adds the variables of s->env_file to s->env; `at` is the option's value. */
must_check bool env_file_read(const struct js_binding *b, const struct js_node *at,
                              struct server_config *s, struct error *err);

/* syntax.c: the error message for text that is not JSON; names other formats that it recognizes. */
bool syntax_fault(struct str text, struct str file, const struct js_fault *fault,
                  struct error *err);

/* secret.c */
bool secret_is_reference(struct str inside); /* the text between the braces names a secret */
/* Notes the secret that `inside` names.  Returns NULL, or the reason that it is invalid. */
const char *secret_note(const struct js_binding *b, const struct js_node *v,
                        struct str inside) must_check;
/* The length of a valid reference at the start of the text; 0: there is none. */
size_t secret_reference_length(struct str text);
bool secret_has_reference(struct str text);
/* Secrets are replaced in some options only. */
must_check bool secret_check_places(const struct js_binding *b, const struct js_node *key,
                                    const struct server_config *s, struct error *err);
bool inputs_read(const struct js_binding *b, const struct js_node *key, struct error *err);

/* context.c */
bool context_is_key(struct str key);
/* Call these before and after reading the value of a pair. */
void context_placeholders_begin(struct reading *r, struct context_placeholders *placeholders);
void context_placeholders_end(struct reading *r, struct config_pair *pair);
/* Adds a placeholder at byte `at`; `inside` is the text after "context:".  Returns NULL, or the
 * reason that the placeholder is invalid. */
const char *context_placeholder_add(const struct js_binding *b, struct str inside,
                                    size_t at) must_check;
bool server_takes_context(const struct server_config *s);
/* After the whole file has been read: notes keys that a server needs and no profile allows. */
void context_note_unlisted(struct reading *r);
bool option_read_context_keys(const struct js_binding *b, const struct js_field *f,
                              const struct js_node *v, void *place, struct error *err);

/* note.c */
void note_add(struct reading *r, const char *fmt, ...) printf_like(2, 3);
/* Like note_add(), with the position of `at` in the file. */
void note_at(const struct js_binding *b, const struct js_node *at, const char *fmt, ...)
    printf_like(3, 4);
/* js_binding.seen: notes keys that are accepted but not used. */
void note_seen(const struct js_binding *b, const struct js_field *f, const struct js_node *key);
void notes_finish(struct reading *r);

/* credential.c */
/* A plain file name that cannot lead to another directory. */
bool credential_is_name(struct str name);
/* Appends the content of a credential.  Returns NULL, or the reason of the failure. */
const char *credential_add(struct str name, struct buf *out) must_check;
/* If `name` usually holds a secret, records that the file contains the value `v` literally. */
void credential_note_literal(const struct js_binding *b, struct str name, const struct js_node *v);
void credential_check_mode(struct config *c, unsigned mode); /* mode of the configuration file */

/* server.c */
must_check bool servers_read(const struct js_binding *b, const struct js_node *servers,
                             struct error *err);
void servers_finish(struct config *c); /* adds the built-in servers */

/* write.c: writes "30m", "4MiB": the largest unit without a remainder; the last unit is 1. */
struct config_unit {
    const char *name;
    int64_t value;
};
extern const struct config_unit config_time_units[], config_size_units[];
void config_add_units(struct buf *out, const struct config_unit *units, int64_t v);

/* definition.c */
void definition_compute(struct server_config *s);

/* value_server.c: sets the default carriers. */
void carriers_default(struct config *c);

#endif
