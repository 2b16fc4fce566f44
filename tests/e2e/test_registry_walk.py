# SPDX-License-Identifier: Apache-2.0
"""The registry requirement by requirement, as somebody who never saw the code would check it: what is sent,
what comes back, and which rows are in the database then, on SQLite and on PostgreSQL.

One Holdfast for each store serves nearly all of it (`walk`); tests use sessions of their own, or a
tenant of their own where they count.  `job` is another, whose cleanup runs all the time."""
import json
import os
import re
import time

import pytest

from commands import run, run_json
from harness import Holdfast, wait_for
from packed import events_in
from rest import Rest, Session, refused
from stored import DAY_MS, Stored, ms
from walk import Walk

UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}')
HANDLE = re.compile(r'ses_[A-Za-z0-9_-]{43}')
TIME = re.compile(r'20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z')
UNKNOWN = '01a1dfe0-6fbb-7000-b849-e51ac02e5f37'

# The columns of requirement D3 and D4, and what PostgreSQL calls their types.
SESSION_COLUMNS = {
    'id': 'uuid', 'session_id': 'text', 'tenant_id': 'text', 'user_id': 'uuid', 'edge_mcp_id': 'text', 'client_name': 'text',
    'client_type': 'text', 'client_version': 'text', 'status': 'text', 'initialized': 'boolean', 'core_session_id': 'text',
    'passthrough_auth_encrypted': 'bytea', 'connection_metadata': 'jsonb', 'context_id': 'uuid',
    'last_activity_at': 'timestamp with time zone', 'tool_execution_count': 'bigint', 'total_tokens_used': 'bigint',
    'created_at': 'timestamp with time zone', 'expires_at': 'timestamp with time zone',
    'terminated_at': 'timestamp with time zone', 'termination_reason': 'text'}
EXECUTION_COLUMNS = {
    'id': 'uuid', 'session_id': 'uuid', 'tool_name': 'text', 'tool_id': 'uuid', 'arguments': 'jsonb', 'result': 'jsonb',
    'error': 'text', 'duration_ms': 'bigint', 'tokens_used': 'bigint', 'executed_at': 'timestamp with time zone'}
OPTIONAL = {'user_id', 'client_name', 'client_type', 'client_version', 'core_session_id', 'passthrough_auth', 'context_id',
            'terminated_at', 'termination_reason'}
COMPUTED = {'is_expired', 'should_refresh', 'session_age'}
ALWAYS = set(SESSION_COLUMNS) - OPTIONAL - {'passthrough_auth_encrypted'} | {'origin'} | COMPUTED


@pytest.fixture(scope='module', params=['sqlite', 'postgres'])
def store(request):
    return request.param


@pytest.fixture(scope='module')
def servers(request, store):
    return request.getfixturevalue('cluster') if store == 'postgres' else None


@pytest.fixture(scope='module')
def walk(tmp_path_factory, servers, store):
    one = Walk(tmp_path_factory.mktemp('walk'), {
        'session': {'limits': {'max_per_tenant': 100, 'default_ttl': '24h', 'idle_timeout': '30m'},
                    'cleanup': {'interval': '1h', 'batch_size': 100}},
        'tenants': {'acme': {'max_sessions': 5000}, 'small': {'max_sessions': 3}, 'off': {'sessions': False},
                    'brisk': {'idle_timeout': '1s'}, 'hour': {'default_ttl': '1h'}}}, servers)
    yield one
    one.hf.close()


@pytest.fixture(scope='module')
def job(tmp_path_factory, servers, store):
    one = Walk(tmp_path_factory.mktemp('job'), {
        'session': {'limits': {'default_ttl': '24h', 'idle_timeout': '1s'}, 'cleanup': {'interval': '100ms', 'batch_size': 3}},
        'tenants': {'patient': {'idle_timeout': '1h'}, 'few': {'max_sessions': 2}}}, servers)
    yield one
    one.hf.close()


def columns_of(walk, table):
    if walk.url:
        found = walk.sql(f"SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'mcp' AND table_name = '{table}'")
        return dict(found)
    return {r['name']: r['type'] for r in walk.stored.rows(f"pragma_table_info('{table}')")}


# The schema.

def test_d03__every_column_of_a_session_is_there_with_its_type(walk):
    found = columns_of(walk, 'edge_mcp_sessions')
    if walk.url:
        assert {name: found.get(name) for name in SESSION_COLUMNS} == SESSION_COLUMNS
        nullable = dict(walk.sql("SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = 'edge_mcp_sessions'"))
        assert all(nullable[c] == 'NO' for c in ('id', 'session_id', 'tenant_id', 'edge_mcp_id', 'status', 'initialized', 'created_at'))
    else:
        assert set(SESSION_COLUMNS) <= set(found)
        assert {found[c] for c in ('tool_execution_count', 'total_tokens_used', 'created_at', 'expires_at')} == {'INTEGER'}


def test_d04__every_column_of_an_execution_is_there_and_nothing_cascades_into_it(walk):
    if not walk.url:
        assert 'records' in columns_of(walk, 'events')  # executions are read out of these; see D16
        return
    found = columns_of(walk, 'session_tool_executions')
    assert {name: found.get(name) for name in EXECUTION_COLUMNS} == EXECUTION_COLUMNS
    foreign = walk.sql("SELECT conrelid::regclass, confrelid::regclass, confdeltype FROM pg_constraint WHERE contype = 'f' "
                       "AND connamespace = 'mcp'::regnamespace")
    # A binding is nothing without its share; no other row goes with the row that it names.
    assert all(how == 'a' or table == 'mcp.session_bindings' for table, _, how in foreign), foreign
    assert not any(table in ('mcp.session_tool_executions', 'mcp.events') for table, _, _ in foreign)


def test_d05__the_indexes_are_there(walk):
    if walk.url:
        found = dict(walk.sql("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'mcp'"))
        assert {f'idx_edge_sessions_{n}' for n in ('tenant', 'user', 'edge_mcp', 'status', 'active', 'activity')} <= set(found)
        assert {f'idx_tool_exec_{n}' for n in ('session', 'tool', 'time')} <= set(found)
        assert 'WHERE' in found['idx_edge_sessions_active'] and 'expires_at' in found['idx_edge_sessions_active']
        assert 'UNIQUE' in found['idx_edge_sessions_handle'] and '(tenant_id, session_id)' in found['idx_edge_sessions_handle']
    else:
        found = {r['name']: r['sql'] for r in walk.stored.rows('sqlite_master', "type = 'index' AND tbl_name = 'edge_mcp_sessions'")}
        assert {'idx_edge_sessions_tenant', 'idx_edge_sessions_active', 'idx_edge_sessions_used'} <= set(found)
        assert 'UNIQUE' in found['idx_edge_sessions_handle']


def test_d06__the_view_agrees_with_the_rest_interface(walk):
    api = walk.api('viewed')
    names = [api.create()['session_id'] for _ in range(4)]
    api.post(f'/sessions/{names[0]}/tools', [{'tool_name': 't', 'tokens_used': 5}] * 3)
    api.delete('/sessions/' + names[1])
    told = api.get('/sessions/metrics').json()
    wait_for(lambda: walk.stored.rows('session_metrics', "tenant_id = 'viewed'")[0]['total_tool_executions'] == 3, 'the fold')
    row, = walk.stored.rows('session_metrics', "tenant_id = 'viewed'")
    assert set(row) == {'tenant_id', 'active_sessions', 'total_sessions', 'total_tool_executions', 'total_tokens_used',
                        'avg_session_duration_minutes'}
    for member in ('active_sessions', 'total_sessions', 'total_tool_executions', 'total_tokens_used'):
        assert row[member] == told[member], member
    assert (row['active_sessions'], row['total_sessions'], row['total_tool_executions'], row['total_tokens_used']) == (3, 4, 3, 15)
    assert 0 <= row['avg_session_duration_minutes'] < 1


