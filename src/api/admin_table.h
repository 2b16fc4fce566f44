/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of api_table.c that are for administrators: parameters, answers and members. */
#ifndef HOLDFAST_API_ADMIN_TABLE_H
#define HOLDFAST_API_ADMIN_TABLE_H

#include "api/api.h"

/* A sign-in, as its user and as an administrator sees it. */
#define SIGN_IN_MEMBERS                                                                            \
    {"id", "string", NULL, true, "uuid", NULL, "The sign-in's id."},                               \
        {"ip_address", "string", NULL, true, NULL, NULL, "Address of the last use."},              \
        {"device_info",                                                                            \
         "object",                                                                                 \
         NULL,                                                                                     \
         true,                                                                                     \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "user_agent and device_name, if the client sent them."},                                  \
        {"created_at", "string", NULL, true, "date-time", NULL, "Time of the sign-in."},           \
        {"last_activity", "string", NULL, true, "date-time", NULL, "Time of the last refresh."},   \
    {                                                                                              \
        "expires_at", "string", NULL, true, "date-time", NULL,                                     \
            "Time of expiry, if the sign-in is not refreshed before."                              \
    }

extern const struct api_param secret_params[], session_details_params[], session_detail_params[];
extern const struct api_answer secrets_answers[], secret_put_answers[], secret_remove_answers[];
extern const struct api_answer session_details_answers[], session_detail_answers[];
extern const struct api_member secret_members[], secret_list_members[], session_detail_members[],
    session_detail_list_members[], session_link_members[];
extern const struct api_param keys_params[], audit_stats_params[], key_params[], page_params[],
    server_params[], server_tools_params[], server_logs_params[], diff_params[], account_params[],
    account_login_params[], events_params[], audit_executions_params[], audit_execution_params[];
extern const struct api_answer key_create_answers[], keys_answers[], key_answers[],
    key_revoke_answers[], servers_answers[], server_answers[], tools_answers[], diff_answers[],
    approve_answers[], restart_answers[], server_logs_answers[], user_create_answers[],
    accounts_answers[], account_answers[], account_patch_answers[], account_logins_answers[],
    sign_out_answers[], events_answers[], audit_executions_answers[], audit_execution_answers[],
    verify_answers[], audit_stats_answers[], system_answers[];
extern const struct api_member key_members[], new_key_members[], key_list_members[],
    server_members[], server_list_members[], server_log_members[], server_log_line_members[],
    tool_members[], tool_list_members[], tool_diff_members[], approved_members[], account_members[],
    account_list_members[], account_login_members[], account_login_list_members[], event_members[],
    event_list_members[], audit_execution_members[], audit_execution_list_members[],
    audit_execution_detail_members[], removed_members[], verify_members[], audit_stats_members[],
    audit_size_members[], audit_rules_members[], audit_database_members[], audit_disk_members[],
    system_members[];

#endif
