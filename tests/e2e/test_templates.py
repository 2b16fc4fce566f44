# SPDX-License-Identifier: Apache-2.0
"""Templates over REST: versions, conditions, roles, tenants, caps, and what is refused with which words."""
import datetime
import json

import pytest

from commands import events
from rest import Rest, refused
from test_rest_roles import key_for

NEW = {'If-None-Match': '*'}
TOOLSETS = {'read': {'tools': ['sample__echo']}, 'write': {'tools': ['sample__add']}}
SETTINGS = {'toolsets': TOOLSETS, 'profiles': {'p': {'mode': 'dynamic', 'toolsets': ['read', 'write'],
                                                     'policy': {'deny': ['write'], 'max_active': 1}},
                                               's': {'mode': 'search'}}}


@pytest.fixture
def api(holdfast):
    return Rest(holdfast(settings=SETTINGS))


def put(api, name, spec, headers=NEW, status=201):
    reply = api.put(f'/templates/{name}', spec, headers=headers)
    assert reply.status == status, reply
    return reply


def test_change__makes_a_version_and_leaves_the_others(api):
    first = put(api, 'support', {'ttl': '1h'})
    assert first.json()['version'] == 1 and first.json()['spec'] == {'ttl': '1h'} and first.json()['created_by'] == 'local'
    second = put(api, 'support', {'ttl': '2h'}, {'If-Match': first.header('etag')}, 200)
    assert second.json()['version'] == 2 and second.header('etag') != first.header('etag')
    same = put(api, 'support', {'ttl': '2h'}, {'If-Match': '*'}, 200)
    assert same.json() == second.json() and same.header('etag') == second.header('etag')
    assert api.get('/templates/support').json() == second.json()
    assert api.get('/templates/support?version=1').json() == first.json()
    assert api.get('/templates/support', headers={'If-None-Match': second.header('etag')}).status == 304
    versions = api.get('/templates/support/versions?limit=1').json()
    assert [v['version'] for v in versions['versions']] == [2] and 'spec' not in versions['versions'][0]
    rest = api.get('/templates/support/versions?limit=1&cursor=' + versions['next_cursor']).json()
    assert [v['version'] for v in rest['versions']] == [1] and rest['next_cursor'] is None
    put(api, 'a', {})
    assert [(t['name'], t['version']) for t in api.get('/templates').json()['templates']] == [('a', 1), ('support', 2)]
    page = api.get('/templates?limit=1').json()
    assert [t['name'] for t in api.get('/templates?limit=1&cursor=' + page['next_cursor']).json()['templates']] == ['support']


def test_condition__is_required_and_held(api):
    refused(api.put('/templates/a', {}), 428, 'precondition_required')
    refused(api.put('/templates/a', {}, headers={'If-Match': '*'}), 404, 'not_found')
    first = put(api, 'a', {})
    late = refused(api.put('/templates/a', {'ttl': 60}, headers=NEW), 412, 'precondition_failed')
    assert late.header('etag') == first.header('etag')
    put(api, 'a', {'ttl': 60}, {'If-Match': first.header('etag')}, 200)
    refused(api.put('/templates/a', {'ttl': 61}, headers={'If-Match': first.header('etag')}), 412, 'precondition_failed')
    refused(api.delete('/templates/a', headers={'If-Match': first.header('etag')}), 412, 'precondition_failed')
    assert api.delete('/templates/a').status == 204
    refused(api.delete('/templates/a'), 404, 'not_found')
    refused(api.get('/templates/a'), 404, 'not_found')
    refused(api.get('/templates/a/versions'), 404, 'not_found')
    again = put(api, 'a', {'ttl': 60})
    assert again.json()['version'] == 1
    assert first.header('etag') != again.header('etag'), 'the first version of another template'
    for reply in (api.put('/templates/a', {'ttl': 61}, headers={'If-Match': first.header('etag')}),
                  api.delete('/templates/a', headers={'If-Match': first.header('etag')})):
        refused(reply, 412, 'precondition_failed')
    put(api, 'a', {'ttl': 61}, {'If-Match': f'"9-x", {again.header("etag")}'}, 200)


@pytest.mark.parametrize('spec, words', [
    ({'profile': 'nope'}, 'there is no profile "nope"'),
    ({'toolsets': ['nope']}, 'there is no toolset "nope"'),
    ({'profile': 'p', 'toolsets': ['write']}, 'the policy of the profile p does not allow the toolset write'),
    ({'profile': 'p', 'toolsets': ['read', 'read']}, '"toolsets" has 2 keys, but the profile p allows 1'),
    ({'profile': 's', 'toolsets': ['read']}, 'the profile s does not have the toolset read'),
    ({'audit': 'none'}, '"audit" must be'),
    ({'audit_body': '1KiB'}, '"audit_body" needs "audit": "full"'),
    ({'audit': 'full', 'audit_body': 1024 * 1024 + 1}, '"audit_body" must be'),
    ({'audit': 'full', 'audit_body': 1023}, '"audit_body" must be'),
    ({'ttl': '31d'}, '"ttl" must be'),
    ({'ttl': 0}, '"ttl" must be'),
    ({'limits': {'requests': 'often'}}, '"requests" must be a rate'),
    ({'limits': {'children': 2}}, 'not of a session'),
    ({'limits': {'what': 2}}, 'what'),
    ({'context': []}, '"context" must be an object'),
    ({'metadata': {'a': 'x' * (16 << 10)}}, '"metadata" must be an object of at most 16384 bytes'),
    ({'description': 'x' * 1001}, '"description" has at most 1000 bytes'),
    ({'colour': 'red'}, 'colour'),
    ([], 'object'),
])
def test_spec__what_is_wrong_is_named(api, spec, words):
    reply = refused(api.put('/templates/a', spec, headers=NEW), 400, 'bad_input')
    assert words in reply.json()['detail'], reply
    refused(api.get('/templates/a'), 404, 'not_found')


