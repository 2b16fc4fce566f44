# SPDX-License-Identifier: Apache-2.0
"""What a client tells its session in ?config= or mcp-config: fixed when the session begins, kept sealed, given to
servers as ${context:KEY}, and shown to nobody."""
import base64
import glob
import json
import os
import subprocess
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import BINARY, wait_for
from postgres import shared_keys
from rest import Rest

SECRET = 'cnry-51f0a2c7d4'
PROFILES = {'ctx': {'context': {'keys': ['region', 'token', 'n']}}, 'plain': {}}
OTHER = 'The config of this request is not what its session has'


def query(config, path='/mcp/p/ctx'):
    return path + '?config=' + urllib.parse.quote(json.dumps(config))


def url_base64(config):
    return base64.urlsafe_b64encode(json.dumps(config).encode()).decode().rstrip('=')


@pytest.fixture
def world(holdfast, stdio_server, http_server):
    rec, record = stdio_server('rec', env={'REGION': '${context:region}', 'TOKEN': 'Bearer ${context:token:-none}', 'N': '${context:n:-}'})
    web = http_server('web')
    entry = web.entry(headers={'X-Region': 'r-${context:region}', 'X-Token': '${context:token:-none}'}, handles='never')

    def make(**options):
        hf = holdfast({'rec': rec, 'web': entry}, {'profiles': PROFILES}, **options)
        hf.record, hf.web = record, web
        return hf
    return make


def client_of(hf, path, modern, **options):
    client = hf.client(path, modern=modern, **options)
    return client if modern else client.connect()


def environment(client, **options):
    reply = client.call('rec__env', **options)
    assert reply.status == 200 and reply.result and 'content' in reply.result, reply
    found = json.loads(reply.result['content'][0]['text'])
    return {k: found.get(k) for k in ('REGION', 'TOKEN', 'N')}


def headers_of(hf, client, **options):
    """The headers of the last call that reached the HTTP server."""
    assert client.call('web__counter', **options).status == 200
    head = [dict((k.lower(), v) for k, v in h['headers']) for h in hf.web.record.heads() if h['line'].startswith('POST')][-1]
    return head.get('x-region'), head.get('x-token')


def test_legacy__each_session_has_what_its_initialize_told_also_after_a_crash(world):
    hf = world()
    north = client_of(hf, query({'region': 'north', 'token': 't1', 'n': 1.50}), False)
    south = hf.client('/mcp/p/ctx', headers={'mcp-config': url_base64({'region': 'south'})}).connect()
    for _ in range(2):
        for one, path, region, token, n in ((north, '/mcp/p/ctx', 'north', 't1', '1.5'), (south, '/mcp/p/ctx', 'south', 'none', '')):
            one.path, one.fixed = path, {}  # not carried any more
            assert environment(one) == {'REGION': region, 'TOKEN': 'Bearer ' + token, 'N': n}
            assert headers_of(hf, one) == ('r-' + region, token)
        hf.restart(kill=True)
    assert len(Rest(hf).get('/sessions').json()['sessions']) == 2
    shown = {tuple(s['profile_context_keys']) for s in Rest(hf).get('/sessions').json()['sessions']}
    assert shown == {('n', 'region', 'token'), ('region',)}


def test_legacy__the_same_config_may_come_again_and_another_may_not(world):
    hf = world()
    client = client_of(hf, query({'region': 'north', 'token': 't1'}), False)
    assert environment(client)['REGION'] == 'north'
    # another spelling of the same; then another
    client.path, client.fixed = '/mcp/p/ctx', {'mcp-config': ' {"token": "t1", "region":"north"}'}
    assert environment(client)['REGION'] == 'north' and client.rpc('tools/list').status == 200
    client.path, client.fixed = '/mcp/p/ctx?config=', {'mcp-config': '{}'}  # which says nothing
    assert environment(client)['REGION'] == 'north'
    client.path, client.fixed = query({'region': SECRET, 'token': 't1'}), {}
    for reply in (client.call('rec__env'), client.rpc('tools/list'), client.rpc('ping')):
        assert reply.status == 400 and reply.code == -32600 and OTHER in reply.error['message'] and SECRET not in repr(reply)
    assert client.delete().status == 400
    begun_without = client_of(hf, '/mcp/p/ctx', False)
    assert begun_without.call('web__counter').error['code'] == -32602
    begun_without.path = query({'region': 'late'})
    assert environment(begun_without)['REGION'] == 'late'  # its first call made the session


