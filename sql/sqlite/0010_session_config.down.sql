-- SPDX-License-Identifier: Apache-2.0
-- Back to 0009.  What clients told their sessions is forgotten; they have to open new ones.
DROP INDEX idx_edge_sessions_sealed;
ALTER TABLE edge_mcp_sessions DROP COLUMN profile_context_encrypted;
CREATE INDEX idx_edge_sessions_sealed ON edge_mcp_sessions (id) WHERE passthrough_auth_encrypted IS NOT NULL;
