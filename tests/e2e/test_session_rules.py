# SPDX-License-Identifier: Apache-2.0
"""The set-up of a session at work: complete bodies, told once, limits of the session, its only profile, changes by an admin."""
import json
import secrets

import pytest

from commands import events
from harness import wait_for
from postgres import shared_keys
from redis_server import Redis
from rest import Rest, refused
from test_limits import ERAS, limited
from test_redaction import entry
from test_rest_roles import key_for
from test_templates import put

TOLD = {'type': 'text', 'text': '[holdfast: this session is recorded completely]'}
MIB = 1024 * 1024
PROFILE = {'toolsets': {'read': {'tools': ['sample__echo']}, 'count': {'tools': ['sample__counter*']}},
           'profiles': {'p': {'toolsets': ['read']}, 'd': {'mode': 'dynamic', 'toolsets': ['read', 'count']}, 'all': {}}}


def client_of(hf, modern, path='/mcp/sample'):
    client = hf.client(path, modern=modern)
    return client if modern else client.connect()


def echo(client, name, text='x', tool='echo', **members):
    """A call in the session of that name."""
    return client.call(tool, {'message': text, **members}, meta={'session_id': name})


def told(reply):
    """Whether this result tells that the session is recorded completely; it does so in both ways or in none."""
    meta = reply.result.get('_meta', {}).get('holdfast/recording')
    assert (meta is not None) == (TOLD in reply.result['content']), repr(reply)
    return meta


def bodies(hf, session, kind='intent'):
    """The stored bodies of the session's calls, oldest first."""
    ids = {e['id'] for e in events(hf) if e['kind'] == 'intent' and e.get('session_id') == session['id']}
    return [json.loads(e['body']) for e in events(hf) if e['kind'] == kind and (e['id'] in ids or e.get('exec') in ids)]


def patch(api, name, setup, status=200):
    tag = api.get(f'/sessions/{name}').header('etag')
    reply = api.patch(f'/sessions/{name}', {'setup': setup}, headers={'If-Match': tag})
    assert reply.status == status, reply
    return reply


# Complete bodies.

@ERAS
def test_full__is_stored_as_it_was_sent_and_told_once_also_after_a_restart(rest, modern):
    api = rest()
    hf = api.holdfast
    put(api, 'full', {'audit': 'full'})
    session, plain = api.create(template='full'), api.create()
    client = client_of(hf, modern)
    secret = 'password=hunter2-hunter2 ghp_' + 'A1b2C3d4E5f6' * 3
    first = echo(client, session['session_id'], secret)
    assert told(first) == {'audit': 'full', 'audit_body': 16384} and first.result['content'][0]['text'] == secret
    assert told(echo(client, session['session_id'], 'again')) is None
    assert told(echo(client, plain['session_id'], secret)) is None
    wait_for(lambda: api.session(session['session_id'])['setup'].get('told'), 'the stored set-up')
    assert 'hunter2' not in json.dumps(bodies(hf, plain)) + json.dumps(bodies(hf, plain, 'outcome'))
    assert bodies(hf, session)[0]['arguments'] == {'message': secret}
    assert bodies(hf, session, 'outcome')[0]['content'][0]['text'] == secret
    hf.restart()
    assert told(echo(client_of(hf, modern), session['session_id'])) is None
    assert api.session(session['session_id'])['setup'] == {'template': 'full@1', 'audit': 'full', 'told': True}


def message_of(client, name, size):
    """The text with which the params of a call have so many bytes."""
    params = {'name': 'echo', 'arguments': {'message': ''}, '_meta': {**(client.envelope if client.modern else {}), 'session_id': name}}
    return 'x' * (size - len(json.dumps(params, ensure_ascii=False, separators=(',', ':')).encode()))


@ERAS
@pytest.mark.parametrize('tool', ['sample__echo', 'run'])
def test_profile__records_its_sessions_completely_and_no_others(rest, modern, tool):
    api = rest(settings={'profiles': {'kept': {'audit': 'full', 'audit_body': '64KiB', 'mode': 'all' if tool != 'run' else 'search'}, 'other': {}}})
    hf = api.holdfast
    text = 'password=hunter2 ' + 'x' * 30_000
    arguments = {'message': text} if tool != 'run' else {'tool': 'sample__echo', 'parameters': {'message': text}}
    client = client_of(hf, modern, '/mcp/p/kept')
    first = client.call(tool, arguments, meta={'session_id': 'window-1'})
    assert told(first) == {'audit': 'full', 'audit_body': 65536}
    assert told(client.call(tool, arguments, meta={'session_id': 'window-1'})) is None
    other = client_of(hf, modern, '/mcp/p/other')
    assert told(echo(other, 'window-2', text, 'sample__echo')) is None
    stored = [json.loads(e['body']) for e in events(hf) if e['kind'] == 'outcome']
    assert [text in json.dumps(b) for b in stored] == [True, True, False]


