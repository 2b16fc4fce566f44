/* SPDX-License-Identifier: Apache-2.0 */
/* The MCP clients that Holdfast can be written into: where their configuration is and its form. */
#ifndef HOLDFAST_CLI_CLIENTS_H
#define HOLDFAST_CLI_CLIENTS_H

#include "base/arena.h"
#include "base/error.h"

struct client {
    const char *name;        /* "claude-code", as in `holdfast connect claude-code` */
    const char *title;       /* "Claude Code" */
    const char *env;         /* variable that names the directory of `file`; NULL: none */
    const char *home;        /* directory below HOME, "" for HOME itself */
    const char *file;        /* below that directory */
    bool is_xdg;             /* `home` is below XDG_CONFIG_HOME (default ~/.config) */
    bool is_toml;            /* else JSON with comments */
    bool has_bare_variables; /* "$NAME" in env and headers is a variable */
    const char *key;         /* member that holds the servers */
    /* Only read, by import: the file of a project, below its directory; the member of `file` that
     * holds the servers by project.  NULL: none. */
    const char *project_file, *projects_key;
    const char
        *url_key; /* member for the address of a server; NULL: the file takes commands only */
    const char *url_type; /* value of "type" beside the address; NULL: none */
    /* How the client reads the key from the variable HOLDFAST_KEY: the value of an Authorization
     * header, or a member beside the address that names the variable. */
    const char *auth, *auth_variable;
    const char *program; /* the client's own command; NULL: none */
    /* Its arguments up to the name of the server, and between that and our command. */
    const char *add[6], *add_then[2];
    /* Its arguments that show whether it reaches a server; NULL: it has none.  They end with the
     * name of the server, or list all servers.  Then the words in the line that decides. */
    const char *check[4];
    bool check_takes_name;
    const char *says_works, *says_listed, *says_failed;
    const char *by_hand; /* how a person looks whether the client reaches Holdfast */
};

/* Ends with a NULL name. */
extern const struct client clients[];
const struct client *client_find(const char *name); /* NULL: unknown */
/* The path of the client's file, in mem.  ERR_CONFIG without HOME. */
must_check bool client_file(const struct client *c, struct arena *mem, struct str *ret,
                            struct error *err);
/* $XDG_STATE_HOME/holdfast/connect/CLIENT.ENTRY.SUFFIX, in mem: what connect keeps about the entry
 * of this name. */
must_check bool client_record(const struct client *c, struct str entry, const char *suffix,
                              struct arena *mem, struct str *ret, struct error *err);
/* "claude-code, claude-desktop, … or gemini", in mem. */
struct str client_names(struct arena *mem);

#endif
