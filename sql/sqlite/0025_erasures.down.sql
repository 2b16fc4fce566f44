-- SPDX-License-Identifier: Apache-2.0
-- Back to 0024.
DROP TABLE audit_erasures;
