# SPDX-License-Identifier: Apache-2.0
"""Every operation that the OpenAPI document tells of, tried by those who may not and with what it must not take.

Nothing here lists operations: a new one is tried because the document has it.  The answers are held
against the document by the harness; what is asserted here is what a document cannot say."""
import json
import os
import random
import re
import sqlite3
import threading

import pytest

import commands
import harness
import openapi
from harness import Connection

OPERATIONS = openapi.document().operations
GUARDED = [op for op in OPERATIONS if not op.is_open]
BODIED = [op for op in GUARDED if op.body and op.roles]  # those of the local admin alone: test_secrets.py
WITH_BODY = [op for op in BODIED if 'member' in op.roles]  # the others are for administrators: test_admin.py
OF_DOCUMENTS = [op for op in GUARDED if '/docs/' in op.path]
PATHS = sorted({op.path for op in GUARDED})
BODY_MAX, CONTEXT_MAX = 4 << 20, 1 << 20
NOBODYS = {'id': 'nobodys-session-0001', 'uuid': '01a1dfe0-6fbb-7000-b849-e51ac02e5f37'}
MINE = 'members-session-0001'
DOCUMENT = 'notes/plan.md'  # as the document's examples have it, in the folder Lens


def operation_ids(ops):
    return [op.id for op in ops]


