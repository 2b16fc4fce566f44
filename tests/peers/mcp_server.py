# SPDX-License-Identifier: Apache-2.0
"""The MCP server that the scripted upstreams share; transports are in recorder.py and http_upstream.py.

It keeps state where a real server would (one counter per `State`), answers in the era it is asked in,
and has one tool for each thing that a gateway may get wrong.  A transport calls handle() with one
parsed message and a `send` that puts one message (already text) on the way back."""
import json
import os
import sys
import threading
import time
import types

LEGACY_VERSIONS = ('2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25')
MODERN = '2026-07-28'
PREFIX = 'io.modelcontextprotocol/'
LISTS = ('tools/list', 'resources/list', 'resources/templates/list', 'prompts/list')
CAPABILITIES = {'tools': {'listChanged': True}, 'resources': {}, 'prompts': {}, 'completions': {}, 'logging': {}}

# Written as text, so that a test can ask for these very bytes at the other end.
META_BYTES = ('{"com.example/nested":{"a":[1,{"b":null}],"e":{}},"big":9007199254740993,"far":1e400,"neg":-0,'
              '"text":"h\\u00e9llo \\ud83d\\ude00 \u00fc","empty":{}}')
META_RESULT = ('{"content":[{"type":"text","text":"meta"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],'
               '"structuredContent":{"n":9007199254740993,"x":1.50,"k":{"z":1,"a":2}},"isError":false,"vendorField":[1.0,-0],'
               '"_meta":' + META_BYTES + '}')

TOOLS = [
    ('echo', 'Returns text.', {'text': {'type': 'string'}}, {'readOnlyHint': True}),
    ('counter', 'Counts the calls of this state.', {}, {}),
    ('fail', 'Fails with isError.', {'text': {'type': 'string'}}, {}),
    ('slow', 'Sends steps progress notifications, then a result.',
     {'steps': {'type': 'integer'}, 'delay_ms': {'type': 'integer'}, 'gate': {'type': 'string'}}, {}),
    ('hang', 'Answers only when cancelled, which is never answered.', {}, {}),
    ('big', 'Returns n bytes of text.', {'n': {'type': 'integer'}}, {'readOnlyHint': True}),
    ('meta', 'Returns a result with _meta, structuredContent and an image.', {}, {'readOnlyHint': True}),
    ('raw', 'Returns the text of result as the result, byte for byte.', {'result': {'type': 'string'}}, {}),
    ('error', 'Fails with a JSON-RPC error.', {'code': {'type': 'integer'}, 'message': {'type': 'string'}}, {}),
    ('env', 'Returns the environment and pid of the process.', {}, {}),
    ('ask', 'Sends the client a request (method, params) and returns its answer as text.',
     {'method': {'type': 'string'}, 'params': {'type': 'object'}}, {}),
    ('say', 'Sends a notification (method, params), then a result.',
     {'method': {'type': 'string'}, 'params': {'type': 'object'}}, {}),
    ('crash', 'Ends the process without an answer.', {}, {}),
    ('mute', 'Closes standard output without an answer.', {}, {}),
]


def options(**defaults):
    """The command line: FILE, and --NAME VALUE of the type of its default, or --NAME alone where that is False.

    argparse takes as long to import as all the rest, and the tests start some thousand servers."""
    found, words = dict(defaults), iter(sys.argv[1:])
    for word in words:
        name = word[2:].replace('-', '_') if word.startswith('--') else 'file'
        if name not in defaults:
            sys.exit(f'there is no option {word}; the text at the top of the program names them')
        kind = type(defaults[name])
        found[name] = True if kind is bool else kind(word if name == 'file' else next(words))
    return types.SimpleNamespace(**found)


def dump(value):
    return json.dumps(value, separators=(',', ':'), ensure_ascii=False)


def text_result(text, is_error=False):
    result = {'content': [{'type': 'text', 'text': text}]}
    if is_error:
        result['isError'] = True
    return result


class State:
    """What one session of a stateful server remembers."""

    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0
        self.asked = 0
        self.answers = {}
        self.cancelled = {}

    def event(self, table, key):
        with self.lock:
            return table.setdefault(key, threading.Event())


