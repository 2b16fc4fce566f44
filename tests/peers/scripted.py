#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripted.py FILE [--http] [--port N] [--era legacy|modern] [--shape JSON]: an MCP server that says what a test
tells it to, in the order the test wants.

Every received message is appended to FILE verbatim (each after an RS byte), request heads to FILE.heads, the
pids of processes to FILE.starts, and what happened when to FILE.times, one JSON object a line with `ns` of the
monotonic clock, which is one for all processes of a machine.

--shape is an object: `name`, `instructions`, `capabilities`, `tools`, `prompts`, `resources`, `templates` (lists of
objects to be listed as they are, beside the tool `script` and its friends), `gates` (method: the file it waits for; `start`: before it reads anything from its pipe),
`fails` (method: the words it refuses it with, until the file `mended` exists),
`page` (items a page), `pad` (`to`: the length of cursors `when` that file exists), `lost` (the
status for a session it does not know, 404), `lost_text` (its words), `acks` (false: a listen is never acknowledged),
`honours` (what a listen honours at most), `needs` (tool: the capability that
the client's initialize must declare for its session to list that tool; no list_changed is sent about it).

The tool `script` runs `steps`, each an object with one member:
  send MESSAGE      one message on the call's own stream       raw TEXT         the same, as these very characters
  ask REQUEST       send it and wait for its answer            ask_only REQUEST send it and go on
  take ID           wait for the answer to that request        progress N       for the call's progress token
  wait PATH         until that file exists                     get MESSAGE      on the standalone stream (HTTP; else stdout)
  to_all MESSAGE    on the standalone stream of every session
  listen MESSAGE    to every listen that asked for it, tagged; listen_all: to those that did not as well
  end_listens 1     a result for each
  result TEXT       the result as these very characters        say WORD         a line in FILE.times
  result_file PATH  likewise, from that file                   fail TEXT        with a JSON-RPC error
  env NAME          that variable of its process is an answer it got
  later STEPS       the same in a thread of its own, so that the call ends meanwhile
Without a `result` it answers with the answers it got, in order, as JSON text."""
import json
import os
import queue
import sys
import threading
import time

from mcp_server import LEGACY_VERSIONS, MODERN, PREFIX, append, claim, dump, options

OBJECT = {'type': 'object'}
TOOLS = [{'name': name, 'inputSchema': OBJECT, **more} for name, more in (
    ('script', {}), ('echo', {'annotations': {'readOnlyHint': True}}), ('counter', {}))]
CAPABILITIES = {'tools': {'listChanged': True}, 'prompts': {'listChanged': True}, 'completions': {}, 'logging': {},
                'resources': {'subscribe': True, 'listChanged': True}}
LISTS = {'tools/list': 'tools', 'prompts/list': 'prompts', 'resources/list': 'resources',
         'resources/templates/list': 'resourceTemplates'}
CACHED = (*LISTS, 'server/discover', 'resources/read')
TAG = PREFIX + 'subscriptionId'
GONE = 60.0


class Gone(Exception):
    """The other side does not want the answer any more."""


class RpcError(Exception):
    pass


class Peer:
    """What the requests of one session share: its counter and the answers it waits for."""

    def __init__(self, server):
        self.server, self.lock = server, threading.Condition()
        self.count, self.answers, self.cancelled = 0, {}, set()
        self.standalone, self.capabilities = queue.Queue(), {}

    def answered(self, message):
        with self.lock:
            self.answers[dump(message['id'])] = {k: message[k] for k in ('result', 'error') if k in message}
            self.lock.notify_all()

    def cancel(self, ident):
        with self.lock:
            self.cancelled.add(dump(ident))
            self.lock.notify_all()
        self.server.note('cancelled', id=ident)


class Listen:
    """An open subscriptions/listen: where its messages go."""

    def __init__(self, ident, wanted, send):
        self.ident, self.wanted, self.send, self.over = ident, wanted, send, threading.Event()

    def wants(self, message):
        kind = message['method'].split('/')
        if kind[-1] == 'updated':
            return message['params']['uri'] in self.wanted.get('resourceSubscriptions', [])
        return self.wanted.get(kind[1] + 'ListChanged', False)

    def say(self, message):
        params = dict(message.get('params') or {})
        params['_meta'] = {**params.get('_meta', {}), TAG: self.ident}
        self.send(dump({**message, 'params': params}))


class Run:
    """One call of `script`."""

    def __init__(self, peer, message, send, is_gone):
        self.peer, self.message, self.send, self.is_gone = peer, message, send, is_gone
        self.ident, self.taken, self.result = dump(message['id']), [], None

    def check(self):
        if self.ident in self.peer.cancelled or self.is_gone():
            self.peer.server.note('gone', id=self.message['id'])
            raise Gone

    def until(self, condition):
        end = time.monotonic() + GONE
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise RpcError('the test never came back')
            time.sleep(0.003)

    def take(self, ident):
        key = dump(ident)
        self.until(lambda: key in self.peer.answers)
        self.taken.append(self.peer.answers.pop(key))
        self.peer.server.note('answered', id=ident)

    def step(self, name, value):
        server = self.peer.server
        if name in ('send', 'ask', 'ask_only'):
            self.send(dump(value))
        if name == 'ask':
            self.take(value['id'])
        elif name == 'raw':
            self.send(value)
        elif name == 'take':
            self.take(value)
        elif name == 'env':
            self.taken.append(os.environ.get(value))
        elif name == 'progress':
            token = ((self.message.get('params') or {}).get('_meta') or {}).get('progressToken')
            self.send(dump({'jsonrpc': '2.0', 'method': 'notifications/progress', 'params': {
                'progressToken': token, 'progress': value}}))
        elif name == 'wait':
            self.until(lambda: os.path.exists(value))
        elif name == 'get':
            server.standalone(self.peer, dump(value))
        elif name == 'to_all':
            for peer in server.everybody():
                server.standalone(peer, dump(value))
        elif name in ('listen', 'listen_all'):
            for listen in list(server.listens):
                if name == 'listen_all' or listen.wants(value):
                    listen.say(value)
        elif name == 'end_listens':
            for listen in list(server.listens):
                listen.over.set()
        elif name == 'result':
            self.result = value
        elif name == 'result_file':
            with open(value, encoding='utf-8') as file:
                self.result = file.read()
        elif name == 'fail':
            raise RpcError(value)
        elif name == 'say':
            server.note(value)
        elif name == 'later':
            self.later(value)

    def later(self, steps):
        other = Run(self.peer, self.message, lambda text: self.peer.server.standalone(self.peer, text), lambda: False)

        def run():
            try:
                other.run(steps)
            except (Gone, OSError):
                pass
            self.peer.server.note('later', taken=other.taken)
        threading.Thread(target=run, daemon=True).start()

    def run(self, steps):
        for step in steps:
            for name, value in step.items():
                self.step(name, value)
        return self.result or {'content': [{'type': 'text', 'text': dump(self.taken)}]}


class Server:
    def __init__(self, args):
        self.args, self.shape = args, json.loads(args.shape)
        self.modern = args.era == 'modern'
        self.listens, self.lists = [], {
            'tools/list': TOOLS + self.shape.get('tools', []), 'prompts/list': self.shape.get('prompts', []),
            'resources/list': self.shape.get('resources', []), 'resources/templates/list': self.shape.get('templates', [])}

    def note(self, what, **more):
        append(self.args.file + '.times', dump({'what': what, 'ns': time.monotonic_ns(), **more}).encode() + b'\n')

    def standalone(self, peer, text):
        raise NotImplementedError

    def list(self, peer, method, params):
        items, start, page = self.lists[method], int(params.get('cursor') or 0), self.shape.get('page', 2000)
        if method == 'tools/list' and 'needs' in self.shape:
            needs = self.shape['needs']
            items = [t for t in items if t['name'] not in needs or needs[t['name']] in peer.capabilities]
        result = {LISTS[method]: items[start:start + page]}
        if start + page < len(items):
            pad = self.shape.get('pad')
            result['nextCursor'] = str(start + page).ljust(pad['to'] if pad and os.path.exists(pad['when']) else 0)
        return result

    def hello(self, params):
        wanted = params.get('protocolVersion')
        return {'protocolVersion': wanted if wanted in LEGACY_VERSIONS else LEGACY_VERSIONS[-1],
                'capabilities': self.shape.get('capabilities', CAPABILITIES),
                'serverInfo': {'name': self.shape.get('name', 'scripted'), 'version': '1'},
                **({'instructions': self.shape['instructions']} if 'instructions' in self.shape else {})}

    def call(self, peer, message, send, is_gone):
        params = message.get('params') or {}
        name, arguments = params.get('name'), params.get('arguments') or {}
        if name == 'script':
            return Run(peer, message, send, is_gone).run(arguments.get('steps', []))
        if name == 'counter':
            with peer.lock:
                peer.count += 1
                return {'content': [{'type': 'text', 'text': str(peer.count)}]}
        if name in [t.get('name') for t in self.lists['tools/list'] if isinstance(t, dict)]:
            return {'content': [{'type': 'text', 'text': str(arguments.get('text', name))}]}
        raise RpcError(f'Unknown tool: {name}')

    def wait_gate(self, what):
        gate, end = self.shape.get('gates', {}).get(what), time.monotonic() + GONE
        while gate and not os.path.exists(gate) and time.monotonic() < end:
            time.sleep(0.01)

    def answer(self, peer, message, send, is_gone):
        method, params = message['method'], message.get('params') or {}
        self.wait_gate(method)
        if method in self.shape.get('fails', {}) and not os.path.exists(self.shape.get('mended', '')):
            raise RpcError(self.shape['fails'][method])
        if method == 'initialize' and not self.modern:
            peer.capabilities = params.get('capabilities') or {}
            return self.hello(params)
        if method == 'server/discover' and self.modern:
            hello = self.hello(params)
            del hello['protocolVersion'], hello['serverInfo']
            return {'supportedVersions': [MODERN], **hello}
        if method in LISTS:
            return self.list(peer, method, params)
        if method == 'tools/call':
            return self.call(peer, message, send, is_gone)
        if method == 'prompts/get':
            return {'messages': [{'role': 'user', 'content': {'type': 'text', 'text': params['name']}}]}
        if method == 'resources/read':
            return {'contents': [{'uri': params['uri'], 'text': self.shape.get('name', 'scripted')}]}
        if method == 'completion/complete':
            return {'completion': {'values': [self.shape.get('name', 'scripted')]}}
        if method in ('ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe') and not self.modern:
            return {}
        raise RpcError(f'Method not found: {method}')

    def handle(self, peer, message, send, is_gone):
        """One message; the answer of a request goes out through send, unless nobody wants it any more."""
        if 'method' not in message:
            return peer.answered(message)
        if 'id' not in message:
            if message['method'] == 'notifications/cancelled':
                peer.cancel(message['params'].get('requestId'))
            return None
        ident = dump(message['id'])
        try:
            result = self.answer(peer, message, send, is_gone)
        except RpcError as e:
            code = -32601 if 'Method' in str(e) else -32602
            return send('{"jsonrpc":"2.0","id":%s,"error":%s}' % (ident, dump({'code': code, 'message': str(e)})))
        except Gone:
            return None
        if self.modern and isinstance(result, dict):
            result = {'resultType': 'complete', **result, **({'ttlMs': 0, 'cacheScope': 'private'} if message['method'] in CACHED else {})}
            result.setdefault('_meta', {})[PREFIX + 'serverInfo'] = {'name': self.shape.get('name', 'scripted'), 'version': '1'}
        return send('{"jsonrpc":"2.0","id":%s,"result":%s}' % (ident, result if isinstance(result, str) else dump(result)))

    def open_listen(self, message, send):
        """Told of, until the test or the client ends it."""
        wanted = message['params']['notifications']
        honours = self.shape.get('honours')
        if honours is not None:
            wanted = {k: [u for u in v if u in honours[k]] if isinstance(v, list) else v for k, v in wanted.items() if k in honours}
        listen = Listen(message['id'], wanted, send)
        # First of all: whoever reads of it, here or in FILE.times, may have a script speak to it at once.
        self.listens.append(listen)
        self.note('listen', id=message['id'], wanted=message['params']['notifications'])
        return listen

    def acknowledge(self, listen):
        if self.shape.get('acks', True):
            listen.say({'jsonrpc': '2.0', 'method': 'notifications/subscriptions/acknowledged', 'params': {'notifications': listen.wanted}})

    def close_listen(self, listen, why):
        self.listens.remove(listen)
        self.note(why, id=listen.ident)

    def end_of_listen(self, listen):
        return dump({'jsonrpc': '2.0', 'id': listen.ident, 'result': {'resultType': 'complete', '_meta': {TAG: listen.ident}}})


class Stdio(Server):
    def __init__(self, args):
        super().__init__(args)
        self.lock, self.peer = threading.Lock(), Peer(self)

    def send(self, text):
        with self.lock:
            sys.stdout.buffer.write(text.encode() + b'\n')
            sys.stdout.buffer.flush()

    def standalone(self, peer, text):
        self.send(text)

    def everybody(self):
        return [self.peer]

    def listen(self, message):
        listen, key = self.open_listen(message, self.send), dump(message['id'])
        self.acknowledge(listen)
        while not listen.over.wait(0.005):
            if key in self.peer.cancelled:
                return self.close_listen(listen, 'listen closed')
        self.send(self.end_of_listen(listen))
        return self.close_listen(listen, 'listen ended')

    def run(self):
        append(self.args.file + '.starts', b'%d\n' % os.getpid())
        self.wait_gate('start')
        for line in sys.stdin.buffer:
            append(self.args.file, b'\x1e' + line)
            message = json.loads(line)
            if self.modern and 'id' in message and 'method' in message and claim(message) is None:
                self.send(dump({'jsonrpc': '2.0', 'id': message['id'], 'error': {
                    'code': -32022, 'message': 'Unsupported protocol version', 'data': {'supported': [MODERN]}}}))
                continue
            if message.get('method') == 'subscriptions/listen' and self.modern:
                threading.Thread(target=self.listen, args=(message,), daemon=True).start()
                continue
            threading.Thread(target=self.handle, args=(self.peer, message, self.send, lambda: False), daemon=True).start()


def main():
    args = options(file='', http=False, port=0, era='legacy', shape='{}')
    if args.http:
        from scripted_http import Http as kind  # pylint: disable=import-outside-toplevel  # takes longer than all else
    else:
        kind = Stdio
    kind(args).run()


if __name__ == '__main__':
    main()
