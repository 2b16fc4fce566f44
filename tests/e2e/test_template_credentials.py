# SPDX-License-Identifier: Apache-2.0
"""Credentials of a template by the names of secrets: what the operator allows, and when it counts."""
import glob
import json
import os
import signal

import pytest

from harness import wait_for
from rest import Rest, refused
from test_rest_roles import key_for
from test_secrets import put as secret_put

CANARY = 'canary-41d7c0aa'
NEW = {'If-None-Match': '*'}
REFERENCE = {'credentials': {'github': '${secret:GH}'}}


def settings(*secrets, **more):
    return {'tenants': {'default': {'secrets': list(secrets)}, 'acme': {'secrets': ['ACME']}},
            'profiles': {'desk': {'mode': 'all', 'template': 'desk'}}, **more}


@pytest.fixture
def place(holdfast, database, http_server, stdio_server):
    """(REST, the HTTP server, the entries): a Holdfast with a server over HTTP and one over stdio that take `github`."""
    web = http_server('web', '--era', 'legacy')
    rec, _ = stdio_server('rec', credential={'service': 'github', 'as': 'env:TOKEN'})
    servers = {'web': web.entry(credential={'service': 'github', 'as': 'header:Authorization'}), 'rec': rec}
    return Rest(holdfast(servers, settings('GH'), env=database)), web, servers


def template(api, spec, name='desk', headers=NEW):
    reply = api.put(f'/templates/{name}', spec, headers=headers)
    assert reply.status in (200, 201), reply


def sent(web):
    return [dict((n.lower(), v) for n, v in head['headers']).get('authorization') for head in web.record.heads()]


def call(api, path='/mcp/p/desk', tool='web__echo', arguments=None):
    client = api.holdfast.client(path)
    client.connect()
    return client, client.call(tool, arguments or {'text': 'x'})


def set_secret(api, value, name='GH'):
    since = len(api.holdfast.log())
    secret_put(api.holdfast, name, value)
    api.holdfast.wait_log(lambda line: line.get('msg') == 'configuration reloaded', 'the reload', since)


def test_session__sends_the_value_of_the_secret_and_keeps_its_name(place):
    api, web, _ = place
    set_secret(api, CANARY + '-1')
    template(api, REFERENCE)
    client, reply = call(api)
    assert reply.text == 'x' and f'Bearer {CANARY}-1' in sent(web)
    session = api.get('/sessions?limit=1').json()['sessions'][0]
    assert session['setup'] == {'template': 'desk@1', **REFERENCE}
    set_secret(api, CANARY + '-2')
    before = len(sent(web))
    _, reply = call(api)
    assert reply.text == 'x' and f'Bearer {CANARY}-2' in sent(web)[before:]
    assert client.call('web__echo', {'text': 'z'}).text == 'z'  # its connection began with the first value
    before = len(sent(web))
    _, reply = call(api, '/mcp/web', 'echo')
    assert reply.text == 'x' and None in sent(web)[before:]
    made = api.create(template='desk')
    before = len(sent(web))
    reply = api.holdfast.client('/mcp/web', modern=True).call('echo', {'text': 'x'}, meta={'session_id': made['session_id']})
    assert reply.text == 'x' and f'Bearer {CANARY}-2' in sent(web)[before:]
    own = api.create(template='desk', passthrough_auth={'session_tokens': {'github': 'of-the-session'}})
    api.holdfast.client('/mcp/web', modern=True).call('echo', {'text': 'x'}, meta={'session_id': own['session_id']})
    assert 'Bearer of-the-session' in sent(web)
    for path in glob.glob(os.path.join(api.holdfast.data, '**'), recursive=True):
        if os.path.isfile(path):
            with open(path, 'rb') as file:
                assert CANARY.encode() not in file.read(), path
    assert CANARY not in api.holdfast.text()


def test_stdio__gets_it_in_its_environment(place):
    api, _, _ = place
    set_secret(api, CANARY + '-env')
    template(api, REFERENCE)
    _, reply = call(api, tool='rec__env')
    assert json.loads(reply.text)['TOKEN'] == CANARY + '-env'
    _, reply = call(api, '/mcp/rec', 'env')
    assert 'TOKEN' not in json.loads(reply.text)


def test_missing_secret__fails_the_call_in_words(place):
    api, web, servers = place
    template(api, REFERENCE)
    client, reply = call(api)
    assert 'the secret GH, which the template desk@1 names, is not set' in json.dumps(reply.json)
    assert sent(web).count(None) == len(sent(web))
    set_secret(api, CANARY)
    assert client.call('web__echo', {'text': 'y'}).text == 'y' and f'Bearer {CANARY}' in sent(web)
    hf = api.holdfast
    since = len(hf.log())
    hf.write_config({'mcpServers': servers, 'holdfast': settings('ELSE')})
    hf.process.send_signal(signal.SIGHUP)
    hf.wait_log(lambda line: line.get('msg') == 'configuration reloaded', 'the reload', since)
    _, reply = call(api)
    assert 'may not name the secret GH' in json.dumps(reply.json)


