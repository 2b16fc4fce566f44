#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What an edge MCP client says to the registry, in its own words: it announces itself, opens a
# session, records what its tools did, keeps a context, and closes the session.
#
#   HOLDFAST_URL=http://127.0.0.1:4653 HOLDFAST_KEY=hf_... deploy/examples/edge-client.sh
#
# Each line prints the answer and its status.  A Holdfast on loopback needs no key.  Where sessions
# are switched off for the tenant every line is answered 404, and the client goes on without them.
set -u
url=${HOLDFAST_URL:-http://127.0.0.1:4653}/api/v1
key=${HOLDFAST_KEY:-}
edge=${EDGE_MCP_ID:-edge-1}
session=${SESSION_ID:-session-$(date +%s)-$edge}

say() {
    curl -sS -w ' %{http_code}\n' -H 'Content-Type: application/json' ${key:+-H "Authorization: Bearer $key"} "$@"
}

say -X POST "$url/auth/edge-mcp" -d "{\"edge_mcp_id\":\"$edge\",\"api_key\":\"\"}"
say -X POST "$url/sessions" -d "{\"session_id\":\"$session\",\"edge_mcp_id\":\"$edge\",\"tenant_id\":\"\",\"client_name\":\"edge-mcp\",\"client_type\":\"cli\"}"
say -X POST "$url/executions" -d "{\"session_id\":\"$session\",\"tool_name\":\"grep\",\"arguments\":{\"pattern\":\"TODO\"},\"result\":{\"matches\":3},\"duration_ms\":12,\"tokens_used\":40}"
say -X PUT "$url/context/$session" -d '{"context":{"branch":"main"}}'
say -X PATCH "$url/context/$session" -d '{"append":{"file":"README.md"}}'
say "$url/context/$session"
say -X POST "$url/sessions/$session/activity"
say "$url/sessions/$session"
say -X DELETE "$url/sessions/$session?reason=client+exit"
