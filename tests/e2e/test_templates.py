# SPDX-License-Identifier: Apache-2.0
"""Templates over REST: versions, conditions, roles, tenants, caps, and what is refused with which words."""
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
    again = put(api, 'a', {})
    assert again.json()['version'] == 1


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
