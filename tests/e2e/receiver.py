# SPDX-License-Identifier: Apache-2.0
"""Receivers outside of Holdfast, over HTTP and HTTPS: what they got, and answers that a test chooses."""
import http.server
import json
import ssl
import subprocess
import threading

from harness import NODE_MODULES, PEERS, node, wait_for


class Receiver:
    """Keeps every POST.  `answers` is what it says next, one after the other, then 200: a status, a tuple (status,
    headers, body), bytes for the whole answer, or a threading.Event to wait for before the connection is closed
    without one."""

    def __init__(self, tls=None, body=b''):
        self.posts, self.answers, self.body = [], [], body
        self.turn = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                with outer.turn:
                    answer = outer.answers.pop(0) if outer.answers else 200
                    outer.posts.append({'path': self.path, 'headers': dict(self.headers), 'body': body, 'answer': answer})
                outer.answer(self, answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://localhost:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler, answer):
        if isinstance(answer, threading.Event):
            answer.wait(60)
            handler.close_connection = True
            return
        if isinstance(answer, bytes):
            handler.close_connection = True
            try:
                handler.wfile.write(answer)
            except OSError:
                pass  # Holdfast had enough of it
            return
        status, headers, body = answer if isinstance(answer, tuple) else (answer, {}, self.body)
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header('Content-Length', str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def taken(self):
        """The posts that were answered with 2xx."""
        with self.turn:
            return [p for p in self.posts if p['answer'] == 200 or
                    (isinstance(p['answer'], tuple) and p['answer'][0] // 100 == 2)]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Collector(Receiver):
    """A collector of traces that decodes with OpenTelemetry's own definitions."""

    def __init__(self, **options):
        super().__init__(**options)
        self.decoder = subprocess.Popen([node(), PEERS + '/otlp_decode.mjs', NODE_MODULES + '/..'], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.decoded = {}

    def decode(self, body):
        if body not in self.decoded:
            import base64
            self.decoder.stdin.write(base64.b64encode(body).decode() + '\n')
            self.decoder.stdin.flush()
            one = json.loads(self.decoder.stdout.readline())
            assert one['check'] is None and one['canonical'], one
            self.decoded[body] = one
        return self.decoded[body]

    def spans(self, method=None):
        found = [s for p in self.taken() for s in self.decode(p['body'])['spans']]
        return [s for s in found if method in (None, s['attributes']['mcp.method.name'])]

    def wait(self, count, method='tools/call'):
        return wait_for(lambda: len(self.spans(method)) >= count and self.spans(method), f'{count} spans of {method}')

    def close(self):
        super().close()
        self.decoder.stdin.close()
        self.decoder.wait(20)
        self.decoder.stdout.close()
