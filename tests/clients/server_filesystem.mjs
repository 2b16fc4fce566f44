// SPDX-License-Identifier: Apache-2.0
// What @modelcontextprotocol/server-filesystem (legacy, SDK 1.x, stdio) shows of each feature.  The folder
// that it was started with is named by --folder and holds a folder "root".
import {eventually, failure, includes, must, same, text} from './check.mjs';

const root = ({folder}) => `${folder}/root`;

async function tools(peer, args) {
    const folder = root(args);
    const {tools: all} = await peer.client.listTools();
    includes(all.map((t) => t.name), ['read_text_file', 'write_file', 'list_directory'].map((n) => peer.name(n)), 'the tools');
    const path = `${folder}/written by ${peer.prefix || 'its own name'} ${process.pid}.txt`;
    must(text(await peer.call('write_file', {path, content: 'one\ntwo'})).includes('Successfully wrote'), 'the file is written');
    const read = await peer.call('read_text_file', {path, tail: 1});
    same([read.content[0].text, read.structuredContent], ['two', {content: 'two'}], 'the tail');
    must(text(await peer.call('list_directory', {path: folder})).includes(`[FILE] ${path.split('/').pop()}`), 'the file is listed');
    const error = await failure(peer.call('read_text_file', {path: '/etc/passwd'}), 'reading outside of the folder');
    must(/denied|outside/i.test(error.message), 'a path outside is refused by the server', error.message);
}

// The server asks for roots once its handshake is over, tied to no call, and takes them as its folders.
async function roots(peer, args) {
    const folders = async () => text(await peer.call('list_allowed_directories')).split('\n').slice(1).join();
    await eventually(async () => (await folders()) === root(args), 'the folders to be the roots');
    same(peer.asked.map((a) => a.method), ['roots/list'], 'what was asked');
    const error = await failure(peer.call('list_directory', {path: args.folder}), 'listing outside of the roots');
    must(error.message.includes('denied'), 'the roots hold', error.message);
}

export const filesystem = {
    always: (args) => ({'roots/list': {roots: [{uri: `file://${root(args)}`, name: 'only this'}]}}),
    tools, roots,
};
