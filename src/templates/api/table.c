/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on templates: a part of the table of REST (api/api.h). */
#include "templates/api/templates.h"

#include "store/store.h"
#include "templates/spec.h"

#define PARAM_NAME                                                                                 \
    {                                                                                              \
        .name = "name", .in = "path", .type = "string", .is_required = true, .min = 1,             \
        .max = TEMPLATE_NAME_MAX,                                                                  \
        .help = "The template's name: letters, digits and . _ -, first a letter or digit.",        \
        .example = "\"support\""                                                                   \
    }
#define PARAM_TENANT                                                                               \
    {                                                                                              \
        .name = "tenant", .in = "query", .type = "string", .min = 1, .max = 64,                    \
        .help = "The caller's tenant. On the unix socket: any tenant (default: `default`)."        \
    }
#define PARAM_LIMIT                                                                                \
    {                                                                                              \
        .name = "limit", .in = "query", .type = "integer", .min = 1, .max = STORE_PAGE_MAX,        \
        .default_text = "50", .help = "Largest number of rows in the page."                        \
    }
#define PARAM_CURSOR                                                                               \
    {                                                                                              \
        .name = "cursor", .in = "query", .type = "string", .min = 1, .max = 2000,                  \
        .help = "next_cursor of the previous page."                                                \
    }

static const struct api_param list_params[] = {PARAM_TENANT, PARAM_LIMIT, PARAM_CURSOR, {0}};
static const struct api_param versions_params[] = {
    PARAM_NAME, PARAM_TENANT, PARAM_LIMIT, PARAM_CURSOR, {0}};
static const struct api_param get_params[] = {
    PARAM_NAME,
    {.name = "version",
     .in = "query",
     .type = "integer",
     .min = 1,
     .max = TEMPLATE_VERSIONS_MAX,
     .help = "Version to return (default: the newest)."},
    PARAM_TENANT,
    {.name = "If-None-Match",
     .in = "header",
     .type = "string",
     .help = "An ETag from an earlier answer. The answer is 304 if the resource still has it."},
    {0},
};
static const struct api_param put_params[] = {
    PARAM_NAME,
    PARAM_TENANT,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .help = "The ETag of the version that was read, or * for any. Either this or If-None-Match is "
             "required."},
    {.name = "If-None-Match", .in = "header", .type = "string", .help = "* makes a new template."},
    {0},
};
static const struct api_param remove_params[] = {
    PARAM_NAME,
    PARAM_TENANT,
    {.name = "If-Match",
     .in = "header",
     .type = "string",
     .help = "Remove only if the newest version has this ETag (default: always)."},
    {0},
};

static const struct api_answer list_answers[] = {
    {200, "TemplateList", "A page, ordered by name: the newest version of each template."}, {0}};
static const struct api_answer versions_answers[] = {
    {200, "TemplateVersionList", "A page, newest first, without the specs."}, {0}};
static const struct api_answer get_answers[] = {
    {200, "Template", "The template."},
    {304, NULL, "The template still has the ETag of If-None-Match."},
    {0},
};
static const struct api_answer put_answers[] = {
    {200, "Template", "The newest version: a new one, or the one that is equal to the body."},
    {201, "Template", "The template was made; this is its first version."},
    {412, "Problem", "The condition does not hold; the header ETag is the current one."},
    {413, "Problem", "The template is too large."},
    {415, "Problem", "The body is not JSON."},
    {428, "Problem", "Neither If-Match nor If-None-Match: * was sent."},
    {0},
};
static const struct api_answer remove_answers[] = {
    {204, NULL, "Every version is removed. Running sessions keep what they took from it."},
    {409, "Problem", "A profile of the configuration uses the template."},
    {412, "Problem", "The newest version has another ETag than the one in If-Match."},
    {0},
};

