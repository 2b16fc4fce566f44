# SPDX-License-Identifier: Apache-2.0
"""A template as the default of a profile: what sessions of MCP copy from it, and the command `templates`."""
import json
import subprocess
import threading

import pytest

import harness
from commands import command_env, run
from rest import Rest, refused

NEW = {'If-None-Match': '*'}
PROFILES = {'desk': {'mode': 'dynamic', 'toolsets': ['read', 'write'], 'template': 'desk'}, 'old': {'mode': 'all', 'template': 'desk@1'},
            'loud': {'mode': 'all', 'template': 'desk', 'audit': 'full'}, 'plain': {'mode': 'all'}}
SETTINGS = {'toolsets': {'read': {'tools': ['sample__echo']}, 'write': {'tools': ['sample__counter']}}, 'profiles': PROFILES}


@pytest.fixture
def api(holdfast, database):
    return Rest(holdfast(settings=SETTINGS, env=database))


def put(api, name, spec, headers=NEW):
    reply = api.put(f'/templates/{name}', spec, headers=headers)
    assert reply.status in (200, 201), reply
    return reply.header('etag')


def newest(api):
    return api.get('/sessions?limit=1').json()['sessions'][0]


def begin(api, path, tool='sample__echo', modern=False):
    client = api.holdfast.client(path, modern=modern)
    if not modern:
        client.connect()
    reply = client.call(tool, {'message': 'x'})
    assert reply.status == 200 and reply.result, reply
    return client, reply


def test_session__copies_the_version_of_the_time_it_begins(api):
    tag = put(api, 'desk', {'ttl': '2h', 'toolsets': ['read'], 'limits': {'calls': 3}, 'context': {'topic': 'a'}, 'metadata': {'team': 'b'}})
    client, _ = begin(api, '/mcp/p/desk')
    session = newest(api)
    assert session['setup'] == {'template': 'desk@1', 'limits': {'calls': 3}}
    assert session['connection_metadata']['team'] == 'b' and session['connection_metadata']['ip_address'] == '127.0.0.1'
    assert api.get(f"/sessions/{session['session_id']}/context").json() == {'topic': 'a'}
    put(api, 'desk', {'ttl': '3h', 'toolsets': ['write']}, {'If-Match': tag})
    assert client.call('sample__echo', {'message': 'y'}).status == 200
    assert newest(api)['setup']['template'] == 'desk@1'
    begin(api, '/mcp/p/desk', 'sample__counter')
    assert newest(api)['setup'] == {'template': 'desk@2'}
    begin(api, '/mcp/p/old')
    assert newest(api)['setup']['template'] == 'desk@1'
    begin(api, '/mcp/p/loud')
    assert newest(api)['setup']['audit'] == 'full' and newest(api)['setup']['template'] == 'desk@2'
    begin(api, '/mcp/p/plain')
    assert 'setup' not in newest(api)
    api.holdfast.restart()
    assert client.call('sample__echo', {'message': 'z'}).status == 200


def test_modern_and_keyed_sessions__get_it_once_also_when_they_begin_together(api):
    put(api, 'desk', {'limits': {'calls': 9}, 'context': {'n': 1}})
    begin(api, '/mcp/p/loud', modern=True)
    assert newest(api)['setup']['template'] == 'desk@1'
    before = api.get('/sessions?limit=200').json()['count']
    replies = []

    def one():
        client = api.holdfast.client('/mcp/p/loud', modern=True)
        replies.append(client.call('sample__echo', {'message': 'x'}, meta={'session_id': 'together'}))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r.status for r in replies] == [200] * 8 and all(r.result for r in replies)
    after = api.get('/sessions?limit=200').json()
    assert after['count'] == before + 1
    assert api.get(f"/sessions/{newest(api)['session_id']}/context").json() == {'n': 1}