@ERAS
def test_audit_body__at_its_size_whole_and_one_past_cut(rest, modern):
    api = rest()
    hf = api.holdfast
    put(api, 'most', {'audit': 'full', 'audit_body': '1MiB'})
    session = api.create(template='most')
    name, client = session['session_id'], client_of(api.holdfast, modern)
    for size in (MIB, MIB + 1):
        reply = echo(client, name, message_of(client, name, size))
        assert reply.status == 200 and told(reply) == ({'audit': 'full', 'audit_body': MIB} if size == MIB else None)
    whole, cut = [e for e in events(hf) if e['kind'] == 'intent']
    assert whole['body_len'] == MIB and set(json.loads(whole['body'])) == {'name', 'arguments', '_meta'}
    kept = json.loads(cut['body'])['holdfast/cut']
    assert cut['body_len'] == kept['length'] == MIB + 1 and MIB - 4096 < kept['kept'] < MIB
    shown = api.get(f'/sessions/{name}/tools')
    assert shown.status == 200 and shown.json()['count'] == 2, shown


def test_audit_body__never_stores_less_than_the_server_asks(rest):
    api = rest(settings={'limits': {'audit_body': '4KiB'}})
    put(api, 'small', {'audit': 'full', 'audit_body': '1KiB'})
    session = api.create(template='small')
    client = client_of(api.holdfast, False)
    assert told(echo(client, session['session_id'], 'x' * 3000)) == {'audit': 'full', 'audit_body': 4096}
    assert bodies(api.holdfast, session)[0]['arguments']['message'] == 'x' * 3000


@pytest.mark.parametrize('mode', ['digest', 'none', 'full', 'redacted'])
def test_full__leaves_what_the_operator_says_of_a_server(holdfast, stdio_server, mode):
    server, _ = stdio_server('up', handles='never', audit=mode)
    api = Rest(holdfast({'up': server}))
    put(api, 'full', {'audit': 'full'})
    session = api.create(template='full')
    reply = client_of(api.holdfast, False, '/mcp/up').call('echo', {'text': 'password=hunter2'}, meta={'session_id': session['session_id']})
    assert bool(told(reply)) == (mode in ('full', 'redacted'))
    found = [e for e in events(api.holdfast) if e['kind'] == 'intent']
    assert len(found) == (mode != 'none')
    if mode == 'digest':
        assert 'body' not in found[0] and found[0]['body_len'] > 0
    elif mode != 'none':
        assert json.loads(found[0]['body'])['arguments'] == {'text': 'password=hunter2'}


def test_full__still_replaces_what_holdfast_keeps_sealed(holdfast, tmp_path):
    plain, token = 'plain-' + secrets.token_hex(8), secrets.token_hex(12)
    hf = holdfast({'leaky': entry(tmp_path, plain, credential={'service': 'git', 'as': 'env:TOKEN'})})
    key = key_for(Rest(hf), '--tenant', 'default', '--role', 'admin')
    put(Rest(hf), 'full', {'audit': 'full'})
    session = key.create(template='full', passthrough_auth={'credentials': {'git': {'type': 'bearer', 'token': token}}})
    client = hf.client('/mcp/leaky', headers=key.headers).connect()
    presented = next(iter(key.headers.values())).split()[-1]
    reply = client.call('leak', {'mine': presented, 'password': 'hunter2'}, meta={'session_id': session['session_id']})
    assert token in reply.result['content'][0]['text'] and told(reply)
    intent, outcome = (json.dumps(bodies(hf, session, kind)) for kind in ('intent', 'outcome'))
    assert presented not in intent and '[redacted: header' in intent and '"password": "hunter2"' in intent
    assert token not in outcome and '[redacted: credential git of the session]' in outcome or '[redacted: credential git of leaky]' in outcome
    assert plain in outcome  # a value of the configuration, which a complete record has


# Limits.