static const struct api_member template_members[] = {
    {"name", "string", NULL, true, NULL, NULL, "Name of the template."},
    {"version", "integer", NULL, true, NULL, NULL, "Version, counted from 1."},
    {"created_at", "string", NULL, true, "date-time", NULL, "Time at which it was written."},
    {"created_by", "string", NULL, true, NULL, NULL,
     "Owner of the credential that wrote it; local: none."},
    {"spec", "object", NULL, true, NULL, NULL, "The set-up, as it was sent."},
    {0},
};
static const struct api_member version_members[] = {
    {"name", "string", NULL, true, NULL, NULL, "Name of the template."},
    {"version", "integer", NULL, true, NULL, NULL, "Version, counted from 1."},
    {"created_at", "string", NULL, true, "date-time", NULL, "Time at which it was written."},
    {"created_by", "string", NULL, true, NULL, NULL,
     "Owner of the credential that wrote it; local: none."},
    {0},
};
#define PAGE_MEMBERS                                                                               \
    {"count", "integer", NULL, true, NULL, NULL, "Number of rows in the page."},                   \
    {                                                                                              \
        "next_cursor", "string|null", NULL, true, NULL, NULL, "Cursor of the next page."           \
    }
static const struct api_member list_members[] = {
    {"templates", "array", "Template", true, NULL, NULL, "The templates."}, PAGE_MEMBERS, {0}};
static const struct api_member version_list_members[] = {
    {"versions", "array", "TemplateVersion", true, NULL, NULL, "The versions."},
    PAGE_MEMBERS,
    {0},
};

static const struct api_schema schemas[] = {
    {"Template", template_members, "One version of a template.", API_ETAG},
    {"TemplateVersion", version_members, "A version of a template in a list."},
    {"TemplateList", list_members, "A page of templates.", API_LINK},
    {"TemplateVersionList", version_list_members, "A page of versions.", API_LINK},
    {0},
};

static const struct api_body body_template = {.name = "TemplateSpec", .fields = template_fields};

#define TEMPLATES "/api/v1/templates"
#define OP(METHOD, PATTERN, ID, ACCESS, RUN, SUMMARY)                                              \
    .method = (METHOD), .pattern = (PATTERN), .id = (ID), .access = (ACCESS), .run = (RUN),        \
    .summary = (SUMMARY)

static const struct api_operation operations[] = {
    {OP("GET", TEMPLATES, "listTemplates", API_READ, api_list_templates,
        "Lists the templates of the tenant."),
     .params = list_params, .answers = list_answers},
    {OP("GET", TEMPLATES "/{name}", "getTemplate", API_READ, api_get_template,
        "Returns a template: its newest version, or an earlier one."),
     .params = get_params, .answers = get_answers},
    {OP("GET", TEMPLATES "/{name}/versions", "listTemplateVersions", API_READ,
        api_list_template_versions, "Lists the versions of a template."),
     .params = versions_params, .answers = versions_answers},
    {OP("PUT", TEMPLATES "/{name}", "putTemplate", API_ADMIN, api_put_template,
        "Makes a template, or adds a version to it. Running sessions keep what they took."),
     .params = put_params, .body = &body_template, .answers = put_answers},
    {OP("DELETE", TEMPLATES "/{name}", "removeTemplate", API_ADMIN, api_remove_template,
        "Removes every version of a template."),
     .params = remove_params, .answers = remove_answers},
    {0},
};

static const struct api_tag tag = {"/templates", "Templates",
                                   "Named, versioned set-ups of sessions."};

static const struct api_example examples[] = {
    {"spec", "{\"ttl\":\"8h\",\"audit\":\"full\",\"limits\":{\"requests\":\"60/m\"}}"},
    {"created_by", "\"key:3k9x0q2m7a1z\""},
    {"audit_body", "\"256KiB\""},
    {"limits", "{\"requests\":\"60/m\",\"calls\":2}"},
    {0},
};

const struct api_part templates_api = {
    .operations = operations,
    .after = "appendSessionContext",
    .schemas = schemas,
    .after_schema = "Context",
    .tag = &tag,
    .after_tag = "Sessions",
    .examples = examples,
};
