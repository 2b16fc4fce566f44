-- SPDX-License-Identifier: Apache-2.0
-- Back to 0003.  What was sealed cannot be opened any more without its keys, and goes.

DROP INDEX idx_edge_sessions_sealed;
UPDATE edge_mcp_sessions SET passthrough_auth_encrypted = NULL WHERE passthrough_auth_encrypted IS NOT NULL;
DROP TABLE tenant_keys;
