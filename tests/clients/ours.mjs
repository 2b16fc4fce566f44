// SPDX-License-Identifier: Apache-2.0
// What our own everything-server (tests/peers/everything, either era) shows of each feature.  A tool that
// asks something is the same for both: legacy clients get requests, modern ones input_required results,
// and the official clients hand both to the same handlers.
import {randomUUID} from 'node:crypto';
import {cancelled, eventually, failure, includes, must, progressed, same, text} from './check.mjs';

const ROOT = {uri: 'file:///tmp/a-root', name: 'a root'};
const WATCHED = 'test://watched-resource';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const sample = (said) => ({role: 'assistant', content: {type: 'text', text: said}, model: 'drive', stopReason: 'endTurn'});

async function tools(peer) {
    const {tools: all} = await peer.client.listTools();
    const {inputSchema} = all.find((t) => t.name === peer.name('json_schema_2020_12_tool')) ?? {inputSchema: {}};
    same(inputSchema.$defs?.address?.$anchor, 'addressDef', 'the schema of a tool');
    same(text(await peer.call('test_simple_text')), 'This is a simple text response for testing.', 'the text');
    const {content} = await peer.call('test_multiple_content_types');
    same(content.map((b) => b.type), ['text', 'image', 'resource'], 'the blocks');
    same((await peer.call('test_audio_content')).content[0].mimeType, 'audio/wav', 'the sound');
    same(text(await peer.call('test_x_mcp_header', {region: 'süd'})), 'The region is süd.', 'the argument that is a header too');
    must((await peer.call('test_error_handling')).isError, 'a tool that fails says so');
    await failure(peer.call('no_such_tool'), 'an unknown tool');
}

async function prompts(peer) {
    const names = (await peer.client.listPrompts()).prompts.map((p) => p.name);
    includes(names, ['test_simple_prompt', 'test_prompt_with_arguments'].map((n) => peer.name(n)), 'the prompts');
    const got = await peer.client.getPrompt({name: peer.name('test_prompt_with_arguments'), arguments: {arg1: 'ä', arg2: '2'}});
    same(got.messages[0].content.text, "Prompt with arguments: arg1='ä', arg2='2'", 'the prompt');
    const carried = await peer.client.getPrompt({name: peer.name('test_prompt_with_embedded_resource'), arguments: {resourceUri: 'test://x'}});
    same(carried.messages[0].content.resource.uri, 'test://x', 'the resource in a prompt');
}

async function resources(peer) {
    const uris = (await peer.client.listResources()).resources.map((r) => r.uri);
    includes(uris, ['test://static-text', 'test://static-binary', WATCHED], 'the resources');
    const {contents} = await peer.client.readResource({uri: 'test://static-text'});
    same(contents[0].text, 'This is the content of the static text resource.', 'the text');
    const binary = await peer.client.readResource({uri: 'test://static-binary'});
    must(binary.contents[0].blob.startsWith('iVBORw0KGgo'), 'the image', binary);
    const error = await failure(peer.client.readResource({uri: 'test://nowhere'}), 'an unknown resource');
    must([-32002, -32602].includes(error.code), 'an unknown resource has its code', error.code);
}

async function templates(peer) {
    const all = (await peer.client.listResourceTemplates()).resourceTemplates.map((r) => r.uriTemplate);
    includes(all, ['test://template/{id}/data'], 'the templates');
    const {contents} = await peer.client.readResource({uri: 'test://template/7/data'});
    same(JSON.parse(contents[0].text).id, '7', 'the resource made of a template');
}

async function completion(peer) {
    const ref = {type: 'ref/prompt', name: peer.name('test_prompt_with_arguments')};
    const {completion: got} = await peer.client.complete({ref, argument: {name: 'arg1', value: 'par'}});
    same(got.values, ['paris', 'park', 'party'], 'the completions');
}

async function progress(peer) {
    same(text(await progressed(peer, 'test_tool_with_progress', {}, [[0, 100], [50, 100], [100, 100]])), 'The work is done.', 'the result');
}

// The server drops its own stream before it answers; whoever called it comes back for the answer.
async function reconnection(peer) {
    same(text(await peer.call('test_reconnection')), 'The answer came after the stream had closed.', 'the result');
}

// The stream to this client is lost after its first message; the client comes back and misses nothing.
async function resumption(peer) {
    peer.line.cut = true;
    const result = await progressed(peer, 'test_tool_with_progress', {}, [[0, 100], [50, 100], [100, 100]]);
    same([text(result), peer.line.cut], ['The work is done.', false], 'the result, on a stream that was cut');
}

// The server names the calls that were cancelled while it waited in them.
async function cancellation(peer) {
    const key = randomUUID();
    await cancelled(peer, 'test_wait', {key});
    await eventually(async () => text(await peer.call('test_cancellations')).includes(key), 'the server to be told of the cancellation');
}