@ERAS
def test_limits__of_the_session_refuse_it_alone_and_say_who_set_them(holdfast, modern):
    api = Rest(holdfast())
    put(api, 'slow', {'limits': {'requests': '3/h'}})
    one, other = (api.create(template='slow')['session_id'] for _ in 'ab')
    client = client_of(api.holdfast, modern)
    for _ in range(3):
        assert echo(client, one).text == 'x'
    limited(echo(client, one), 'Rate limit of this session reached on this node: 3 requests an hour, set by its template slow@1')
    for free in (other, api.create()['session_id']):
        assert echo(client_of(api.holdfast, modern), free).text == 'x'
    metrics = api.holdfast.get('/metrics').body.decode()
    assert 'holdfast_limited_total{limit="requests",scope="session"} 1' in metrics
    patch(api, one, {'limits': {'requests': '5/h'}})
    assert echo(client, one).text == 'x' and echo(client, one).text == 'x'
    assert limited(echo(client, one), 'Rate limit of this session reached on this node: 5 requests an hour, set by its template slow@1')
    patch(api, one, {'limits': {}})
    assert echo(client, one).text == 'x'


def test_limits__are_taken_beside_those_of_the_tenant(holdfast):
    api = Rest(holdfast(settings={'limits': {'requests': '60/h burst 6'}}))
    put(api, 'wide', {'limits': {'requests': '1000/h'}})
    name = api.create(template='wide')['session_id']
    client = api.holdfast.client(modern=True)
    while not (reply := echo(client, name)).result.get('isError'):
        pass
    limited(reply, "Rate limit of tenant 'default' reached on this node: 60 requests an hour")


def test_limits__of_calls_at_once(holdfast, stdio_server):
    server, record = stdio_server('up', handles='never')
    api = Rest(holdfast({'up': server}))
    put(api, 'one', {'limits': {'calls': 1}})
    name = api.create(template='one')['session_id']
    client = client_of(api.holdfast, False, '/mcp/up')
    busy = client.open('tools/call', {'name': 'hang', 'arguments': {}, '_meta': {'session_id': name}}, ident='busy')
    record.wait('tools/call', 1)
    limited(echo(client, name, text='y'), 'Limit of this session reached on this node: 1 call at a time, set by its template one@1')
    assert client.notify('notifications/cancelled', {'requestId': 'busy'}).status == 202
    wait_for(lambda: not client.call('echo', {'text': 'z'}, meta={'session_id': name}).result.get('isError'), 'the call to end')
    busy.close()


# The only profile.

@ERAS
def test_profile__alone_shows_what_the_session_may_call_on_every_endpoint(holdfast, modern):
    api = Rest(holdfast(settings=PROFILE))
    put(api, 'p', {'profile': 'p'})
    name = api.create(template='p')['session_id']
    for path, prefix in (('/mcp', 'sample__'), ('/mcp/sample', ''), ('/mcp/p/all', 'sample__'), ('/mcp/p/p', 'sample__')):
        client = client_of(api.holdfast, modern, path)
        assert echo(client, name, tool=prefix + 'echo').text == 'x'
        if path == '/mcp/p/p':
            assert echo(client, name, tool=prefix + 'counter').code == -32602
            continue
        reply = echo(client, name, tool=prefix + 'counter')
        assert reply.result['isError'] and reply.text == (
            'The template p@1 limits this session to the profile p, which does not show this. Use a session without this '
            'template, or ask an administrator.')
        assert not client_of(api.holdfast, modern, path).call(prefix + 'counter', {}).result.get('isError')  # another session


def test_profile__narrows_the_lists_of_a_transport_that_is_in_the_session(holdfast):
    api = Rest(holdfast(settings=PROFILE))
    put(api, 'p', {'profile': 'p'})
    name = api.create(template='p')['session_id']
    client = client_of(api.holdfast, False, '/mcp')
    before = {t['name'] for t in client.rpc('tools/list', {}).result['tools']}
    assert {'sample__echo', 'sample__counter'} < before
    echo(client, name, tool='sample__echo')
    assert {t['name'] for t in client.rpc('tools/list', {}).result['tools']} == {'sample__echo'}


def test_profile__that_is_dynamic_shows_the_enabled_toolsets(holdfast):
    api = Rest(holdfast(settings=PROFILE))
    put(api, 'd', {'profile': 'd', 'toolsets': ['count']})
    name = api.create(template='d')['session_id']
    client = client_of(api.holdfast, True, '/mcp')
    assert not echo(client, name, tool='sample__counter').result.get('isError')
    assert echo(client, name, tool='sample__echo').result['isError']


def test_profile__that_is_gone_from_the_configuration_shows_nothing(holdfast):
    hf = holdfast(settings=PROFILE)
    api = Rest(hf)
    put(api, 'p', {'profile': 'p'})
    name = api.create(template='p')['session_id']
    hf.stop()
    with open(hf.config_file, encoding='utf-8') as file:
        config = json.load(file)
    del config['holdfast']['profiles']['p']
    hf.write_config(config)
    hf.start()
    reply = echo(client_of(hf, True), name)
    assert reply.result['isError'] and 'the profile p, which is not in the configuration any more' in reply.text


