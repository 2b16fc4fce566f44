-- SPDX-License-Identifier: Apache-2.0
-- Back to 0020.
DROP TABLE sink_positions;
