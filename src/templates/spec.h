/* SPDX-License-Identifier: Apache-2.0 */
/* A template: a named set-up for new sessions, as an administrator writes it.
 *
 *   {"description":"…","ttl":"8h","profile":"support","toolsets":["tickets"],
 *    "audit":"full","audit_body":"256KiB","limits":{"requests":"60/m","calls":2},
 *    "context":{…},"metadata":{…},"credentials":{"github":"${secret:GH}"}}
 *
 * Every member is optional.  A template is stored as the bytes that were sent; every change makes a
 * new version.  A session copies what it takes from a version, so that no later change reaches it. */
#ifndef HOLDFAST_TEMPLATES_SPEC_H
#define HOLDFAST_TEMPLATES_SPEC_H

#include "session/setup.h"
#include "templates/store/rows.h"

#define TEMPLATE_DESCRIPTION_MAX 1000
#define TEMPLATE_TOOLSETS_MAX 64
#define TEMPLATE_METADATA_MAX ((size_t)16 << 10)

struct template_spec {
    struct str description;
    int64_t ttl_ms; /* 0: as configured */
    struct str profile;
    struct str *toolsets; /* keys */
    size_t n_toolsets;
    enum setup_audit audit;
    size_t audit_body;
    struct limits limits;
    struct str context, metadata; /* JSON objects; absent: none */
    struct setup_credential *credentials;
    size_t n_credentials;
};
extern const struct js_field template_fields[]; /* for struct template_spec */

/* Whether this can be the name of a template: 1 to TEMPLATE_NAME_MAX letters, digits and . _ -, the
 * first a letter or digit. */
bool template_name_is_fit(struct str name);
/* "name", or "name@3" for that version; *ret_version is 0 for the newest.  False: neither. */
must_check bool template_ref_parse(struct str ref, struct str *ret_name, int64_t *ret_version);

/* Reads the JSON text of a template.  ERR_BAD_INPUT names the member. */
must_check bool template_spec_parse(struct str json, struct arena *mem, struct template_spec *ret,
                                    struct error *err);
/* Whether this configuration has everything that the template names, and lets templates of the tenant
 * name its secrets. */
must_check bool template_spec_check(const struct template_spec *t, const struct config *c,
                                    struct str tenant, struct error *err);
/* The set-up of a session from this version of the template; its texts are in mem, or those of `t`. */
struct session_setup template_setup_of(const struct template_spec *t,
                                       const struct template_row *row, struct arena *mem);
/* The column `setup` of a session from this version of the template.  In mem. */
struct str template_setup(const struct template_spec *t, const struct template_row *row,
                          struct arena *mem);
/* The column `toolsets`; absent: none.  In mem. */
struct str template_toolsets(const struct template_spec *t, struct arena *mem);

#endif
