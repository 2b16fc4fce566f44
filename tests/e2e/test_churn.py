# SPDX-License-Identifier: Apache-2.0
"""Everything at once: clients of both eras that call, listen, answer, cancel, resume and leave in the middle,
before servers that ask and tell, are killed, hang and are replaced by reloads.  No single answer is looked at;
nothing may be reported by the sanitizers, and afterwards everything works as on the first day.

The order is chosen by a seed (HOLDFAST_SEED), the length by HOLDFAST_LONG."""
import contextlib
import json
import os
import random
import signal
import threading
import time

from harness import LONG
from scripted import Later, ask, get, note, script

SECONDS = 60 if LONG else 6
SEED = int(os.environ.get('HOLDFAST_SEED', '1'))
SHAPE = {'resources': [{'uri': f'doc://{n}', 'name': n} for n in 'abc'], 'prompts': [{'name': 'greet'}]}
VERSIONS = ('2025-03-26', '2025-06-18', '2025-11-25')
TROUBLE = (AssertionError, EOFError, OSError, StopIteration, ValueError)  # of a client in the middle of all this


def steps(dice):
    """What one call makes its server do."""
    known = [
        lambda: {'progress': dice.randint(1, 9)},
        lambda: {'send': note('notifications/message', level='info', data='x' * dice.randint(0, 3000))},
        lambda: {'ask_only': ask(dice.randint(0, 5), message='m')},
        lambda: {'send': note('notifications/cancelled', requestId=dice.randint(0, 5))},
        lambda: {'to_all': note('notifications/tools/list_changed')},
        lambda: {'get': note('notifications/resources/updated', uri='doc://a')},
        lambda: {'listen': note('notifications/resources/updated', uri='doc://a')},
        lambda: {'later': [{'ask_only': ask(dice.randint(0, 5), 'roots/list')}]},
        lambda: {'end_listens': 1},
    ]
    return [dice.choice(known)() for _ in range(dice.randint(0, 4))]


class Guest:
    """A client that does as its dice say."""

    def __init__(self, hf, names, seed):
        self.hf, self.names, self.dice = hf, names, random.Random(seed)
        self.client = self.server = None
        self.streams, self.seen, self.done = [], [], 0

    def arrive(self):
        self.server = self.dice.choice([*self.names, ''])
        self.client = self.hf.client('/mcp/' + self.server if self.server else '/mcp', modern=self.dice.random() < 0.4)
        self.seen = []
        if not self.client.modern:
            self.client.connect(self.dice.choice(VERSIONS), capabilities={'elicitation': {}, 'roots': {}})

    def keep(self, stream):
        self.streams.append(stream)
        if len(self.streams) > 3:
            self.streams.pop(self.dice.randrange(4)).close()

    def call(self):
        prefix = '' if self.server else self.dice.choice(self.names) + '__'
        call = script(self.client, *steps(self.dice), tool=prefix + 'script', ident=self.dice.randint(0, 20),
                      meta={'progressToken': self.dice.randint(0, 5)})
        with contextlib.closing(call):
            if self.dice.random() < 0.4:
                return
            call.connection.socket.settimeout(2)
            event = call.event() if call.stream.is_sse else None
            while event is not None and self.dice.random() < 0.9:
                self.seen += [event['id']] if 'id' in event else []
                asked = json.loads(event['data']) if event.get('data') else {}
                if 'method' in asked and 'id' in asked and self.dice.random() < 0.7:
                    self.client.respond(asked['id'], {'a': 1})
                event = call.event()

    def listen(self):
        if self.client.modern:
            wanted = {'toolsListChanged': True, 'resourceSubscriptions': ['doc://a']}
            self.keep(Later(self.client, 'subscriptions/listen', {'notifications': wanted}, self.dice.randint(0, 9)))
        else:
            self.keep(get(self.client, last=self.dice.choice(self.seen) if self.seen and self.dice.random() < 0.7 else None))

    def say(self):
        legacy = [lambda: self.client.rpc('logging/setLevel', {'level': self.dice.choice(('debug', 'error'))}),
                  lambda: self.client.rpc('resources/subscribe', {'uri': 'doc://a'}),
                  lambda: self.client.notify('notifications/roots/list_changed'), self.end]
        both = [lambda: self.client.notify('notifications/cancelled', {'requestId': self.dice.randint(0, 20)}),
                lambda: self.client.notify('notifications/progress', {'progressToken': self.dice.randint(1, 50), 'progress': 1}),
                lambda: self.client.rpc(self.dice.choice(('tools/list', 'resources/list', 'prompts/list'))),
                lambda: self.client.rpc('resources/read', {'uri': 'doc://a'})]
        self.dice.choice(both if self.client.modern else both + legacy)()

    def end(self):
        self.client.delete()
        self.client = None

    def run(self, until):
        while time.monotonic() < until and self.hf.process.poll() is None:
            try:
                if self.client is None or self.dice.random() < 0.05:
                    self.arrive()
                self.dice.choice((self.call, self.call, self.listen, self.say, self.say))()
                self.done += 1
            except TROUBLE:
                self.client = None
        for stream in self.streams:
            stream.close()


def disturb(hf, servers, until):
    dice = random.Random(SEED)
    while time.monotonic() < until:
        time.sleep(dice.random())
        what = dice.random()
        with contextlib.suppress(ProcessLookupError):
            if what < 0.35:
                server = servers[dice.choice(('legacy-web', 'modern-web'))]
                server.stop()
                server.start()
            elif what < 0.65:
                started = servers[dice.choice(('legacy-pipe', 'modern-pipe'))].starts()
                os.kill(dice.choice(started[-6:]) if started else 0, signal.SIGKILL if started else 0)
            else:
                entries = {name: {**s.entry, 'timeout': 5 + (dice.randint(0, 9) if name == 'legacy-pipe' else 0)}
                           for name, s in servers.items()}
                hf.write_config({'mcpServers': entries, 'holdfast': {}})
                hf.process.send_signal(signal.SIGHUP)


def test_churn__leaves_everything_as_it_was(holdfast, scripted, tmp_path):
    never = str(tmp_path / 'never')
    servers = {f'{era}-{kind}': scripted(f'{era}-{kind}', http=kind == 'web', era=era, shape=SHAPE)
               for era in ('legacy', 'modern') for kind in ('pipe', 'web')}
    servers['hangs'] = scripted('hangs', shape={'gates': {'initialize': never, 'server/discover': never}})
    hf = holdfast({name: {**s.entry, 'timeout': 5} for name, s in servers.items()})
    until = time.monotonic() + SECONDS
    guests = [Guest(hf, list(servers), SEED * 100 + n) for n in range(6)]
    threads = [threading.Thread(target=g.run, args=(until,), daemon=True) for g in guests]
    threads.append(threading.Thread(target=disturb, args=(hf, servers, until), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 40)
        assert not thread.is_alive(), 'a client waits for ever'
    hf.check()
    assert sum(g.done for g in guests) > 20
    for name in ('legacy-web', 'modern-web', 'legacy-pipe', 'modern-pipe'):
        for modern in (True, False):
            client = hf.client('/mcp/' + name, modern=modern)
            reply = (client if modern else client.connect()).call('echo', {'text': 'as ever'})
            for _ in range(20):  # a server that was killed too often is left alone for a while
                if 'result' in reply.json:
                    break
                time.sleep(0.5)
                reply = client.call('echo', {'text': 'as ever'})
            assert reply.text == 'as ever', (name, repr(reply))
