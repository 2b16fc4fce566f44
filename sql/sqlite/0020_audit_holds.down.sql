-- SPDX-License-Identifier: Apache-2.0
-- Back to 0019.
DROP VIEW audit_held;
DROP INDEX idx_api_keys_user;
DROP TABLE audit_holds;