class World:
    """One Holdfast with a tenant of every role, a stranger from another, and a session of the member's."""

    def __init__(self, folder):
        self.trace = os.path.join(str(folder), 'trace')
        self.vault = os.path.join(str(folder), 'lens')
        os.makedirs(os.path.join(self.vault, 'notes'))
        self.save('The plan\n')
        settings = {'auth': 'required', 'session': {'limits': {'max_per_tenant': 1000000}},
                    'docs': {'Lens': {'path': self.vault, 'tenants': ['acme']}}}
        self.hf = harness.Holdfast(folder, {'mcpServers': {}, 'holdfast': settings}, env={'HOLDFAST_TRACE_STORE': self.trace})
        self.hf.start()
        self.keys = {role: self.key('acme', role) for role in ('admin', 'member', 'auditor', 'service')}
        self.keys['other'], self.keys['stranger'] = self.key('acme', 'member'), self.key('rival', 'admin')
        self.keys['nobody'], self.keys['liar'] = {}, {'Authorization': 'Bearer hf_' + 'a' * 12 + '_' + 'A' * 43}
        self.lines = {}
        self.count = self.lies = 0
        for text in ('one\n', 'two\n', 'The {++new ++}plan\n'):  # three revisions
            self.save(text)
            assert self.send('member', 'GET', f'/api/v1/docs/files/Lens/{DOCUMENT}').status == 200
        self.session = self.new_session('member', MINE)
        path = '/api/v1/sessions/' + MINE
        assert self.send('member', 'PUT', path + '/context', {'a': 1}).status == 200
        assert self.send('member', 'POST', path + '/tools', {'tool_name': 'grep', 'arguments': {'a': 1}}).status == 200
        self.session = self.send('member', 'GET', path).json()
        with harness.Client(self.hf, headers=self.keys['member']).connect() as client:
            assert client.call('echo', {'message': 'x'}).status == 200
        self.send('member', 'GET', '/api/v1/sessions')  # which waits for what is still to be folded
        self.tool = self.rows()['tool_configurations'][0].split("'")[1]
        assert openapi.is_uuid(self.tool)

    def save(self, text):
        with open(os.path.join(self.vault, DOCUMENT), 'w', encoding='utf-8') as file:
            file.write(text)

    def key(self, tenant, role, review=True):
        scopes = {'scopes': {'review': True}} if review else {}
        body = json.dumps({'tenant': tenant, 'role': role, 'name': role, **scopes}).encode()
        with commands.UnixConnection(os.path.join(self.hf.data, 'holdfast.sock')) as connection:
            reply = connection.request('POST', '/api/v1/keys', {'Host': 'localhost'}, body)
        return {'Authorization': 'Bearer ' + reply.json()['key']}

    def send(self, who, method, path, body=None, headers=None, raw=None):
        """On a connection of this thread's own, as long as the server keeps it."""
        data = raw if raw is not None else b'' if body is None else json.dumps(body).encode()
        fields = {**self.keys[who], **({} if data else {'Content-Type': None}), **(headers or {})}
        if who == 'liar':  # each time from another address: invalid credentials are limited per address
            self.lies += 1
            with Connection(self.hf.port, source=f'127.0.{1 + self.lies // 250}.{1 + self.lies % 250}') as line:
                return line.request(method, path, fields, data)
        thread = threading.get_ident()
        line = self.lines.pop(thread, None) or Connection(self.hf.port)
        reply = line.request(method, path, fields, data)
        if reply.header('connection') == 'close':
            line.close()
        else:
            self.lines[thread] = line
        return reply

    def new_session(self, who='member', name=None):
        self.count += 1
        reply = self.send(who, 'POST', '/api/v1/sessions', {'edge_mcp_id': 'e', 'session_id': name or f'made-{self.count:08}'})
        assert reply.status == 201, reply
        return reply.json()

    def traced(self):
        with open(self.trace, encoding='utf-8') as file:
            return file.read().splitlines()

    def rows(self):
        """Everything that is stored but for leases, positions and the clock of keys.  An erasure that an operation began is over."""
        path = os.path.join(self.hf.data, 'holdfast.db')
        with sqlite3.connect(f'file:{path}?mode=ro', uri=True) as db:
            harness.wait_for(lambda: db.execute('SELECT COUNT(*) FROM audit_erasures WHERE done_at IS NULL').fetchone() == (0,),
                             'the end of the erasures')
        with sqlite3.connect(f'file:{path}?mode=ro', uri=True) as db:
            tables = [n for n, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
            found = {}
            for table in sorted(set(tables) - {'writers', 'fold_state', 'store_probe', 'events', 'audit_sizes', 'analytics_rollups', 'analytics_labels'}):
                columns = [c[1] for c in db.execute(f'PRAGMA table_info({table})') if c[1] != 'last_used_at']
                found[table] = sorted(map(repr, db.execute(f'SELECT {", ".join(columns)} FROM {table}')))
            return found

    def close(self):
        for line in self.lines.values():
            line.close()
        self.hf.close()


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    one = World(tmp_path_factory.mktemp('isolation'))
    yield one
    one.close()


def headers_for(op):
    """What the document requires beside the credential; one of two conditions for a document or a template."""
    one_of_two = {'putDocument': 'If-Match', 'putTemplate': 'If-None-Match'}.get(op.id)
    return {p['name']: '*' for p in op.params('header') if p['required'] or p['name'] == one_of_two}


def body_for(op, ids):
    """The document's example; the session it names is the one that is meant."""
    if op.body is None:
        return None
    body = op.example
    if op.id == 'replaySession':
        body.pop('against')  # there are no servers here
    if op.id != 'createSession' and 'session_id' in body:
        body['session_id'] = ids['id']
    elif op.id == 'createSession':
        body['session_id'] = ''
    return body


ENDLESS = {'watchEvents': '?after=none'}  # a stream that does not end is asked for what it refuses


def try_as(world, who, op, ids, body=None, headers=None):
    body = body if body is not None else body_for(op, ids)
    return world.send(who, op.method, op.target(**ids) + ENDLESS.get(op.id, ''), body, {**headers_for(op), **(headers or {})})


def is_about_a_session(op):
    return 'member' in op.roles and not {'docs', 'templates'} & set(op.path.split('/')) and ('{' in op.path or (op.id != 'createSession' and 'session_id' in (body_for(op, NOBODYS) or {})))


def caller(op):
    return 'member' if 'member' in op.roles else 'admin'


def shape(reply):
    """Everything of an answer but its date and request id."""
    headers = sorted((n.lower(), v) for n, v in reply.headers if n.lower() not in ('date', 'x-request-id'))
    return reply.status, headers, reply.body.replace((reply.header('x-request-id') or '-').encode(), b'')


# Without a credential, and with methods that are not there.

@pytest.mark.parametrize('op', OPERATIONS, ids=operation_ids(OPERATIONS))
def test_credentials__are_wanted_by_all_but_health(world, op):
    before = world.rows()
    for who in ('nobody', 'liar'):
        reply = world.send(who, op.method, op.target(**NOBODYS), body_for(op, NOBODYS), headers_for(op))
        if op.is_open:  # a sign-in is its own credential, and this one does not hold
            assert reply.status == (401 if op.id in ('login', 'refreshLogin') else 200), reply
            continue
        assert reply.status == 401 and reply.json()['error'] == 'tenant not found', reply
        assert reply.header('www-authenticate').startswith('Bearer '), reply
        mine = world.send(who, op.method, op.target(id=MINE, uuid=world.session['id']), body_for(op, {'id': MINE}), headers_for(op))
        assert shape(mine) == shape(reply)
    assert world.rows() == before


@pytest.mark.parametrize('path', PATHS)
def test_methods__that_are_not_told_of_are_405(world, path):
    ops = [op for op in OPERATIONS if op.path == path]
    for method in {'GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'TRACE', 'BREW'} - {op.method for op in ops}:
        for who in ('nobody', 'member'):
            reply = world.send(who, method, ops[0].target(**NOBODYS))
            assert reply.status == 405 and reply.json()['code'] == 'method_not_allowed', reply


# What belongs to somebody else.

ABOUT = [op for op in GUARDED if is_about_a_session(op)]


def traced_try(world, who, op, ids):
    before = len(world.traced())
    reply = try_as(world, who, op, ids)
    return reply, sorted(world.traced()[before:])


@pytest.mark.parametrize('op', ABOUT, ids=operation_ids(ABOUT))
@pytest.mark.parametrize('who', ['stranger', 'other', 'service'])
def test_foreign__is_unknown_to_the_byte_and_to_the_store(world, op, who):
    """While its owner uses it: what is being written of it must not show either.  The store is asked by others
    too (folds, leases), so equal traces may take a few tries; one that tells them apart would in each."""
    ids = {'id': MINE, 'uuid': world.session['id']}
    try_as(world, who, op, NOBODYS)  # the key is known from now on
    tries = []
    for _ in range(8):
        world.send('member', 'POST', f'/api/v1/sessions/{MINE}/tools', {'tool_name': 'grep'})
        foreign, asked = traced_try(world, who, op, ids)
        unknown, asked_for_nothing = traced_try(world, who, op, NOBODYS)
        assert foreign.status == 404 and shape(foreign) == shape(unknown), (foreign, unknown)
        assert foreign.json()['error'] == 'session not found'
        if not os.path.exists(world.trace):
            pytest.skip('this build has no fault points, so no trace of the store')
        if asked == asked_for_nothing:
            return
        tries.append((asked, asked_for_nothing))
    raise AssertionError(tries)


@pytest.mark.parametrize('who', ['stranger', 'other', 'service'])
def test_foreign__no_row_is_changed_by_trying(world, who):
    world.send('member', 'GET', f'/api/v1/sessions/{MINE}')  # which waits for what is still to be folded
    before = world.rows()
    for op in ABOUT:
        assert try_as(world, who, op, {'id': MINE, 'uuid': world.session['id']}).status == 404
    world.send('member', 'GET', f'/api/v1/sessions/{MINE}')
    assert world.rows() == before


@pytest.mark.parametrize('who', ['stranger'])
@pytest.mark.parametrize('op', WITH_BODY, ids=operation_ids(WITH_BODY))
def test_foreign__ids_in_a_body_are_unknown_ids(world, op, who):
    """A context or a tool of another tenant, named where one's own may be."""
    schema = openapi.document().deref(op.body['oneOf'][0] if 'oneOf' in op.body else op.body)
    ids = {'context_id': world.session['context_id'], 'tool_id': world.tool}
    own = world.new_session(who)['session_id']
    for member in set(ids) & set(schema.get('properties', {})):
        before = world.rows()
        answers = [try_as(world, who, op, {'id': own}, {**body_for(op, {'id': own}), member: value})
                   for value in (ids[member], NOBODYS['uuid'])]
        assert shape(answers[0]) == shape(answers[1]) and answers[0].status == 400, answers
        assert answers[0].json()['code'] == 'unknown_' + member.removesuffix('_id')
        assert world.rows() == before


def of_folder(op, folder):
    """Target and body of an operation on a document of that folder."""
    target, body = op.target(folder=folder, path=DOCUMENT), body_for(op, NOBODYS)
    if '{folder}' not in op.path and body is None:
        target += '?folder=' + folder
    if body and 'path' in body:
        body['path'] = f'{folder}/{DOCUMENT}'
    return target, body


@pytest.mark.parametrize('op', OF_DOCUMENTS, ids=operation_ids(OF_DOCUMENTS))
def test_foreign__folders_are_unknown_to_the_byte_and_left_alone(world, op):
    before, rows = sorted(os.listdir(world.vault)), world.rows()
    for headers in ({}, {'If-None-Match': '*'}) if op.id == 'putDocument' else ({},):
        answers = [world.send('stranger', op.method, *of_folder(op, folder), headers={**({} if headers else headers_for(op)), **headers})
                   for folder in ('Lens', 'Nope')]
        answers[1].body = answers[1].body.replace(b'Nope', b'Lens')  # an answer may repeat what was asked for
        assert shape(answers[0]) == shape(answers[1]) and answers[0].status == 404, answers
        assert answers[0].json()['error'] in ('document not found', 'folder not found')
    assert sorted(os.listdir(world.vault)) == before and world.rows() == rows
    reply = world.send('member', op.method, *of_folder(op, 'Lens'), headers=headers_for(op))
    assert reply.status == (409 if op.id == 'moveDocument' else 200), reply


@pytest.mark.parametrize('op', [op for op in OPERATIONS if op.scope], ids=operation_ids([op for op in OPERATIONS if op.scope]))
def test_scopes__what_needs_one_is_not_for_keys_without_it(world, op):
    for role in ('admin', 'member', 'service'):
        world.keys['plain'] = world.key('acme', role, review=False)
        for folder in ('Lens', 'Nobodys'):
            reply = world.send('plain', op.method, *of_folder(op, folder), headers=headers_for(op))
            assert reply.status == 403 and reply.json()['code'] == 'denied', reply


# Roles.

@pytest.mark.parametrize('op', GUARDED, ids=operation_ids(GUARDED))
def test_roles__are_as_told(world, op):
    ids = {'id': MINE, 'uuid': world.session['id']}
    for role in ('admin', 'member', 'auditor', 'service'):
        if role in op.roles:
            reply = try_as(world, role, op, NOBODYS)
            assert reply.status != 403, reply
        else:
            before = world.rows()
            reply = try_as(world, role, op, ids)
            assert reply.status == 403 and reply.json()['code'] == 'denied', reply
            assert world.rows() == before
    own_sign_ins = ('logout', 'endLogin', 'endLogins')
    is_write = op.method != 'GET' and op.id not in ('validateSession', 'authenticateEdge', *own_sign_ins)
    if op.roles:  # without roles it is for the local admin, on the unix socket
        assert ('auditor' not in op.roles) == is_write


def test_roles__members_and_services_list_their_own(world):
    made = {who: world.new_session(who)['session_id'] for who in ('member', 'service', 'admin', 'stranger')}
    for who in ('member', 'service', 'stranger', 'other', 'admin', 'auditor'):
        reply = world.send(who, 'GET', '/api/v1/sessions?status=all&limit=200')
        seen = {s['session_id'] for s in reply.json()['sessions']}
        may = set(made) - {'stranger'} if who in ('admin', 'auditor') else {who}
        assert {other for other, name in made.items() if name in seen} == may & set(made), who


# Bodies that are none.

@pytest.mark.parametrize('op', BODIED, ids=operation_ids(BODIED))
def test_content_type__other_than_told_is_415(world, op):
    told = op.raw['requestBody']['content']
    for bad in ('text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1', 'application/jsonx',
                'application/xml', '', 'application/merge-patch+json'):
        if bad not in told:
            reply = try_as(world, caller(op), op, NOBODYS, headers={'Content-Type': bad})
            assert reply.status == 415 and reply.json()['code'] == 'unsupported_media_type', (bad, reply)
    assert try_as(world, caller(op), op, NOBODYS, headers={'Content-Encoding': 'gzip'}).status == 415
    for good in (*told, 'application/json; charset=utf-8', 'Application/JSON'):
        assert try_as(world, caller(op), op, NOBODYS, headers={'Content-Type': good}).status != 415


@pytest.mark.parametrize('op', BODIED, ids=operation_ids(BODIED))
def test_json__that_is_none_is_400(world, op):
    before = world.rows()
    for raw in (b'{', b'{"a":1,}', b'{} {}', b'nul', b'"\\ud800"', b'\xff', b'\xef\xbb\xbf{}', b"{'a':1}", b'{"a":1,"a":1}', b'[' * 65,
                b'1', b'"text"', b'null', b'true'):
        reply = world.send(caller(op), op.method, op.target(**NOBODYS), raw=raw, headers=headers_for(op))
        assert reply.status == 400, (raw, reply)
    assert world.rows() == before


def padded(value, size):
    text = json.dumps(value).encode()
    return text + b' ' * (size - len(text))


def announce(world, method, path, size, headers):
    """The answer to a head alone, whose body nobody waits for."""
    with Connection(world.hf.port) as line:
        line.send(line.head_bytes(method, path, {**world.keys['member'], **headers, 'Content-Type': 'application/json',
                                                 'Content-Length': str(size)}, b''))
        reply = line.read_response(method)
    openapi.check(method, path, reply)
    return reply


def taken_by(op):
    """The answers to an example that is acceptable: a move to where the document is, a code that nobody made, a session without calls."""
    return {'moveDocument': (409,), 'joinSession': (404, 429), 'serveReplay': (409,)}.get(op.id, (200, 201))


@pytest.mark.parametrize('op', WITH_BODY, ids=operation_ids(WITH_BODY))
def test_body__is_taken_at_its_limit_and_413_past_it(world, op):
    own = world.new_session()['session_id']
    limit = CONTEXT_MAX if op.body.get('$ref', '').endswith('/Context') else BODY_MAX
    for size in (limit, limit + 1):
        raw = padded(body_for(op, {'id': own}), size)
        if size > BODY_MAX:
            reply = announce(world, op.method, op.target(id=own), size, headers_for(op))
        else:
            reply = world.send('member', op.method, op.target(id=own), raw=raw, headers=headers_for(op))
        taken = taken_by(op)
        assert (reply.status == 413) == (size > limit) and reply.status in (*taken, 413), (size, reply)


def object_of(size):
    """An object whose JSON has that many bytes."""
    return {'k': 'x' * (size - len(json.dumps({'k': ''}, separators=(',', ':'))))}


def edges(told):
    """(value, does it fit) on both sides of each bound of a member."""
    kinds = told.get('type', [])
    if 'maxLength' in told:
        yield from (('é' * told['maxLength'], True), ('é' * (told['maxLength'] + 1), False))
    if told.get('minLength'):
        yield from (('é' * told['minLength'], True), ('', False))
    if 'integer' in kinds:
        yield from ((told['minimum'], True), (told['minimum'] - 1, False), (told['maximum'], True), (told['maximum'] + 1, False))
    if 'x-max-bytes' in told:
        yield from ((object_of(told['x-max-bytes']), True), (object_of(told['x-max-bytes'] + 1), False))


@pytest.mark.parametrize('op', WITH_BODY, ids=operation_ids(WITH_BODY))
def test_members__are_taken_at_their_bounds_and_refused_past_them(world, op):
    schema = openapi.document().deref(op.body['oneOf'][0] if 'oneOf' in op.body else op.body)
    own = world.new_session()['session_id']
    for member, told in schema.get('properties', {}).items():
        # A name may be used once; what credentials may be is told by test_credentials.py.
        # Neither does a document have every name, nor every revision; a template has to exist.
        for value, fits in edges(told) if member not in ('session_id', 'passthrough_auth', 'path', 'new_path', 'revision', 'template', 'against') else ():
            body = {**body_for(op, {'id': own}), member: value}
            raw = json.dumps(body, ensure_ascii=False, separators=(',', ':')).encode()
            reply = world.send('member', op.method, op.target(id=own), raw=raw, headers=headers_for(op))
            taken = taken_by(op)
            assert reply.status in (taken if fits else (400, 413)), (member, str(value)[:40], fits, reply)


# Members that are not told of.

@pytest.mark.parametrize('op', WITH_BODY, ids=operation_ids(WITH_BODY))
def test_members__not_told_of_are_refused_or_passed_over(world, op):
    document = openapi.document()
    schema = document.deref(op.body['oneOf'][0] if 'oneOf' in op.body else op.body)
    if 'properties' not in schema:
        return  # any object
    session = document.raw['components']['schemas']['Session']
    for member in ('surprise', '__proto__', *(set(session['properties']) - set(schema['properties']))):
        own = world.new_session()['session_id']
        reply = try_as(world, 'member', op, {'id': own}, {**body_for(op, {'id': own}), member: 'surprise'})
        if schema['additionalProperties']:
            assert reply.status in (200, 201) and 'surprise' not in reply.body.decode(), (member, reply)
        else:
            assert reply.status == 400 and member in reply.json()['detail'], (member, reply)
        seen = world.send('member', 'GET', '/api/v1/sessions/' + own)
        assert 'surprise' not in seen.body.decode() and seen.json()['tenant_id'] == 'acme'


@pytest.mark.parametrize('op', WITH_BODY, ids=operation_ids(WITH_BODY))
def test_members__written_only_never_come_back(world, op):
    schema = openapi.document().deref(op.body['oneOf'][0] if 'oneOf' in op.body else op.body)
    for member in (m for m, told in schema.get('properties', {}).items() if told.get('writeOnly')):
        own = world.new_session()['session_id']
        reply = try_as(world, 'member', op, {'id': own}, {**body_for(op, {'id': own}), member: {'k': 'hush-hush'}})
        assert reply.status == 400 and 'hush' not in reply.body.decode()
        assert 'hush' not in world.send('member', 'GET', '/api/v1/sessions/' + own).body.decode()
    assert 'hush-hush' not in '\n'.join(world.hf.lines)


# Bodies made by chance.

TEXTS = ['', 'a', 'é', 'x y', '\U0001f600', '"', '\\', 'ses_' + 'A' * 43, '1h', '90s', '1d2h', '250ms', '3600', 'session-1', '-']
WORDS = ('sparrow', 'tea', 'Σ', 'k' * 40)


class Maker:
    """Values that fit a schema, and values that do not."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.document = openapi.document()

    def any(self, depth=0):
        kind = self.chance.randrange(8 if depth < 3 else 6)
        if kind == 6:
            return [self.any(depth + 1) for _ in range(self.chance.randrange(3))]
        if kind == 7:
            return {self.chance.choice(WORDS): self.any(depth + 1) for _ in range(self.chance.randrange(3))}
        return self.chance.choice([None, True, False, 0, -1, 1.5, 10 ** 18, *TEXTS])

    def text(self, schema):
        if schema.get('format') == 'uuid':
            return '%08x-0000-7000-8000-%012x' % (self.chance.getrandbits(32), self.chance.getrandbits(48))
        low, high = schema.get('minLength', 0), schema.get('maxLength', 300)
        fitting = [t for t in TEXTS if low <= len(t) <= high and re.search(schema.get('pattern', ''), t)]
        size = self.chance.choice([low, high, min(high, low + 7)])
        return self.chance.choice(fitting + ([] if 'pattern' in schema else ['x' * size, 'é' * size]))

    def fit(self, schema):
        schema = self.document.deref(schema)
        if 'oneOf' in schema:
            return self.fit(self.chance.choice(schema['oneOf']))
        if 'enum' in schema:
            return self.chance.choice(schema['enum'])
        kinds = schema.get('type', 'any')
        kind = self.chance.choice(kinds) if isinstance(kinds, list) else kinds
        low, high = schema.get('minimum', 0), schema.get('maximum', 10 ** 6)
        make = {'any': self.any, 'null': lambda: None, 'boolean': lambda: self.chance.random() < 0.5,
                'integer': lambda: self.chance.choice([low, high, self.chance.randint(low, high)]),
                'string': lambda: self.text(schema), 'object': lambda: self.object(schema),
                'array': lambda: [self.fit(schema['items']) for _ in range(self.chance.choice([1, 2, schema.get('maxItems', 3)]))]}
        return make[kind]()

    def object(self, schema):
        told = schema.get('properties')
        if told is None:
            return {self.chance.choice(WORDS): self.any() for _ in range(self.chance.randrange(4))}
        made = {m: self.fit(s) for m, s in told.items()
                if m in schema.get('required', []) or (self.chance.random() < 0.4 and not s.get('writeOnly'))}
        if schema.get('additionalProperties') and self.chance.random() < 0.3:
            made['surprise'] = self.any()
        return made

    def spoil(self, body):
        """Another body, most likely one that does not fit."""
        if not isinstance(body, dict) or not body or self.chance.random() < 0.1:
            return self.any() if self.chance.random() < 0.5 else {**(body if isinstance(body, dict) else {}), 'surprise': 1}
        member = self.chance.choice(sorted(body))
        what = self.chance.randrange(4)
        if what == 0:
            return {m: v for m, v in body.items() if m != member}
        if what == 1 and isinstance(body[member], str):
            return {**body, member: body[member] + 'x' * self.chance.choice([1, 50, 300])}
        return {**body, member: self.any()}


def without_ids(body):
    """Ids of contexts and tools that are made by chance are known to nobody."""
    for one in body if isinstance(body, list) else [body]:
        for member in ('context_id', 'tool_id') if isinstance(one, dict) else ():
            if isinstance(one.get(member), str) and openapi.is_uuid(one[member]):
                one.pop(member)
    return body


def named(op, body, own):
    """The same, about a session that is there, or one that is not yet."""
    for one in body if isinstance(body, list) else [body]:
        if isinstance(one, dict):
            if isinstance(one.get('session_id'), str) and not openapi.document().faults(op.body, body, closed=False):
                one['session_id'] = own
    return body


def is_unsure(op, body):
    """What the schema allows and the operation still may refuse: texts that are durations of nothing or too long, templates that
    do not exist, changes that change nothing, and the set-up, which only administrators change."""
    if op.id == 'updateSession' and isinstance(body, dict) and ('setup' in body or set(body) <= {'tenant_id', 'user_id'}):
        return True
    if op.id == 'shareSession' and isinstance(body, dict) and (
            'grantee' in body or any(isinstance(body.get(m), (str, float)) for m in ('expires', 'access'))):
        return True  # it names a user or a key, or does not
    if op.id == 'joinSession' and not {'code', 'session'} & set(body):
        return True
    return isinstance(body, dict) and (isinstance(body.get('ttl'), (str, float)) or isinstance(body.get('template'), str))


@pytest.mark.parametrize('op', WITH_BODY, ids=operation_ids(WITH_BODY))
def test_chance__no_body_is_a_fault_of_ours_and_what_fits_is_taken(world, op):
    maker, guards = Maker(op.id), {p['name']: '*' for p in op.params('header') if p['name'] == 'If-Match'}
    taken = refused = 0
    for number in range(200):
        own = world.new_session()['session_id'] if number % 20 == 0 else own
        body = without_ids(maker.fit(op.body) if number % 2 == 0 else maker.spoil(maker.fit(op.body)))
        if number % 3:
            body = named(op, body, own if op.id != 'createSession' else f'chance-{number}')
        fits = not openapi.document().faults(op.body, body, closed=False)
        reply = world.send('member', op.method, op.target(id=own), raw=json.dumps(body).encode(), headers=guards)
        assert reply.status < 500, (body, reply)
        if fits and not is_unsure(op, body):
            taken += 1
            assert reply.status in (200, 201, 404, 409) or op.id in ('moveDocument', 'replaySession', 'joinSession'), (body, reply)  # few texts are paths
        elif not fits:
            refused += 1
            assert reply.status == 400, (body, reply)
    assert taken >= 40 and (refused >= 20 or op.body.get('$ref', '').endswith('/Context')), (taken, refused)