class Server:
    def __init__(self, name='recorder', era='legacy', page=0):
        self.name, self.era, self.page = name, era, page

    # -- tools, each: (state, arguments, message, send) -> result value, or text of one

    def tool_echo(self, state, arguments, message, send):
        return text_result(str(arguments.get('text', '')))

    def tool_counter(self, state, arguments, message, send):
        with state.lock:
            state.count += 1
            return {**text_result(str(state.count)), 'structuredContent': {'count': state.count, 'pid': os.getpid()}}

    def tool_fail(self, state, arguments, message, send):
        return text_result(str(arguments.get('text', 'it failed')), True)

    def tool_slow(self, state, arguments, message, send):
        meta = (message.get('params') or {}).get('_meta') or {}
        steps = int(arguments.get('steps', 3))
        if 'gate' in arguments:  # a FIFO: this waits until somebody opens it to write
            with open(arguments['gate'], 'rb'):
                pass
        for step in range(1, steps + 1):
            time.sleep(int(arguments.get('delay_ms', 0)) / 1000)
            if 'progressToken' in meta:
                send(dump({'jsonrpc': '2.0', 'method': 'notifications/progress', 'params': {
                    'progressToken': meta['progressToken'], 'progress': step, 'total': steps, 'message': f'step {step}'}}))
        return text_result(f'{steps} steps')

    def tool_hang(self, state, arguments, message, send):
        cancelled, is_gone = state.event(state.cancelled, dump(message['id'])), getattr(send, 'is_gone', bool)
        deadline = time.monotonic() + 60
        while not cancelled.wait(0.02) and not is_gone() and time.monotonic() < deadline:
            pass
        return None

    def tool_big(self, state, arguments, message, send):
        return text_result('x' * int(arguments.get('n', 0)))

    def tool_meta(self, state, arguments, message, send):
        return META_RESULT

    def tool_raw(self, state, arguments, message, send):
        return arguments['result']

    def tool_error(self, state, arguments, message, send):
        raise RpcError(int(arguments.get('code', -32603)), str(arguments.get('message', 'told to fail')),
                       arguments.get('data'))

    def tool_env(self, state, arguments, message, send):
        return {**text_result(dump(dict(os.environ))), 'structuredContent': {'pid': os.getpid()}}

    def tool_ask(self, state, arguments, message, send):
        with state.lock:
            state.asked += 1
            key = f'ask-{state.asked}'
        answered = state.event(state.answers, key)
        send(dump({'jsonrpc': '2.0', 'id': key, 'method': arguments['method'], 'params': arguments.get('params', {})}))
        if not answered.wait(30):
            return text_result('no answer', True)
        return text_result(dump(answered.message))

    def tool_say(self, state, arguments, message, send):
        send(dump({'jsonrpc': '2.0', 'method': arguments['method'], 'params': arguments.get('params', {})}))
        return text_result('said')

    def tool_crash(self, state, arguments, message, send):
        os._exit(3)

    def tool_mute(self, state, arguments, message, send):
        os.close(1)

    # -- methods

    def tool_list(self):
        return [{'name': name, 'description': what, 'annotations': notes,
                 'inputSchema': {'type': 'object', 'properties': properties}}
                for name, what, properties, notes in TOOLS]

    def paged(self, key, items, params):
        start = int(params.get('cursor') or 0)
        if not self.page:
            return {key: items}
        result = {key: items[start:start + self.page]}
        if start + self.page < len(items):
            result['nextCursor'] = str(start + self.page)
        return result

    def answer(self, state, message, send, modern):
        method, params = message['method'], message.get('params') or {}
        if method == 'initialize' and not modern:
            wanted = params.get('protocolVersion')
            return {'protocolVersion': wanted if wanted in LEGACY_VERSIONS else LEGACY_VERSIONS[-1],
                    'capabilities': CAPABILITIES, 'serverInfo': {'name': self.name, 'version': '1'},
                    'instructions': 'Made for tests.'}
        if method == 'server/discover' and modern:
            return {'supportedVersions': [MODERN], 'capabilities': {k: v for k, v in CAPABILITIES.items()},
                    'instructions': 'Made for tests.'}
        if method == 'ping' and not modern:
            return {}
        if method == 'tools/list':
            return self.paged('tools', self.tool_list(), params)
        if method == 'tools/call':
            tool = getattr(self, 'tool_' + str(params.get('name')), None)
            if tool is None or str(params.get('name')) not in [t[0] for t in TOOLS]:
                raise RpcError(-32602, f"Unknown tool: {params.get('name')}")
            return tool(state, params.get('arguments') or {}, message, send)
        if method == 'resources/list':
            return {'resources': [{'uri': 'test://one', 'name': 'one', 'mimeType': 'text/plain'}]}
        if method == 'resources/templates/list':
            return {'resourceTemplates': [{'uriTemplate': 'test://{id}', 'name': 'any'}]}
        if method == 'resources/read':
            if params.get('uri') != 'test://one':
                raise RpcError(-32602 if modern else -32002, 'Resource not found', {'uri': params.get('uri')})
            return {'contents': [{'uri': 'test://one', 'mimeType': 'text/plain', 'text': 'first'}]}
        if method == 'prompts/list':
            return {'prompts': [{'name': 'greet', 'description': 'Greets.'}]}
        if method == 'prompts/get':
            return {'messages': [{'role': 'user', 'content': {'type': 'text', 'text': 'Hello'}}]}
        if method == 'completion/complete':
            return {'completion': {'values': ['a', 'b']}}
        if method == 'logging/setLevel' and not modern:
            return {}
        raise RpcError(-32601, f'Method not found: {method}')

    def handle(self, state, message, send, modern=False):
        """Answers one request through send(); takes in notifications and responses."""
        method = message.get('method')
        if method is None:
            if 'id' in message:
                event = state.event(state.answers, message['id'])
                event.message = {k: v for k, v in message.items() if k in ('result', 'error')}
                event.set()
            return
        if 'id' not in message:
            if method == 'notifications/cancelled':
                state.event(state.cancelled, dump((message.get('params') or {}).get('requestId'))).set()
            return
        ident = dump(message['id'])
        try:
            result = self.answer(state, message, send, modern)
        except RpcError as e:
            send('{"jsonrpc":"2.0","id":%s,"error":%s}' % (ident, dump(e.value)))
            return
        if result is None:
            return
        if modern and isinstance(result, dict):
            result = self.modernise(method, result)
        send('{"jsonrpc":"2.0","id":%s,"result":%s}' % (ident, result if isinstance(result, str) else dump(result)))

    def modernise(self, method, result):
        result = {'resultType': 'complete', **result}
        if method in LISTS or method in ('server/discover', 'resources/read'):
            result.update(ttlMs=0, cacheScope='private')
        result.setdefault('_meta', {})[PREFIX + 'serverInfo'] = {'name': self.name, 'version': '1'}
        return result


class RpcError(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.value = {'code': code, 'message': message}
        if data is not None:
            self.value['data'] = data


def claim(message):
    """The modern version a request names in its envelope, or None."""
    params = message.get('params') if isinstance(message, dict) else None
    meta = params.get('_meta') if isinstance(params, dict) else None
    return meta.get(PREFIX + 'protocolVersion') if isinstance(meta, dict) else None


def append(path, data):
    """One write: lines of several processes do not mix."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
