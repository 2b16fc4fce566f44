#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py [HOLDFAST]: what a client meets when something ends, with different programs in front of one server.

One small server with a counter for each session (COUNTER below, over HTTP and over a pipe) is used directly,
behind nginx, behind two MCP proxies of npm (fetched to .cache/compare) and behind Holdfast.  Each question of
QUESTIONS is asked of each of them.  The README has the table that this prints."""
import glob
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NPM = os.path.join(TOP, '.cache/compare')
PROXIES = {'mcp-proxy': '6.7.19', 'supergateway': '4.0.0'}
DEADLINE_S = 30
BIG = 9007199254740993  # 2^53 + 1, which a double cannot hold
MODERN = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}

COUNTER = r'''
import http.server, json, sys, uuid
counts = {}
def answer(m, session):
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "counter", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}}]}
    elif m["method"] == "tools/call":
        counts[session] = counts.get(session, 0) + 1
        said = m["params"].get("arguments", {}).get("n")
        r = {"content": [{"type": "text", "text": "count %d, n %s" % (counts[session], said)}], "_meta": m["params"].get("_meta", {})}
    else:
        return {"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no such method"}}
    return {"jsonrpc": "2.0", "id": m["id"], "result": r}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    known = set()
    def log_message(self, *args):
        pass
    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.reply(405)
    def do_POST(self):
        m = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers.get("Mcp-Session-Id")
        more = {}
        if m.get("method") == "initialize":
            session = uuid.uuid4().hex
            self.known.add(session)
            more = {"Mcp_Session_Id": session}
        elif session not in self.known:
            return self.reply(404 if session else 400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no such session"}}')
        if "id" not in m:
            return self.reply(202)
        self.reply(200, json.dumps(answer(m, session)).encode(), **more)
if len(sys.argv) > 1 and sys.argv[1].isdigit():
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m and "method" in m:
        print(json.dumps(answer(m, "pipe")), flush=True)
'''


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def wait_port(port, process):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(('127.0.0.1', port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise SystemExit(f'compare: {process.args} does not listen on {port}')


class Process:
    """A program that listens on a port, in a process group of its own."""

    def __init__(self, command, port, folder, env=None):
        self.command, self.port, self.folder, self.env = command, port, folder, env
        self.start()

    def start(self):
        with open(os.path.join(self.folder, 'log'), 'ab') as log:
            self.process = subprocess.Popen(self.command, cwd=self.folder, env={**os.environ, **(self.env or {})},
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_port(self.port, self.process)

    def kill(self):
        """kill -9 of the program alone, then of what it leaves behind in its group."""
        self.process.kill()
        self.process.wait()
        end_group(self.process.pid)


def end_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Front:
    """A server with something in front of it."""

    def __init__(self, folder, binary):
        self.folder, self.binary, self.path = folder, binary, '/mcp'
        self.script = os.path.join(folder, 'counter.py')
        with open(self.script, 'w', encoding='utf-8') as file:
            file.write(COUNTER)
        self.server = None
        self.front = None
        self.make()

    def http_server(self):
        port = free_port()
        self.server = Process(['/usr/bin/python3', self.script, str(port)], port, self.folder)
        return port

    def make(self):
        raise NotImplementedError

    def kill_front(self):
        self.front.kill()
        self.front.start()

    def kill_server(self):
        if self.server:
            self.server.kill()
            self.server.start()
            return
        pids = [int(path.split('/')[2]) for path in glob.glob('/proc/[0-9]*/cmdline') if runs(path, self.script)]
        assert pids, 'the server does not run'
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def close(self):
        for each in (self.front, self.server):
            if each:
                each.kill()

    @property
    def port(self):
        return self.front.port if self.front else self.server.port


def runs(cmdline, script):
    try:
        with open(cmdline, 'rb') as file:
            words = file.read().split(b'\0')
    except OSError:
        return False
    return words[:2] == [b'/usr/bin/python3', script.encode()]


class Direct(Front):
    def make(self):
        self.http_server()


class Nginx(Front):
    def make(self):
        behind, port = self.http_server(), free_port()
        temp = ''.join(f'{kind}_temp_path {self.folder}/{kind};' for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        with open(os.path.join(self.folder, 'nginx.conf'), 'w', encoding='utf-8') as file:
            file.write(f'daemon off; master_process off; pid {self.folder}/pid; error_log {self.folder}/log; events {{}}\n'
                       f'http {{ access_log off; {temp} server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{behind}; }} }} }}\n')
        self.front = Process([shutil.which('nginx') or '/usr/sbin/nginx', '-c', f'{self.folder}/nginx.conf', '-p', self.folder], port, self.folder)


class McpProxy(Front):
    def make(self):
        port = free_port()
        self.front = Process([node(), npm('mcp-proxy'), '--port', str(port), '--server', 'stream', '--', '/usr/bin/python3', self.script],
                             port, self.folder)


class Supergateway(Front):
    def make(self):
        port = free_port()
        self.front = Process([node(), npm('supergateway'), '--stdio', f'/usr/bin/python3 {self.script}', '--outputTransport', 'streamableHttp',
                              '--stateful', '--port', str(port), '--logLevel', 'none'], port, self.folder)


class Holdfast(Front):
    def make(self):
        port = free_port()
        with open(os.path.join(self.folder, 'holdfast.json'), 'w', encoding='utf-8') as file:
            json.dump({'mcpServers': {'counter': {'command': '/usr/bin/python3', 'args': [self.script]}}}, file)
        self.path = '/mcp/counter'
        self.front = Process([self.binary, 'up', '--config', 'holdfast.json', '--data', 'data', '--listen', f'127.0.0.1:{port}'], port,
                             self.folder, {'HOME': self.folder})


def node():
    found = sorted(glob.glob(os.path.join(TOP, 'tests/node_modules/node-linux-*/bin/node')))
    return found[0] if found else shutil.which('node') or 'node'


def npm(name):
    with open(os.path.join(NPM, 'node_modules', name, 'package.json'), encoding='utf-8') as file:
        programs = json.load(file)['bin']
    return os.path.join(NPM, 'node_modules', name, programs if isinstance(programs, str) else programs[name])


def fetch_proxies():
    """The proxies from npm, at the versions of PROXIES."""
    def there(name, version):
        try:
            with open(os.path.join(NPM, 'node_modules', name, 'package.json'), encoding='utf-8') as file:
                return json.load(file)['version'] == version
        except OSError:
            return False
    if all(there(*each) for each in PROXIES.items()):
        return
    if not shutil.which('npm'):
        raise SystemExit('compare: npm is not installed, which fetches the proxies (Debian package npm)')
    os.makedirs(NPM, exist_ok=True)
    subprocess.run(['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', '--prefix', NPM,
                    *(f'{name}@{version}' for name, version in PROXIES.items())], check=True)


# The client.

class Client:
    def __init__(self, front):
        self.front, self.session, self.last = front, None, 0
        status, headers, _ = self.send('initialize', {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 'compare', 'version': '1'}})
        assert status == 200, f'initialize: {status}'
        self.session = headers.get('mcp-session-id')
        self.send('notifications/initialized', None)

    def send(self, method, params, more=None):
        """(status, headers, the JSON-RPC answer or None)."""
        message = {'jsonrpc': '2.0', 'method': method}
        if params is not None:
            self.last += 1
            message |= {'id': self.last, 'params': params}
        headers = {'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream', **(more or {})}
        if self.session:
            headers |= {'Mcp-Session-Id': self.session, 'MCP-Protocol-Version': '2025-06-18'}
        connection = http.client.HTTPConnection('127.0.0.1', self.front.port, timeout=10)
        try:
            connection.request('POST', self.front.path, json.dumps(message), headers)
            reply = connection.getresponse()
            found = {name.lower(): value for name, value in reply.getheaders()}
            if not found.get('content-type', '').startswith('text/event-stream'):
                text = reply.read().decode()
                return reply.status, found, json.loads(text) if text.startswith('{') else None
            for line in reply:
                if line.startswith(b'data:') and b'"id"' in line:
                    return reply.status, found, json.loads(line[5:])
            return reply.status, found, None
        except (OSError, http.client.HTTPException):
            return 0, {}, None
        finally:
            connection.close()

    def text(self, **arguments):
        """All texts of the result of a call; '' without a result."""
        _, _, answer = self.send('tools/call', {'name': 'count', 'arguments': arguments})
        content = ((answer or {}).get('result') or {}).get('content') or []
        return '\n'.join(part.get('text', '') for part in content)


# The questions.

def after_front(front):
    """The program in front is killed and started again: does the session id still work?"""
    if not front.front:
        return '–'
    client = Client(front)
    assert client.text().startswith('count 1')
    front.kill_front()
    return 'yes' if client.text().startswith('count') else 'no'


def after_server(front):
    """The server is killed: does the same session id work, within three calls, without a new initialize?"""
    client = Client(front)
    assert client.text().startswith('count 1')
    front.kill_server()
    said = [client.text() for _ in range(3)]
    worked = [text for text in said if text.startswith('count')]
    return ('yes, and the result says so' if 'lost' in worked[0] else 'yes') if worked else 'no'


def apart(front):
    """Two sessions count at the same time: has each its own count?"""
    one, two = Client(front), Client(front)
    return 'yes' if [c.text().split(',')[0] for c in (one, two, one)] == ['count 1', 'count 1', 'count 2'] else 'no'


def numbers(front):
    """Does an integer above 2^53 in the arguments reach the server unchanged?"""
    return 'yes' if f'n {BIG}' in Client(front).text(n=BIG) else 'no'


def modern(front):
    """A client of 2026-07-28 calls the server, which speaks 2025-06-18, without a handshake."""
    client = Client.__new__(Client)
    client.front, client.session, client.last = front, None, 0
    params = {'name': 'count', 'arguments': {}, '_meta': MODERN}
    _, _, answer = client.send('tools/call', params, {'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'count'})
    return 'yes' if 'count' in json.dumps((answer or {}).get('result', {})) else 'no'


QUESTIONS = (
    ('Two conversations have separate state', apart),
    ('A session continues after `kill -9` of the program in front', after_front),
    ('A session continues after the server was killed', after_server),
    ('A 2026-07-28 client can call a 2025 server', modern),
    ('Integers above 2^53 stay unchanged', numbers),
)
FRONTS = (('server directly', Direct), ('nginx', Nginx), ('mcp-proxy', McpProxy), ('supergateway', Supergateway), ('Holdfast', Holdfast))


def ask(question, kind, binary):
    with tempfile.TemporaryDirectory(prefix='holdfast-compare-') as folder:
        front = kind(folder, binary)
        try:
            return question(front)
        finally:
            front.close()


def main():
    binary = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, 'build/holdfast'))
    fetch_proxies()
    names = [f'{name} {PROXIES[name]}' if name in PROXIES else name for name, _ in FRONTS]
    print('| | ' + ' | '.join(names) + ' |\n|---' + '|---' * len(names) + '|')
    for text, question in QUESTIONS:
        print(f'| {text} | ' + ' | '.join(ask(question, kind, binary) for _, kind in FRONTS) + ' |', flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