async function elicitation(peer) {
    const answer = {action: 'accept', content: {username: 'ada', email: 'ada@example.com'}};
    const {result, asked} = await peer.asking('elicitation/create', answer, 'test_elicitation', {message: 'Who are you?'});
    same([asked.message, Object.keys(asked.requestedSchema.properties)], ['Who are you?', ['username', 'email']], 'what was asked');
    same(text(result), `User response: action=accept, content=${JSON.stringify(answer.content)}`, 'the result');
    const second = await peer.asking('elicitation/create', {action: 'decline'}, 'test_elicitation', {message: 'And now?'});
    same(text(second.result), 'User response: action=decline, content={}', 'the result of a refusal');
}

async function sampling(peer) {
    const {result, asked} = await peer.asking('sampling/createMessage', sample('blue'), 'test_sampling', {prompt: 'which colour?'});
    const said = [asked.messages[0].content].flat()[0].text;
    same([said, asked.maxTokens], ['which colour?', 100], 'what was asked');
    same(text(result), 'LLM response: blue', 'the result');
}

async function roots(peer) {
    same(text(await peer.call('test_input_required_result_list_roots')), `The roots are ${ROOT.uri}.`, 'the result');
}

// Calls that need several answers: after one another, at once, with a state of the server's, and a prompt.
async function mrtr(peer) {
    peer.answers = {
        'elicitation/create': ({message}) => ({action: 'accept', content: message.includes('color') ? {color: 'blue'} :
            message.includes('context') ? {context: 'this one'} : message.includes('confirm') ? {ok: true} : {name: 'Ada'}}),
        'sampling/createMessage': sample('Good day,'),
    };
    try {
        same(text(await peer.call('test_input_required_result_multi_round')), 'Ada likes blue.', 'the result of two rounds');
        same(text(await peer.call('test_input_required_result_request_state')), 'state-ok', 'the result with a state');
        same(text(await peer.call('test_input_required_result_multiple_inputs')), `Good day, Ada, at ${ROOT.uri}.`, 'the result of three answers');
        const prompt = await peer.client.getPrompt({name: peer.name('test_input_required_result_prompt')});
        same(prompt.messages[0].content.text, 'Use this context: this one', 'the prompt');
    } finally {
        peer.answers = {};
    }
}

async function subscriptions(peer) {
    peer.advertised('resources.subscribe');
    const since = peer.mark();
    await peer.client.subscribeResource({uri: WATCHED});
    await peer.call('test_trigger_resource_update');
    await peer.notice('notifications/resources/updated', (p) => p.uri === WATCHED, since);
    await peer.client.unsubscribeResource({uri: WATCHED});
    const after = peer.mark();
    await peer.call('test_trigger_resource_update');
    await changedTools(peer);
    same(peer.notices.slice(after).filter((n) => n.method.endsWith('/updated')), [], 'updates after unsubscribing');
}

async function changedTools(peer) {
    const since = peer.mark();
    await peer.call('test_trigger_tool_change');
    await peer.notice('notifications/tools/list_changed', undefined, since);
}

async function listen(peer) {
    const subscription = await peer.client.listen({toolsListChanged: true, resourceSubscriptions: [WATCHED]}, {timeout: peer.noticeMs});
    same(subscription.honoredFilter, {toolsListChanged: true, resourceSubscriptions: [WATCHED]}, 'what is listened to');
    const since = peer.mark();
    await peer.call('test_trigger_resource_update');
    await peer.notice('notifications/resources/updated', (p) => p.uri === WATCHED, since);
    await peer.call('test_trigger_prompt_change');
    await changedTools(peer);
    same(peer.notices.slice(since).filter((n) => n.method.startsWith('notifications/prompts')), [], 'what was not asked for');
    await subscription.close();
    same(await subscription.closed, 'local', 'how listening ended');
}

async function listChanged(peer) {
    peer.advertised('tools.listChanged');
    const subscription = peer.isModern && await peer.client.listen({toolsListChanged: true}, {timeout: peer.noticeMs});
    await changedTools(peer);
    if (subscription) await subscription.close();
}

function lines(peer, since) {
    return peer.notices.slice(since).filter((n) => n.method === 'notifications/message').map((n) => n.params.data);
}

async function logging(peer) {
    peer.advertised('logging');
    if (peer.isModern) return loggingOfOneCall(peer);
    await peer.client.setLoggingLevel('info');
    const since = peer.mark();
    await peer.call('test_tool_with_logging');
    await peer.notice('notifications/message', (p) => p.data === 'Tool execution completed', since);
    includes(lines(peer, since), ['Tool execution started', 'Tool processing data'], 'the lines');
    await peer.client.setLoggingLevel('error');
    const after = peer.mark();
    await peer.call('test_tool_with_logging');
    return same(lines(peer, after), [], 'what is below the level');
}

// A modern request says its level itself; one that does not gets no lines.
async function loggingOfOneCall(peer) {
    const since = peer.mark();
    await peer.call('test_logging_tool');
    same(lines(peer, since), [], 'lines nobody asked for');
    await peer.call('test_logging_tool', {}, {}, {[LOG_LEVEL]: 'info'});
    await peer.notice('notifications/message', (p) => p.data === 'Tool running' && p.level === 'info', since);
}

export const ours = {
    always: () => ({'roots/list': {roots: [ROOT]}}),
    tools, prompts, resources, templates, completion, progress, reconnection, resumption, cancellation,
    elicitation, sampling, roots, mrtr, subscriptions, listen,
    list_changed: listChanged, logging,
};