def test_missing_template__refuses_what_would_begin_a_session(api):
    client = api.holdfast.client('/mcp/p/plain')
    client.connect()
    assert client.call('sample__echo', {'message': 'x'}).status == 200
    client = api.holdfast.client('/mcp/p/loud')
    client.connect()
    refusal = client.call('sample__echo', {'message': 'x'})
    text = refusal.text
    assert refusal.result['isError'] and 'The profile loud' in text and 'there is no template desk' in text
    put(api, 'desk', {})
    assert client.call('sample__echo', {'message': 'x'}).text == 'x'
    refused(api.delete('/templates/desk'), 409, 'conflict')
    assert 'the profile' in api.delete('/templates/desk').json()['detail']


def templates(hf, *args, given=None, status=0):
    done = subprocess.run([harness.BINARY, 'templates', *args, '--data', hf.data, '--quiet'], input=given, capture_output=True, text=True,
                          env=command_env(hf), timeout=60, check=False)
    assert done.returncode == status, done
    return done.stdout if status == 0 else done.stderr


@pytest.mark.parametrize('runs', (True, False))
def test_command__sets_shows_lists_and_removes(holdfast, tmp_path, runs):
    hf = holdfast()
    if not runs:
        hf.stop()
    assert templates(hf, 'list') == ''
    text = '{ "ttl": "1h",\n  "description": "first" }'
    assert templates(hf, 'set', 'a', given=text) == ''
    assert templates(hf, 'show', 'a') == text + '\n'
    (tmp_path / 'two.json').write_text('{"ttl":"2h"}')
    assert json.loads(templates(hf, 'set', 'a', '--file', str(tmp_path / 'two.json'), '--json'))['version'] == 2
    assert json.loads(templates(hf, 'show', 'a@1', '--json'))['spec']['ttl'] == '1h'
    assert [json.loads(line)['version'] for line in templates(hf, 'versions', 'a', '--json').splitlines()] == [2, 1]
    templates(hf, 'set', 'b', given='{"description":"the other"}')
    assert [json.loads(line)['name'] for line in templates(hf, 'list', '--json').splitlines()] == ['a', 'b']
    rows = [line.split() for line in templates(hf, 'list').splitlines()]
    assert rows[0][:2] == ['NAME', 'VERSION'] and rows[1][:2] == ['a', '2'] and rows[2][-2:] == ['the', 'other']
    templates(hf, 'set', 'a', '--tenant', 'acme', given='{}')
    assert json.loads(templates(hf, 'show', 'a', '--tenant', 'acme', '--json'))['version'] == 1
    assert templates(hf, 'remove', 'b') == ''
    assert 'there is no template b' in templates(hf, 'remove', 'b', status=1)
    assert 'there is no version 9 of a template a' in templates(hf, 'show', 'a@9', status=1)
    assert '"ttl"' in templates(hf, 'set', 'a', given='{"ttl":"99d"}', status=1)
    assert 'cannot be opened' in templates(hf, 'set', 'a', '--file', '/nonexistent', status=1)
    assert 'did you mean' in templates(hf, 'sho', status=2)
    assert 'NAME@2' in templates(hf, 'show', 'a@x', status=2)


def test_command__works_on_another_holdfast_with_the_rights_of_its_key(holdfast):
    hf = holdfast(settings={'auth': 'required'})
    keys = {role: run(hf, 'key', 'create', '--tenant', 'acme', '--role', role).stdout.strip() for role in ('admin', 'member')}

    def there(role, *args, given=''):
        return run(hf, 'templates', *args, '--url', f'http://127.0.0.1:{hf.port}', env={'HOLDFAST_KEY': keys[role]}, with_data=False, stdin=given)

    assert there('admin', 'set', 'a', given='{"ttl":"1h"}').returncode == 0
    assert json.loads(there('member', 'show', 'a', '--json').stdout)['version'] == 1
    for args in (('set', 'a'), ('remove', 'a')):
        refusal = there('member', *args, given='{}')
        assert refusal.returncode != 0 and 'admin' in refusal.stderr, refusal
    assert templates(hf, 'list') == '' and 'a' in templates(hf, 'list', '--tenant', 'acme')
    assert there('admin', 'remove', 'a').returncode == 0
