// SPDX-License-Identifier: Apache-2.0
// herd.mjs --url URL --clients N [--at-once M]: many SDK 1.x clients, one transport and session each.
//
// Each initializes and calls `counter`.  Then lines on stdin, between which the parent may have replaced
// the server: "again" makes all of them call with the session they have; a client that is told that its
// session is gone (404) starts over once, as the specification says.  "tell" makes the first one cause a
// tools/list_changed, and waits until everybody has heard it on the stream that its SDK keeps open.
// "stream" begins a long call in each, and is answered once all of them have had progress; "end" waits until
// these calls have come to an end, whatever end.
// After each one line of JSON: {went_on, started_over, lost, failures, failed: [why]}, where `lost` counts
// results that tell of lost state; or {told}, {streaming}, {results, errors: {why: how often}, open}.
import {createInterface} from 'node:readline';
import {parseArgs} from 'node:util';
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {ToolListChangedNotificationSchema} from '@modelcontextprotocol/sdk/types.js';

const {values: args} = parseArgs({options: {
    url: {type: 'string'}, clients: {type: 'string', default: '100'}, 'at-once': {type: 'string', default: '32'},
}});
const FAILURES_SHOWN = 5;
const TELL_MS = 30000;
const END_MS = 30000;

class One {
    async start() {
        // The standalone stream is tried again in the background when it breaks; not for ever.
        const reconnectionOptions = {initialReconnectionDelay: 500, maxReconnectionDelay: 2000, reconnectionDelayGrowFactor: 2, maxRetries: 30};
        this.client = new Client({name: 'herd', version: '1'}, {capabilities: {}});
        this.transport = new StreamableHTTPClientTransport(new URL(args.url), {reconnectionOptions});
        this.client.onerror = () => {};
        this.heard = 0;
        this.client.setNotificationHandler(ToolListChangedNotificationSchema, () => { this.heard++; });
        await this.client.connect(this.transport);
    }

    async call() {
        const result = await this.client.callTool({name: 'counter', arguments: {}});
        if (result.isError || !(Number(result.content[0].text) >= 1)) throw new Error(`not a count: ${JSON.stringify(result)}`);
        return result._meta?.['holdfast/state-lost'] !== undefined;
    }

    // Whether the client could go on with what it had, and whether it was told of lost state.
    async round(isFirst) {
        if (isFirst) await this.start();
        const session = this.transport.sessionId;
        try {
            const lost = await this.call();
            return {wentOn: !isFirst && this.transport.sessionId === session, lost};
        } catch (error) {
            if (isFirst || error.code !== 404) throw error;
            await this.client.close();
            await this.start();
            return {startedOver: true, lost: await this.call()};
        }
    }
}

async function round(herd, isFirst) {
    const told = {went_on: 0, started_over: 0, lost: 0};
    const failed = [];
    let next = 0;
    const worker = async () => {
        while (next < herd.length) {
            const at = next++;
            try {
                const {wentOn, startedOver, lost} = await herd[at].round(isFirst);
                told.went_on += Number(Boolean(wentOn));
                told.started_over += Number(Boolean(startedOver));
                told.lost += Number(lost);
            } catch (error) {
                failed.push(`client ${at}: ${error.message} ${error.cause?.message ?? ''}`);
            }
        }
    };
    await Promise.all(Array.from({length: Number(args['at-once'])}, worker));
    return {...told, failures: failed.length, failed: failed.slice(0, FAILURES_SHOWN)};
}

// Streams come back when their client tries again, so the news is told until everybody has some.
async function tell(herd) {
    const before = herd.map((one) => one.heard);
    const heard = () => herd.filter((one, at) => one.heard > before[at]).length;
    for (const end = Date.now() + TELL_MS; heard() < herd.length && Date.now() < end;) {
        await herd[0].client.callTool({name: 'say', arguments: {method: 'notifications/tools/list_changed'}});
        await new Promise((resolve) => setTimeout(resolve, 300));
    }
    return {told: heard()};
}

// Calls that are being answered, with progress that has arrived.
async function stream(herd) {
    herd.forEach((one) => {
        one.begun = new Promise((resolve) => {
            const options = {onprogress: resolve, timeout: 10 * END_MS};
            one.ended = one.client.callTool({name: 'slow', arguments: {steps: 600, delay_ms: 500}}, undefined, options)
                .then(() => 'a result', (error) => error.message).finally(resolve);
        });
    });
    await Promise.all(herd.map((one) => one.begun));
    return {streaming: herd.length};
}

async function end(herd) {
    const told = {results: 0, errors: {}, open: 0};
    const late = new Promise((resolve) => setTimeout(resolve, END_MS, 'open'));
    for (const ended of await Promise.all(herd.map((one) => Promise.race([one.ended, late])))) {
        if (ended === 'open') told.open++;
        else if (ended === 'a result') told.results++;
        else told.errors[ended] = (told.errors[ended] ?? 0) + 1;
    }
    return told;
}

const ORDERS = {again: (herd) => round(herd, false), tell, stream, end};
const answer = (value) => process.stdout.write(JSON.stringify(value) + '\n');
const herd = Array.from({length: Number(args.clients)}, () => new One());
process.on('unhandledRejection', () => {});
answer(await round(herd, true));
for await (const line of createInterface({input: process.stdin})) answer(await ORDERS[line](herd));
process.exit(0);
