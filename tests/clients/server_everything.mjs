// SPDX-License-Identifier: Apache-2.0
// What @modelcontextprotocol/server-everything (legacy, SDK 1.x) shows of each feature.
import {randomUUID} from 'node:crypto';
import {cancelled, eventually, failure, includes, must, progressed, same, text} from './check.mjs';

const ROOT = {uri: 'file:///tmp/a-root', name: 'a root'};
const DOCUMENT = 'demo://resource/static/document/architecture.md';
const SAMPLE = {role: 'assistant', content: {type: 'text', text: 'sampled: blue'}, model: 'drive', stopReason: 'endTurn'};

async function tools(peer) {
    const names = (await peer.client.listTools()).tools.map((t) => t.name);
    includes(names, ['echo', 'get-sum', 'get-structured-content', 'get-tiny-image'].map((n) => peer.name(n)), 'the tools');
    same(text(await peer.call('echo', {message: 'grüße \u{1F600}'})), 'Echo: grüße \u{1F600}', 'the echo');
    same(text(await peer.call('get-sum', {a: 2, b: 40})), 'The sum of 2 and 40 is 42.', 'the sum');
    const {structuredContent} = await peer.call('get-structured-content', {location: 'Chicago'});
    same(Object.keys(structuredContent).sort(), ['conditions', 'humidity', 'temperature'], 'structuredContent');
    const blocks = (await peer.call('get-tiny-image')).content.map((b) => b.type);
    same(blocks, ['text', 'image', 'text'], 'the blocks of an image result');
    must(/not found|unknown/i.test((await failure(peer.call('no-such-tool'), 'an unknown tool')).message), 'an unknown tool says so');
}

// Tools that the server registers only for clients that can be asked.
async function conditional(peer) {
    const names = (await peer.client.listTools()).tools.map((t) => t.name);
    includes(names, ['trigger-sampling-request', 'trigger-elicitation-request', 'get-roots-list'].map((n) => peer.name(n)), 'the tools');
}

// Holdfast's own: a modern client names its session by an argument that every tool has, and is told the name.
async function handles(peer) {
    const all = (await peer.client.listTools()).tools.filter((t) => t.name.startsWith(peer.prefix));
    must(all.length && all.every((t) => t.inputSchema.properties?.session_id), 'every tool takes a session_id', all.map((t) => t.name));
    const first = await peer.call('get-structured-content', {location: 'Chicago'});
    const handle = first._meta?.['holdfast/session'];
    must(/^ses_/.test(handle), 'the result names its session', first);
    same(first.content.at(-1).text, `[session: ${handle}]`, 'the last block');
    const began = await peer.call('toggle-simulated-logging', {session_id: handle});
    must(text(began).startsWith('Started'), 'the session has no logging yet', began);
    const ended = await peer.call('toggle-simulated-logging', {session_id: handle});
    must(text(ended).startsWith('Stopped'), 'the same process serves the session', ended);
    must(text(await peer.call('toggle-simulated-logging')).startsWith('Started'), 'a call without a session has its own process');
}

async function prompts(peer) {
    const names = (await peer.client.listPrompts()).prompts.map((p) => p.name);
    includes(names, ['simple-prompt', 'args-prompt', 'completable-prompt'].map((n) => peer.name(n)), 'the prompts');
    const got = await peer.client.getPrompt({name: peer.name('args-prompt'), arguments: {city: 'Paris', state: 'TX'}});
    same(got.messages[0].content.text, "What's weather in Paris, TX?", 'the prompt');
}

async function resources(peer) {
    const {resources: all} = await peer.client.listResources();
    includes(all.map((r) => r.uri), [DOCUMENT], 'the resources');
    const {contents} = await peer.client.readResource({uri: DOCUMENT});
    same([contents[0].uri, contents[0].mimeType], [DOCUMENT, 'text/markdown'], 'the document');
    must(contents[0].text.startsWith('#'), 'the document is markdown', contents[0].text);
    const error = await failure(peer.client.readResource({uri: 'demo://nowhere'}), 'an unknown resource');
    must([-32002, -32602].includes(error.code), 'an unknown resource has its code', error.code);
}

async function templates(peer) {
    const {resourceTemplates: all} = await peer.client.listResourceTemplates();
    includes(all.map((r) => r.uriTemplate), ['demo://resource/dynamic/text/{resourceId}'], 'the templates');
    const {contents} = await peer.client.readResource({uri: 'demo://resource/dynamic/text/7'});
    must(contents[0].text.startsWith('Resource 7:'), 'the text made of a template', contents);
}

async function completion(peer) {
    const prompt = {type: 'ref/prompt', name: peer.name('completable-prompt')};
    const first = await peer.client.complete({ref: prompt, argument: {name: 'department', value: 'S'}});
    same(first.completion.values, ['Sales', 'Support'], 'the departments');
    const second = await peer.client.complete({ref: prompt, argument: {name: 'name', value: 'A'},
        context: {arguments: {department: 'Engineering'}}});
    same(second.completion.values, ['Alice'], 'the names of a department');
    const third = await peer.client.complete({ref: {type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}'},
        argument: {name: 'resourceId', value: '4'}});
    same(third.completion.values, ['4'], 'the ids of a template');
}

async function progress(peer) {
    const result = await progressed(peer, 'trigger-long-running-operation', {duration: 0.09, steps: 3}, [[1, 3], [2, 3], [3, 3]]);
    must(text(result).startsWith('Long running operation completed'), 'the result after progress', result);
}

// The server does not look at cancellation: what shows is that the client is free at once and goes on.
async function cancellation(peer) {
    const {ms} = await cancelled(peer, 'trigger-long-running-operation', {duration: 6, steps: 60});
    must(ms < 4000, 'a cancelled call ends before its time', ms);
    same(text(await peer.call('echo', {message: 'still here'})), 'Echo: still here', 'the echo after a cancellation');
}

