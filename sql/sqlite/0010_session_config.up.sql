-- SPDX-License-Identifier: Apache-2.0
-- What a client told its session in ?config= or mcp-config, sealed like credentials.
ALTER TABLE edge_mcp_sessions ADD COLUMN profile_context_encrypted BLOB;

-- What a change of keys has to go through.
DROP INDEX idx_edge_sessions_sealed;
CREATE INDEX idx_edge_sessions_sealed ON edge_mcp_sessions (id)
    WHERE passthrough_auth_encrypted IS NOT NULL OR profile_context_encrypted IS NOT NULL;
