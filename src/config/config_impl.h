/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of config/ share while a text is being read: the state of one reading, the tables
 * of options.c, and the readers those tables name.
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
#define CONFIG_HEADERS_BYTES_MAX (48u << 10) /* of one server, defaults with them */
#define CONFIG_ENV_FILE_MAX (64u << 10)      /* bytes of an envFile */
#define CONFIG_ISSUERS_MAX 16
#define CONFIG_ISSUER_KEYS_MAX 64
#define CONFIG_AUDIENCES_MAX 16
#define CONFIG_ISSUER_TENANTS_MAX 256
#define CONFIG_EXPANDED_ONE_MAX (64u << 10) /* one value after expansion */
#define CONFIG_EXPANDED_ALL_MAX (4u << 20)  /* all values of a file that contain a variable */

/* Defaults of options that have readers of their own. */
#define CONFIG_LISTEN_DEFAULT "127.0.0.1:4653"
#define CONFIG_META_DEFAULT                                                                        \
    "[\"session_id\", \"openai/session\", \"vscode.conversationId\", "                             \
    "[\"x-codex-turn-metadata\", \"session_id\"], \"threadId\", \"sessionID\"]"

/* Something to be said once at start.  Notes about a key of server entries gather the servers. */
struct note {
    struct note *next;
    const struct js_field *field; /* NULL: `text` is all there is */
    struct str text;              /* with a field: the servers, or the first few of them */
    size_t n_servers;
};

/* Holes of one value, while it is read. */
struct context_placeholders {
    struct context_placeholder *list;
    size_t n;
};

struct reading {
    struct config *config;
    struct str server; /* the entry being read, absent outside; for messages */
    size_t expanded;   /* bytes of values that contained a variable */
    struct context_placeholders *placeholders; /* of the value being read; NULL: it can have none */
    struct note *notes, **notes_end;
};

static inline struct reading *reading_of(const struct js_binding *b)
{
    return b->user;
}

/* A server entry while it is read: what other clients write beside what is kept. */
struct server_draft {
    struct server_config server;
    bool disabled, enabled;
    bool has_timeout;
    const struct js_node *env_file_at;
    struct str type; /* "type" or "transport" */
};

/* options.c.  A row's `data`, when set, is the full name of an option that is not used yet. */
extern const struct js_field option_fields[]; /* of "holdfast", into struct config */
extern const struct js_field server_fields[]; /* of one entry, into struct server_draft */
extern const struct js_field tenant_fields[]; /* of one tenant, into struct tenant_config */

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
/* profile_check.c: once all is read, toolsets are found by their keys. */
must_check bool profiles_finish(const struct js_binding *b, struct error *err);

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
/* The name of an entry in such an object. */
must_check bool value_name(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *key, struct str *ret, struct error *err);
/* limits.c: one limit, and an object of them. */
bool option_read_limit(const struct js_binding *b, const struct js_field *f,
                       const struct js_node *v, void *place, struct error *err);
bool option_read_limits(const struct js_binding *b, const struct js_field *f,
                        const struct js_node *v, void *place, struct error *err);
#define LIMIT_ROW(key, type, member, which, text)                                                  \
    {                                                                                              \
        .name = key, .kind = JS_BIND_CUSTOM, .read = option_read_limit,                            \
        .offset = offsetof(type, member[which]), .help = text                                      \
    }
#define LIMIT_ROWS(type, member, Who, who)                                                         \
    LIMIT_ROW("requests", type, member, LIMIT_REQUESTS,                                            \
              Who " may make so many requests, MCP and REST, in a time (s, m, h, d), with room "   \
                  "for a burst: 600/m, or 600/m burst 100. As many at once as in the time unless " \
                  "told; none for no limit."),                                                     \
        LIMIT_ROW("bytes", type, member, LIMIT_BYTES,                                              \
                  "Bytes of requests and answers together, likewise: 50MiB/m. What passes the "    \
                  "limit is still answered; what comes next waits."),                              \
        LIMIT_ROW("calls", type, member, LIMIT_CALLS,                                              \
                  "Calls that " who " may have under way at once."),                               \
        LIMIT_ROW("children", type, member, LIMIT_CHILDREN,                                        \
                  "Server processes that may run for " who " at once; those that all sessions "    \
                  "share do not count.")
#define LIMIT_KEY_ROW(type, member)                                                                \
    {                                                                                              \
        .name = "key", .kind = JS_BIND_CUSTOM, .read = option_read_limits,                         \
        .fields = limits_fields, .offset = offsetof(type, member),                                 \
        .help = "The same for each key, or each user of a token, that has no limits of its own "   \
                "(`holdfast key create --limit`)."                                                 \
    }
extern const struct js_field limits_fields[], tenant_limits_fields[];
void limits_finish(struct config *c); /* once all is read */
struct js_writer;
void limit_value_write(struct js_writer *w, enum limit_kind kind, const struct limit *l);
/* tenant.c */
bool option_read_tenants(const struct js_binding *b, const struct js_field *f,
                         const struct js_node *v, void *place, struct error *err);
/* value_server.c: likewise, of server entries and carriers. */
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
/* Other clients' names of the same; written back as the first. */
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
/* The other name of the same; written back as the first. */
bool option_read_transport(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, struct error *err);
bool option_read_meta_carriers(const struct js_binding *b, const struct js_field *f,
                               const struct js_node *v, void *place, struct error *err);
