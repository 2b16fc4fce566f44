-- SPDX-License-Identifier: Apache-2.0
-- Back to 0017.
DROP TRIGGER edge_sessions_context_gone;
DROP INDEX idx_edge_sessions_over;
