-- SPDX-License-Identifier: Apache-2.0
-- Back to 0012: totals are added up from the sessions.
DROP INDEX idx_edge_sessions_promoted;
DROP TRIGGER edge_sessions_sums_move;
DROP TRIGGER edge_sessions_sums_change;
DROP TRIGGER edge_sessions_sums_delete;
DROP TRIGGER edge_sessions_sums_insert;
DROP TABLE session_sums;
