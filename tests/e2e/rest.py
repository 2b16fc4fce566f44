# SPDX-License-Identifier: Apache-2.0
"""A client of /api/v1 that looks at every answer: its type, its request id, the shape of what went wrong."""
import json
import urllib.parse

PROBLEM = {'type', 'title', 'status', 'detail', 'code', 'request_id', 'error'}


class Session(dict):
    """A session as REST shows it.  Its age grows while a test looks, so two that differ in it alone are equal."""
    __hash__ = None

    def __eq__(self, other):
        return {**self, 'session_age': 0} == {**other, 'session_age': 0} if isinstance(other, dict) else NotImplemented

    def __ne__(self, other):
        return not self == other


class Rest:
    """One Holdfast's REST interface; `headers` go with every request (a key)."""

    def __init__(self, holdfast, headers=None):
        self.holdfast, self.headers = holdfast, headers or {}

    def request(self, method, path, body=None, headers=None, raw=None):
        data = raw if raw is not None else b'' if body is None else json.dumps(body).encode()
        fields = {**self.headers, **(headers or {})}
        if not data:
            fields.setdefault('Content-Type', None)
        reply = self.holdfast.request(method, '/api/v1' + path, fields, data)
        self.check(reply)
        return reply

    @staticmethod
    def check(reply):
        assert reply.header('x-request-id'), reply
        if reply.status >= 400:
            assert reply.header('content-type') == 'application/problem+json', reply
            problem = reply.json()
            assert set(problem) == PROBLEM and problem['status'] == reply.status, problem
            assert problem['request_id'] == reply.header('x-request-id')
            assert problem['type'] == 'urn:holdfast:problem:' + problem['code']
        elif reply.body:
            assert reply.header('content-type') == 'application/json', reply

    def get(self, path, **options):
        return self.request('GET', path, **options)

    def post(self, path, body=None, **options):
        return self.request('POST', path, body, **options)

    def put(self, path, body=None, **options):
        return self.request('PUT', path, body, **options)

    def patch(self, path, body=None, **options):
        return self.request('PATCH', path, body, **options)

    def delete(self, path, **options):
        return self.request('DELETE', path, **options)

    def create(self, **members):
        """A new session as the server shows it."""
        reply = self.post('/sessions', {'edge_mcp_id': 'edge-1', **members})
        assert reply.status == 201, reply
        return Session(reply.json())

    def holdfast_links(self):
        """Live children and remote sessions behind it."""
        for line in self.holdfast.get('/metrics').body.decode().splitlines():
            if line.startswith('holdfast_upstream_links '):
                return int(line.split()[1])
        raise AssertionError('no gauge of links')

    def session(self, name):
        reply = self.get('/sessions/' + urllib.parse.quote(name, safe=''))
        assert reply.status == 200, reply
        return Session(reply.json())


def refused(reply, status, code, error=None):
    """The answer is this problem; its error text too, where one is given."""
    assert reply.status == status and reply.json()['code'] == code, reply
    assert error is None or reply.json()['error'] == error, reply
    return reply
