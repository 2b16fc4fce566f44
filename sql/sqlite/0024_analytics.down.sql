-- SPDX-License-Identifier: Apache-2.0
-- Back to 0023.
DROP TABLE analytics_rollups;
DROP TABLE analytics_labels;
