// SPDX-License-Identifier: Apache-2.0
// driver.mjs URL: an official client that does, against Holdfast, what a client scenario of the suite waits for.
//
// MCP_CONFORMANCE_SCENARIO names the scenario and HOLDFAST_DRIVER the era this client speaks, which
// need not be that of the mock server behind Holdfast ("both": it asks for 2026-07-28 and falls back).  On
// /mcp the names of tools begin with that of their server.  What is judged is the traffic that reaches
// the mock; an exit status other than 0 says that an answer on this side was not what it should be.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const MODERN = '2026-07-28';
const era = process.env.HOLDFAST_DRIVER;
const prefix = new URL(process.argv[2]).pathname === '/mcp' ? 'mock__' : '';
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || '{}');

async function connect(url) {
    const client = new Client({ name: 'driver', version: '1.0.0' }, {
        capabilities: { elicitation: {} },
        versionNegotiation: { mode: { modern: { pin: MODERN }, both: 'auto', legacy: 'legacy' }[era] }
    });
    client.setRequestHandler('elicitation/create', ({ params }) => ({ action: 'accept', content: fill(params.requestedSchema) }));
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
}

/** A user who says yes to everything. */
function fill({ properties }) {
    return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, schema.default ?? true]));
}

function textOf(result) {
    assert.ok(!result.isError, `the call failed: ${JSON.stringify(result.content)}`);
    return result.content.map(block => block.text).join('');
}

async function call(client, name, args = {}) {
    return textOf(await client.callTool({ name: prefix + name, arguments: args }));
}

/** The tools of the mock; on /mcp there are Holdfast's own beside them. */
async function mockTools(client) {
    const { tools } = await client.listTools();
    return tools.map(tool => tool.name).filter(name => name.startsWith(prefix)).map(name => name.slice(prefix.length));
}

async function addNumbers(client) {
    assert.deepEqual(await mockTools(client), ['add_numbers']);
    assert.match(await call(client, 'add_numbers', { a: 5, b: 3 }), /8/);
}

async function standardHeaders(client) {
    await client.listTools();
    await call(client, 'test_headers');
    await call(client, 'my-hyphenated-tool');
    const { resources } = await client.listResources();
    for (const { uri } of resources) {
        await client.readResource({ uri });
    }
    await client.listPrompts();
    await client.getPrompt({ name: 'test_prompt' });
}

async function customHeaders(client) {
    await client.listTools();
    for (const { name, arguments: args } of context.toolCalls) {
        await call(client, name, args);
    }
}

/** Calls whatever is offered.  A modern client drops bad tools itself, so the list is asked for by hand. */
async function invalidToolHeaders(client, url) {
    const names = era === 'modern' ? await listByHand(url) : (await client.listTools()).tools.map(tool => tool.name);
    assert.deepEqual(names, ['valid_tool']);
    await call(client, 'valid_tool', { region: 'us-west1' });
}

async function listByHand(url) {
    const _meta = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} };
    const answer = await fetch(url, {
        method: 'POST',
        headers: {
            'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
            'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/list'
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } })
    });
    return (await answer.json()).result.tools.map(tool => tool.name);
}

async function requestState(client) {
    await client.listTools();
    const echoed = call(client, 'test_mrtr_echo_state');
    assert.equal(await call(client, 'test_mrtr_unrelated'), 'unrelated-ok');
    assert.equal(await echoed, 'echo-state-ok');
    assert.equal(await call(client, 'test_mrtr_no_state'), 'no-state-ok');
    await withoutResultType(client);
}

/** The mock leaves resultType out.  Holdfast passes that on to a client of the same era, and this one refuses it. */
async function withoutResultType(client) {
    const answer = call(client, 'test_mrtr_no_result_type');
    if (era === 'modern') {
        await assert.rejects(answer, { code: 'INVALID_RESULT' });
    } else {
        assert.equal(await answer, 'no-result-type-test-ok');
    }
}

async function schemaPreserved(client) {
    const { tools } = await client.listTools();
    const { inputSchema } = tools.find(tool => tool.name === 'json_schema_2020_12_tool');
    await call(client, 'json_schema_echo', { schema: inputSchema });
}

const scenarios = {
    initialize: client => client.listTools(),
    'sse-retry': client => call(client, 'test_reconnection'),
    'elicitation-sep1034-client-defaults': client => call(client, 'test_client_elicitation_defaults'),
    tools_call: addNumbers,
    'request-metadata': client => client.listTools(),
    'http-standard-headers': standardHeaders,
    'http-custom-headers': customHeaders,
    'http-invalid-tool-headers': invalidToolHeaders,
    'sep-2322-client-request-state': requestState,
    'json-schema-ref-no-deref': client => client.listTools(),
    'json-schema-2020-12-preservation': schemaPreserved
};

const url = process.argv[2];
const client = await connect(url);
await scenarios[scenario](client, url);
await client.close();
