// SPDX-License-Identifier: Apache-2.0
// What a recording of tests/peers/answers.py shows that stands in for its server (tests/e2e/test_replay_serve.py): the
// recorded calls are look tea, look coffee, fail, refuse and twice keep.
import {failure, must, same, text} from './check.mjs';

async function tools(peer) {
    const {tools: all} = await peer.client.listTools();
    const own = all.map((t) => t.name).filter((n) => n.startsWith(peer.prefix) && !n.startsWith('session__'));
    same(own.sort(), ['fail', 'keep', 'look', 'refuse'].map((n) => peer.name(n)), 'the tools');
}

async function answers(peer) {
    for (const item of ['coffee', 'tea']) {
        const result = await peer.call('look', {item});
        same(JSON.parse(text(result)), {item, price: item.length, asked: ['item']}, `the answer for ${item}`);
    }
    const failed = await peer.call('fail', {});
    same([failed.isError, failed.content[0].text], [true, 'it failed as always'], 'a result with isError');
    const refused = await failure(peer.call('refuse', {a: 1}), 'a recorded error');
    must(refused.message.includes('refused as always'), 'it has its message', refused.message);
    same([refused.code, refused.data], [-32050, {why: [1, 2]}], 'its code and data');
}

async function order(peer) {
    same([text(await peer.call('keep', {a: 1})), text(await peer.call('keep', {a: 1}))], ['1', '2'], 'equal calls in their order');
}

async function unknown(peer) {
    const other = await failure(peer.call('look', {item: 'milk'}), 'a call that is not on record');
    must(/no answer for this call of look: 2 on record/.test(other.message) && other.message.includes('{"item":"tea"}'),
        'the error says what is on record', other.message);
}

export const recording = {tools, answers, order, unknown};
