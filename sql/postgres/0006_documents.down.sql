-- SPDX-License-Identifier: Apache-2.0
-- Back to before documents had a history: it is lost, the files stay.

DROP FUNCTION IF EXISTS mcp.hf_document_read(uuid, text, text, text, text, mcp.document_reads, bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_document_end(text, text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_document_move(text, text, text);
DROP FUNCTION IF EXISTS mcp.hf_document_revise(uuid, text, mcp.document_revisions, bytea, boolean);
DROP TABLE IF EXISTS mcp.document_reads;
DROP TABLE IF EXISTS mcp.document_contents;
DROP TABLE IF EXISTS mcp.document_revisions;
DROP TABLE IF EXISTS mcp.documents;
