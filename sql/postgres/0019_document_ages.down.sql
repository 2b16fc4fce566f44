-- SPDX-License-Identifier: Apache-2.0
-- Back to 0018.
DROP FUNCTION IF EXISTS mcp.hf_documents_age(text, timestamptz, uuid, bigint, bigint);
DROP FUNCTION IF EXISTS mcp.hf_document_text(uuid, bigint);
DROP INDEX IF EXISTS mcp.idx_documents_folder;
