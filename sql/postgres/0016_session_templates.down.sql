-- SPDX-License-Identifier: Apache-2.0
-- Back to 0015.  The templates go.
DROP FUNCTION IF EXISTS mcp.hf_template_remove(text, text, bigint);
DROP FUNCTION IF EXISTS mcp.hf_template_put(mcp.session_templates, bigint, bigint, bigint);
DROP TABLE IF EXISTS mcp.session_templates;
