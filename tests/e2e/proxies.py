# SPDX-License-Identifier: Apache-2.0
"""nginx and HAProxy with the examples of deploy/examples: only addresses, the certificate and what belongs to the
machine are replaced."""
import csv
import io
import os
import shutil
import socket
import subprocess

import harness
from harness import DEADLINE_S, TOP, Connection, wait_for

NAME = 'mcp.example.com'
NODES = ('10.46.53.11:4653', '10.46.53.12:4653')
# What a distribution's own nginx.conf says around a file of conf.d.
AROUND = '''{user}daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    include {folder}/holdfast.conf;
}}
'''


def program(name):
    """Its path, or None."""
    path = shutil.which(name) or f'/usr/sbin/{name}'
    return path if os.access(path, os.X_OK) else None


def example(name, *changes):
    """The text of an example with each change made: (what is there, what takes its place)."""
    with open(os.path.join(TOP, 'deploy/examples', name), encoding='utf-8') as file:
        text = file.read()
    for old, new in changes:
        assert old in text, f'{name} has no {old!r}'
        text = text.replace(old, new)
    return text


class NamedConnection(Connection):
    """A client that knows the proxy by its name."""

    def __init__(self, port, tls, source=None):  # pylint: disable=super-init-not-called
        raw = socket.create_connection(('127.0.0.1', port), timeout=DEADLINE_S, source_address=source and (source, 0))
        self.socket = tls.wrap_socket(raw, server_hostname=NAME)
        self.port, self.rest = port, b''

    def head_bytes(self, method, path, headers, body):
        return super().head_bytes(method, path, {'Host': NAME, **(headers or {})}, body)


class Proxy(harness.Holdfast):
    """What clients see: the name, port and certificate of the proxy.  `source`: the address that they connect from."""

    def __init__(self, folder, nodes, authority, changes=()):  # pylint: disable=super-init-not-called
        self.folder, self.context, self.source = str(folder), authority.context(), None
        self.cert, self.key = authority.sign(os.path.basename(self.folder), f'DNS:{NAME}')
        self.context.set_alpn_protocols(['http/1.1'])
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]
        addresses = [(old, f'127.0.0.1:{node.port}') for old, node in zip(NODES, nodes)]
        self.process = self.launch([*addresses, *changes])
        wait_for(self.is_there, self.folder, 20)

    def launch(self, changes):
        raise NotImplementedError

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def connection(self):
        return NamedConnection(self.port, self.context, self.source)

    def is_there(self):
        assert self.process.poll() is None, f'{self.folder} ended with {self.process.returncode}'
        try:
            return self.get('/healthz').status in (200, 403)
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        self.process.wait(DEADLINE_S)


class Nginx(Proxy):
    def launch(self, changes):
        self.write('holdfast.conf', example('nginx.conf', ('listen 443 ', f'listen 127.0.0.1:{self.port} '),
                                            ('/etc/ssl/certs/mcp.example.com.pem', self.cert),
                                            ('/etc/ssl/private/mcp.example.com.key', self.key),
                                            ('fail_timeout=5s', 'fail_timeout=1s'), *changes))
        config = self.write('nginx.conf', AROUND.format(folder=self.folder, user='user root; ' if os.geteuid() == 0 else ''))
        return subprocess.Popen([program('nginx'), '-p', self.folder, '-c', config, '-e', self.folder + '/error.log'])


class Haproxy(Proxy):
    def launch(self, changes):
        with open(self.cert, encoding='ascii') as cert, open(self.key, encoding='ascii') as key:
            pem = self.write('both.pem', cert.read() + key.read())
        config = self.write('haproxy.cfg', example('haproxy.cfg', ('bind :443 ', f'bind 127.0.0.1:{self.port} '),
                                                   ('/etc/haproxy/mcp.example.com.pem', pem),
                                                   ('    user haproxy\n    group haproxy\n    log /dev/log local0\n',
                                                    f'    stats socket {self.folder}/stats\n'), ('inter 2s', 'inter 200ms'),
                                                   ('    log global\n    option httplog\n', ''), *changes))
        checked = subprocess.run([program('haproxy'), '-c', '-f', config], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert checked.returncode == 0 and 'WARNING' not in checked.stderr, checked.stderr
        return subprocess.Popen([program('haproxy'), '-db', '-f', config], stderr=subprocess.DEVNULL)

    def checks(self):
        """{(backend, server): (state, result of the last check)}."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE_S)
            s.connect(self.folder + '/stats')
            s.sendall(b'show stat\n')
            text = b''.join(iter(lambda: s.recv(1 << 16), b'')).decode()
        rows = csv.DictReader(io.StringIO(text.removeprefix('# ')))
        return {(row['pxname'], row['svname']): (row['status'], row['check_status']) for row in rows if row['svname'].startswith('node')}


KINDS = {'nginx': Nginx, 'haproxy': Haproxy}
