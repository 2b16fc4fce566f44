# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document: served, kept, fit for strangers' tools, true of itself."""
import json
import os
import subprocess

import pytest

import harness
import openapi
from rest import Rest, refused

KEPT = os.path.join(harness.TOP, 'docs/generated/openapi.json')
CONFIG = os.path.join(harness.TOP, 'tests/openapi/redocly.yaml')


def test_document__is_served_as_it_is_printed_and_kept(holdfast):
    reply = Rest(holdfast()).get('/openapi.json')
    assert reply.status == 200
    assert reply.json() == openapi.document().raw
    with open(KEPT, encoding='utf-8') as file:
        assert reply.json() == json.load(file), 'run tools/gen-docs'


def test_document__says_304_to_whom_knows_it(holdfast):
    api = Rest(holdfast())
    tag = api.get('/openapi.json').header('etag')
    known = api.get('/openapi.json', headers={'If-None-Match': f'"x", {tag}'})
    assert known.status == 304 and known.body == b'' and known.header('etag') == tag
    assert api.get('/openapi.json', headers={'If-None-Match': '"x"'}).status == 200


def test_document__needs_a_credential_where_all_do(holdfast):
    refused(Rest(holdfast(settings={'auth': 'required'})).get('/openapi.json'), 401, 'tenant_not_found', 'tenant not found')


def test_document__passes_the_linter_without_a_warning(tmp_path):
    node, linter = harness.node(), harness.npm_bin('redocly')
    if not node or not linter:
        pytest.skip('the packages of tests/package.json could not be fetched from npm')
    ran = subprocess.run([node, linter, 'lint', '--format=json', '--config', CONFIG, KEPT], capture_output=True, text=True,
                         timeout=120, check=False, cwd=tmp_path,
                         env={'PATH': os.path.dirname(node), 'HOME': str(tmp_path), 'REDOCLY_TELEMETRY': 'off',
                              'REDOCLY_SUPPRESS_UPDATE_NOTICE': 'true'})
    found = json.loads(ran.stdout)
    assert [(p['ruleId'], p['message'], p['location'][0].get('pointer')) for p in found['problems']] == []
    assert ran.returncode == 0, ran.stderr


def test_document__every_operation_is_told_in_full():
    for op in openapi.document().operations:
        captures = [w[1:-1] for w in op.words if w.startswith('{')]
        assert [p['name'] for p in op.params('path')] == captures, op
        assert op.raw['summary'].endswith('.') and all(p['description'] for p in op.raw.get('parameters', [])), op
        answers = set(op.raw['responses'])
        assert op.is_open or {'400', '401', '403', '404', '500', '503'} <= answers, op
        assert op.body is None or {'413', '415'} <= answers, op
        assert not [p for p in op.params('header') if p['name'] == 'Idempotency-Key'] or {'409', '422'} <= answers, op


def test_document__its_examples_fit():
    document = openapi.document()
    for op in document.operations:
        if op.body:
            assert document.faults(op.body, op.example, closed=False) == [], op
        for answer in map(document.deref, op.raw['responses'].values()):
            for media in answer.get('content', {}).values():
                assert document.faults(media['schema'], media['example']) == [], op


def test_document__tells_no_secret_and_shows_none():
    text = json.dumps(openapi.document().raw)
    assert 'hf_' not in text and 'BEGIN' not in text
    for name, schema in openapi.document().raw['components']['schemas'].items():
        for member, told in schema.get('properties', {}).items():
            if told.get('writeOnly'):
                assert name in ('SessionCreate', 'SessionPatch') and member == 'passthrough_auth'


@pytest.mark.parametrize('status, body, headers', [
    (201, {}, {}), (418, {}, {}), (200, {'sessions': [], 'count': 0, 'next_cursor': None, 'more': 1}, {}),
    (200, {'sessions': [{'id': 'x'}], 'count': 0, 'next_cursor': None}, {}),
    (200, {'sessions': [], 'count': '0', 'next_cursor': None}, {}),
    (200, {'sessions': [], 'count': 0, 'next_cursor': None}, {'ETag': '"1"'}),
    (200, {'sessions': [], 'count': 0, 'next_cursor': None}, {'X-Request-Id': None}),
    (200, {'sessions': [], 'count': 0, 'next_cursor': None}, {'Content-Type': 'text/plain'}),
])
def test_check__sees_what_is_wrong(status, body, headers):
    fields = {'Content-Type': 'application/json', 'X-Request-Id': 'req_1', **headers}
    reply = harness.Response(status, [(n, v) for n, v in fields.items() if v], json.dumps(body).encode())
    with pytest.raises(AssertionError):
        openapi.check('GET', '/api/v1/sessions', reply)


def test_check__takes_what_is_right():
    reply = harness.Response(200, [('Content-Type', 'application/json'), ('X-Request-Id', 'req_1')],
                             b'{"sessions":[],"count":0,"next_cursor":null}')
    openapi.check('GET', '/api/v1/sessions?limit=1', reply)


def test_health__is_as_told(holdfast):
    one = holdfast()
    for path in ('/healthz', '/readyz'):
        openapi.check('GET', path, one.get(path))
        openapi.check('GET', path, one.get(path, {'Host': 'elsewhere.example'}))
    assert isinstance(Rest(one).get('/sessions').json(), dict)
