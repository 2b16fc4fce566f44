-- SPDX-License-Identifier: Apache-2.0
-- Back to 0013.  The secrets of the configuration go.
DROP TABLE secrets;
