# SPDX-License-Identifier: Apache-2.0
"""Starts tests/peers/scripted.py and reads what it noted; gates are files that a script waits for."""
import json
import os
import subprocess
import threading

from harness import PEERS, PYTHON, Client, Record, Stream, dump, wait_for

START = os.path.join(PEERS, 'start.py')


class Script(Record):
    """A scripted server: `entry` for mcpServers, and everything it saw."""

    def __init__(self, folder, name='web', http=False, era='legacy', shape=None, **entry):
        super().__init__(os.path.join(str(folder), name + '.record'))
        self.folder, self.name, self.process, self.gates = str(folder), name, None, 0
        args = ['-S', '-E', START, 'scripted', self.path, '--era', era, '--shape', json.dumps({'name': name, **(shape or {})})]
        self.args = args + ['--http'] if http else args
        self.entry = {'handles': 'never', **entry}
        if not http:
            self.entry.update(command=PYTHON, args=args)
            return
        self.port = 0
        self.start()

    def start(self):
        self.process = subprocess.Popen([PYTHON, *self.args, '--port', str(self.port)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().split()[1])
        self.entry['url'] = f'http://127.0.0.1:{self.port}/mcp'

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def gate(self):
        """A file that is not there yet; open_gate() makes it."""
        self.gates += 1
        return os.path.join(self.folder, f'{self.name}.gate-{self.gates}')

    def times(self, what=None):
        path = self.path + '.times'
        if not os.path.exists(path):
            return []
        with open(path, encoding='utf-8') as file:
            lines = [json.loads(line) for line in file.read().split('\n')[:-1]]
        return [l for l in lines if what in (None, l['what'])]

    def wait_time(self, what, count=1):
        return wait_for(lambda: len(self.times(what)) >= count and self.times(what), f'{count} times "{what}" at {self.name}')[count - 1]

    def calls(self, method='tools/call'):
        return [json.loads(m) for m in self.of(method)]


def open_gate(path):
    with open(path, 'w', encoding='utf-8'):
        pass


def note(method, **params):
    return {'jsonrpc': '2.0', 'method': method, **({'params': params} if params else {})}


def ask(ident, method='elicitation/create', **params):
    return {'jsonrpc': '2.0', 'id': ident, 'method': method, 'params': params}


def script(client, *steps, tool='script', ident=None, meta=None, headers=None):
    """Starts the script and gives its Stream, unread."""
    params = {'name': tool, 'arguments': {'steps': list(steps)}}
    if meta is not None:
        params['_meta'] = meta
    return Later(client, 'tools/call', params, ident, headers)


class Later:
    """A request on its way: the head of its reply is read when it is first needed."""

    def __init__(self, client, method, params=None, ident=None, headers=None):
        if ident is None:
            ident, client.next_id = client.next_id, client.next_id + 1
        params = dict(params) if params is not None else None
        if client.modern:
            params = params or {}
            params['_meta'] = {**client.envelope, **params.get('_meta', {})}
        self.ident = ident
        message = {'jsonrpc': '2.0', 'id': ident, 'method': method, **({'params': params} if params is not None else {})}
        body = dump(message).encode()
        self.connection = client.holdfast.connection()
        self.connection.send(self.connection.head_bytes(
            'POST', client.path, {**client.headers_for(method, params or {}), **(headers or {})}, body) + body)
        self.opened = None

    @property
    def stream(self):
        if self.opened is None:
            self.opened = Stream(self.connection)
        return self.opened

    def event(self):
        return self.stream.event()

    def next(self):
        """The next message, parsed; None at the end."""
        raw = self.stream.message()
        return None if raw is None else json.loads(raw)

    def rest(self):
        return list(iter(self.next, None))

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()


def get(client, last=None, accept='text/event-stream', path=None, **more):
    """GET: the transport's standalone stream, or the rest of a stream after `last`."""
    connection = client.holdfast.connection()
    headers = {**client.headers_for('', {}), 'Accept': accept, **more}
    if last is not None:
        headers['Last-Event-ID'] = last
    connection.send(connection.head_bytes('GET', path or client.path, headers, b''))
    return Stream(connection)


def messages(stream):
    return [json.loads(m) for m in iter(stream.message, None)]


def text_of(reply):
    """What a script answered: the answers it got."""
    return json.loads(reply['result']['content'][0]['text'])


class Background:
    """Runs fn in a thread; result() joins and re-raises."""

    def __init__(self, fn):
        self.value = self.error = None

        def run():
            try:
                self.value = fn()
            except BaseException as e:  # noqa: B902
                self.error = e
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def result(self):
        self.thread.join(30)
        assert not self.thread.is_alive(), 'it never came back'
        if self.error:
            raise self.error
        return self.value


__all__ = ['Background', 'Client', 'Later', 'Script', 'ask', 'get', 'messages', 'note', 'open_gate', 'script', 'text_of']
