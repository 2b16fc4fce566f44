// SPDX-License-Identifier: Apache-2.0
// The tools, resources and prompts of the everything-server, as tables; each is registered with
// every new server instance.  Names, texts and shapes are what the conformance suite looks for.
import { setTimeout as wait } from 'node:timers/promises';
import { completable, fromJsonSchema, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { askingPrompts, askingTools, sealedState } from './asking.mjs';

const STEP_MS = 50;
const WATCHED = 'test://watched-resource';
// One red pixel, and a hundredth of a second of silence.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = (() => {
    const samples = 80;
    const head = Buffer.from('524946460000000057415645666d74201000000001000100401f0000401f0000010008006461746100000000', 'hex');
    head.writeUInt32LE(36 + samples, 4);
    head.writeUInt32LE(samples, 40);
    return Buffer.concat([head, Buffer.alloc(samples, 128)]).toString('base64');
})();

const text = said => ({ type: 'text', text: said });
const says = (...said) => ({ content: said.map(text) });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = (uri, mimeType, said) => ({ type: 'resource', resource: { uri, mimeType, text: said } });

/** Who hears of changes: the live legacy sessions, and the modern listens through `notify`. */
export class Hub {
    notify = undefined;
    /** Whether the SDK itself picks who listens, as it does on a modern pipe. */
    isFiltered = false;
    /** The keys of the latest calls of test_wait that ended by cancellation. */
    cancelled = [];
    #servers = new Map();

    add(server) {
        this.#servers.set(server, new Set());
        server.server.onclose = () => this.remove(server);
    }

    remove(server) {
        this.#servers.delete(server);
    }

    watch(server, uri) {
        this.#servers.get(server)?.add(uri);
    }

    unwatch(server, uri) {
        this.#servers.get(server)?.delete(uri);
    }

    toolsChanged() {
        this.notify?.toolsChanged();
        this.#servers.forEach((_, server) => server.sendToolListChanged());
    }

    promptsChanged() {
        this.notify?.promptsChanged();
        this.#servers.forEach((_, server) => server.sendPromptListChanged());
    }

    resourceUpdated(uri) {
        this.notify?.resourceUpdated(uri);
        this.#servers.forEach((watched, server) => {
            if (this.isFiltered || watched.has(uri)) {
                server.server.sendResourceUpdated({ uri }).catch(() => {});
            }
        });
    }
}

async function reportProgress(_, ctx) {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
        if (progress > 0) {
            await wait(STEP_MS);
        }
        if (progressToken !== undefined) {
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
        }
    }
    return says('The work is done.');
}

/** Says that it has begun, and ends only when it is cancelled. */
async function waitForCancel({ key }, ctx, { hub }) {
    const { signal, _meta } = ctx.mcpReq;
    if (_meta?.progressToken !== undefined) {
        await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken: _meta.progressToken, progress: 1 } });
    }
    await new Promise(resolve => signal.aborted ? resolve() : signal.addEventListener('abort', resolve));
    hub.cancelled = [...hub.cancelled.slice(-99), key];
    return says('Nobody reads this.');
}

function logger(...lines) {
    return async (_, ctx) => {
        for (const [at, line] of lines.entries()) {
            if (at > 0) {
                await wait(STEP_MS);
            }
            await ctx.mcpReq.log('info', line, 'everything');
        }
        return says('The work was logged.');
    };
}

/** Leaves its stream before it answers: the client has to come back for the result. */
async function reconnect(_, ctx) {
    ctx.http?.closeSSE?.();
    await wait(2 * STEP_MS);
    return says('The answer came after the stream had closed.');
}

const schema2020 = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
        address: {
            $anchor: 'addressDef',
            type: 'object',
            properties: { street: { type: 'string' }, city: { type: 'string' } }
        }
    },
    properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' }
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false
};

