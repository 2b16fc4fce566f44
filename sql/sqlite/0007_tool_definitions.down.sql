-- SPDX-License-Identifier: Apache-2.0
-- Back to before tools were watched: what they were is forgotten.

DROP TABLE tool_definitions;