def test_modern__the_session_that_a_request_makes_keeps_it(world):
    hf = world()
    north, south = hf.client(query({'region': 'north'}), modern=True), hf.client(query({'region': 'south'}), modern=True)
    handles = {}
    for name, one in (('north', north), ('south', south)):
        reply = one.call('rec__env')
        assert json.loads(reply.result['content'][0]['text'])['REGION'] == name
        handles[name] = reply.result['content'][-1]['text'].split('[session: ')[1].split(']')[0]
    bare = hf.client('/mcp/p/ctx', modern=True)
    for name in ('south', 'north'):
        reply = bare.call('rec__env', {'session_id': handles[name]})
        assert json.loads(reply.result['content'][0]['text'])['REGION'] == name
    assert OTHER in south.call('rec__env', {'session_id': handles['north']}).error['message']
    named = {'session_id': 'a conversation'}
    assert environment(north, meta=named)['REGION'] == 'north' and environment(bare, meta=named)['REGION'] == 'north'
    assert OTHER in south.call('rec__env', meta=named).error['message']
    by_id = {'mcp-client-id': 'window'}
    assert headers_of(hf, south, headers=by_id)[0] == 'r-south' and headers_of(hf, bare, headers=by_id)[0] == 'r-south'
    assert 'under another client id' in north.call('web__counter', headers=by_id).error['message']
    # nothing names these: the config itself tells them apart
    for _ in range(2):
        assert [headers_of(hf, one)[0] for one in (north, south)] == ['r-north', 'r-south']
    assert 'The server web needs "region"' in bare.call('web__counter').error['message']
    assert [one.rpc('tools/list').status for one in (north, south, bare)] == [200] * 3
    origins = [s['origin'] for s in Rest(hf).get('/sessions').json()['sessions']]
    assert sorted(origins) == ['derived', 'derived', 'injected', 'injected', 'keyed', 'keyed'], origins