@pytest.mark.parametrize('credentials, words', [
    ({'github': 'ghp_' + CANARY}, 'never its value'),
    ({'github': '${secret:GH} '}, 'never its value'),
    ({'github': '${secret:GH}${secret:GH}'}, 'never its value'),
    ({'github': '${env:GH}'}, 'never its value'),
    ({'github': 7}, 'never its value'),
    ({'github': '${secret:OTHER}'}, 'may not name the secret OTHER'),
    ({'github': '${secret:ACME}'}, 'may not name the secret ACME'),
    ({'': '${secret:GH}'}, '1 to 128 bytes'),
    ({'s' * 129: '${secret:GH}'}, '1 to 128 bytes'),
    ({f's{i}': '${secret:GH}' for i in range(17)}, 'at most 16 services'),
    ([], 'must be an object'),
])
def test_credentials__are_names_that_the_operator_allows(holdfast, credentials, words):
    api = Rest(holdfast(settings=settings('GH')))
    reply = refused(api.put('/templates/a', {'credentials': credentials}, headers=NEW), 400, 'bad_input')
    assert words in reply.json()['detail'] and CANARY not in reply.body.decode()
    template(api, {'credentials': {f's{i}': '${secret:GH}' for i in range(15)} | {'s' * 128: '${secret:GH}'}}, 'most')
    assert len(api.create(template='most')['setup']['credentials']) == 16


def test_tenants__name_only_their_own(place):
    api, _, _ = place
    admin = key_for(api, '--tenant', 'acme', '--role', 'admin')
    template(admin, {'credentials': {'github': '${secret:ACME}'}}, 'a')
    reply = refused(admin.put('/templates/b', REFERENCE, headers=NEW), 400, 'bad_input')
    assert 'templates of the tenant acme may not name the secret GH' in reply.json()['detail']
    refused(admin.get('/secrets'), 403, 'denied')
    session = admin.create(template='a')
    assert session['setup']['credentials'] == {'github': '${secret:ACME}'}
    wait_for(lambda: admin.session(session['session_id']) == session, 'the session')


def test_copies__are_lent_nothing(place):
    api, web, _ = place
    set_secret(api, CANARY)
    template(api, {**REFERENCE, 'limits': {'calls': 7}})
    session = api.create(template='desk')['session_id']
    fork = api.post(f'/sessions/{session}/fork')
    assert fork.status == 201, fork
    copy = api.session(fork.json()['session_id'])
    assert copy['setup'] == {'template': 'desk@1', 'limits': {'calls': 7}}
    before = len(sent(web))
    client = api.holdfast.client('/mcp/web', modern=True)
    assert client.call('echo', {'text': 'x'}, meta={'session_id': copy['session_id']}).text == 'x'
    assert f'Bearer {CANARY}' not in sent(web)[before:]
    exported = api.holdfast.get(f'/api/v1/sessions/{session}/export?format=jsonl')
    assert exported.status == 200 and '"calls":7' in exported.body.decode() and 'secret:GH' not in exported.body.decode()


def replayed(api, session, **options):
    reply = api.holdfast.request('POST', f'/api/v1/sessions/{session}/replay',
                                 {**api.headers, 'Content-Type': 'application/json'}, json.dumps(options).encode())
    assert reply.status == 200, reply
    lines = [json.loads(line) for line in reply.body.decode().splitlines()]
    return lines[0]['replay']['session_id'], [line['call']['status'] for line in lines[1:-1]]


def test_replay__is_lent_nothing(place):
    api, web, _ = place
    set_secret(api, CANARY)
    template(api, {**REFERENCE, 'audit': 'full'})
    session = api.create(template='desk')['session_id']
    client = api.holdfast.client('/mcp/web', modern=True)
    assert client.call('echo', {'text': 'x'}, meta={'session_id': session}).text == 'x'
    assert f'Bearer {CANARY}' in sent(web)
    before = len(sent(web))
    made, calls = replayed(api, session, writes=True)
    assert calls == ['same'] and sent(web)[before:] and f'Bearer {CANARY}' not in sent(web)[before:]
    assert 'credentials' not in api.session(made)['setup']


def test_hand_over__leaves_the_names_of_secrets_behind(holdfast, database, http_server):
    web = http_server('web', '--era', 'legacy')
    servers = {'web': web.entry(credential={'service': 'github', 'as': 'header:Authorization'})}
    api = Rest(holdfast(servers, settings('GH', auth='required'), env=database))
    set_secret(api, CANARY)
    admin, ann, bob = (key_for(api, '--role', role) for role in ('admin', 'member', 'member'))
    template(admin, {**REFERENCE, 'limits': {'calls': 7}})
    session = ann.create(template='desk')['session_id']

    def call_of(owner):
        client = api.holdfast.client('/mcp/web', modern=True, headers=owner.headers)
        return client.call('echo', {'text': 'x'}, meta={'session_id': session})

    assert call_of(ann).text == 'x' and f'Bearer {CANARY}' in sent(web)
    code = ann.post(f'/sessions/{session}/shares', {'may': 'hand_over'}).json()['code']
    assert bob.post('/sessions/join', {'code': code}).status == 200
    before = len(sent(web))
    assert call_of(bob).text == 'x' and sent(web)[before:] and f'Bearer {CANARY}' not in sent(web)[before:]
    assert bob.session(session)['setup'] == {'template': 'desk@1', 'limits': {'calls': 7}}
