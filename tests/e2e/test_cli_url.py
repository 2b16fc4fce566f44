# SPDX-License-Identifier: Apache-2.0
"""Commands with --url: https, host names, the certificate that is always verified, and the key in HOLDFAST_KEY."""
import json
import os
import socket

import pytest

import harness
from commands import run
from test_tls import Authority


@pytest.fixture(scope='module', name='ours')
def fixture_ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp('ours'), 'ours')


@pytest.fixture(scope='module')
def hf(tmp_path_factory, ours):
    """Holdfast over TLS, where everyone needs a key."""
    cert, key = ours.sign('good', names='DNS:localhost')
    hf = harness.Holdfast(tmp_path_factory.mktemp('url'), {'mcpServers': {}, 'holdfast': {
        'auth': 'required', 'tls': {'cert': cert, 'key': key}}}, tls=ours.context())
    hf.start()
    hf.keys = {role: json.loads(run(hf, 'key', 'create', '--name', role, '--role', role, '--json').stdout)['key']
               for role in ('admin', 'member')}
    with hf.client('/mcp/sample', headers={'Authorization': 'Bearer ' + hf.keys['member']}) as client:
        client.connect().call('echo', {'message': 'over TLS'})
    yield hf
    hf.close()


def over(hf, *args, url=None, key='admin', env=None):
    keys = {'HOLDFAST_KEY': hf.keys.get(key, key)} if key else {}
    return run(hf, *args, '--url', url or f'https://localhost:{hf.port}', env={**keys, **(env or {})}, with_data=False)


@pytest.mark.parametrize('words', [('audit', 'list'), ('tail', '--until', 'now'), ('sessions', 'list'), ('key', 'list'), ('user', 'list'),
                                   ('servers', 'list'), ('docs', 'list')], ids=' '.join)
def test_https__serves_every_command(hf, ours, words):
    asked = over(hf, *words, '--ca', ours.cert)
    assert asked.returncode == 0, asked
    assert asked.stdout == over(hf, *words, env={'SSL_CERT_FILE': ours.cert}).stdout
    if words[0] in ('audit', 'tail'):
        assert 'echo' in asked.stdout and 'member' in asked.stdout


def test_https__changes_too(hf, ours):
    made = over(hf, 'key', 'create', '--name', 'passing', '--json', '--ca', ours.cert)
    ident = json.loads(made.stdout)['id']
    assert over(hf, 'key', 'revoke', ident, '--ca', ours.cert).returncode == 0
    [session] = [json.loads(line) for line in over(hf, 'sessions', 'list', '--json', '--ca', ours.cert).stdout.splitlines()]
    assert over(hf, 'sessions', 'end', session['id'], '--yes', '--ca', ours.cert).returncode == 0
    assert over(hf, 'sessions', 'list', '--json', '--ca', ours.cert).stdout == ''


def unused_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def test_refusals__say_what_to_do(hf, ours, tmp_path):
    theirs = Authority(tmp_path, 'theirs')
    ca = ('--ca', ours.cert)
    port = unused_port()
    for words, options, told in (
            ((), {}, 'give --ca FILE or set SSL_CERT_FILE'),
            (('--ca', theirs.cert), {}, 'the certificate of localhost is refused'),
            (ca, {'url': f'https://127.0.0.1:{hf.port}'}, 'is made for into --url'),
            (('--ca', os.path.join(tmp_path, 'nope')), {}, 'there is no file'),
            ((), {'url': f'http://localhost:{hf.port}'}, 'perhaps this port wants https://'),
            ((), {'url': 'https://nosuch.invalid'}, 'nosuch.invalid:443: its name could not be resolved'),
            (ca, {'url': f'https://localhost:{port}'}, f'localhost:{port}: connecting: Connection refused'),
            (ca, {'key': None}, '401: a credential is needed'),
            (ca, {'key': None}, 'HOLDFAST_KEY is not set'),
            (ca, {'key': 'hf_wrong'}, 'this was the key in HOLDFAST_KEY'),
            (ca, {'key': 'member'}, '403: This is for the roles admin and auditor'),
            (ca, {'url': f'http://localhost:{hf.port}'}, '--ca needs a --url that begins with https://'),
            (ca, {'url': f'https://localhost:{hf.port}/mcp'}, 'without a path')):
        refused = over(hf, 'key', 'list', *words, **options)
        assert refused.returncode != 0 and told in refused.stderr and refused.stdout == '', (words, options, refused)
    alone = run(hf, 'key', 'list', *ca)
    assert alone.returncode == 2 and '--ca belongs to --url' in alone.stderr


def test_clear_text__to_another_host_is_warned_of(hf):
    told = 'HOLDFAST_KEY crosses the network in clear'
    assert told in over(hf, 'key', 'list', url='http://nosuch.invalid').stderr
    assert told not in over(hf, 'key', 'list', url='http://nosuch.invalid', key=None).stderr
    assert told not in over(hf, 'key', 'list', url=f'http://127.0.0.1:{hf.port}').stderr
    assert told not in over(hf, 'key', 'list', url='https://nosuch.invalid').stderr