def test_modern__requests_that_begin_a_session_at_once_agree(world):
    hf = world()
    by_id = {'mcp-client-id': 'window'}
    clients = [hf.client(query({'region': 'north', 'n': 1}), modern=True, headers=by_id) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:  # the first of the tenant: its key is made meanwhile
        replies = list(pool.map(lambda one: one.call('rec__env'), clients))
    assert [json.loads(r.result['content'][0]['text'])['REGION'] for r in replies] == ['north'] * 8
    assert len({r.result['structuredContent']['pid'] for r in replies}) == 1
    session, = Rest(hf).get('/sessions').json()['sessions']
    assert session['profile_context_keys'] == ['n', 'region']
    hf.restart(kill=True)
    assert environment(hf.client('/mcp/p/ctx', modern=True, headers=by_id))['REGION'] == 'north'


def test_refusals__name_the_key_and_never_the_value(world):
    hf = world()

    def refused(path, words, headers=None):
        reply = hf.client(path, headers=headers).initialize()
        assert reply.status == 400 and reply.code == -32600 and words in reply.error['message'], reply
        assert SECRET not in repr(reply) and reply.json['id'] == 0
    refused(query({'region': SECRET, 'regoin': SECRET}), 'the key "regoin" of the config is not among')
    refused(query({'region': {'a': SECRET}}), 'the key "region" of the config must be a string')
    refused(query({'region': None}), 'the key "region" of the config must be a string')
    refused(query({'region': 'a\0' + SECRET}), 'the key "region" of the config has a NUL')
    refused(query([SECRET]), 'no JSON object')
    refused('/mcp/p/ctx?config=%7B%22region%22:%22' + SECRET, 'no JSON object')
    refused('/mcp/p/ctx?config=%7B%22region%22:%22a%22,%22region%22:%22a%22%7D', 'no JSON object')
    refused('/mcp/p/ctx?config=' + SECRET + '!', 'neither JSON nor base64')
    refused('/mcp/p/ctx?config=%zz', 'broken escape')
    refused(query({'region': 'a'}) + '&config=', 'more than once')
    refused(query({'region': 'a'}), 'differ', {'mcp-config': '{"region": "b"}'})
    refused(query({'region': SECRET}, '/mcp/p/plain'), 'this profile has no "context"')
    assert hf.client('/mcp/p/plain?config=e30%3D').initialize().status == 200  # {}: as some clients always send
    assert hf.client(query({'region': SECRET}, '/mcp')).initialize().status == 200  # no profile: nobody asks
    missing = 'The server rec needs "region", which was not given to this session'
    for path, modern in ((query({'token': 'x'}), False), ('/mcp/p/plain', False), ('/mcp', True), ('/mcp/p/ctx', True)):
        reply = client_of(hf, path, modern).call('rec__env')
        assert missing in reply.error['message'] and reply.code == -32602, reply
    assert missing in client_of(hf, '/mcp/rec', True).call('env').error['message']
    broken = client_of(hf, query({'region': 'a\r\nX-Evil: ' + SECRET}), False)
    reply = broken.call('web__counter')
    assert 'cannot be sent in the header X-Region of the server web' in reply.error['message'] and SECRET not in repr(reply)
    assert environment(broken)['REGION'] == 'a\r\nX-Evil: ' + SECRET  # an environment can have it


def test_values__that_are_too_long_together_are_refused_and_no_default_is_held_against_them(holdfast, stdio_server, http_server):
    wide = {'X-Wide': '${context:region}' * 8 + '${context:token:-}', 'X-Token': 'Bearer ${context:n:-}'}
    rec, record = stdio_server('rec', env={'WIDE': wide['X-Wide']})
    web = http_server('web')
    hf = holdfast({'rec': rec, 'web': web.entry(headers=wide, handles='never')}, {'profiles': PROFILES})

    def told(n):  # 32 KiB where they stand, counted as often as they do
        config = {'region': 'r' * 4000, 'token': 't' * n}
        return hf.client('/mcp/p/ctx', headers={'mcp-config': json.dumps(config)}).connect()
    fits, long = told(768), told(769)
    assert fits.call('web__counter').result and fits.call('rec__counter').result
    started = record.starts()
    for tool, where in (('web__counter', 'headers of the server web'), ('rec__counter', 'environment of the server rec')):
        reply = long.call(tool)
        assert reply.code == -32600 and f'need 32769 bytes in the {where}, of at most 32768' in reply.error['message'], reply
    assert record.starts() == started and fits.call('rec__counter').result  # the server is not down for that
    head = [dict((k.lower(), v) for k, v in h['headers']) for h in web.record.heads() if h['line'].startswith('POST')][-1]
    assert len(head['x-wide']) == 32768 and head['x-token'].strip() == 'Bearer'


def test_values__that_their_server_does_not_start_with_are_no_fault_of_others(holdfast, stdio_server):
    entry, _ = stdio_server('rec', env={'REGION': '${context:region:-eu}'})
    picky = '[ "$REGION" != bad ] || { echo no region $REGION >&2; exit 3; }; exec "$0" "$@"'
    entry['command'], entry['args'] = '/bin/sh', ['-c', picky, entry['command'], *entry['args']]
    hf = holdfast({'rec': entry}, {'profiles': PROFILES})
    bad, good, none = (hf.client(path, modern=True) for path in (query({'region': 'bad'}), query({'region': 'good'}), '/mcp/p/ctx'))
    for _ in range(2):
        assert 'no region bad' in bad.call('rec__env').error['message']
        assert [json.loads(one.call('rec__env').result['content'][0]['text'])['REGION'] for one in (good, none)] == ['good', 'eu']


def files_of(folder):
    for path in glob.glob(os.path.join(folder, '**'), recursive=True):
        if os.path.isfile(path):
            with open(path, 'rb') as file:
                yield path, file.read()


def test_values__are_in_no_log_file_or_answer_and_rotation_carries_them(world):
    hf = world(env={'HOLDFAST_LOG_LEVEL': 'debug'})
    inside, header = SECRET + '-query', SECRET + '-header'
    one = client_of(hf, query({'region': inside}), False)
    other = hf.client('/mcp/p/ctx', headers={'mcp-config': url_base64({'region': 'x', 'token': header})}).connect()
    seen = [one.call('rec__counter'), other.call('rec__counter'), one.call('web__counter')]
    pids = hf.record.starts()
    children = [open(f'/proc/{p}/environ', 'rb').read() for p in pids if os.path.exists(f'/proc/{p}')]
    assert any(inside.encode() in c for c in children) and any(header.encode() in c for c in children)
    wait_for(lambda: any(inside in str(h) for h in hf.web.record.heads()), 'the header')
    api = Rest(hf)
    seen += [api.get('/sessions'), api.get('/audit/events'), hf.get('/metrics'), hf.get('/health')]
    assert SECRET not in repr([r.body if hasattr(r, 'body') else repr(r) for r in seen])
    with open(f'/proc/{hf.process.pid}/environ', 'rb') as own:
        assert SECRET.encode() not in own.read()
    forms = [SECRET.encode(), base64.b64encode(json.dumps({'region': 'x', 'token': header}).encode())[:60]]
    hf.stop()
    rotated = subprocess.run([BINARY, 'key', 'rotate-master', '--data', hf.data, '--reseal'], capture_output=True, text=True,
                             timeout=60, env={**os.environ, **hf.env}, check=False)
    assert rotated.returncode == 0, rotated
    for path, content in files_of(hf.folder):
        assert not any(f in content for f in forms), path
    assert SECRET not in '\n'.join(hf.lines) + rotated.stdout + rotated.stderr
    hf.start()
    one.path, other.fixed = '/mcp/p/ctx', {}
    assert environment(one)['REGION'] == inside and environment(other)['TOKEN'] == 'Bearer ' + header


def test_nodes__another_one_has_it_too(holdfast, cluster, stdio_server):
    entry, _ = stdio_server('rec', env={'REGION': '${context:region}', 'TOKEN': '${context:token:-}'})
    url, made = cluster.database(), []
    for _ in range(2):
        env = {'DATABASE_URL': url}
        if made:
            env.update(shared_keys(made[0]))
        made.append(holdfast({'rec': entry}, {'profiles': PROFILES}, env=env))
    here = client_of(made[0], query({'region': 'north', 'token': SECRET}), False)
    there = made[1].client('/mcp/p/ctx')
    there.session, there.version = here.session, here.version
    assert json.loads(there.call('rec__env').result['content'][0]['text'])['REGION'] == 'north'
    there.path = query({'region': 'south'})
    assert OTHER in there.call('rec__env').error['message']
    rows = cluster.sql(url, "SELECT encode(profile_context_encrypted, 'escape') FROM mcp.edge_mcp_sessions")
    assert rows[0][0].startswith('hfs1.') and SECRET not in str(cluster.sql(url, 'SELECT * FROM mcp.edge_mcp_sessions'))
