-- SPDX-License-Identifier: Apache-2.0
-- Back to before requests to servers were counted: the counts are lost.

DROP TABLE server_health;
