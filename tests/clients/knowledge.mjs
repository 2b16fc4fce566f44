// SPDX-License-Identifier: Apache-2.0
// What the built-in server docs shows of each tool: a feature for each of the twelve, in an order in which each
// finds what it needs.  The vault's folder Lens is --folder; every run makes documents of its own in it.
import {readFileSync, writeFileSync} from 'node:fs';
import {Peer} from './clients.mjs';
import {eventually, failure, includes, must, same, text} from './check.mjs';

const TOOLS = ['read', 'edit', 'glob', 'grep', 'get_links', 'create_session', 'end_session', 'list_sessions', 'search', 'create',
    'move', 'comment'];
const mine = `run${process.pid}`;
const doc = (name) => `Lens/${mine}-${name}.md`;
const file = (args, name) => `${args.folder}/${mine}-${name}.md`;
const plain = (args, name) => readFileSync(file(args, name), 'utf8').replace(/\{"author":"[^"]*","time":\d+\}@@/g, '');
let session;

async function tools(peer) {
    const {tools: all} = await peer.client.listTools();
    same(all.map((t) => t.name).filter((n) => n.startsWith(peer.prefix) && !/^(sample|session)__/.test(n)), TOOLS.map((t) => peer.name(t)),
        'the tools');
    same(all.find((t) => t.name === peer.name('edit')).inputSchema.required, ['file_path', 'old_string', 'new_string', 'session_id'],
        'what edit requires');
}

async function create_session(peer) {
    [session] = text(await peer.call('create_session', {name: 'Ada', model: 'm'})).split('\n');
    must(/^ses_[\w-]{43}$/.test(session), 'a handle stands on the first line', session);
}

async function create(peer, args) {
    const content = `${mine} says hello\n\nsee [[${mine}-other]]\n`;
    same(text(await peer.call('create', {file_path: doc('made'), content, session_id: session})), `Created ${doc('made')}`, 'the answer');
    same(plain(args, 'made'), `{++${content}++}`, 'the file');
    writeFileSync(file(args, 'other'), 'one\ntwo\nthree\n');
}

async function read(peer) {
    const result = await peer.call('read', {file_path: doc('other'), session_id: session});
    same(text(result), `     1\tone\n     2\ttwo\n     3\tthree\n\n[session: ${session}]`, 'the text');
    same(result.structuredContent, {session_id: session, revision: 1, lines: 3}, 'the structured content');
}

async function edit(peer, args) {
    const change = {file_path: doc('other'), old_string: 'two', new_string: 'zwei'};
    same(text(await peer.call('edit', {...change, session_id: session})),
        `Edited ${doc('other')}: replaced 3 characters with CriticMarkup suggestion for human review.`, 'the answer');
    same(plain(args, 'other'), 'one\n{--two--}{++zwei++}\nthree\n', 'the file');
    const refused = await failure(peer.call('edit', {...change, session_id: 'nonexistent-session-id'}), 'an unknown session');
    must(refused.message.startsWith('Session not found: nonexistent-session-id.'), 'the refusal names it', refused.message);
}

async function comment(peer, args) {
    const remark = {file_path: doc('other'), quote: 'three', comment: 'sure?', session_id: session};
    same(text(await peer.call('comment', remark)), `Commented on ${doc('other')}.`, 'the answer');
    must(plain(args, 'other').endsWith('three{>>sure?<<}\n'), 'the comment stands in the file');
}

async function glob(peer) {
    same(text(await peer.call('glob', {pattern: `${mine}-*`, path: 'Lens'})), `${doc('made')}\n${doc('other')}`, 'the paths');
}

async function grep(peer) {
    const found = await peer.call('grep', {pattern: `^${mine.toUpperCase()} says`, output_mode: 'content', '-i': true, '-A': 1});
    same(text(found), `${doc('made')}:1:${mine} says hello\n${doc('made')}-2-`, 'the lines');
}

async function search(peer) {
    await eventually(async () => text(await peer.call('search', {query: `"${mine} says"`})).startsWith(`${doc('made')}: `), 'the index');
}

async function get_links(peer) {
    await eventually(async () => text(await peer.call('get_links', {file_path: doc('other')})) ===
        `Backlinks (documents linking to this):\n- ${doc('made')}\n\nForward links (documents this links to):\n- (none)`, 'the links');
}

async function move(peer, args) {
    const there = {file_path: doc('other'), new_path: doc('moved')};
    const refused = await failure(peer.call('move', there), 'a document that another links to');
    must(refused.message.includes(doc('made')), 'the refusal names the other', refused.message);
    must(plain(args, 'made').includes(`[[${mine}-other]]`), 'the link is left alone', plain(args, 'made'));
    const change = {file_path: doc('made'), old_string: `see [[${mine}-other]]`, new_string: 'see nothing', session_id: session};
    must(text(await peer.call('edit', change)).startsWith('Edited '), 'the link may be suggested away');
    same(text(await peer.call('move', there)), `Moved ${doc('other')} -> ${doc('moved')} (0 links rewritten)`, 'the answer');
}

// A client that never saw the session but in a text: another transport, the headline of it all.
async function another(_, args) {
    const other = await Peer.connect(args.client, args);
    try {
        const change = {file_path: doc('moved'), old_string: 'one', new_string: 'eins', session_id: session};
        must(text(await other.call('edit', change)).startsWith('Edited '), 'another transport may edit');
        must(plain(args, 'moved').startsWith('{--one--}{++eins++}\n'), 'the file has it', plain(args, 'moved'));
    } finally {
        await other.close();
    }
}

async function list_sessions(peer) {
    includes(text(await peer.call('list_sessions')).split('\n').map((l) => l.split(' ')[0]), [session], 'the sessions');
}

async function end_session(peer) {
    same(text(await peer.call('end_session', {session_id: session})), `Session ended: ${session}`, 'the answer');
    const refused = await failure(peer.call('read', {file_path: doc('moved'), session_id: session}), 'an ended session');
    must(refused.message.startsWith(`Session expired: ${session}.`), 'the refusal says so', refused.message);
}

export const knowledge = {tools, create_session, create, read, edit, comment, glob, grep, search, get_links, move, another, list_sessions,
    end_session};
