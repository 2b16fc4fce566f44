-- SPDX-License-Identifier: Apache-2.0
-- Back to 0022.
DROP TABLE audit_sizes_todo;
DROP TABLE audit_sizes;
