# SPDX-License-Identifier: Apache-2.0
"""A recording that the running Holdfast serves beside its servers: /api/v1/sessions/{id}/replay/serve."""
import json

import pytest

from commands import control, events, run
from exported import Signer, call_line, written
from harness import Client, wait_for
from rest import Rest, refused
from test_clients import CLIENTS
from test_replay import LOOKS, Answers, client_of, recorded, replay, statuses
from test_replay_serve import CALLS, drive, needs_clients
from test_rest_roles import key_for
from test_templates import put


@pytest.fixture
def shop(tmp_path):
    return Answers(tmp_path)


@pytest.fixture
def api(holdfast, shop):
    made = Rest(holdfast({'shop': shop.entry}))
    put(made, 'full', {'audit': 'full', 'audit_body': '64KiB'})
    return made


def path_of(session):
    return f"/sessions/{session['session_id']}/replay/serve"


def serve(api, session, status=201, **options):
    reply = api.post(path_of(session), options)
    assert reply.status == status, reply
    return reply.json() if status == 201 else reply


def tools_of(client):
    return {t['name']: t for t in client.rpc('tools/list').result['tools']}


def test_official_clients__of_both_sdks_and_eras_are_answered(api, shop):
    needs_clients()
    session = recorded(api, CALLS)
    made = len(shop.calls())
    served = serve(api, session)
    assert served['recorded'] == 6 and served['lacking'] == 0 and [s['name'] for s in served['servers']] == ['shop'], served
    assert served['servers'][0]['url'] == f"http://127.0.0.1:{api.holdfast.port}{served['servers'][0]['path']}"
    features = ['tools', 'answers', 'order', 'unknown']
    for client, era in CLIENTS.items():
        drive(client, era, served['servers'][0]['url'], features)
    calls = api.get(path_of(session)).json()['calls']
    assert sum(calls.values()) == 4 * 7 and calls['unknown'] == 4 and calls['in_order'] == 0, calls
    assert len(shop.calls()) == made, 'the server was asked'


@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_tools__have_the_definitions_of_now_and_calls_are_audited(api, modern):
    session = recorded(api, LOOKS)
    served = serve(api, session, only=['shop__look', 'shop__fail'])
    server = served['servers'][0]
    assert server['tools'] == 2 and server['calls'] == 3
    client = client_of(api.holdfast, modern, path=server['path'])
    tools = tools_of(client)
    assert set(tools) == {'look', 'fail'} and tools['look']['description'] == 'It is the tool look'
    assert tools['look']['annotations'] == {'readOnlyHint': True}
    assert json.loads(client.call('look', {'item': 'tea'}).result['content'][0]['text'])['item'] == 'tea'
    assert 'no call of refuse' in client.call('refuse', {}).error['message']
    name = server['path'].rsplit('/', 1)[1]
    made = [e for e in events(api.holdfast) if e.get('server') == name and e['kind'] == 'intent']
    assert [e['tool'] for e in made] == ['look', 'refuse']
    told = [e for e in events(api.holdfast) if e.get('method') == 'session/serve']
    assert len(told) == 1 and told[0]['session_id'] == session['id'] and told[0]['error'].startswith('by local'), told


def test_nothing_else__shows_it(api):
    server = serve(api, recorded(api, LOOKS))['servers'][0]
    client_of(api.holdfast, path=server['path']).call('look', {'item': 'tea'})
    name = server['path'].rsplit('/', 1)[1]
    everything = Client(api.holdfast, '/mcp').connect()
    for text in (json.dumps(tools_of(everything)), control(api.holdfast, '/api/v1/servers').body.decode(),
                 control(api.holdfast, '/api/v1/tools').body.decode(), api.holdfast.request('GET', '/metrics').body.decode(),
                 api.holdfast.request('GET', '/readyz').body.decode()):
        assert name not in text, text
    assert api.holdfast.request('POST', f'/api/v1/servers/{name}/restart', api.headers).status == 404
    api.holdfast.restart()  # it lived in memory, and left no row behind
    assert name not in control(api.holdfast, '/api/v1/servers').body.decode()
    assert api.holdfast.request('POST', server['path'], {'Content-Type': 'application/json'},
                                b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}').status == 404


def test_imported_session__is_replayed_and_served(holdfast, shop, tmp_path):
    here, there = (Rest(holdfast({'shop': shop.entry})) for _ in range(2))
    session, file = recorded(here, LOOKS, template=None), str(tmp_path / 'session.jsonl')
    assert run(here.holdfast, 'sessions', 'export', session['session_id'], '-o', file).returncode == 0
    assert run(there.holdfast, 'sessions', 'import', file).returncode == 0
    imported = there.get('/sessions?status=all').json()['sessions'][0]
    assert imported['lineage']['kind'] == 'import' and imported['lineage']['session'] == session['id']
    head, calls, _ = replay(there, imported)
    assert statuses(calls) == ['same'] * 4 and there.session(head['session_id'])['lineage']['session'] == imported['id']
    server = serve(there, imported)['servers'][0]
    assert client_of(there.holdfast, path=server['path']).call(*LOOKS[1]).result['isError'] is True


