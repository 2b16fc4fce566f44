/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of api_table.c that are about documents: parameters, answers and members. */
#ifndef HOLDFAST_DOCS_API_TABLE_H
#define HOLDFAST_DOCS_API_TABLE_H

#include "api/api.h"

extern const struct api_param docs_list_params[], docs_get_params[], docs_put_params[],
    docs_history_params[], docs_revision_params[], docs_restore_params[], docs_move_params[],
    docs_suggestions_params[];
extern const struct api_answer docs_list_answers[], docs_get_answers[], docs_put_answers[],
    docs_history_answers[], docs_revision_answers[], docs_restore_answers[], docs_move_answers[],
    docs_suggestions_answers[], docs_apply_answers[];
extern const struct api_member docs_entry_members[], docs_list_members[], docs_document_members[],
    docs_state_members[], docs_moved_members[], docs_revision_members[],
    docs_revision_list_members[], docs_suggestion_members[], docs_file_members[],
    docs_suggestion_list_members[], docs_failed_members[], docs_applied_members[];

#endif
