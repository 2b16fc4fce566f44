-- SPDX-License-Identifier: Apache-2.0
-- Back to 0015.  The templates go.
DROP TABLE session_templates;
