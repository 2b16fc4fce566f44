-- SPDX-License-Identifier: Apache-2.0
-- Back to 0024.
DROP FUNCTION IF EXISTS mcp.hf_erasure_done(uuid, bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_erasure_names(uuid, text, uuid, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_erasure_authors(text, text, uuid, uuid);
DROP FUNCTION IF EXISTS mcp.hf_erasure_rows(uuid, text, uuid, bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_erasure_move(uuid, bigint, bigint, bigint, bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_erasure_begin(mcp.audit_erasures, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_owners_of(uuid);
DROP TABLE IF EXISTS mcp.audit_erasures;
DROP FUNCTION IF EXISTS mcp.hf_sizes_subtract(text[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]);
