-- SPDX-License-Identifier: Apache-2.0
-- Templates: named set-ups of sessions, with every version of them.  Sessions hold a copy of what they took.
CREATE TABLE IF NOT EXISTS mcp.session_templates (
    tenant_id  text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    version    bigint,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    spec       text NOT NULL,
    PRIMARY KEY (tenant_id, name, version)
);

-- Verdicts: 0 OK, 2 LIMIT, 3 MISSING, 5 STALE.  The lock makes the counts exact and gives each version once.
CREATE OR REPLACE FUNCTION mcp.hf_template_put(p mcp.session_templates, p_expected bigint, p_most bigint,
                                               p_versions bigint, OUT ret_verdict integer, OUT ret_version bigint)
LANGUAGE plpgsql AS $$
DECLARE
    newest mcp.session_templates;
BEGIN
    LOCK TABLE mcp.session_templates IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO newest FROM mcp.session_templates
     WHERE tenant_id = p.tenant_id AND name = p.name ORDER BY version DESC LIMIT 1;
    ret_verdict := 0;
    ret_version := coalesce(newest.version, 0);
    IF p_expected >= 0 AND p_expected <> ret_version THEN
        ret_verdict := 5;
    ELSIF newest.spec = p.spec THEN
        NULL;
    ELSIF ret_version >= p_versions OR (ret_version = 0 AND p_most <= (
              SELECT count(*) FROM mcp.session_templates WHERE tenant_id = p.tenant_id AND version = 1)) THEN
        ret_verdict := 2;
    ELSE
        ret_version := ret_version + 1;
        INSERT INTO mcp.session_templates (tenant_id, name, version, created_at, created_by, spec)
        VALUES (p.tenant_id, p.name, ret_version, p.created_at, p.created_by, p.spec);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION mcp.hf_template_remove(p_tenant text, p_name text, p_expected bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
BEGIN
    LOCK TABLE mcp.session_templates IN SHARE ROW EXCLUSIVE MODE;
    SELECT max(version) INTO newest FROM mcp.session_templates WHERE tenant_id = p_tenant AND name = p_name;
    IF newest IS NULL THEN
        RETURN 3;
    ELSIF p_expected >= 0 AND p_expected <> newest THEN
        RETURN 5;
    END IF;
    DELETE FROM mcp.session_templates WHERE tenant_id = p_tenant AND name = p_name;
    RETURN 0;
END $$;