bool option_read_header_carriers(const struct js_binding *b, const struct js_field *f,
                                 const struct js_node *v, void *place, struct error *err);

/* value_issuer.c: likewise, of "jwt" and what is in it. */
bool option_read_jwt(const struct js_binding *b, const struct js_field *f, const struct js_node *v,
                     void *place, struct error *err);
bool option_read_tenant_names(const struct js_binding *b, const struct js_field *f,
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
/* Once all is read: what an issuer's tokens must be for follows from public_url when it is not
 * given. */
must_check bool issuers_finish(struct config *c, struct error *err);

/* "FILE:LINE:COLUMN" of a value; absent when the text is of no file. */
struct str value_place(const struct js_binding *b, const struct js_node *v);
/* What those readers share.  A string, expanded and copied; `what` names it in a refusal. */
must_check bool value_string(const struct js_binding *b, const struct js_node *v, const char *what,
                             struct str *ret, struct error *err);
/* Checks one entry of a list; the fault names the entry. */
typedef bool (*value_check)(const struct js_binding *b, const struct js_field *f,
                            const struct js_node *v, struct str text, struct error *err);
must_check bool value_list(const struct js_binding *b, const struct js_field *f,
                           const struct js_node *v, void *place, value_check check,
                           struct error *err);
/* named.c: an object of named objects, as an array sorted by name.  What it holds begins with its
 * name, a struct str. */
struct named_list {
    size_t size, max;
    const char *what;  /* it is, in the plural */
    const void *blank; /* one before anything of it is read; NULL: all zero */
    value_check check; /* of its name; NULL: any name will do */
    void *items;       /* out, as is n */
    size_t n;
};
must_check bool named_list_read(const struct js_binding *b, const struct js_field *f,
                                const struct js_node *v, struct named_list *l, struct error *err);
/* NULL: there is none. */
const void *named_list_find(const void *items, size_t n, size_t size, struct str name);
bool value_is_header_name(struct str name);
bool value_is_loopback(const char *host);        /* an address, or localhost */
const char *value_url_complaint(struct str url); /* what is wrong with it, or NULL */
bool value_is_name(struct str name);             /* token characters, 1 to 64 bytes */
must_check bool value_check_listen(struct str text, bool *ret_is_loopback, struct error *err);
/* exposure.c: once all is read, whether that may be listened on. */
must_check bool exposure_check(const struct config *c, struct error *err);

/* expand.c: js_binding.text of the configuration: variables become their values. */
bool expand_text(const struct js_binding *b, const struct js_node *v, struct str *text,
                 struct error *err);

/* env_file.c: adds the variables of s->env_file to s->env; `at` is the option's value. */
must_check bool env_file_read(const struct js_binding *b, const struct js_node *at,
                              struct server_config *s, struct error *err);

/* syntax.c: the message for a text that is no JSON: in words of its own for other formats. */
bool syntax_fault(struct str text, struct str file, const struct js_fault *fault,
                  struct error *err);

/* context.c */
bool context_is_key(struct str key);
/* Between these two the value of a pair is read. */
void context_placeholders_begin(struct reading *r, struct context_placeholders *placeholders);
void context_placeholders_end(struct reading *r, struct config_pair *pair);
/* A placeholder at that byte; `inside`: what stands behind "context:".  NULL: done; else what is
 * wrong. */
const char *context_placeholder_add(const struct js_binding *b, struct str inside,
                                    size_t at) must_check;
bool server_takes_context(const struct server_config *s);
/* Once all is read: keys that a server needs and no session can have are noted. */
void context_note_unlisted(struct reading *r);
bool option_read_context_keys(const struct js_binding *b, const struct js_field *f,
                              const struct js_node *v, void *place, struct error *err);

/* note.c */
void note_add(struct reading *r, const char *fmt, ...) printf_like(2, 3);
/* The same, with the place of `at` in the file. */
void note_at(const struct js_binding *b, const struct js_node *at, const char *fmt, ...)
    printf_like(3, 4);
/* js_binding.seen: notes keys that are accepted and not used. */
void note_seen(const struct js_binding *b, const struct js_field *f, const struct js_node *key);
void notes_finish(struct reading *r);

/* credential.c */
/* Adds what a credential holds.  NULL: done; else what is wrong with it. */
const char *credential_add(struct str name, struct buf *out) must_check;
/* Does a header, variable or argument of this name hold a secret, as a rule? */
bool credential_is_named(struct str name);
/* `name` has this value; remembers that a secret stands in the file. */
void credential_note_literal(const struct js_binding *b, struct str name, const struct js_node *v);
void credential_check_mode(struct config *c, unsigned mode); /* of its file */

/* server.c */
must_check bool servers_read(const struct js_binding *b, const struct js_node *servers,
                             struct error *err);
void servers_finish(struct config *c); /* adds our own */

/* write.c: "30m", "4MiB": in the largest unit that leaves no rest; the last unit is 1. */
struct config_unit {
    const char *name;
    int64_t value;
};
extern const struct config_unit config_time_units[], config_size_units[];
void config_add_units(struct buf *out, const struct config_unit *units, int64_t v);

/* definition.c */
void definition_compute(struct server_config *s);

/* value_server.c: the carriers read when none are configured. */
void carriers_default(struct config *c);

#endif
