#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""http_upstream.py FILE [--era legacy|modern|both] [--sse] [--stateless] [--page N] [--port N]
[--tls CERT KEY]: an MCP server over Streamable HTTP.

Prints "listening PORT".  Every request body is appended to FILE verbatim, each after an RS byte
(0x1e), and its request line and headers to FILE.heads as a line of JSON.  Legacy requests need the
session that initialize minted (404 when unknown), modern ones the mirrored headers.  --sse answers
with event streams even where JSON would do.  GET opens the standalone stream of a session; every
`say` tool call is repeated there.  --resume MS answers every legacy tools/call with a stream that ends
after its first, empty event; the rest comes to a GET with its id.  --2024 is the transport of that year:
GET opens a channel, its endpoint takes the messages, POSTs anywhere else are 405."""
import argparse
import json
import queue
import re
import resource
import secrets
import select
import socket
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mcp_server import LEGACY_VERSIONS, MODERN, PREFIX, Server, State, append, claim, dump

FINAL = re.compile(r'\{"jsonrpc":"2\.0","id":("[^"]*"|-?\d+),"(result|error)"')
NAMED = {'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri'}


class Upstream(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, args):
        super().__init__(('127.0.0.1', args.port), Handler)
        self.args = args
        if args.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*args.tls)
            context.set_alpn_protocols(['h2', 'http/1.1'])
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.server_logic = Server('http-upstream', args.era, args.page)
        self.shared = State()
        self.sessions = {}
        self.streams = {}
        self.kept = {}

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):  # a client that was killed is no news
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *args):
        pass

    def record(self, body):
        args = self.server.args
        if body is not None:
            append(args.file, b'\x1e' + body + b'\n')
        append(args.file + '.heads', dump({'line': self.requestline, 'headers': self.headers.items()}).encode() + b'\n')

    def answer(self, status, body=b'', kind='application/json', headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if body:
            self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def refuse(self, status, message, code, text, data=None):
        error = {'code': code, 'message': text, **({'data': data} if data else {})}
        ident = message.get('id') if isinstance(message, dict) else None
        self.answer(status, dump({'jsonrpc': '2.0', 'id': ident, 'error': error}).encode())

    def begin_stream(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Cache-Control', 'no-cache')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
        self.wfile.flush()

    def event(self, text):
        self.chunk(b'event: message\ndata: ' + text.encode() + b'\n\n')

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.record(body)
        try:
            message = json.loads(body)
        except ValueError:
            return self.refuse(400, None, -32700, 'Parse error')
        if getattr(self.server.args, '2024'):
            return self.channel_post(message)
        if claim(message) is not None and self.server.args.era != 'legacy':
            return self.modern(message)
        if self.server.args.era == 'modern':
            if 'id' not in message:
                return self.answer(202)
            if message.get('method') == 'initialize':
                return self.refuse(400, message, -32022, 'Unsupported protocol version',
                                   {'supported': [MODERN], 'requested': (message.get('params') or {}).get('protocolVersion')})
            return self.refuse(400, message, -32602, f'Missing {PREFIX}protocolVersion')
        return self.legacy(message)

    def legacy(self, message):
        session, sessions = self.headers.get('Mcp-Session-Id'), self.server.sessions
        version = self.headers.get('MCP-Protocol-Version')
        headers = ()
        if message.get('method') == 'initialize':
            if not self.server.args.stateless:
                session = 'up-' + secrets.token_hex(8)
                sessions[session] = State()
                headers = (('Mcp-Session-Id', session),)
        elif self.server.args.stateless:
            pass
        elif session is None:
            return self.refuse(400, message, -32000, 'Bad Request: Server not initialized')
        elif session not in sessions:
            return self.refuse(404, message, -32001, 'Session not found')
        elif version is not None and version not in LEGACY_VERSIONS:
            return self.refuse(400, message, -32000, f'Bad Request: Unsupported protocol version: {version}')
        return self.serve(sessions.get(session, self.server.shared), message, False, headers)

    def modern(self, message):
        method, version = message.get('method'), claim(message)
        params = message.get('params') or {}
        if 'id' not in message:
            return self.answer(202)
        meta = params.get('_meta') or {}
        if not isinstance(meta.get(PREFIX + 'clientCapabilities'), dict):
            return self.refuse(400, message, -32602, f'Missing {PREFIX}clientCapabilities')
        if self.headers.get('MCP-Protocol-Version') != version:
            return self.refuse(400, message, -32020, 'MCP-Protocol-Version does not match the body')
        if version != MODERN:
            return self.refuse(400, message, -32022, 'Unsupported protocol version',
                               {'supported': [MODERN], 'requested': version})
        if self.headers.get('Mcp-Method') != method:
            return self.refuse(400, message, -32020, 'Mcp-Method does not match the body')
        if method in NAMED and self.headers.get('Mcp-Name') != params.get(NAMED[method]):
            return self.refuse(400, message, -32020, 'Mcp-Name does not match the body')
        if self.headers.get('Mcp-Session-Id'):
            return self.refuse(400, message, -32602, 'a modern request carries no session')
        return self.serve(self.server.shared, message, True, ())

    def serve(self, state, message, modern, headers):
        """JSON when the result is all there is to say, an event stream when something precedes it."""
        if 'id' not in message or 'method' not in message:
            self.server.server_logic.handle(state, message, lambda text: None, modern)
            return self.answer(202)
        if self.server.args.resume and not modern and message['method'] == 'tools/call':
            return self.serve_in_parts(state, message)
        opened, final = [], []

        def send(text):
            is_final = FINAL.match(text) is not None
            if is_final and not opened and not self.server.args.sse:
                final.append(text)
                return
            if not opened:
                self.begin_stream_with(headers)
                opened.append(True)
            if message.get('params', {}).get('name') == 'say' and not is_final:
                for stream in list(self.server.streams.values()):
                    stream.put(text)
            self.event(text)

        send.is_gone = self.is_gone
        try:
            self.server.server_logic.handle(state, message, send, modern)
            if self.is_gone():
                raise BrokenPipeError
            if opened:
                self.chunk(b'')
            elif final:
                status = 404 if modern and '"code":-32601' in final[0] else 200
                self.answer(status, final[0].encode(), headers=headers)
            else:
                self.answer(202)
        except (BrokenPipeError, ConnectionResetError):
            append(self.server.args.file + '.gone', dump(message.get('id')).encode() + b'\n')
            self.close_connection = True
        return None

    def serve_in_parts(self, state, message):
        """An empty event and the end; what else there is to say is kept for whoever asks with its id."""
        texts, stream = [], secrets.token_hex(4)
        self.server.server_logic.handle(state, message, texts.append, False)
        self.server.kept[stream] = texts
        self.begin_stream()
        self.chunk(f'id: {stream}-0\nretry: {self.server.args.resume}\ndata: \n\n'.encode())
        self.chunk(b'')

    def resume(self, last):
        stream, seen = last.rsplit('-', 1)
        if stream not in self.server.kept:
            return self.answer(404)
        self.begin_stream()
        for number, text in enumerate(self.server.kept[stream][int(seen):], int(seen) + 1):
            self.chunk(f'id: {stream}-{number}\ndata: {text}\n\n'.encode())
        self.chunk(b'')
        return None

    def channel_post(self, message):
        found = re.fullmatch(r'/messages\?session=(\w+)', self.path)
        if not found:
            return self.answer(405, headers=(('Allow', 'GET'),))
        channel = self.server.streams.get(found[1])
        if channel is None:
            return self.answer(404)
        self.answer(202)
        self.server.server_logic.handle(self.server.sessions[found[1]], message, channel.put, False)
        return None

    def channel_get(self):
        session = secrets.token_hex(8)
        self.server.sessions[session], channel = State(), queue.Queue()
        self.server.streams[session] = channel
        self.begin_stream()
        self.chunk(f'event: endpoint\ndata: /messages?session={session}\n\n'.encode())
        try:
            while True:
                self.event(channel.get())
        except OSError:
            self.close_connection = True

    def is_gone(self):
        """Whether the client closed its connection while we were working for it."""
        if self.server.args.tls:
            return False  # TLS cannot be peeked at
        poll = select.poll()  # select() knows no more than 1024 of them
        poll.register(self.connection, select.POLLIN)
        return bool(poll.poll(0)) and self.connection.recv(1, socket.MSG_PEEK) == b''

    def begin_stream_with(self, headers):
        self.send_response(200)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()

    def do_GET(self):
        self.record(None)
        session = self.headers.get('Mcp-Session-Id')
        if getattr(self.server.args, '2024'):
            return self.channel_get()
        if self.server.args.resume and self.headers.get('Last-Event-ID'):
            return self.resume(self.headers['Last-Event-ID'])
        if self.server.args.era == 'modern' or session not in self.server.sessions:
            return self.answer(405, headers=(('Allow', 'POST'),))
        stream = self.server.streams[session] = queue.Queue()
        self.begin_stream()
        self.chunk(b': hello\n\n')
        try:
            while True:
                try:
                    self.event(stream.get(timeout=15))
                except queue.Empty:
                    self.chunk(b': still here\n\n')
        except OSError:
            self.close_connection = True
        return None

    def do_DELETE(self):
        self.record(None)
        known = self.server.sessions.pop(self.headers.get('Mcp-Session-Id'), None)
        self.answer(200 if known else 404)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('file')
    parser.add_argument('--era', choices=('legacy', 'modern', 'both'), default='legacy')
    parser.add_argument('--sse', action='store_true')
    parser.add_argument('--stateless', action='store_true')
    parser.add_argument('--resume', type=int, default=0)
    parser.add_argument('--2024', action='store_true')
    parser.add_argument('--page', type=int, default=0)
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--tls', nargs=2, metavar=('CERT', 'KEY'))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    upstream = Upstream(parser.parse_args())
    print(f'listening {upstream.server_address[1]}', flush=True)
    try:
        upstream.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == '__main__':
    main()
