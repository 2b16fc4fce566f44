// SPDX-License-Identifier: Apache-2.0
// drive.mjs --client sdk1|v2-legacy|v2-auto|v2-modern (--url URL | --sse URL | --stdio "CMD ARGS")
//           --peer server-everything|filesystem|ours|docs|recording --features a,b,c [--prefix up__] [--folder DIR]
//
// Runs features of a server with an official client and prints one line of JSON for each:
// {feature, ok, detail, ms}; first one for "connect", whose detail names the version, last one for "close".
// A feature that does not come to an end is a failure after its time; the others still run.
import {parseArgs} from 'node:util';
import {CLIENTS, Peer} from './clients.mjs';
import {knowledge} from './knowledge.mjs';
import {ours} from './ours.mjs';
import {recording} from './recording.mjs';
import {everything} from './server_everything.mjs';
import {filesystem} from './server_filesystem.mjs';

// Each: the features by name, and always(args), what its clients answer at any time.
const PEERS = {'server-everything': everything, filesystem, ours, docs: knowledge, recording};
// Standard output is for our lines; the clients think aloud.
console.log = console.info = console.debug = console.error;

const FEATURE_MS = 30000;
const common = {ping: (peer) => peer.client.ping().then(() => undefined)};

const {values: args} = parseArgs({options: {
    client: {type: 'string'}, url: {type: 'string'}, sse: {type: 'string'}, stdio: {type: 'string'}, peer: {type: 'string'},
    features: {type: 'string'}, prefix: {type: 'string', default: ''}, folder: {type: 'string'},
}});

function report(feature, ok, detail, since) {
    process.stdout.write(JSON.stringify({feature, ok, detail: detail ?? '', ms: Date.now() - since}) + '\n');
}

// One sentence of an error and of what caused it: fetch hides the reason in .cause.
function sentence(error) {
    const code = error.code === undefined ? '' : ` (${error.code})`;
    return `${error.message ?? error}${code}${error.cause ? `: ${sentence(error.cause)}` : ''}`;
}

async function run(feature, work) {
    const since = Date.now();
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no end within ${FEATURE_MS} ms`)), FEATURE_MS);
    });
    try {
        report(feature, true, await Promise.race([work(), late]), since);
        return true;
    } catch (error) {
        report(feature, false, process.env.DRIVE_STACK ? error.stack : sentence(error), since);
        return false;
    } finally {
        clearTimeout(timer);
    }
}

async function main() {
    const {always, ...own} = PEERS[args.peer] ?? {};
    const table = {...common, ...own};
    const features = (args.features ?? '').split(',').filter(Boolean);
    const unknown = features.filter((f) => !table[f]);
    if (!CLIENTS.includes(args.client) || !PEERS[args.peer] || unknown.length) {
        throw new Error(`unknown client ${args.client}, peer ${args.peer} or features ${unknown}`);
    }
    let peer;
    const begin = async () => {
        peer = await Peer.connect(args.client, args, always?.(args));
        return `${peer.version} ${JSON.stringify(peer.client.getServerVersion() ?? null)}`;
    };
    if (!(await run('connect', begin))) return;
    for (const feature of features) await run(feature, () => table[feature](peer, args));
    await run('close', () => peer.close());
}

// A rejection that nobody awaits (a late stream, say) must not hide what the features found.
process.on('unhandledRejection', (error) => process.stderr.write(`unhandled: ${error?.stack ?? error}\n`));
main().then(() => process.exit(0), (error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(2);
});