def test_spec__is_held_to_its_sizes(api):
    put(api, 'at', {'audit': 'full', 'audit_body': 1024 * 1024, 'ttl': '30d', 'description': 'x' * 1000})
    body = '{"context":{"a":"%s"}}'
    most = 64 * 1024 - len(body % '')
    assert api.put('/templates/big', raw=(body % ('x' * most)).encode(),
                   headers={**NEW, 'Content-Type': 'application/json'}).status == 201
    refused(api.put('/templates/past', raw=(body % ('x' * (most + 1))).encode(),
                    headers={**NEW, 'Content-Type': 'application/json'}), 413, 'too_large')


@pytest.mark.parametrize('name, fits', [('a' * 64, True), ('a' * 65, False), ('a@1', False), ('.a', False), ('A-b_c.9', True)])
def test_name__is_letters_digits_and_three_signs(api, name, fits):
    reply = api.put(f'/templates/{name}', {}, headers=NEW)
    assert reply.status == (201 if fits else 400), reply


def test_caps__templates_and_versions_at_and_past(api):
    tag = put(api, 't0', {'ttl': 1}).header('etag')
    for i in range(2, 101):
        tag = put(api, 't0', {'ttl': i}, {'If-Match': tag}, 200).header('etag')
    full = refused(api.put('/templates/t0', {'ttl': 101}, headers={'If-Match': tag}), 429, 'limit')
    assert 't0 has 100 versions' in full.json()['detail']
    for i in range(1, 200):
        put(api, f't{i}', {})
    full = refused(api.put('/templates/t200', {}, headers=NEW), 429, 'limit')
    assert 'the tenant has 200 templates already' in full.json()['detail']
    assert api.delete('/templates/t0').status == 204
    put(api, 't200', {})
    assert api.get('/templates?limit=200').json()['count'] == 200


def test_roles__admins_write_members_read_and_tenants_see_their_own(api):
    people = {role: key_for(api, '--tenant', 'acme', '--role', role) for role in ('admin', 'member', 'auditor', 'service')}
    rival = key_for(api, '--tenant', 'rival', '--role', 'admin')
    put(people['admin'], 'a', {'ttl': 60})
    for role in ('member', 'auditor', 'service'):
        assert people[role].get('/templates/a').json()['spec'] == {'ttl': 60}
        assert people[role].get('/templates').json()['count'] == 1
        refused(people[role].put('/templates/b', {}, headers=NEW), 403, 'denied')
        refused(people[role].delete('/templates/a'), 403, 'denied')
    refused(rival.get('/templates/a'), 404, 'not_found')
    refused(rival.get('/templates/a?tenant=acme'), 403, 'denied')
    assert rival.get('/templates').json()['count'] == 0
    put(rival, 'a', {'ttl': 61})
    assert people['admin'].get('/templates/a').json()['created_by'].startswith('key:')
    assert people['admin'].delete('/templates/a').status == 204
    assert rival.get('/templates/a').json()['spec'] == {'ttl': 61}


def test_audit__has_every_change(api):
    tag = put(api, 'a', {}).header('etag')
    put(api, 'a', {'ttl': 60}, {'If-Match': tag}, 200)
    put(api, 'a', {'ttl': 60}, {'If-Match': '*'}, 200)  # changes nothing
    api.delete('/templates/a')
    found = [(e['method'], e['owner']) for e in events(api.holdfast) if e.get('method', '').startswith('template/')]
    assert sorted(found) == [('template/remove', 'template:a@2'), ('template/set', 'template:a@1'), ('template/set', 'template:a@2')]


def test_restart__templates_are_there(api):
    put(api, 'a', {'ttl': 60})
    api.holdfast.restart()
    assert api.get('/templates/a').json()['spec'] == {'ttl': 60}


# Sessions from templates.