# Changes by an administrator.

@ERAS
def test_patch__takes_effect_at_the_next_call_and_is_in_the_audit(rest, modern):
    api = rest()
    name = api.create()['session_id']
    client = client_of(api.holdfast, modern)
    assert told(echo(client, name)) is None
    after = patch(api, name, {'audit': 'full', 'audit_body': '64KiB'}).json()
    assert after['setup'] == {'audit': 'full', 'audit_body': 65536}
    assert told(echo(client, name, 'password=hunter2')) == {'audit': 'full', 'audit_body': 65536}
    wait_for(lambda: api.session(name)['setup'].get('told'), 'the stored set-up')
    patch(api, name, {'audit': 'redacted'})
    assert 'setup' not in api.session(name)
    assert told(echo(client, name, 'password=hunter2')) is None
    patch(api, name, {'audit': 'full'})
    assert told(echo(client, name))  # anew
    assert [b['arguments']['message'] for b in bodies(api.holdfast, after)] == ['x', 'password=hunter2', 'password=[redacted]', 'x']
    changes = [e for e in events(api.holdfast) if e.get('method') == 'session/setup']
    assert [e['error'] for e in changes] == ['by local: {"audit":"full","audit_body":65536}', 'by local: {}', 'by local: {"audit":"full"}']
    assert {e['session_id'] for e in changes} == {after['id']}


@pytest.mark.parametrize('setup, words', [
    ({'audit': 'none'}, '"audit" must be'), ({'audit_body': '1KiB'}, '"audit_body" needs "audit": "full"'),
    ({'audit': 'full', 'audit_body': 1023}, '"audit_body" must be'), ({'audit': 'full', 'audit_body': MIB + 1}, '"audit_body" must be'),
    ({'limits': {'children': 1}}, 'not of a session'), ({'limits': {'requests': 'x'}}, '"requests" must be'),
    ({'profile': 'p'}, 'profile'), ({'template': 'a'}, 'template'), ([], '"setup" must be')])
def test_patch__names_what_is_wrong(holdfast, setup, words):
    api = Rest(holdfast())
    name = api.create()['session_id']
    reply = refused(patch(api, name, setup, 400), 400, 'bad_input')
    assert words in reply.json()['detail'], reply
    assert 'setup' not in api.session(name)


def test_patch__is_for_administrators_of_the_tenant_and_keeps_its_condition(holdfast):
    api = Rest(holdfast())
    people = {role: key_for(api, '--tenant', 'acme', '--role', role) for role in ('admin', 'member', 'service')}
    rival = key_for(api, '--tenant', 'rival', '--role', 'admin')
    name = people['member'].create()['session_id']
    tag = people['member'].get(f'/sessions/{name}').header('etag')
    body = {'setup': {'audit': 'full'}}
    refused(people['member'].patch(f'/sessions/{name}', body, headers={'If-Match': tag}), 403, 'denied')
    refused(people['service'].patch(f'/sessions/{name}', body, headers={'If-Match': tag}), 403, 'denied')
    refused(rival.patch(f'/sessions/{name}', body, headers={'If-Match': tag}), 404, 'session_not_found')
    refused(people['admin'].patch(f'/sessions/{name}', body), 428, 'precondition_required')
    assert people['admin'].patch(f'/sessions/{name}', body, headers={'If-Match': tag}).status == 200
    refused(people['admin'].patch(f'/sessions/{name}', body, headers={'If-Match': tag}), 412, 'precondition_failed')


@pytest.mark.parametrize('redis', [False, True], ids=['polling', 'redis'])
def test_patch__is_known_on_the_other_node_and_told_once(holdfast, cluster, redis):
    server = Redis() if redis else None
    if server and not server.is_there:
        pytest.skip('no Redis to start')
    env = {'DATABASE_URL': cluster.database(), **({'REDIS_URL': server.url} if server else {})}
    a = Rest(holdfast(env=env))
    b = Rest(holdfast(env={**env, **shared_keys(a.holdfast)}))
    name = a.create()['session_id']
    for modern in (False, True):
        ours, theirs = (client_of(api.holdfast, modern) for api in (a, b))
        assert told(echo(ours, name)) is None and told(echo(theirs, name)) is None  # resident on both
        patch(a, name, {'audit': 'full', 'limits': {'requests': '1000/h'}})
        wait_for(lambda: told(echo(theirs, name)), 'the other node to know')
        wait_for(lambda: a.session(name)['setup'].get('told'), 'the stored set-up')
        wait_for(lambda: told(echo(ours, name)) is None, 'this node to know that it was told')
        patch(b, name, {'audit': 'redacted'})
    if server:
        server.close()