def test_erasure_of_a_user__ends_what_is_served_in_the_tenant(holdfast, tmp_path):
    api = Rest(holdfast({'shop': Answers(tmp_path).entry}))
    acme = key_for(api, '--tenant', 'acme', '--role', 'admin')
    session, other = recorded(acme, LOOKS, template=None, headers=acme.headers), recorded(api, LOOKS, template=None)
    server, _ = serve(acme, session)['servers'][0], serve(api, other)
    made = run(api.holdfast, 'user', 'create', 'gwendolyn', '--tenant', 'acme', '--role', 'member', stdin='a long password of hers\n')
    assert made.returncode == 0, made
    assert run(api.holdfast, 'user', 'erase', 'gwendolyn', '--tenant', 'acme', '--yes').returncode == 0
    wait_for(lambda: acme.get(path_of(session)).status == 404, 'the end of what is served')
    assert Client(api.holdfast, server['path'], headers=acme.headers).rpc('tools/list').status == 404
    assert api.get(path_of(other)).status == 200, 'another tenant'


def test_end__by_delete_and_by_time(api):
    session = recorded(api, LOOKS)
    refused(api.get(path_of(session)), 404, 'not_found')
    refused(api.delete(path_of(session)), 404, 'not_found')
    server = serve(api, session)['servers'][0]
    client = client_of(api.holdfast, path=server['path'])
    assert client.call('look', {'item': 'tea'}).result
    refused(serve(api, session, 409), 409, 'conflict')
    assert api.delete(path_of(session)).status == 204
    assert client.call('look', {'item': 'tea'}).status == 404
    refused(api.get(path_of(session)), 404, 'not_found')
    again = serve(api, session, ttl='1s')['servers'][0]
    assert again['path'] != server['path']
    wait_for(lambda: api.get(path_of(session)).status == 404, 'the end of its time')
    refused(serve(api, session, 400, ttl='25h'), 400, 'bad_input')
    refused(serve(api, session, 400, ttl='10ms'), 400, 'bad_input')


def test_empty_recording__and_too_many(api):
    empty = api.create()
    assert 'nothing to serve' in refused(serve(api, empty, 409), 409, 'conflict').json()['detail']
    sessions = [recorded(api, LOOKS[:1]) for _ in range(5)]
    for session in sessions[:4]:
        serve(api, session)
    assert 'at most 4 of a tenant' in refused(serve(api, sessions[4], 429), 429, 'limit').json()['detail']
    assert api.delete(path_of(sessions[0])).status == 204
    serve(api, sessions[4])


def test_roles__owner_or_admin_each_for_themselves(holdfast, tmp_path):
    api = Rest(holdfast({'shop': Answers(tmp_path).entry}))
    tenant = ['--tenant', 'acme']
    admin, owner, other, auditor = (key_for(api, *tenant, '--role', role) for role in ('admin', 'member', 'member', 'auditor'))
    put(admin, 'full', {'audit': 'full'})
    session = recorded(owner, LOOKS, headers=owner.headers)
    refused(serve(other, session, 404), 404, 'session_not_found')
    refused(serve(auditor, session, 403), 403, 'denied')
    mine = serve(owner, session)['servers'][0]
    refused(admin.get(path_of(session)), 404, 'not_found')
    theirs = serve(admin, session)['servers'][0]
    for who, path, status in ((owner, mine, 200), (admin, theirs, 200), (admin, mine, 404), (owner, theirs, 404), (other, mine, 404)):
        reply = Client(api.holdfast, path['path'], headers=who.headers).rpc('tools/list')
        assert reply.status == status, (reply, path)
    refused(other.delete(path_of(session)), 404, 'session_not_found')
    narrow = key_for(api, *tenant, '--role', 'admin', '--server', 'shop')
    told = refused(serve(narrow, session, 403), 403, 'denied').json()['detail']
    assert 'replay-*' in told, told
    wide = key_for(api, *tenant, '--role', 'admin', '--server', 'shop', '--server', 'replay-*')
    server = serve(wide, session)['servers'][0]
    assert Client(api.holdfast, server['path'], headers=wide.headers).connect().call('look', {'item': 'tea'}).result


def imported(api, folder, servers):
    """A session of another Holdfast with one call of each of these servers."""
    now = '2026-01-02T03:04:05.000Z'
    calls = [call_line(n, [('kind', b'"call"'), ('at', written(now)), ('server', written(name)), ('method', b'"tools/call"'),
                           ('tool', b'"look"'), ('outcome', b'"ok"')], ('complete', None, None, b'{"arguments":{"a":1}}'),
                       ('complete', None, None, b'{"content":[]}')) for n, name in enumerate(servers, 1)]
    head = {'id': 'x', 'session_id': 'y', 'status': 'terminated', 'created_at': now, 'last_activity_at': now}
    reply = api.holdfast.request('POST', '/api/v1/sessions/import?again=1', {**api.headers, 'Content-Type': 'application/x-ndjson'},
                                 Signer(str(folder)).file(head, calls))
    assert reply.status == 201, reply
    return reply.json()


def test_servers_of_an_imported_session__are_limited_in_number_and_name(api, tmp_path):
    many = imported(api, tmp_path, [f's{n}' for n in range(65)])
    assert 'more than 64 servers' in refused(serve(api, many, 413), 413, 'too_large').json()['detail']
    assert len(serve(api, many, only=['s1*__look'])['servers']) == 11
    odd = imported(api, tmp_path, ['\x1b[31m', '..', 'a/b', 'a\nb', 'shop'])
    assert [s['name'] for s in serve(api, odd)['servers']] == ['shop']
    refused(serve(api, imported(api, tmp_path, ['\u202e']), 409), 409, 'conflict')
