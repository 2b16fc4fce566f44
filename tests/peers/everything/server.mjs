// SPDX-License-Identifier: Apache-2.0
// The everything-server: all that the official conformance suite asks of a server, in both eras.
//
//   server.mjs [--port N] [--era legacy|modern|both]     Streamable HTTP on 127.0.0.1, path /mcp
//   server.mjs --stdio [--era legacy|modern|both]        one connection on stdin and stdout
//
// Over HTTP it prints one line, {"ready":true,"url":...}, when it listens.  Legacy sessions are
// stateful and resumable (events.mjs); modern requests are served one by one.  Era "legacy" behaves
// like a server that never heard of 2026-07-28, era "modern" like one that forgot everything before.
// The fixtures are in fixtures.mjs, the ones that ask the client something in asking.mjs.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { parseArgs } from 'node:util';
import {
    createMcpHandler, hostHeaderValidationResponse, isInitializeRequest, isLegacyRequest, localhostAllowedHostnames,
    localhostAllowedOrigins, originValidationResponse, WebStandardStreamableHTTPServerTransport
} from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { EventStore } from './events.mjs';
import { Hub, newServer } from './fixtures.mjs';

const RETRY_MS = 500;
const PATH = '/mcp';
const JSON_RPC_SERVER_ERROR = -32000;
const JSON_RPC_NO_SESSION = -32001;

function refusal(status, code, message) {
    return Response.json({ jsonrpc: '2.0', error: { code, message } }, { status });
}

/** The stateful sessions of the legacy era: one transport and one server each. */
class LegacySessions {
    #hub;
    #transports = new Map();

    constructor(hub) {
        this.#hub = hub;
    }

    async #open(request, body) {
        const server = newServer(this.#hub);
        const transport = new WebStandardStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            eventStore: new EventStore(),
            retryInterval: RETRY_MS,
            onsessioninitialized: id => {
                this.#transports.set(id, transport);
                this.#hub.add(server);
            },
            onsessionclosed: id => {
                this.#transports.delete(id);
                this.#hub.remove(server);
            }
        });
        await server.connect(transport);
        return transport.handleRequest(request, { parsedBody: body });
    }

    async fetch(request) {
        const id = request.headers.get('mcp-session-id');
        if (id !== null) {
            const transport = this.#transports.get(id);
            return transport ? transport.handleRequest(request) : refusal(404, JSON_RPC_NO_SESSION, 'Session not found');
        }
        const body = request.method === 'POST' ? await request.clone().json().catch(() => undefined) : undefined;
        if (!isInitializeRequest(body)) {
            return refusal(400, JSON_RPC_SERVER_ERROR, 'Bad Request: Server not initialized');
        }
        return this.#open(request, body);
    }
}

/** Which of the two serves a request, by era; the checks against DNS rebinding come first. */
function frontDoor(era) {
    const hub = new Hub();
    const legacy = new LegacySessions(hub);
    const modern = createMcpHandler(() => newServer(hub), { legacy: 'reject' });
    hub.notify = modern.notify;
    return async request => {
        const refused = hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
            originValidationResponse(request, localhostAllowedOrigins());
        if (refused) {
            return refused;
        }
        if (new URL(request.url).pathname !== PATH) {
            return new Response('not here', { status: 404 });
        }
        const toLegacy = era === 'legacy' || (era === 'both' && await isLegacyRequest(request));
        return toLegacy ? legacy.fetch(request) : modern.fetch(request);
    };
}

function listen(era, port) {
    const server = http.createServer(toNodeHandler({ fetch: frontDoor(era) }));
    server.keepAliveTimeout = 60_000;
    server.listen(port, '127.0.0.1', () => {
        console.log(JSON.stringify({ ready: true, url: `http://127.0.0.1:${server.address().port}${PATH}` }));
    });
}

async function talk(era) {
    const hub = new Hub();
    hub.isFiltered = era === 'modern';
    const factory = () => {
        const server = newServer(hub);
        hub.add(server);
        return server;
    };
    if (era === 'legacy') {
        await factory().connect(new StdioServerTransport());
    } else {
        serveStdio(factory, { legacy: era === 'modern' ? 'reject' : 'serve' });
    }
}

const { values: options } = parseArgs({
    options: {
        port: { type: 'string', default: '0' },
        era: { type: 'string', default: 'both' },
        stdio: { type: 'boolean', default: false }
    }
});
if (!['legacy', 'modern', 'both'].includes(options.era)) {
    console.error(`--era is legacy, modern or both, not ${options.era}`);
    process.exit(2);
}
if (options.stdio) {
    await talk(options.era);
} else {
    listen(options.era, Number(options.port));
}
