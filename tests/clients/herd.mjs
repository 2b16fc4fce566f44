// SPDX-License-Identifier: Apache-2.0
// herd.mjs --url URL --clients N [--at-once M]: many SDK 1.x clients, one transport and session each.
//
// Each initializes and calls `counter`; then a line on stdin, for which the parent may have replaced the
// server, makes all of them call again with the session they have.  A client that is told that its
// session is gone (404) starts over once, as the specification says.  After each round one line of JSON:
// {round, went_on, started_over, lost, failed: [why]}, where `lost` counts results that tell of lost state.
import {createInterface} from 'node:readline';
import {parseArgs} from 'node:util';
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const {values: args} = parseArgs({options: {
    url: {type: 'string'}, clients: {type: 'string', default: '100'}, 'at-once': {type: 'string', default: '32'},
}});
const FAILURES_SHOWN = 5;

class One {
    async start() {
        // The standalone stream is tried again in the background when it breaks; not for ever.
        const reconnectionOptions = {initialReconnectionDelay: 500, maxReconnectionDelay: 2000, reconnectionDelayGrowFactor: 2, maxRetries: 5};
        this.client = new Client({name: 'herd', version: '1'}, {capabilities: {}});
        this.transport = new StreamableHTTPClientTransport(new URL(args.url), {reconnectionOptions});
        this.client.onerror = () => {};
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

async function round(herd, number) {
    const told = {round: number, went_on: 0, started_over: 0, lost: 0, failed: []};
    let next = 0;
    const worker = async () => {
        while (next < herd.length) {
            const at = next++;
            try {
                const {wentOn, startedOver, lost} = await herd[at].round(number === 0);
                told.went_on += Number(Boolean(wentOn));
                told.started_over += Number(Boolean(startedOver));
                told.lost += Number(lost);
            } catch (error) {
                told.failed.push(`client ${at}: ${error.message} ${error.cause?.message ?? ''}`);
            }
        }
    };
    await Promise.all(Array.from({length: Number(args['at-once'])}, worker));
    const failures = told.failed.length;
    told.failed = told.failed.slice(0, FAILURES_SHOWN);
    process.stdout.write(JSON.stringify({...told, failures}) + '\n');
}

const herd = Array.from({length: Number(args.clients)}, () => new One());
let rounds = 0;
process.on('unhandledRejection', () => {});
await round(herd, rounds++);
for await (const _ of createInterface({input: process.stdin})) await round(herd, rounds++);
process.exit(0);
