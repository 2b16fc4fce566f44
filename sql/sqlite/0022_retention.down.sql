-- SPDX-License-Identifier: Apache-2.0
-- Back to 0021.  An older version cannot verify chains of which events were removed.
DROP TRIGGER audit_holds_made;
DROP TABLE audit_tallies;
DROP TABLE audit_removed;
DROP TABLE audit_retention;
