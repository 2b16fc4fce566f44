# SPDX-License-Identifier: Apache-2.0
"""Two Holdfast on one PostgreSQL and one Redis behind nginx, which hands requests to them in turn: to
a client they are one."""
import json
import os
import shutil
import socket
import subprocess

import pytest

from commands import Executions, run
from harness import Holdfast, wait_for
from postgres import shared_keys
from redis_server import Redis
from rest import Rest

NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    upstream nodes {{ {servers} keepalive 8; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://nodes; proxy_http_version 1.1; proxy_buffering off;
            proxy_set_header Connection ""; proxy_set_header Host $http_host;
            add_header X-Node $upstream_addr always;
        }}
    }}
}}
"""


class Front(Holdfast):
    """What clients see of the fleet: the port of its nginx."""

    def __init__(self, folder, nodes):  # pylint: disable=super-init-not-called
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]
        self.tls = None
        config = os.path.join(folder, 'nginx.conf')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(NGINX.format(folder=folder, port=self.port,
                                    servers=' '.join(f'server 127.0.0.1:{n.port};' for n in nodes)))
        program = shutil.which('nginx') or '/usr/sbin/nginx'
        self.process = subprocess.Popen([program, '-p', str(folder), '-c', config, '-e', f'{folder}/error.log'])
        wait_for(self.is_there, 'nginx', 10)

    def is_there(self):
        try:
            return self.get('/healthz').status == 200
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture
def fleet(holdfast, cluster, http_server, tmp_path):
    redis = Redis()
    if not redis.is_there or not (shutil.which('nginx') or os.path.exists('/usr/sbin/nginx')):
        pytest.skip('no Redis or no nginx to start')
    web, url, made = http_server('web'), cluster.database(), []
    for _ in range(2):
        env = {'DATABASE_URL': url, 'REDIS_URL': redis.url}
        if made:
            env.update(shared_keys(made[0]))
        made.append(holdfast({'web': web.entry()}, {'auth': 'required'}, env=env))
    folder = tmp_path / 'nginx'
    folder.mkdir()
    front = Front(folder, made)
    yield front, made
    front.close()
    redis.close()


def test_a_session_is_made_read_used_and_revoked_wherever_the_request_goes(fleet):
    front, (a, _) = fleet
    made = json.loads(run(a, 'key', 'create', '--name', 'x', '--role', 'member', '--json').stdout)
    key = {'Authorization': 'Bearer ' + made['key']}
    rest, seen = Rest(front, key), set()
    name = rest.create(client_name='fleet')['session_id']
    for _ in range(6):
        reply = rest.get(f'/sessions/{name}')
        assert reply.status == 200 and reply.json()['client_name'] == 'fleet'
        seen.add(reply.header('x-node'))
    assert len(seen) == 2, seen
    client = front.client('/mcp/web', headers=key).connect()
    for n in range(6):
        reply = client.call('echo', {'text': str(n)}, meta={'session_id': name})
        assert reply.status == 200 and reply.result['content'][0]['text'] == str(n), reply
    executions = Executions().read(a).of_tool('echo')
    assert len(executions) == 6
    assert rest.delete(f'/sessions/{name}').status in (200, 204)
    for _ in range(6):
        assert rest.session(name)['status'] == 'terminated'
    assert run(a, 'key', 'revoke', made['id']).returncode == 0
    wait_for(lambda: {rest.request('GET', '/sessions').status for _ in range(4)} == {401}, 'the revocation', 5)
