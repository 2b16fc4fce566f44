# SPDX-License-Identifier: Apache-2.0
"""The scripted server (scripted.py) over Streamable HTTP."""
import json
import queue
import secrets
import select
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mcp_server import MODERN, append, claim, dump
from scripted import Peer, Server


class Http(Server, ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, args):
        Server.__init__(self, args)
        ThreadingHTTPServer.__init__(self, ('127.0.0.1', args.port), Handler)
        self.peers, self.shared = {}, Peer(self)

    def standalone(self, peer, text):
        peer.standalone.put(text)

    def everybody(self):
        return list(self.peers.values())

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def run(self):
        print(f'listening {self.server_address[1]}', flush=True)
        self.serve_forever()


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def record(self, body):
        if body is not None:
            append(self.server.args.file, b'\x1e' + body + b'\n')
        append(self.server.args.file + '.heads', dump({'line': self.requestline, 'headers': self.headers.items()}).encode() + b'\n')

    def reply(self, status, body=b'', headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if body:
            self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin(self, headers=()):
        self.send_response(200)
        for name, value in (*headers, ('Content-Type', 'text/event-stream'), ('Transfer-Encoding', 'chunked')):
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
        self.wfile.flush()

    def event(self, text):
        self.chunk(b''.join(b'data: ' + line + b'\n' for line in text.encode().split(b'\n')) + b'\n')

    def is_gone(self):
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b''
        except OSError:
            return True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.record(body)
        message, server = json.loads(body), self.server
        headers = ()
        if server.modern:
            peer = server.shared
            if claim(message) is None and 'id' in message:
                return self.reply(400, dump({'jsonrpc': '2.0', 'id': message['id'], 'error': {
                    'code': -32022, 'message': 'Unsupported protocol version', 'data': {'supported': [MODERN]}}}).encode())
        elif message.get('method') == 'initialize':
            session = 'up-' + secrets.token_hex(8)
            peer = server.peers[session] = Peer(server)
            headers = (('Mcp-Session-Id', session),)
        else:
            peer = server.peers.get(self.headers.get('Mcp-Session-Id'))
            if peer is None:
                status = server.shape.get('lost', 404) if self.headers.get('Mcp-Session-Id') else 400
                error = {'code': -32000, 'message': 'Bad Request: ' + server.shape.get('lost_text', 'Server not initialized')}
                return self.reply(status, dump({'jsonrpc': '2.0', 'id': None, 'error': error}).encode())
        if 'id' not in message or 'method' not in message:
            server.handle(peer, message, None, None)
            return self.reply(202)
        if message['method'] == 'subscriptions/listen' and server.modern:
            return self.listen(message)
        return self.serve(peer, message, headers)

    def serve(self, peer, message, headers):
        opened = []

        def send(text):
            if not opened and text.startswith('{"jsonrpc":"2.0","id":%s,"' % dump(message['id'])) and '"method"' not in text[:60]:
                return self.reply(200, text.encode(), headers)
            if not opened:
                self.begin(headers)
                opened.append(True)
            return self.event(text)

        try:
            self.server.handle(peer, message, send, self.is_gone)
            if opened:
                self.chunk(b'')
        except OSError:
            self.close_connection = True
        if self.is_gone():
            self.close_connection = True

    def listen(self, message):
        server = self.server
        self.begin()
        listen = server.open_listen(message, self.event)
        try:
            server.acknowledge(listen)
            while not listen.over.wait(0.005):
                if self.is_gone():
                    raise OSError
            self.event(server.end_of_listen(listen))
            self.chunk(b'')
            server.close_listen(listen, 'listen ended')
        except OSError:
            server.close_listen(listen, 'listen closed')
            self.close_connection = True

    def do_GET(self):
        self.record(None)
        peer = self.server.peers.get(self.headers.get('Mcp-Session-Id'))
        if peer is None:
            return self.reply(405, headers=(('Allow', 'POST'),))
        self.begin()
        self.chunk(b': hello\n\n')
        self.server.note('stream')
        try:
            while not self.is_gone():
                try:
                    self.event(peer.standalone.get(timeout=0.02))
                except queue.Empty:
                    pass
        except OSError:
            pass
        self.close_connection = True
        return None

    def do_DELETE(self):
        self.record(None)
        self.reply(200 if self.server.peers.pop(self.headers.get('Mcp-Session-Id'), None) else 404)
