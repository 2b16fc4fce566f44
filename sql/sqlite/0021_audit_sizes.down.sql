-- SPDX-License-Identifier: Apache-2.0
-- Back to 0020.
DROP TABLE audit_sizes_todo;
DROP TABLE audit_sizes;