def test_session__takes_what_the_template_says(api):
    put(api, 'support', {'ttl': '2h', 'profile': 'p', 'toolsets': ['read'], 'audit': 'full', 'audit_body': '64KiB',
                         'limits': {'requests': '60/m', 'calls': 2}, 'context': {'topic': 'tickets'},
                         'metadata': {'team': 'a', 'desk': {'floor': 1}}})
    session = api.create(template='support', metadata={'desk': {'room': 7}, 'ip_address': 'x'})
    assert session['setup'] == {'template': 'support@1', 'profile': 'p', 'audit': 'full', 'audit_body': 65536,
                                'limits': {'requests': '60/m', 'calls': 2}}
    metadata = session['connection_metadata']
    assert metadata['team'] == 'a' and metadata['desk'] == {'floor': 1, 'room': 7} and metadata['ip_address'] == '127.0.0.1'
    name = session['session_id']
    assert api.session(name) == session
    assert api.get(f'/sessions/{name}/context').json() == {'topic': 'tickets'}
    tag = api.get(f'/sessions/{name}').header('etag')
    assert api.patch(f'/sessions/{name}', {'client_name': 'x'}, headers={'If-Match': tag}).status == 200
    api.holdfast.restart()
    again = api.session(name)
    assert again['setup'] == session['setup'] and again['context_id'] == session['context_id']
    plain = api.create()
    assert 'setup' not in plain and 'context_id' not in plain


def lifetime_s(session):
    begin, end = (datetime.datetime.fromisoformat(session[m]) for m in ('created_at', 'expires_at'))
    return (end - begin).total_seconds()


def test_session__asks_for_less_time_but_not_for_more(api):
    put(api, 'hour', {'ttl': '1h'})
    assert lifetime_s(api.create(template='hour')) == 3600
    assert lifetime_s(api.create(template='hour', ttl='30m')) == 1800
    assert lifetime_s(api.create(template='hour', ttl='1h')) == 3600
    reply = refused(api.post('/sessions', {'edge_mcp_id': 'e', 'template': 'hour', 'ttl': '61m'}), 400, 'bad_input')
    assert 'longer than that of the template hour' in reply.json()['detail']


def test_session__keeps_its_version_and_names_another(api):
    tag = put(api, 'a', {'ttl': '1h'}).header('etag')
    first = api.create(template='a')
    put(api, 'a', {'ttl': '2h'}, {'If-Match': tag}, 200)
    assert api.session(first['session_id']) == first
    assert api.create(template='a')['setup'] == {'template': 'a@2'}
    old = api.create(template='a@1')
    assert old['setup'] == {'template': 'a@1'} and lifetime_s(old) == 3600
    assert api.delete('/templates/a').status == 204
    assert api.session(first['session_id']) == first


@pytest.mark.parametrize('template, words', [('b', 'there is no template b'), ('a@2', 'there is no template a@2'), ('a@', 'NAME@VERSION'),
                                             ('a@0', 'NAME@VERSION'), ('.', 'NAME@VERSION'), ('', '"template" must be')])
def test_session__an_unknown_template_is_named(api, template, words):
    put(api, 'a', {})
    reply = refused(api.post('/sessions', {'edge_mcp_id': 'e', 'template': template}), 400, 'bad_input')
    assert words in reply.json()['detail'], reply
    assert api.get('/sessions').json()['count'] == 0


def test_session__a_foreign_template_is_unknown(api):
    admin, rival = (key_for(api, '--tenant', t, '--role', 'admin') for t in ('acme', 'rival'))
    put(admin, 'a', {})
    assert admin.create(template='a')['setup'] == {'template': 'a@1'}
    refused(rival.post('/sessions', {'edge_mcp_id': 'e', 'template': 'a'}), 400, 'bad_input')


def test_session__a_template_that_the_configuration_left_behind_says_so(holdfast):
    hf = holdfast(settings=SETTINGS)
    api = Rest(hf)
    put(api, 'a', {'profile': 'p'})
    hf.stop()
    with open(hf.config_file, encoding='utf-8') as file:
        config = json.load(file)
    del config['holdfast']['profiles']['p']
    hf.write_config(config)
    hf.start()
    reply = refused(api.post('/sessions', {'edge_mcp_id': 'e', 'template': 'a'}), 400, 'bad_input')
    assert 'the template a cannot be used: there is no profile "p"' in reply.json()['detail']


def test_session__first_context_is_made_with_it_or_not_at_all(holdfast):
    api = Rest(holdfast(settings={'session': {'limits': {'max_per_tenant': 1}}}))
    put(api, 'a', {'context': {'topic': 'x'}})
    api.create(template='a', session_id='one')
    refused(api.post('/sessions', {'edge_mcp_id': 'e', 'template': 'a', 'session_id': 'one'}), 409, 'session_exists')
    refused(api.post('/sessions', {'edge_mcp_id': 'e', 'template': 'a'}), 429, 'session_limit')
    body = {'edge_mcp_id': 'e', 'template': 'a', 'session_id': 'two'}
    api.delete('/sessions/one')
    once = api.post('/sessions', body, headers={'Idempotency-Key': 'k'})
    again = api.post('/sessions', body, headers={'Idempotency-Key': 'k'})
    assert once.status == again.status == 201 and once.body == again.body
    assert api.get('/sessions/two/context').json() == {'topic': 'x'}
