// SPDX-License-Identifier: Apache-2.0
// share.mjs --from CLIENT --to CLIENT --url URL [--to-url URL]
//
// A session begun by one official client goes on in another (tests/e2e/test_sharing_clients.py): the first counts with a
// stateful stdio server and asks for a code, as a person would say "give me a code"; the second joins with it and goes on
// counting.  What a model reads in a result, the handle of a session among it, it passes on.  Prints one line of JSON.
import {parseArgs} from 'node:util';
import {failure, must, same, text} from './check.mjs';
import {Peer} from './clients.mjs';

console.log = console.info = console.debug = console.error;
const {values: args} = parseArgs({options: {
    from: {type: 'string'}, to: {type: 'string'}, url: {type: 'string'}, 'to-url': {type: 'string'},
}});

// One client, and the session_id that its model was told, if it was told one.
class Person {
    constructor(peer) { this.peer = peer; }

    static async at(name, url) { return new Person(await Peer.connect(name, {url})); }

    async tool(name, own = {}) {
        const result = await this.peer.call(name, {...own, ...(this.told && {session_id: this.told})});
        const told = JSON.stringify(result.content).match(/\[session: (ses_[\w-]+)\]/);
        if (told) this.told = told[1];
        return result;
    }

    async count() { return Number(text(await this.tool('up__counter')).split('\n')[0]); }
}

async function main() {
    const one = await Person.at(args.from, args.url), two = await Person.at(args.to, args['to-url'] ?? args.url);
    same([await one.count(), await one.count()], [1, 2], 'what the first client counts');
    await one.tool('session__context_update', {context: {goal: 'count to five'}});
    const made = (await one.tool('session__share')).structuredContent;
    const joined = await two.peer.call('session__join', {code: made.code});
    text(joined);
    same(joined.structuredContent.session_id, made.session_id, 'the session that goes on');
    same(joined.structuredContent.context, {goal: 'count to five'}, 'its context');
    must(joined.structuredContent.servers.includes('up'), 'it names the servers that were used', joined.structuredContent);
    same([await two.count(), await one.count(), await two.count()], [3, 4, 5], 'both count on');
    const again = await failure(two.peer.call('session__join', {code: made.code + 'a'}), 'a wrong code');
    must(/not known/.test(again.message), 'a wrong code is refused in words', again.message);
    await one.peer.close();
    same(await two.count(), 6, 'the second goes on when the first has left');
    await two.peer.close();
    process.stdout.write(JSON.stringify({ok: true, versions: [one.peer.version, two.peer.version]}) + '\n');
}

main().then(() => process.exit(0), (error) => {
    process.stdout.write(JSON.stringify({ok: false, detail: `${error.message ?? error}`}) + '\n');
    process.exit(1);
});
