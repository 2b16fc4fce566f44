# SPDX-License-Identifier: Apache-2.0
"""Holds every answer under /api/v1 against the OpenAPI document: is the status one of the operation's, is the
type, is each header told, does the body fit its schema?

The document lets answers grow, so that clients pass over what they do not know; here a member that it
does not list is a fault.  harness.py calls check() for every request that a test makes."""
import copy
import functools
import json
import re
import subprocess
import urllib.parse

import jsonschema

import harness

# Headers that mean something to a client of the API, so must be told of.
TOLD = {'etag', 'location', 'link', 'ratelimit', 'ratelimit-policy', 'retry-after', 'idempotency-replayed',
        'www-authenticate', 'x-request-id'}
PROBLEM_TYPE = 'application/problem+json'
METHODS = ('get', 'put', 'post', 'delete', 'patch')
FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks('uuid')
def is_uuid(value):
    return not isinstance(value, str) or bool(re.fullmatch(r'[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', value))


@FORMATS.checks('date-time')
def is_time(value):
    return not isinstance(value, str) or bool(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', value))


@FORMATS.checks('uri')
def is_uri(value):
    return not isinstance(value, str) or bool(urllib.parse.urlsplit(value).scheme)


def close(schema):
    """The same schema, with no room for members that it does not list."""
    if isinstance(schema, dict):
        for part in schema.values():
            close(part)
        if isinstance(schema.get('properties'), dict):
            schema.setdefault('additionalProperties', False)
    elif isinstance(schema, list):
        for part in schema:
            close(part)
    return schema


class Operation:
    """One row of the document."""

    def __init__(self, path, method, raw):
        self.path, self.method, self.raw = path, method.upper(), raw
        self.id, self.roles = raw['operationId'], raw.get('x-roles')
        self.is_open = raw.get('security') == []
        self.scope = raw.get('x-scope')
        self.words = path.split('/')
        self.long = {'{%s}' % p['name'] for p in raw.get('parameters', []) if p.get('x-slashes')}
        self.numbers = {'{%s}' % p['name'] for p in self.params('path') if p['schema']['type'] == 'integer'}

    def __repr__(self):
        return self.id

    def stretched(self, words):
        """Our words, the one that stands for several as often as it does here; None: it cannot."""
        at = next((i for i, ours in enumerate(self.words) if ours in self.long), None)
        if at is None:
            return self.words
        more = len(words) - len(self.words)
        behind = self.words[at + 1:]
        if more < 0 or (behind and not words[at + more].lower().endswith('.md')):
            return None
        return self.words[:at] + [self.words[at]] * (more + 1) + behind

    def takes(self, ours, word):
        return ours == word or (ours.startswith('{') and word != '' and (ours not in self.numbers or word.isdigit()))

    def fits(self, words):
        own = self.stretched(words)
        return own is not None and len(words) == len(own) and all(map(self.takes, own, words))

    def params(self, where):
        return [p for p in self.raw.get('parameters', []) if p['in'] == where]

    @property
    def body(self):
        """The schema of the request's JSON; None: it reads none."""
        return self.raw.get('requestBody', {}).get('content', {}).get('application/json', {}).get('schema')

    @property
    def example(self):
        """A body that fits."""
        return copy.deepcopy(self.raw['requestBody']['content']['application/json']['example'])

    def target(self, **values):
        """The path with its captures filled in; those not given by the document's example, or nothing in particular."""
        told = {p['name']: str(p.get('example', 'nothing')) for p in self.params('path')}
        return re.sub(r'\{(\w+)\}', lambda m: urllib.parse.quote(values.get(m.group(1), told[m.group(1)]),
                                                                  safe='/' if m.group(0) in self.long else ''), self.path)


class Document:
    def __init__(self, raw):
        self.raw = raw
        self.closed = close(copy.deepcopy(raw))
        self.operations = [Operation(path, method, item[method])
                           for path, item in raw['paths'].items() for method in METHODS if method in item]
        self.validators = {}

    def deref(self, part):
        while '$ref' in part:
            place = part['$ref'].removeprefix('#/').split('/')
            part = functools.reduce(lambda at, word: at[word], place, self.raw)
        return part

    def rows(self, path):
        """The operations of a path; fixed words win over captures."""
        words = [urllib.parse.unquote(w) for w in path.split('?')[0].split('/')]
        fitting = {op: [not w.startswith('{') for w in op.stretched(words)] for op in self.operations if op.fits(words)}
        best = max(fitting.values(), default=None)
        return [op for op in fitting if fitting[op] == best]

    def validator(self, schema, closed=True):
        key = (json.dumps(schema, sort_keys=True), closed)
        if key not in self.validators:
            whole = self.closed if closed else self.raw
            resolver = jsonschema.RefResolver('', whole)
            self.validators[key] = jsonschema.Draft202012Validator(schema, resolver=resolver, format_checker=FORMATS)
        return self.validators[key]

    def faults(self, schema, value, closed=True):
        return [f'{"/".join(map(str, e.absolute_path))}: {e.message[:300]}'
                for e in self.validator(schema, closed).iter_errors(value)]

    def check(self, method, path, reply):
        """Raises AssertionError when the answer is not one that the document tells of."""
        where = f'{method} {path[:200]} answered {reply!r}'
        rows = self.rows(path)
        op = next((op for op in rows if op.method == method), None)
        if op:
            told = op.raw['responses'].get(str(reply.status))
            assert told, f'{where}: {op.id} has no answer {reply.status}'
            self.check_answer(self.deref(told), reply, where)
        elif method == 'OPTIONS' and reply.status == 204:
            assert not reply.body, where
        else:
            assert reply.status in ((405, 400, 403, 413) if rows else (404, 400, 403, 413)), where
            allow = sorted({op.method for op in rows} | {'HEAD' for op in rows if op.method == 'GET'})
            assert reply.status != 405 or sorted(re.split(r', ?', reply.header('allow'))) == allow, where
            self.check_body({'$ref': '#/components/schemas/Problem'}, PROBLEM_TYPE, reply, where)

    def check_answer(self, told, reply, where):
        headers = {name.lower(): self.deref(h) for name, h in told.get('headers', {}).items()}
        for name, _ in reply.headers:
            assert name.lower() not in TOLD or name.lower() in headers, f'{where}: {name} is not told of'
        for name, header in headers.items():
            value = reply.header(name)
            assert value is not None or not header['required'], f'{where}: {name} is missing'
            assert value is None or header['schema']['type'] != 'integer' or value.isdigit(), f'{where}: {name}: {value}'
        if 'content' not in told:
            assert not reply.body, f'{where}: a body where none is told of'
            return
        media = reply.header('content-type')
        assert media in told['content'], f'{where}: Content-Type {media}'
        content = told['content'][media]
        if media not in ('application/json', PROBLEM_TYPE):  # a stream; its schema is a text
            assert content['schema'] == {'type': 'string'}, where
            return
        self.check_body(content['schema'], media, reply, where)

    def check_body(self, schema, media, reply, where):
        assert reply.header('content-type') == media, f'{where}: Content-Type {reply.header("content-type")}'
        faults = self.faults(schema, json.loads(reply.body))
        assert not faults, f'{where}: {faults}'
        if media == PROBLEM_TYPE:
            problem = json.loads(reply.body)
            assert problem['status'] == reply.status and problem['type'] == 'urn:holdfast:problem:' + problem['code'], where
            assert problem['request_id'] == reply.header('x-request-id'), where


@functools.lru_cache(maxsize=1)
def document():
    """What this build says of itself; test_openapi.py shows that it is what it serves."""
    told = subprocess.run([harness.BINARY, 'help', 'openapi'], capture_output=True, check=True, timeout=60)
    return Document(json.loads(told.stdout))


def is_no_http(reply):
    """A head that cannot be read names no operation; its connection ends."""
    return (reply.status in (400, 408, 414, 431) and reply.header('connection') == 'close'
            and not reply.header('x-request-id') and list(reply.json()) == ['error'])


def check(method, path, reply):
    if method != 'HEAD' and not is_no_http(reply):
        document().check(method, path, reply)
