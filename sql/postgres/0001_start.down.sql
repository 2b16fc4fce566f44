-- SPDX-License-Identifier: Apache-2.0
-- Takes everything of 0001 away, the audit too.  The schema itself stays when somebody else put
-- something into it.

DROP VIEW IF EXISTS mcp.session_metrics;
DROP FUNCTION IF EXISTS mcp.cleanup_expired_sessions();
DROP FUNCTION IF EXISTS mcp.hf_session_create(mcp.edge_mcp_sessions, timestamptz, bigint);
DROP FUNCTION IF EXISTS mcp.hf_session_name(uuid, text, text, timestamptz, timestamptz, bigint);
DROP FUNCTION IF EXISTS mcp.hf_session_end(uuid, text, text, boolean, text, timestamptz, text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_transport_create(mcp.transport_sessions);
DROP FUNCTION IF EXISTS mcp.hf_transport_link(bytea, text, text, uuid);
DROP FUNCTION IF EXISTS mcp.hf_transport_touch(bytea, text, text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_transport_end(bytea, text, text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_link_put(mcp.upstream_links, text, text);
DROP FUNCTION IF EXISTS mcp.hf_link_end(uuid, text, text, text, timestamptz, text);
DROP FUNCTION IF EXISTS mcp.hf_events_append(bigint, integer, bytea, bytea);
DROP FUNCTION IF EXISTS mcp.hf_writer_renew(bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_writer_end(bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_has_room(text, bigint, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_tenant_ensure(text, timestamptz);
DROP FUNCTION IF EXISTS mcp.hf_owns(uuid, text, text);
DROP FUNCTION IF EXISTS mcp.hf_reaches(uuid, text, text, boolean);
DROP FUNCTION IF EXISTS mcp.hf_require(integer, boolean);
DROP FUNCTION IF EXISTS mcp.hf_jsonb(text);
DROP FUNCTION IF EXISTS mcp.hf_changes_number();
DROP TABLE IF EXISTS mcp.store_probe, mcp.leases, mcp.changes, mcp.upstream_links, mcp.transport_sessions, mcp.writers,
    mcp.fold_state, mcp.fold_marks, mcp.events, mcp.session_tool_executions, mcp.tool_configurations,
    mcp.contexts, mcp.edge_mcp_sessions, mcp.users, mcp.tenants, mcp.schema_migrations;
DROP FUNCTION IF EXISTS mcp.hf_count_sessions();
DROP SEQUENCE IF EXISTS mcp.changes_id;
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'mcp')
       AND NOT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'mcp')
       AND (SELECT nspowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
              FROM pg_namespace WHERE nspname = 'mcp') THEN
        DROP SCHEMA mcp;
    END IF;
END $$;