def test_d06__the_function_ends_what_is_over_and_tells_how_many(walk):
    if not walk.url:
        pytest.skip('SQLite has no functions of its own; the job does it')
    api = walk.api('function')
    names = [api.create(ttl='300ms')['session_id'] for _ in range(3)]
    kept = api.create()['session_id']
    wait_for(lambda: all(api.session(n)['status'] == 'expired' for n in names), 'their end')
    assert {walk.stored.session(n, 'function')['status'] for n in names} == {'active'}  # no job has come by
    assert int(walk.sql('SELECT mcp.cleanup_expired_sessions()')[0][0]) >= 3
    assert walk.sql('SELECT mcp.cleanup_expired_sessions()') == [['0']]
    for name in names:
        row = walk.stored.session(name, 'function')
        assert row['status'] == 'expired' and row['terminated_at'] == row['expires_at'] and row['termination_reason'] == 'expired'
        assert api.session(name)['terminated_at'] == api.session(name)['expires_at']
    assert walk.stored.session(kept, 'function')['status'] == 'active' and walk.stored.counted('function') == 1


def test_d06__up_down_up_and_up_again(tmp_path, store, servers):
    url = servers.database() if servers else None
    hf = Holdfast(tmp_path, env={'DATABASE_URL': url} if url else {})

    def db(*args):
        done = run(hf, 'db', *args, env=hf.env)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout

    def shape():
        if url:
            return [servers.sql(url, text) for text in (
                "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'mcp' ORDER BY 1, 2",
                "SELECT indexdef FROM pg_indexes WHERE schemaname = 'mcp' ORDER BY 1",
                "SELECT proname, pg_get_functiondef(p.oid) FROM pg_proc p WHERE pronamespace = 'mcp'::regnamespace ORDER BY 1, 2",
                "SELECT pg_get_viewdef('mcp.session_metrics'::regclass)")]
        return [(r['name'], r['sql']) for r in Stored(hf).rows('sqlite_master', "name NOT LIKE 'sqlite_%'", 'name')]
    db('migrate')
    first = shape()
    assert db('migrate') == '' and shape() == first
    db('rollback', '--to', '0', '--yes')
    if url:
        assert servers.sql(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'mcp'") == [['0']]
    db('migrate')
    assert shape() == first
    hf.start()
    assert Rest(hf).create()['status'] == 'active'
    hf.close()


def test_d06__the_sql_may_be_run_again_over_what_is_there(walk):
    if not walk.url:
        pytest.skip('a migration of SQLite runs once')
    name = walk.admin.create()['session_id']
    before = walk.admin.session(name)
    for number in ('0001_start', '0002_undelivered', '0003_registry', '0004_credentials', '0005_user_sessions',
                   '0006_documents'):
        with open(os.path.join(os.path.dirname(__file__), f'../../sql/postgres/{number}.up.sql'), encoding='utf-8') as file:
            walk.sql('BEGIN;\n' + file.read() + '\nCOMMIT;')
    assert walk.admin.session(name) == before and walk.admin.create()['status'] == 'active'


def test_d06__the_role_api_user_gets_its_grants_where_there_is_one(walk, tmp_path):
    if not walk.url:
        pytest.skip('SQLite has no roles')
    assert walk.sql("SELECT count(*) FROM pg_roles WHERE rolname = 'api_user'") == [['0']]  # and yet it was migrated
    url, owner = walk.cluster.empty_database(), walk.cluster.sql
    owner(walk.url, 'CREATE ROLE api_user')
    try:
        done = run(Holdfast(tmp_path), 'db', 'migrate', env={'DATABASE_URL': url})
        assert done.returncode == 0, done.stderr
        granted = {tuple(r) for r in owner(url, "SELECT table_name, privilege_type FROM information_schema.role_table_grants "
                                                "WHERE grantee = 'api_user'")}
        assert granted == {('edge_mcp_sessions', 'SELECT'), ('edge_mcp_sessions', 'INSERT'), ('edge_mcp_sessions', 'UPDATE'),
                           ('session_tool_executions', 'SELECT'), ('session_tool_executions', 'INSERT'),
                           ('session_metrics', 'SELECT'), ('tenants', 'SELECT')}
        owner(url, f"""SET ROLE api_user;
            INSERT INTO mcp.edge_mcp_sessions (id, session_id, tenant_id, edge_mcp_id, owner, origin, counted, expires_at)
            VALUES ('{UNKNOWN}', 'by-hand', 'default', 'edge', 'local', 'rest', true, now() - interval '1 s');
            UPDATE mcp.edge_mcp_sessions SET client_name = 'x';
            INSERT INTO mcp.session_tool_executions (id, session_id, tool_name, executed_at, tenant_id)
            VALUES ('{UNKNOWN}', '{UNKNOWN}', 't', now(), 'default')""")
        assert owner(url, 'SET ROLE api_user; SELECT mcp.cleanup_expired_sessions()') == [['1']]
        assert owner(url, "SET ROLE api_user; SELECT active_sessions, total_sessions FROM mcp.session_metrics") == [['0', '1']]
        for refused_text in ('DELETE FROM mcp.edge_mcp_sessions', 'DELETE FROM mcp.session_tool_executions',
                             'UPDATE mcp.session_tool_executions SET error = NULL', 'SELECT * FROM mcp.events',
                             'SELECT * FROM mcp.api_keys', 'TRUNCATE mcp.edge_mcp_sessions'):
            with pytest.raises(AssertionError, match='permission denied'):
                owner(url, f'SET ROLE api_user; {refused_text}')
    finally:
        owner(url, 'DROP OWNED BY api_user')
        owner(walk.url, 'DROP ROLE api_user')


def test_d03__the_database_itself_refuses_what_cannot_be(walk):
    if not walk.url:
        pytest.skip('its file has one writer')
    insert = ("INSERT INTO mcp.edge_mcp_sessions (id, session_id, tenant_id, edge_mcp_id, owner, origin, status, client_type) "
              "VALUES (gen_random_uuid(), '{name}', '{tenant}', {edge}, 'local', 'rest', '{status}', {type})")
    fine = {'name': 'constraint', 'tenant': 'acme', 'edge': "'e'", 'status': 'active', 'type': "'ide'"}
    walk.admin.create()  # there is such a tenant now
    walk.sql(insert.format(**fine))
    for wrong in ({}, {'name': 'x', 'status': 'dozing'}, {'name': 'x', 'edge': 'NULL'}, {'name': 'x', 'tenant': 'nobody'},
                  {'name': 'x', 'type': "'toaster'"}):
        with pytest.raises(AssertionError, match='violates'):
            walk.sql(insert.format(**{**fine, **wrong}))
    assert walk.admin.session('constraint')['edge_mcp_id'] == 'e'


def test_d28__a_row_inserted_as_the_first_registry_did_is_a_session(walk):
    if not walk.url:
        pytest.skip('its file has one writer')
    walk.admin.create()  # there is such a tenant now
    before = walk.stored.counted('acme')
    walk.sql("""INSERT INTO mcp.edge_mcp_sessions (
            session_id, tenant_id, user_id, edge_mcp_id, client_name, client_type, client_version, status, initialized,
            core_session_id, passthrough_auth_encrypted, connection_metadata, context_id, last_activity_at,
            tool_execution_count, total_tokens_used, created_at, expires_at
        ) VALUES ('seeds-own', 'acme', NULL, 'edge', 'n', 'ide', '1', 'active', false, '', NULL,
            '{"ip_address": "1.2.3.4"}', NULL, now(), 0, 0, now(), now() + interval '1 day')""")
    assert walk.stored.counted('acme') == before + 1
    shown = walk.admin.session('seeds-own')
    assert UUID.fullmatch(shown['id']) and shown['connection_metadata'] == {'ip_address': '1.2.3.4'} and shown['origin'] == 'rest'
    assert walk.admin.post('/sessions/seeds-own/tools', {'tool_name': 't'}).status == 200
    assert walk.admin.delete('/sessions/seeds-own').status == 200


def test_d07__json_has_the_columns_names_and_leaves_out_what_is_empty(walk):
    least = walk.admin.create()
    assert set(least) == ALWAYS
    most = walk.admin.create(client_name='n', client_type='cli', client_version='1', core_session_id='c')
    path = '/sessions/' + most['session_id']
    walk.admin.put(path + '/context', {'a': 1})
    walk.admin.delete(path)
    most = walk.admin.get(path).json()
    assert set(most) == ALWAYS | OPTIONAL - {'user_id', 'passthrough_auth'}
    row = walk.stored.session(most['session_id'])
    for column in set(SESSION_COLUMNS) - {'user_id', 'passthrough_auth_encrypted'}:
        here, there = most[column], row[column]
        if column.endswith('_at'):
            assert TIME.fullmatch(here), column
            here, there = ms(here), ms(there)
        assert here == there, column
    assert set(least['connection_metadata']) == {'ip_address', 'user_agent', 'protocol', 'tls_version'} - (
        set() if 'user_agent' in least['connection_metadata'] else {'user_agent'})


# The interface.

def test_d08__create_gives_the_session_and_a_row(walk):
    sent = {'session_id': 'session-1700000000-edge', 'edge_mcp_id': 'edge-é', 'client_name': 'Ünïcode 🎉', 'client_type': 'agent',
            'client_version': '1.0-β', 'metadata': {'region': 'eu', 'n': 12345678901234567890}, 'ttl': '1h30m',
            'tenant_id': 'other', 'user_id': UNKNOWN}
    reply = walk.admin.post('/sessions', sent, headers={'User-Agent': 'walk/1'})
    assert reply.status == 201 and reply.header('location') == '/api/v1/sessions/session-1700000000-edge'
    assert reply.header('etag') == walk.admin.get('/sessions/session-1700000000-edge').header('etag')
    assert reply.header('ratelimit-policy') == '"sessions";q=5000' and reply.header('cache-control') == 'no-store'
    session, row = reply.json(), walk.stored.session('session-1700000000-edge')
    assert UUID.fullmatch(session['id']) and row['id'] == session['id']
    for member in ('session_id', 'edge_mcp_id', 'client_name', 'client_type', 'client_version'):
        assert session[member] == row[member] == sent[member]
    assert session['tenant_id'] == row['tenant_id'] == 'acme' and row['user_id'] is None and 'user_id' not in session
    assert row['status'] == session['status'] == 'active' and row['initialized'] is False and row['counted'] is True
    assert ms(row['expires_at']) - ms(row['created_at']) == 5400 * 1000 == row['ttl_ms']
    assert ms(row['created_at']) == ms(session['created_at']) == ms(row['last_activity_at'])
    assert abs(ms(row['created_at']) - time.time() * 1000) < 60000
    assert not walk.stored.rows('edge_mcp_sessions', "tenant_id = 'other' AND session_id = 'session-1700000000-edge'")


def test_d08__a_name_of_odd_characters_is_found_where_location_and_link_say(walk):
    name = 'a>b"<c>[d]{e}|^`~!$&\'()*+,;=:@'
    reply = walk.admin.post('/sessions', {'edge_mcp_id': 'e', 'session_id': name})
    where = reply.header('location')
    assert reply.status == 201 and re.fullmatch(r"/api/v1/sessions/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})+", where)
    path = where[len('/api/v1'):]
    assert Session(walk.admin.get(path).json()) == reply.json()
    walk.admin.post(path + '/tools', [{'tool_name': f't{i}'} for i in range(3)])
    link = walk.admin.get(path + '/tools?limit=2').header('link')
    following = walk.admin.get(re.fullmatch(r'</api/v1([^<>"]*)>; rel="next"', link).group(1))
    assert [e['tool_name'] for e in following.json()['executions']] == ['t0']


def test_d08__without_a_name_the_server_makes_one_nobody_guesses(walk):
    made = [walk.admin.create(**m)['session_id'] for m in ({}, {'session_id': ''}, {'session_id': None})]
    assert all(HANDLE.fullmatch(n) for n in made) and len(set(made)) == 3


@pytest.mark.parametrize('headers', [{}, {'Authorization': 'Bearer hf_nobody'}, {'X-API-Key': 'x'}, {'Authorization': 'Basic eDp5'}])
def test_d08__without_a_tenant_it_is_401(walk, headers):
    for method, path in (('POST', '/sessions'), ('GET', '/sessions'), ('GET', '/sessions/metrics'), ('DELETE', '/sessions/x')):
        reply = refused(walk.anonymous.request(method, path, {} if method == 'POST' else None, headers=headers), 401,
                        'tenant_not_found', 'tenant not found')
        assert reply.header('www-authenticate').startswith('Bearer')


@pytest.mark.parametrize('raw', [b'{', b'nonsense', b'{"edge_mcp_id":"e",}', b"{'edge_mcp_id':'e'}", b'{"edge_mcp_id":"\xff"}',
                                 b'{"edge_mcp_id":"e","client_name":"\\ud800"}', b'[]', b'null', b'"x"', b'{"edge_mcp_id":NaN}',
                                 b'{"edge_mcp_id":"e","edge_mcp_id":"f"}', b'{"edge_mcp_id":"e","a":' + b'[' * 100 + b']' * 100 + b'}'])
def test_d08__bad_json_is_400_and_no_row(walk, raw):
    before = len(walk.stored.rows('edge_mcp_sessions', "tenant_id = 'acme'"))
    assert walk.admin.request('POST', '/sessions', raw=raw).status == 400
    assert len(walk.stored.rows('edge_mcp_sessions', "tenant_id = 'acme'")) == before


@pytest.mark.parametrize('member, value', [
    ('edge_mcp_id', ''), ('edge_mcp_id', None), ('edge_mcp_id', 5), ('edge_mcp_id', 'x' * 256), ('client_name', 'x' * 256),
    ('client_name', {}), ('client_version', '1' * 51), ('core_session_id', 'c' * 256), ('metadata', 'text'), ('metadata', []),
    ('metadata', {'a': 'x' * 65536}), ('session_id', 'x' * 256), ('session_id', 'a b'), ('session_id', 'ünï'), ('session_id', 'a/b'),
    ('session_id', 'a\\b'), ('session_id', '..'), ('session_id', 7), ('initialized', 'yes'), ('context_id', 'nope'),
    ('client_type', 'toaster'), ('client_type', ['ide']), ('context_id', UNKNOWN)])
def test_d08__what_cannot_be_kept_is_400(walk, member, value):
    assert walk.admin.post('/sessions', {'edge_mcp_id': 'e', member: value}).status == 400


@pytest.mark.parametrize('path, body', [
    ('/sessions', {'edge_mcp_id': 'a\0b'}), ('/sessions', {'edge_mcp_id': 'e', 'client_name': '\0'}),
    ('/sessions', {'edge_mcp_id': 'e', 'client_version': '\0'}), ('/sessions', {'edge_mcp_id': 'e', 'core_session_id': '\0'}),
    ('/sessions', {'edge_mcp_id': 'e', 'session_id': 'a\0'}), ('/sessions', {'edge_mcp_id': 'e', 'client_type': 'ide\0'}),
    ('/sessions/nul/tools', {'tool_name': 'a\0'}), ('/sessions/nul/tools', {'tool_name': 'a', 'error': '\0'}),
    ('/sessions/nul/tools', [{'tool_name': 'fine'}, {'tool_name': 'a\0'}])])
def test_d31__nul_in_a_text_is_refused_at_the_door_on_every_store(walk, path, body):
    if not walk.stored.rows('edge_mcp_sessions', "session_id = 'nul'"):
        walk.admin.create(session_id='nul')
    assert walk.admin.post(path, body).status == 400
    assert walk.admin.session('nul')['tool_execution_count'] == 0


def test_d31__nul_inside_a_document_is_kept_as_it_came(walk):
    raw = b'{"edge_mcp_id":"e","session_id":"nul-inside","metadata":{"k\\u0000":"v\\u0000","big":1e999999}}'
    made = walk.admin.request('POST', '/sessions', raw=raw)
    assert made.status == 201 and b'"k\\u0000":"v\\u0000"' in made.body and b'1e999999' in made.body
    again = walk.admin.get('/sessions/nul-inside')
    assert Session(again.json()) == made.json() and b'"k\\u0000":"v\\u0000"' in again.body and b'1e999999' in again.body
    assert walk.admin.request('PUT', '/sessions/nul-inside/context', raw=b'{"a":"\\u0000"}').status == 200
    assert walk.admin.get('/sessions/nul-inside/context').body == b'{"a":"\\u0000"}'
    told = b'{"tool_name":"t","arguments":{"a":"\\u0000"},"result":["\\u0000"]}'
    assert walk.admin.request('POST', '/sessions/nul-inside/tools', raw=told).status == 200
    one, = walk.admin.get('/sessions/nul-inside/tools').json()['executions']
    assert one['arguments'] == {'a': '\0'} and one['result'] == ['\0']


@pytest.mark.parametrize('method, path', [('DELETE', '/sessions/{}?reason=%ff'), ('DELETE', '/sessions/{}?reason=a%00b'),
                                          ('DELETE', '/sessions/{}?reason=a&reason=b'), ('DELETE', '/sessions/{}?reason=%c3'),
                                          ('DELETE', '/sessions/{}?reason=%zz'), ('GET', '/sessions?client_type=%ff'),
                                          ('GET', '/sessions?client_type=%ed%a0%80')])
def test_d31__what_is_no_text_in_a_query_is_400_on_every_store(walk, method, path):
    name = walk.admin.create()['session_id']
    refused(walk.admin.request(method, path.format(name)), 400, 'bad_input')
    assert walk.admin.session(name)['status'] == 'active'


def test_d09__the_server_writes_down_the_connection(walk):
    reply = walk.admin.post('/sessions', {'edge_mcp_id': 'e', 'metadata': {'ip_address': '6.6.6.6', 'tls_version': '9', 'own': True}},
                            headers={'User-Agent': 'edge-mcp/2.0 "quoted" \\'})
    expected = {'own': True, 'ip_address': '127.0.0.1', 'user_agent': 'edge-mcp/2.0 "quoted" \\', 'protocol': 'HTTP/1.1',
                'tls_version': 'none'}
    assert reply.json()['connection_metadata'] == expected
    assert walk.stored.session(reply.json()['session_id'])['connection_metadata'] == expected


def test_d10__at_the_limit_it_is_429_with_the_text_and_ending_one_makes_room(walk):
    api = walk.api('small')
    made = [api.create()['session_id'] for _ in range(3)]
    for _ in range(2):
        reply = refused(api.post('/sessions', {'edge_mcp_id': 'e'}), 429, 'session_limit', 'session limit exceeded for tenant')
        assert int(reply.header('retry-after')) > 0 and reply.header('ratelimit') == '"sessions";r=0'
    assert walk.stored.counted('small') == 3
    refused(api.post('/sessions', {'edge_mcp_id': 'e', 'session_id': made[0]}), 409, 'session_exists')
    assert api.delete('/sessions/' + made[0]).status == 200 and walk.stored.counted('small') == 2
    made[0] = api.create(ttl='300ms')['session_id']
    wait_for(lambda: api.session(made[0])['status'] == 'expired', 'its end')
    assert api.create()['status'] == 'active'  # what is over takes no place, though no job has come by
    assert api.get('/sessions').json()['count'] == 3
    refused(api.post('/sessions', {'edge_mcp_id': 'e'}), 429, 'session_limit', 'session limit exceeded for tenant')
    assert walk.admin.create()['status'] == 'active'  # others have their own


@pytest.mark.parametrize('ttl, seconds', [(None, 86400), (3600, 3600), ('3600', 3600), ('1h', 3600), ('1h30m', 5400), ('1.5h', 5400),
                                          ('90s', 90), ('1d12h', 129600), (2592000, 2592000), ('720h', 2592000), (1, 1)])
def test_d11__ttl_is_seconds_or_a_duration_and_a_day_by_default(walk, ttl, seconds):
    session = walk.admin.create(**({} if ttl is None else {'ttl': ttl}))
    assert ms(session['expires_at']) - ms(session['created_at']) == seconds * 1000
    row = walk.stored.session(session['session_id'])
    assert ms(row['expires_at']) - ms(row['created_at']) == seconds * 1000


@pytest.mark.parametrize('ttl', [0, -1, '0', '0s', '-1h', '', ' 1h', '1h ', '1y', 'PT1H', '30m1h', '1h1h', 'soon', 2592001, '720h1ms', 1.5,
                                 True, [], {}, 9007199254740993, 10 ** 30, '1e3', '1..5h', '1.h', '.5h', '0.0001s'])
def test_d11__other_ttls_are_400(walk, ttl):
    refused(walk.admin.post('/sessions', {'edge_mcp_id': 'e', 'ttl': ttl}), 400, 'invalid_duration')


def test_d11__a_tenants_own_default_counts(walk):
    session = walk.api('hour').create()
    assert ms(session['expires_at']) - ms(session['created_at']) == 3600 * 1000


def test_d13__get_finds_by_name_and_by_id_and_nothing_of_others(walk):
    def shown(api, path):
        return Session(api.get(path).json())
    session = walk.admin.create(session_id='d13')
    assert shown(walk.admin, '/sessions/d13') == session == shown(walk.admin, '/sessions/by-id/' + session['id'])
    assert shown(walk.admin, '/sessions/by-id/' + session['id'].upper()) == session
    unknown = walk.other.get('/sessions/d13-unknown', headers={'X-Request-Id': 'same'})
    for path in ('/sessions/d13', f'/sessions/by-id/{session["id"]}', '/sessions/nope', f'/sessions/by-id/{UNKNOWN}', '/sessions/%ff',
                 '/sessions/by-id/nope', '/sessions/by-id', '/sessions/' + 'x' * 5000):
        foreign = refused(walk.other.get(path, headers={'X-Request-Id': 'same'}), 404, 'session_not_found', 'session not found')
        assert foreign.body == unknown.body
    for path in ('/sessions/import', '/sessions/join'):  # operations; no session has such a name
        refused(walk.other.get(path), 405, 'method_not_allowed')
    assert shown(walk.api(role='auditor'), '/sessions/d13') == session
    refused(walk.api(role='member').get('/sessions/d13'), 404, 'session_not_found')  # its owner is another


def test_d13__head_is_get_without_the_body(walk):
    walk.admin.create(session_id='headed')
    for path in ('/sessions/headed', '/sessions', '/sessions/metrics', '/sessions/headed/tools', '/sessions/headed/context'):
        got, head = (walk.hf.request(m, '/api/v1' + path, walk.admin.headers) for m in ('GET', 'HEAD'))
        assert head.status == got.status == 200 and head.body == b'', path
        assert head.header('content-type') == got.header('content-type') and head.header('etag') == got.header('etag')
    assert walk.hf.request('HEAD', '/api/v1/sessions/nope', walk.admin.headers).status == 404
    assert walk.hf.request('HEAD', '/api/v1/sessions/headed').status == 401
    assert walk.hf.request('HEAD', '/api/v1/sessions/headed/activity', walk.admin.headers).status == 405
    assert walk.hf.request('HEAD', '/healthz').status == walk.hf.request('HEAD', '/readyz').status == 200


@pytest.mark.parametrize('path', ['/sessions/', '/sessions//', '//sessions', '/Sessions', '/sessions/d14/', '/sessions/x/y', '/session'])
def test_d13__paths_that_nearly_fit_are_404(walk, path):
    refused(walk.admin.get(path), 404, 'not_found')


def test_d14__delete_ends_it_says_why_and_does_it_once(walk):
    name = walk.admin.create()['session_id']
    reply = walk.admin.delete(f'/sessions/{name}?reason=fertig%20%E2%9C%93+now')
    assert reply.status == 200 and reply.json() == {'message': 'session terminated'}
    row, session = walk.stored.session(name), walk.admin.session(name)
    assert row['status'] == session['status'] == 'terminated'
    assert row['termination_reason'] == session['termination_reason'] == 'fertig ✓ now'
    assert ms(row['terminated_at']) == ms(session['terminated_at']) and abs(ms(row['terminated_at']) - time.time() * 1000) < 60000
    refused(walk.admin.delete('/sessions/' + name), 404, 'session_not_found', 'session not found')
    assert walk.stored.session(name) == row
    other = walk.admin.create()['session_id']
    assert walk.admin.delete(f'/sessions/{other}?reason=').status == 200
    assert walk.stored.session(other)['termination_reason'] == 'client request'
    refused(walk.admin.delete('/sessions/nope'), 404, 'session_not_found', 'session not found')
    refused(walk.admin.delete(f'/sessions/{other}?reason=' + 'r' * 256), 400, 'bad_input')


def test_d14__an_idle_one_is_ended_too(walk):
    api = walk.api('brisk')
    name = api.create()['session_id']
    wait_for(lambda: api.session(name)['status'] == 'idle', 'idle')
    assert api.delete('/sessions/' + name).status == 200
    assert walk.stored.session(name, 'brisk')['status'] == 'terminated'


def test_d15__activity_moves_last_activity_and_wakes_an_idle_one(walk):
    api = walk.api('brisk')
    before = api.create()
    name = before['session_id']
    wait_for(lambda: api.session(name)['status'] == 'idle', 'idle')
    reply = api.post(f'/sessions/{name}/activity')
    assert reply.status == 200 and reply.json() == {'message': 'activity updated'}
    after, row = api.session(name), walk.stored.session(name, 'brisk')
    assert after['status'] == 'active' and ms(row['last_activity_at']) == ms(after['last_activity_at']) > ms(before['last_activity_at'])
    assert ms(after['expires_at']) - ms(after['last_activity_at']) == DAY_MS  # it lives a day from its last use
    api.delete('/sessions/' + name)
    for path in (name, 'nope'):
        refused(api.post(f'/sessions/{path}/activity'), 404, 'session_not_found', 'session not found')
    assert walk.stored.session(name, 'brisk')['last_activity_at'] == row['last_activity_at']


def test_d15__an_explicit_ttl_is_not_moved_by_use(walk):
    session = walk.admin.create(ttl='2h')
    name = session['session_id']
    assert walk.admin.post(f'/sessions/{name}/activity').status == 200
    assert walk.admin.session(name)['expires_at'] == session['expires_at']
    reply = walk.admin.post(f'/sessions/{name}/refresh')
    assert reply.status == 200 and ms(reply.json()['expires_at']) >= ms(session['expires_at'])


def execution_rows(walk, session):
    """As SQL shows them (PostgreSQL), once they are folded."""
    return walk.stored.rows('session_tool_executions', f"session_id = '{session['id']}'", 'id') if walk.url else None


def test_d16__an_execution_is_a_row_and_moves_the_counters_with_it(walk):
    session = walk.admin.create()
    name = session['session_id']
    sent = {'tool_name': 'grep 🔧', 'arguments': {'q': 'é', 'n': 9007199254740993}, 'result': [{'a': None}], 'duration_ms': 17,
            'tokens_used': 42}
    reply = walk.admin.post(f'/sessions/{name}/tools', sent)
    assert reply.status == 200 and reply.json() == {'message': 'execution recorded'}
    after = walk.admin.session(name)
    assert (after['tool_execution_count'], after['total_tokens_used']) == (1, 42)
    assert ms(after['last_activity_at']) >= ms(session['last_activity_at'])
    one, = walk.admin.get(f'/sessions/{name}/tools').json()['executions']
    assert {k: one[k] for k in sent} == sent and one['outcome'] == 'ok' and one['session_id'] == session['id'] and 'error' not in one
    assert UUID.fullmatch(one['id']) and TIME.fullmatch(one['executed_at'])
    row = walk.stored.session(name)
    assert (row['tool_execution_count'], row['total_tokens_used']) == (1, 42)
    if walk.url:
        kept, = execution_rows(walk, session)
        assert {k: kept[k] for k in sent} == sent and kept['id'] == one['id'] and kept['error'] is None
        assert ms(kept['executed_at']) == ms(one['executed_at'])


def test_d16__counters_and_row_stand_or_fall_together(walk):
    session = walk.admin.create()
    path = f'/sessions/{session["session_id"]}/tools'
    for wrong in ([{'tool_name': 'a'}, {'tool_name': 'b', 'tokens_used': -1}], [{'tool_name': 'a'}, {}], [{'tool_name': 'a'}, None],
                  {'tool_name': 'a', 'duration_ms': -1}, {'tool_name': 'a', 'tool_id': UNKNOWN}, {'tool_name': 'x' * 256}, [], [[]],
                  [{'tool_name': 'a'}] * 101, {'tool_name': 'a', 'duration_ms': 'long'}, {'tool_name': 'a', 'tokens_used': 1.0}):
        assert walk.admin.post(path, wrong).status == 400
    assert walk.admin.session(session['session_id'])['tool_execution_count'] == 0
    assert walk.admin.get(path).json() == {'executions': [], 'count': 0, 'next_cursor': None}
    assert not execution_rows(walk, session)


def test_d16__on_a_session_that_is_over_nothing_is_counted(walk):
    session = walk.admin.create()
    name = session['session_id']
    walk.admin.post(f'/sessions/{name}/tools', {'tool_name': 't'})
    walk.admin.delete('/sessions/' + name)
    refused(walk.admin.post(f'/sessions/{name}/tools', {'tool_name': 't'}), 409, 'session_not_active', 'session is not active')
    refused(walk.admin.post('/sessions/nope/tools', {'tool_name': 't'}), 404, 'session_not_found', 'session not found')
    assert walk.admin.session(name)['tool_execution_count'] == 1
    assert walk.admin.get(f'/sessions/{name}/tools').json()['count'] == 1  # and what was, may be read


def test_d16__an_idle_one_takes_executions_and_is_active(walk):
    api = walk.api('brisk')
    name = api.create()['session_id']
    wait_for(lambda: api.session(name)['status'] == 'idle', 'idle')
    assert api.post(f'/sessions/{name}/tools', {'tool_name': 't'}).status == 200
    assert api.session(name)['status'] == 'active'


def test_d12f__counters_are_64_bits_wide(walk):
    session = walk.admin.create()
    path = f'/sessions/{session["session_id"]}'
    for tokens in (2 ** 31 - 1, 2 ** 31, 2 ** 32, 10 ** 12):
        assert walk.admin.post(path + '/tools', {'tool_name': 't', 'tokens_used': tokens}).status == 200
    for tokens in (10 ** 12 + 1, 2 ** 53 + 1, 2 ** 63, 10 ** 30, -1):
        refused(walk.admin.post(path + '/tools', {'tool_name': 't', 'tokens_used': tokens}), 400, 'bad_input')
    total = 2 ** 31 - 1 + 2 ** 31 + 2 ** 32 + 10 ** 12
    assert walk.admin.get(path).json()['total_tokens_used'] == total
    for _ in range(91):  # past 2^53, where a double would begin to lie
        assert walk.admin.post(path + '/tools', [{'tool_name': 't', 'tokens_used': 10 ** 12}] * 100).status == 200
    total += 9100 * 10 ** 12
    assert total > 2 ** 53 and total % 2
    assert f'"total_tokens_used":{total},'.encode() in walk.admin.get(path).body
    row = walk.stored.session(session['session_id'])
    assert row['total_tokens_used'] == total and row['tool_execution_count'] == 9104


def test_d17__list_shows_the_live_sessions_of_the_tenant(walk):
    api, other = walk.api('listed'), walk.api('listed2')
    names = [api.create(session_id=f'l{i}', client_type='ide' if i % 2 else 'cli')['session_id'] for i in range(5)]
    other.create(session_id='foreign')
    api.delete('/sessions/l0')
    short = api.create(ttl='100ms')['session_id']
    wait_for(lambda: api.session(short)['status'] == 'expired', 'its end')
    page = api.get('/sessions').json()
    assert [s['session_id'] for s in page['sessions']] == names[:0:-1] and page['count'] == 4 and page['next_cursor'] is None
    assert page['sessions'][0] == api.session('l4')

    def shown(query):
        return {s['session_id'] for s in api.get('/sessions' + query).json()['sessions']}
    assert shown('?status=terminated') == {'l0'} and shown('?status=expired') == {short}
    assert shown('?status=all') == {*names, short} and shown('?client_type=ide') == {'l1', 'l3'}
    assert shown('?status=terminated,%20expired') == {'l0', short}
    refused(api.get('/sessions?unknown=1'), 400, 'bad_input')


def test_d17__pages_follow_link_and_cursor_and_belong_to_whom_they_were_made_for(walk):
    api = walk.api('paged')
    names = [api.create(session_id=f'p{i}')['session_id'] for i in range(7)]
    for query in ('limit=3', 'limit=3&status=active,%20idle', 'limit=3&status=all', 'limit=3&status=idle,active'):
        seen, path = [], '/sessions?' + query
        while path:
            reply = api.get(path)
            seen += [s['session_id'] for s in reply.json()['sessions']]
            link = reply.header('link')
            path = re.fullmatch(r'</api/v1(/sessions\?[!-~]*)>; rel="next"', link).group(1) if link else None
        assert seen == names[::-1], query
    cursor = api.get('/sessions?limit=2').json()['next_cursor']
    for who in (walk.other, walk.api('paged', 'member'), walk.admin):
        refused(who.get('/sessions?limit=2&cursor=' + cursor), 400, 'bad_cursor')
    for wrong in ('', 'x', cursor[:-1], cursor + 'A', cursor + '&cursor=' + cursor, '%00', 'A' * 3000):
        assert api.get('/sessions?limit=2&cursor=' + wrong).status == 400, wrong
    refused(api.get('/sessions?status=all&cursor=' + cursor), 400, 'bad_cursor')
    refused(api.get('/sessions/p0/tools?cursor=' + cursor), 400, 'bad_cursor')


@pytest.mark.parametrize('query, status', [
    ('limit=1', 200), ('limit=200', 200), ('limit=0', 400), ('limit=201', 400), ('limit=-1', 400), ('limit=', 400), ('limit=x', 400),
    ('limit=1.0', 400), ('limit=1e2', 400), ('limit=%35', 200), ('limit=1&limit=1', 400), ('limit=99999999999999999999', 400),
    ('status=Active', 400), ('status=', 400), ('status=active,', 400), ('status=active&status=idle', 400)])
def test_d17__what_a_list_is_asked_is_checked(walk, query, status):
    assert walk.admin.get('/sessions?' + query).status == status
    if query.startswith('limit'):
        walk.admin.post('/sessions', {'edge_mcp_id': 'e', 'session_id': 'd17'})
        assert walk.admin.get('/sessions/d17/tools?' + query).status == status


def test_d18__metrics_count_what_was_made_and_used(walk):
    api = walk.api('measured')
    assert api.get('/sessions/metrics').json() == {'active_sessions': 0, 'total_sessions': 0, 'total_tool_executions': 0,
                                                   'total_tokens_used': 0, 'average_session_time_minutes': 0}
    names = [api.create()['session_id'] for _ in range(3)]
    api.post(f'/sessions/{names[0]}/tools', [{'tool_name': 't', 'tokens_used': 2 ** 31}] * 4)
    api.delete('/sessions/' + names[1])
    for query in ('', '?since=24h', '?since=1h30m', '?since=1.5h', '?since=3600', '?since=7d', '?since=100h'):
        totals = api.get('/sessions/metrics' + query).json()
        assert (totals['active_sessions'], totals['total_sessions']) == (2, 3), query
        assert (totals['total_tool_executions'], totals['total_tokens_used']) == (4, 4 * 2 ** 31)
        assert 0 <= totals['average_session_time_minutes'] < 1
    assert api.get('/sessions/metrics?since=0').status == 200
    assert walk.api('measured', 'member').get('/sessions/metrics').json()['total_sessions'] == 0  # one's own


@pytest.mark.parametrize('since', ['yesterday', '-1h', '', '1y', '1H', 'h', '1h-1m', '1e3', 'inf', '%201h', '99999999999999999999h', '1.5.5h'])
def test_d18__what_is_no_duration_is_400(walk, since):
    refused(walk.admin.get('/sessions/metrics?since=' + since), 400, 'invalid_duration', 'invalid duration')


def test_d19__update_changes_what_a_client_may_under_its_etag(walk):
    session = walk.admin.create(client_name='old')
    path = '/sessions/' + session['session_id']

    def tag():
        return walk.admin.get(path).header('etag')

    def patch(name, match):
        return walk.admin.patch(path, {'client_name': name}, headers={'If-Match': match} if match is not None else {})
    refused(patch('x', None), 428, 'precondition_required')
    for stale in ('"x"', 'W/' + tag(), tag().strip('"'), '', '"0"', '"77", "78"'):
        refused(patch('x', stale), 412, 'precondition_failed')
    assert walk.stored.session(session['session_id'])['client_name'] == 'old'
    for fresh in (lambda: tag(), lambda: f'"x", {tag()} , "y"', lambda: '*'):
        reply = patch('neu ✓', fresh())
        assert reply.status == 200 and reply.header('etag') == tag()
    row = walk.stored.session(session['session_id'])
    assert row['client_name'] == 'neu ✓' and row['version'] == 4
    reply = walk.admin.patch(path, {'client_name': None, 'initialized': True, 'core_session_id': 'core', 'client_type': 'vscode'},
                             headers={'If-Match': '*'})
    row = walk.stored.session(session['session_id'])
    assert (row['client_name'], row['initialized'], row['core_session_id'], row['client_type']) == (None, True, 'core', 'ide')
    assert 'client_name' not in reply.json()
    for wrong in ({'status': 'idle'}, {'id': UNKNOWN}, {'tool_execution_count': 9}, {'expires_at': '2030-01-01T00:00:00Z'}, {}, [],
                  {'tenant_id': 'other'}, {'client_name': 5}, {'nonsense': 1}):
        assert walk.admin.patch(path, wrong, headers={'If-Match': '*'}).status == 400, wrong
    assert walk.stored.session(session['session_id']) == row


def test_d19__executions_are_listed_newest_first_page_by_page(walk):
    name = walk.admin.create()['session_id']
    for start in range(0, 30, 10):
        walk.admin.post(f'/sessions/{name}/tools', [{'tool_name': f't{start + i}'} for i in range(10)])
    seen, path = [], f'/sessions/{name}/tools?limit=7'
    while path:
        reply = walk.admin.get(path)
        seen += [e['tool_name'] for e in reply.json()['executions']]
        link = reply.header('link')
        path = re.fullmatch(r'</api/v1([^> ]*)>; rel="next"', link).group(1) if link else None
    assert seen == [f't{i}' for i in range(29, -1, -1)]


def test_d08f__reading_touches_nothing(walk):
    session = walk.admin.create()
    name = session['session_id']
    before = walk.stored.session(name)
    for method, path in (('GET', ''), ('GET', '/tools'), ('GET', '/context'), ('POST', '/validate'), ('HEAD', '')):
        walk.hf.request(method, f'/api/v1/sessions/{name}{path}', walk.admin.headers)
    walk.admin.get('/sessions')
    walk.admin.get('/sessions/metrics')
    walk.admin.get('/sessions/by-id/' + session['id'])
    assert walk.admin.session(name) == session and walk.stored.session(name) == before
    api = walk.api('brisk')
    watched = api.create()['session_id']
    wait_for(lambda: api.session(watched)['status'] == 'idle', 'idle, however often it is looked at')


# Context.

def test_d01__a_context_is_shared_by_every_client_of_a_session(walk):
    name = walk.admin.create()['session_id']
    path = f'/sessions/{name}/context'
    reply = walk.admin.get(path)
    assert reply.json() == {} and reply.header('etag') == '"0"'
    assert walk.admin.put(path, {'a': 'é'}, headers={'If-Match': '"0"'}).header('etag') == '"1"'
    refused(walk.admin.put(path, {'a': 2}), 428, 'precondition_required')
    for stale in ('"0"', 'W/"1"', '"x"', '1', ''):
        refused(walk.admin.put(path, {'a': 2}, headers={'If-Match': stale}), 412, 'precondition_failed')
    assert walk.admin.put(path, {'a': 2}, headers={'If-Match': '"7", "1"'}).header('etag') == '"2"'
    assert walk.admin.patch(path, {'b': [1]}).json() == {'a': 2, 'b': [1]}
    row = walk.stored.session(name)
    context, = walk.stored.rows('contexts', f"id = '{row['context_id']}'")
    assert json.loads(context['document']) == {'a': 2, 'b': [1]} and context['version'] == 3 and context['tenant_id'] == 'acme'
    assert walk.admin.session(name)['context_id'] == row['context_id']
    for method in ('GET', 'PUT', 'PATCH'):
        refused(walk.other.request(method, path, None if method == 'GET' else {}), 404, 'session_not_found')
    refused(walk.other.post('/sessions', {'edge_mcp_id': 'e', 'context_id': row['context_id']}), 400, 'unknown_context')
    assert walk.admin.create(context_id=row['context_id'].upper())['context_id'] == row['context_id']


def test_d26__knowing_the_id_of_a_context_is_not_enough(walk):
    mine, other = walk.api(role='member'), walk.api(role='service')
    name = mine.create()['session_id']
    mine.put(f'/sessions/{name}/context', {'mine': True})
    context = mine.session(name)['context_id']
    refused(other.post('/sessions', {'edge_mcp_id': 'e', 'context_id': context}), 400, 'unknown_context')
    theirs = other.create()['session_id']
    refused(other.patch(f'/sessions/{theirs}', {'context_id': context}, headers={'If-Match': '*'}), 400, 'unknown_context')
    assert mine.create(context_id=context)['context_id'] == context
    shared = walk.admin.patch(f'/sessions/{theirs}', {'context_id': context}, headers={'If-Match': '*'})  # who sees both may share
    assert shared.status == 200 and other.get(f'/sessions/{theirs}/context').json() == {'mine': True}


def test_d01__mcp_clients_and_rest_see_one_context(walk):
    name = walk.admin.create()['session_id']
    path, client = f'/sessions/{name}/context', walk.client(path='/mcp/session')
    walk.admin.put(path, {'from': 'rest'})
    got = client.call('context_get', {'session_id': name}).result['structuredContent']
    assert got['context'] == {'from': 'rest'} and got['session_id'] == name
    done = client.call('context_update', {'session_id': name, 'etag': got['etag'], 'context': {'from': 'mcp'}})
    assert not done.result.get('isError'), done
    assert walk.admin.get(path).json() == {'from': 'mcp'}
    for tenant, role in (('other', 'admin'), ('acme', 'member')):
        foreign = walk.key(tenant, role).client(walk.hf, '/mcp/session').call('context_get', {'session_id': name})
        unknown = walk.key(tenant, role).client(walk.hf, '/mcp/session').call('context_get', {'session_id': 'ses_' + 'A' * 43})
        assert foreign.result['isError'] is True and foreign.raw == unknown.raw


def test_d14f__any_tool_name_fits_into_the_metrics_and_onto_a_screen(walk):
    name = walk.admin.create()['session_id']
    walk.admin.post(f'/sessions/{name}/tools', {'tool_name': 'evil"\\\n\x1b[31m\x07\u202e', 'error': '\x1b]0;title\x07'})
    assert any('evil' in line for line in walk.metrics())  # which checks every line of the page
    shown = run(walk.hf, 'audit', 'list', '--limit', '5').stdout
    assert 'evil' in shown and not set(shown) & set('\x1b\x07\u202e')


# Identity and isolation.

def test_d26__a_stranger_reads_and_changes_nothing(walk):
    session = walk.admin.create(session_id='isolated')
    before = walk.stored.session('isolated')
    stranger, colleague = walk.other, walk.api(role='member')
    for who in (stranger, colleague):
        for method, path, body in (('GET', '', None), ('DELETE', '', None), ('PATCH', '', {'client_name': 'x'}), ('POST', '/activity', None),
                                   ('POST', '/tools', {'tool_name': 't'}), ('GET', '/tools', None), ('POST', '/refresh', {'ttl': 60}),
                                   ('POST', '/validate', None), ('PUT', '/context', {}), ('GET', '/context', None)):
            reply = who.request(method, '/sessions/isolated' + path, body, headers={'If-Match': '*', 'X-Request-Id': 'r'})
            unknown = who.request(method, '/sessions/isolatet' + path, body, headers={'If-Match': '*', 'X-Request-Id': 'r'})
            assert reply.status == unknown.status == 404 and reply.body == unknown.body, (method, path)
        refused(who.post('/executions', {'session_id': 'isolated', 'tool_name': 't'}), 404, 'session_not_found')
        assert 'isolated' not in json.dumps(who.get('/sessions?status=all').json())
    assert walk.stored.session('isolated') == before and walk.admin.session('isolated') == session
    assert walk.other.create(session_id='isolated')['id'] != session['id']  # the name is free in another tenant


def test_d26__an_auditor_sees_all_and_changes_nothing(walk):
    auditor, name = walk.api(role='auditor'), walk.admin.create()['session_id']
    assert auditor.session(name)['status'] == 'active' and auditor.get(f'/sessions/{name}/tools').status == 200
    for method, path, body in (('POST', '/sessions', {'edge_mcp_id': 'e'}), ('DELETE', f'/sessions/{name}', None),
                               ('POST', f'/sessions/{name}/activity', None), ('POST', f'/sessions/{name}/tools', {'tool_name': 't'}),
                               ('PUT', f'/sessions/{name}/context', {})):
        refused(auditor.request(method, path, body), 403, 'denied', 'access denied')
    assert walk.admin.session(name)['status'] == 'active'


def test_d26__keys_are_kept_hashed_and_sessions_know_their_owner(walk):
    key = walk.key(role='member')
    name = walk.api(role='member').create()['session_id']
    row = walk.stored.session(name)
    assert row['owner'] == 'key:' + key.id
    kept, = walk.stored.rows('api_keys', f"id = '{key.id}'")
    secret = key.text.split('_', 2)[2]
    assert secret not in json.dumps({k: str(v) for k, v in kept.items()}) and secret not in '\n'.join(walk.hf.lines)


def test_d13f__secrets_are_not_kept_of_what_is_told(walk):
    name = walk.admin.create()['session_id']
    secret = 'ghp_' + 'a1B2' * 9
    walk.admin.post(f'/sessions/{name}/tools', {'tool_name': 't', 'arguments': {'password': 'hunter2-d13f', 'x': secret}, 'error': secret})
    text = json.dumps(walk.admin.get(f'/sessions/{name}/tools').json()) + '\n'.join(walk.hf.lines)
    if walk.url:
        text += json.dumps(walk.stored.rows('session_tool_executions'))
    else:
        with open(os.path.join(walk.hf.data, 'holdfast.db'), 'rb') as file, open(os.path.join(walk.hf.data, 'holdfast.db-wal'), 'rb') as wal:
            text += (file.read() + wal.read()).decode('latin-1')
        told = events_in(os.path.join(walk.hf.data, 'holdfast.db')).decode('latin-1')
        assert 'password' in told
        text += told
    assert secret not in text and 'hunter2-d13f' not in text


def test_d12f__the_audit_outlives_what_it_describes(walk):
    session = walk.admin.create()
    name = session['session_id']
    walk.admin.post(f'/sessions/{name}/tools', [{'tool_name': 'outlive'}] * 3)
    walk.admin.delete('/sessions/' + name)
    assert walk.admin.get(f'/sessions/{name}/tools').json()['count'] == 3
    assert len(run_json(walk.hf, 'audit', 'list', '--tool', 'outlive')) == 3
    if walk.url:  # somebody deletes the session by hand
        walk.sql(f"DELETE FROM mcp.edge_mcp_sessions WHERE id = '{session['id']}'")
        assert len(execution_rows(walk, session)) == 3
        assert len(run_json(walk.hf, 'audit', 'list', '--tool', 'outlive')) == 3


# Life.

def test_d21__status_is_told_as_it_is_without_any_job(walk):
    api = walk.api('brisk')
    name = api.create(ttl='2s')['session_id']
    wait_for(lambda: api.session(name)['status'] == 'idle', 'idle')
    assert [s['session_id'] for s in api.get('/sessions?status=idle').json()['sessions']][:1] == [name]
    wait_for(lambda: api.session(name)['status'] == 'expired', 'its end')
    shown = api.session(name)
    assert shown['terminated_at'] == shown['expires_at'] and shown['termination_reason'] == 'expired'
    assert api.post(f'/sessions/{name}/validate').json()['valid'] is False
    refused(api.delete('/sessions/' + name), 404, 'session_not_found')
    assert walk.stored.session(name, 'brisk')['status'] == 'active'  # the row waits for the job


def test_d21__the_job_writes_it_down_in_batches_and_tells_how_many(job):
    before = job.metrics()
    made = [job.admin.create(ttl='700ms')['session_id'] for _ in range(8)]
    kept = job.admin.create()['session_id']
    wait_for(lambda: job.metrics()['sessions_expired_total'] - before['sessions_expired_total'] == 8, 'the job')
    for name in made:
        row = job.stored.session(name)
        assert row['status'] == 'expired' and row['terminated_at'] == row['expires_at'] and row['termination_reason'] == 'expired'
    job.hf.wait_log(lambda l: l.get('msg') == 'Cleaned up expired sessions', 'the line')
    wait_for(lambda: sum(l['count'] for l in job.log('Cleaned up expired sessions')) >= 8, 'all to be told')
    assert all(l['level'] == 'info' for l in job.log('Cleaned up expired sessions'))
    wait_for(lambda: job.stored.session(kept)['status'] == 'idle', 'the job to write idle')
    assert job.admin.post(f'/sessions/{kept}/activity').status == 200 and job.stored.session(kept)['status'] == 'active'
    assert job.stored.counted('acme') == 1


def test_d21__what_made_room_at_the_limit_is_told_of_too(job):
    api, before = job.api('few'), job.metrics()['sessions_expired_total']
    for _ in range(2):
        made = [api.create(ttl='200ms')['session_id'] for _ in range(2)]
        wait_for(lambda: api.post('/sessions', {'edge_mcp_id': 'e', 'ttl': '200ms'}).status == 201, 'room')
        wait_for(lambda: all(api.session(n)['status'] == 'expired' for n in made), 'their end')
        wait_for(lambda: api.get('/sessions').json()['count'] == 0, 'the end of all')
    wait_for(lambda: job.metrics()['sessions_expired_total'] - before == 6, 'all to be counted')
    assert job.stored.counted('few') == 0


def test_d21__a_tenants_own_idle_timeout_is_what_is_told(job):
    patient = job.api('patient')
    name = patient.create()['session_id']
    other = job.admin.create()['session_id']
    wait_for(lambda: job.stored.session(other)['status'] == 'idle', 'the job')
    assert patient.session(name)['status'] == 'active'
    assert patient.get('/sessions?status=active').json()['count'] == 1 and patient.get('/sessions?status=idle').json()['count'] == 0


def test_d15f__one_node_at_a_time_holds_the_lease(job):
    if not job.url:
        pytest.skip('SQLite has one owner')
    wait_for(lambda: job.stored.rows('leases'), 'the lease')
    lease, = job.stored.rows('leases')
    writer, = job.stored.rows('writers', f'number = {lease["writer"]}')
    assert ms(lease['lease_until']) > time.time() * 1000 and writer['ended_at'] is None


def test_d22__the_defaults_are_the_seeds(tmp_path):
    shown = json.loads(run_config(tmp_path))['holdfast']
    assert shown['session']['limits'] == {'max_per_tenant': 100, 'default_ttl': '1d', 'idle_timeout': '30m'}
    assert shown['session']['cleanup'] == {'interval': '5m', 'batch_size': 100, 'undelivered': '10m'} and shown['metrics'] is True


def run_config(folder):
    import subprocess
    import harness
    from commands import command_env
    hf = Holdfast(folder)
    return subprocess.run([harness.BINARY, 'config', 'show'], cwd=hf.folder, env=command_env(hf), capture_output=True, check=True,
                          timeout=60).stdout


def test_d23__what_happens_to_a_session_is_logged(walk):
    session = walk.admin.create(edge_mcp_id='edge-d23')
    walk.admin.delete(f'/sessions/{session["session_id"]}?reason=d23')
    wait_for(lambda: [l for l in walk.log('Session terminated') if l['reason'] == 'd23'], 'the log')
    line, = [l for l in walk.log('Session created') if l['edge_mcp_id'] == 'edge-d23']
    assert line['session_id'] == session['id'] and line['tenant_id'] == 'acme' and line['expires_at'] == session['expires_at']
    line, = [l for l in walk.log('Session terminated') if l['reason'] == 'd23']
    assert line['session_id'] == session['id'] and line['tenant_id'] == 'acme'
    assert session['session_id'] not in '\n'.join(walk.hf.lines)


def test_d24__all_seven_metrics_move(walk):
    before, api = walk.metrics('counting'), walk.api('counting')
    one, two = api.create(client_type='cli'), api.create(client_type='cli')
    api.post(f'/sessions/{one["session_id"]}/tools', {'tool_name': 'd24', 'tokens_used': 7})
    api.delete('/sessions/' + two['session_id'])
    after = walk.metrics('counting')

    def grown(name):
        return after[name] - before.get(name, 0)
    assert grown('sessions_created_total{tenant_id="counting",client_type="cli"}') == 2
    assert grown('sessions_terminated_total') == 1 == grown('session_duration_seconds_count') == grown('sessions_active')
    assert grown('tools_executed_total{tenant_id="counting",tool_name="d24"}') == 1
    assert grown('tokens_used_total{tenant_id="counting"}') == 7
    assert 'sessions_expired_total' in after


def test_d25__each_alerts_condition_is_a_metric(walk):
    api = walk.api('alert')
    api.create()
    shown = walk.metrics('alert')
    before = walk.metrics('small')
    assert shown['holdfast_sessions_counted{tenant_id="alert"}'] == 1 and shown['holdfast_sessions_limit{tenant_id="alert"}'] == 100
    small = walk.api('small')
    while small.post('/sessions', {'edge_mcp_id': 'e'}).status == 201:
        pass
    assert walk.metrics('small')['holdfast_session_create_failures_total{reason="limit"}'] > before.get(
        'holdfast_session_create_failures_total{reason="limit"}', 0)
    assert shown['holdfast_cleanup_failures_total'] == 0
    assert any(name.startswith('holdfast_crypt_failures_total') for name in shown)


# Compatibility.

def test_d28__the_edge_clients_calls_work_unchanged(walk):
    api = walk.api('edge', 'service')
    assert api.post('/auth/edge-mcp', {'edge_mcp_id': 'edge-1', 'api_key': 'x'}).json() == {'success': True, 'tenant_id': 'edge'}
    made = api.post('/sessions', {'session_id': 'session-1763200000-edge-1', 'edge_mcp_id': 'edge-1', 'client_name': 'Code', 'client_type':
                                  'vscode', 'tenant_id': UNKNOWN, 'created_at': '2025-01-01T00:00:00Z', 'hostname': 'h'})
    assert made.status == 201 and made.json()['client_type'] == 'ide'
    assert api.post('/executions', {'session_id': 'session-1763200000-edge-1', 'tool_name': 'grep', 'duration_ms': 3}).status == 200
    assert api.put('/context/session-1763200000-edge-1', {'context': {'log': [1]}}).json()['context'] == {'log': [1]}
    assert api.patch('/context/session-1763200000-edge-1', {'append': {'log': [2]}}).json()['context'] == {'log': [1, 2]}
    assert api.get('/context/session-1763200000-edge-1').json()['context'] == {'log': [1, 2]}
    assert api.delete('/sessions/session-1763200000-edge-1').json() == {'message': 'session terminated'}
    assert api.session('session-1763200000-edge-1')['tool_execution_count'] == 1
    row = walk.stored.session('session-1763200000-edge-1', 'edge')
    assert row['status'] == 'terminated' and row['tool_execution_count'] == 1 and row['owner'].startswith('key:')


def test_d29__a_tenant_without_the_feature_gets_404_and_mcp_goes_on(walk):
    api = walk.api('off')
    for method, path in (('POST', '/sessions'), ('GET', '/sessions'), ('GET', '/sessions/x'), ('DELETE', '/sessions/x'),
                         ('POST', '/executions'), ('GET', '/context/x'), ('POST', '/auth/edge-mcp'), ('GET', '/sessions/metrics')):
        refused(api.request(method, path, {'edge_mcp_id': 'e'} if method == 'POST' else None), 404, 'not_found')
    client = walk.key('off').client(walk.hf).connect()
    assert client.call('echo', {'text': 'x'}).status == 200
    assert not walk.stored.rows('edge_mcp_sessions', "tenant_id = 'off' AND counted")


def test_d01f__fixed_words_are_no_session_ids(walk):
    for word in ('metrics', 'by-id', 'import'):
        refused(walk.admin.post('/sessions', {'edge_mcp_id': 'e', 'session_id': word}), 400, 'bad_input')
    for method in ('DELETE', 'PATCH'):
        refused(walk.admin.request(method, '/sessions/metrics', None if method == 'DELETE' else {}), 405, 'method_not_allowed')


def test_d10f__a_taken_name_is_409_even_when_its_session_is_over(walk):
    walk.admin.create(session_id='taken')
    refused(walk.admin.post('/sessions', {'edge_mcp_id': 'e', 'session_id': 'taken'}), 409, 'session_exists', 'session already exists')
    walk.admin.delete('/sessions/taken')
    refused(walk.admin.post('/sessions', {'edge_mcp_id': 'e', 'session_id': 'taken'}), 409, 'session_exists')
    assert len(walk.stored.rows('edge_mcp_sessions', "session_id = 'taken'")) == 1