const plainTools = {
    test_simple_text: {
        description: 'Answers with one text block',
        run: () => says('This is a simple text response for testing.')
    },
    test_image_content: { description: 'Answers with an image', run: () => ({ content: [image] }) },
    test_audio_content: {
        description: 'Answers with a sound',
        run: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] })
    },
    test_embedded_resource: {
        description: 'Answers with a resource',
        run: () => ({ content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')] })
    },
    test_multiple_content_types: {
        description: 'Answers with a text, an image and a resource',
        run: () => ({
            content: [text('Multiple content types test:'), image,
                embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')]
        })
    },
    test_error_handling: {
        description: 'Always fails',
        run: () => ({ isError: true, ...says('This tool intentionally returns an error for testing') })
    },
    test_tool_with_progress: { description: 'Reports progress while it works', run: reportProgress },
    test_wait: {
        description: 'Works until it is cancelled',
        inputSchema: z.object({ key: z.string().describe('What to call this call') }),
        run: waitForCancel
    },
    test_cancellations: {
        description: 'Names the calls of test_wait that were cancelled',
        run: (_, ctx, { hub }) => says(...hub.cancelled)
    },
    test_tool_with_logging: {
        description: 'Logs while it works',
        run: logger('Tool execution started', 'Tool processing data', 'Tool execution completed')
    },
    test_logging_tool: { description: 'Logs for those who asked for it', run: logger('Tool running', 'Tool done') },
    test_reconnection: { description: 'Closes its stream before it answers', run: reconnect },
    test_trigger_tool_change: {
        description: 'Says that the list of tools changed',
        run: (_, ctx, { hub }) => (hub.toolsChanged(), says('The tools changed.'))
    },
    test_trigger_prompt_change: {
        description: 'Says that the list of prompts changed',
        run: (_, ctx, { hub }) => (hub.promptsChanged(), says('The prompts changed.'))
    },
    test_trigger_resource_update: {
        description: `Says that ${WATCHED} was updated`,
        run: (_, ctx, { hub }) => (hub.resourceUpdated(WATCHED), says('The resource was updated.'))
    },
    json_schema_2020_12_tool: {
        description: 'Tool with JSON Schema 2020-12 features',
        inputSchema: fromJsonSchema(schema2020),
        run: args => says(`The arguments were ${JSON.stringify(args)}.`)
    },
    test_x_mcp_header: {
        description: 'Has an argument that travels in a header too',
        inputSchema: fromJsonSchema({
            type: 'object',
            properties: { region: { type: 'string', description: 'where', 'x-mcp-header': 'Region' } }
        }),
        run: ({ region }) => says(`The region is ${region ?? 'not given'}.`)
    }
};

const resources = {
    'test://static-text': {
        description: 'A text that stays the same',
        mimeType: 'text/plain',
        content: { text: 'This is the content of the static text resource.' }
    },
    'test://static-binary': { description: 'An image that stays the same', mimeType: 'image/png', content: { blob: PNG } },
    [WATCHED]: { description: 'A text that can be watched', mimeType: 'text/plain', content: { text: 'Watched resource content' } }
};

const userSays = content => ({ role: 'user', content });

const plainPrompts = {
    test_simple_prompt: {
        description: 'A prompt without arguments',
        run: () => ({ messages: [userSays(text('This is a simple prompt for testing.'))] })
    },
    test_prompt_with_arguments: {
        description: 'A prompt with two arguments',
        argsSchema: z.object({
            arg1: completable(z.string().describe('First test argument'), start =>
                ['paris', 'park', 'party'].filter(word => word.startsWith(start))),
            arg2: z.string().describe('Second test argument')
        }),
        run: ({ arg1, arg2 }) => ({ messages: [userSays(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))] })
    },
    test_prompt_with_embedded_resource: {
        description: 'A prompt that carries a resource',
        argsSchema: z.object({ resourceUri: z.string().describe('URI of the resource to embed') }),
        run: ({ resourceUri }) => ({
            messages: [userSays(embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
                userSays(text('Please process the embedded resource above.'))]
        })
    },
    test_prompt_with_image: {
        description: 'A prompt that carries an image',
        run: () => ({ messages: [userSays(image), userSays(text('Please analyze the image above.'))] })
    }
};

/** Callbacks get (args, ctx) when they have a schema and (ctx) when they have none; ours always get both. */
function caller(entry, place, schema) {
    return schema ? (args, ctx) => entry.run(args, ctx, place) : ctx => entry.run({}, ctx, place);
}

function registerResources(server, hub) {
    for (const [uri, { description, mimeType, content }] of Object.entries(resources)) {
        server.registerResource(uri.slice('test://'.length), uri, { description, mimeType }, () =>
            ({ contents: [{ uri, mimeType, ...content }] }));
    }
    const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
    server.registerResource('template', template, { description: 'Data by id', mimeType: 'application/json' }, (uri, { id }) => ({
        contents: [{
            uri: uri.href, mimeType: 'application/json',
            text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
        }]
    }));
    server.server.setRequestHandler('resources/subscribe', ({ params }) => (hub.watch(server, params.uri), {}));
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (hub.unwatch(server, params.uri), {}));
}

/** A fresh instance with everything registered; `hub` hears of the changes that its tools cause. */
export function newServer(hub) {
    const server = new McpServer({ name: 'everything', version: '1.0.0' }, {
        instructions: 'Call what you like: everything here is a test.',
        capabilities: {
            tools: { listChanged: true }, prompts: { listChanged: true },
            resources: { subscribe: true, listChanged: true }, logging: {}, completions: {}
        },
        requestState: { verify: sealedState.verify }
    });
    const place = { hub, server };
    for (const [name, entry] of Object.entries({ ...plainTools, ...askingTools })) {
        const { description, inputSchema } = entry;
        server.registerTool(name, { description, inputSchema }, caller(entry, place, inputSchema));
    }
    for (const [name, entry] of Object.entries({ ...plainPrompts, ...askingPrompts })) {
        const { description, argsSchema } = entry;
        server.registerPrompt(name, { description, argsSchema }, caller(entry, place, argsSchema));
    }
    registerResources(server, hub);
    return server;
}