async function elicitation(peer) {
    const ada = {action: 'accept', content: {name: 'Ada', check: true, integer: 7}};
    const {result, asked} = await peer.asking('elicitation/create', ada, 'trigger-elicitation-request');
    same(asked.message, 'Please provide inputs for the following fields:', 'the message');
    same(Object.keys(asked.requestedSchema.properties).length, 13, 'the fields asked for');
    must(text(result).includes('- Name: Ada\n- Agreed to terms: true'), 'the answers are in the result', result);
    const second = await peer.asking('elicitation/create', {action: 'decline'}, 'trigger-elicitation-request');
    must(text(second.result).includes('declined'), 'a refusal is in the result', second.result);
}

async function elicitationUrl(peer) {
    const url = 'https://example.com/consent';
    const {result, asked} = await peer.asking('elicitation/create', {action: 'accept'}, 'trigger-url-elicitation', {url});
    same([asked.mode, asked.url], ['url', url], 'what was asked');
    must(text(result).includes('User completed') && text(result).includes(asked.elicitationId), 'the result', result);
    const error = await failure(peer.call('trigger-url-elicitation', {url, errorPath: true}), 'a call that needs a URL first');
    same([error.code, error.data?.elicitations?.[0]?.url], [-32042, 'https://modelcontextprotocol.io'], 'the error that names a URL');
}

async function sampling(peer) {
    const {result, asked} = await peer.asking('sampling/createMessage', SAMPLE, 'trigger-sampling-request', {prompt: 'which colour?', maxTokens: 17});
    same([asked.maxTokens, asked.systemPrompt, asked.temperature], [17, 'You are a helpful test server.', 0.7], 'what was asked');
    must(asked.messages[0].content.text.endsWith('which colour?'), 'the prompt', asked.messages);
    must(text(result).includes('sampled: blue'), 'the sample is in the result', result);
}

// The server asks of its own accord after the handshake, or when the tool needs it; once per session.
async function roots(peer) {
    must(text(await peer.call('get-roots-list')).includes(`a root\n   URI: ${ROOT.uri}`), 'the root is in the result');
    must(peer.asked.some((a) => a.method === 'roots/list'), 'the roots were asked for');
}

async function subscriptions(peer) {
    peer.advertised('resources.subscribe');
    const since = peer.mark();
    await peer.client.subscribeResource({uri: DOCUMENT});
    must(text(await peer.call('toggle-subscriber-updates')).startsWith('Started'), 'updates begin');
    await peer.notice('notifications/resources/updated', (p) => p.uri === DOCUMENT, since);
    must(text(await peer.call('toggle-subscriber-updates')).startsWith('Stopped'), 'updates end in the same session');
    await peer.client.unsubscribeResource({uri: DOCUMENT});
    const after = peer.mark();
    await peer.call('toggle-subscriber-updates');
    await peer.call('toggle-subscriber-updates');
    same(peer.notices.slice(after).filter((n) => n.method.endsWith('/updated')), [], 'updates after unsubscribing');
}

// The modern way to subscribe; the server itself is legacy.
async function listen(peer) {
    const since = peer.mark();
    const subscription = await peer.client.listen({resourceSubscriptions: [DOCUMENT]}, {timeout: peer.noticeMs});
    same(subscription.honoredFilter.resourceSubscriptions, [DOCUMENT], 'what is listened to');
    await peer.call('toggle-subscriber-updates');
    await peer.notice('notifications/resources/updated', (p) => p.uri === DOCUMENT, since);
    await peer.call('toggle-subscriber-updates');
    await subscription.close();
    same(await subscription.closed, 'local', 'how listening ended');
}

async function listChanged(peer) {
    peer.advertised('resources.listChanged');
    const subscription = peer.isModern && await peer.client.listen({resourcesListChanged: true}, {timeout: peer.noticeMs});
    const since = peer.mark();
    const name = `made-${randomUUID()}.gz`; // the server keeps one resource of a name for all its sessions
    const made = await peer.call('gzip-file-as-resource', {name, data: 'data:text/plain,hello', outputType: 'resourceLink'});
    const {uri} = made.content.find((b) => b.type === 'resource_link');
    await peer.notice('notifications/resources/list_changed', undefined, since);
    const listed = async () => (await peer.client.listResources()).resources.some((r) => r.uri === uri);
    await eventually(listed, 'the new resource to be listed');
    const {contents} = await peer.client.readResource({uri});
    must(contents[0].blob?.length > 10, 'the new resource can be read', contents);
    if (subscription) await subscription.close();
}

async function logging(peer) {
    peer.advertised('logging');
    await peer.client.setLoggingLevel('debug');
    const since = peer.mark();
    must(text(await peer.call('toggle-simulated-logging')).startsWith('Started'), 'logging begins');
    await peer.notice('notifications/message', (p) => /level[- ]message/.test(String(p.data)), since);
    must(text(await peer.call('toggle-simulated-logging')).startsWith('Stopped'), 'logging ends in the same session');
    await peer.client.setLoggingLevel('emergency');
    const after = peer.mark();
    await peer.client.subscribeResource({uri: DOCUMENT});
    await peer.client.unsubscribeResource({uri: DOCUMENT});
    same(peer.notices.slice(after).filter((n) => n.method === 'notifications/message'), [], 'messages below the level');
}

export const everything = {
    always: () => ({'roots/list': {roots: [ROOT]}}),
    tools, conditional, handles, prompts, resources, templates, completion, progress, cancellation, elicitation, 'elicitation-url': elicitationUrl,
    sampling, roots, subscriptions, listen, list_changed: listChanged, logging,
};
