# SPDX-License-Identifier: Apache-2.0
"""Documents for tests: folders on disk, and agents that read and edit them through a running Holdfast."""
import os
import re

import pytest

import harness

META = re.compile(rb'\{"author":"([^"]*)","time":(\d+)\}@@')
FOLDERS = {'Lens': 'suggest', 'Talk': 'comment', 'Shelf': 'read', 'Desk': 'write'}


def plain(data):
    """The document without the author and time of each mark."""
    return META.sub(b'', data)


def said(reply):
    """The text of a tool that did what it was asked."""
    assert reply.status == 200 and reply.result['isError'] is False, repr(reply)
    return reply.text


def refused(reply):
    """The text of a tool that did not: a result with isError, never an error of the protocol."""
    assert reply.status == 200 and reply.result['isError'] is True, repr(reply)
    assert {block['type'] for block in reply.result['content']} == {'text'}
    return reply.text


def handle_of(reply):
    """The session that read printed on its last line, as a model would copy it."""
    last = said(reply).rsplit('\n\n', 1)[1]
    found = re.fullmatch(r'\[session: (ses_[A-Za-z0-9_-]{43})\]', last)
    assert found, last
    assert reply.result['structuredContent']['session_id'] == found.group(1)
    return found.group(1)


def body_of(reply):
    """What read shows before its session line."""
    return said(reply).rsplit('\n\n', 1)[0]


class EachCall:
    """As Claude.ai: a transport of its own for every call, never deleted."""

    def __init__(self, hf, path='/mcp/docs', headers=None):
        self.hf, self.path, self.headers = hf, path, headers

    def call(self, tool, arguments=None):
        return self.hf.client(self.path, headers=self.headers).connect().call(tool, arguments)


class Opened:
    """As ChatGPT: a handshake, then calls that name no session at all."""

    def __init__(self, hf, path='/mcp/docs', headers=None):
        self.client = hf.client(path, headers=headers).connect()
        self.client.session = None

    def call(self, tool, arguments=None):
        return self.client.call(tool, arguments)


def bare(hf, path='/mcp/docs', headers=None):
    """No handshake."""
    return hf.client(path, headers=headers)


def kept(hf, path='/mcp/docs', headers=None):
    """One transport for everything."""
    return hf.client(path, headers=headers).connect()


def modern(hf, path='/mcp/docs', headers=None):
    return hf.client(path, modern=True, headers=headers)


AGENTS = {'each-call': EachCall, 'opened': Opened, 'bare': bare, 'kept': kept, 'modern': modern}
EVERY_AGENT = pytest.mark.parametrize('agent', AGENTS.values(), ids=AGENTS)


class Knowledge:
    """One folder on disk for each of the names, and the settings that serve them."""

    def __init__(self, top, folders=None):
        self.top, self.folders = str(top), dict(folders or FOLDERS)
        self.hf = None
        self.made = 0
        for name in self.folders:
            os.makedirs(os.path.join(self.top, name), exist_ok=True)

    def settings(self, **more):
        docs = {n: {'path': os.path.join(self.top, n), 'agent': a} for n, a in self.folders.items()}
        return {'docs': docs, 'tenants': {'default': {'max_sessions': 10000}}, **more}

    def file(self, path):
        return os.path.join(self.top, path)

    def write(self, path, data):
        """As an editor that saves in place; gives the path as tools take it."""
        data = data.encode('utf-8') if isinstance(data, str) else data
        os.makedirs(os.path.dirname(self.file(path)), exist_ok=True)
        with open(self.file(path), 'wb') as file:
            file.write(data)
        return path

    def new(self, data, folder='Lens'):
        """A document that no other test has."""
        self.made += 1
        return self.write(f'{folder}/doc-{self.made}.md', data)

    def bytes(self, path):
        with open(self.file(path), 'rb') as file:
            return file.read()

    def plain(self, path):
        return plain(self.bytes(path))

    def client(self, path='/mcp/docs', **options):
        return harness.Client(self.hf, path, **options)

    def agent(self, **options):
        return EachCall(self.hf, **options)

    def read(self, path, session=None, **more):
        """On a transport of its own: the reply of read."""
        return self.agent().call('read', {'file_path': path, **({'session_id': session} if session else {}), **more})

    def edit(self, path, old, new, session):
        return self.agent().call('edit', {'file_path': path, 'old_string': old, 'new_string': new, 'session_id': session})


def started(request, tmp_path_factory, name):
    """For a file of tests: one Holdfast with the four folders, ended with every check."""
    top = tmp_path_factory.mktemp(name)
    kb = Knowledge(top / 'vaults')
    kb.hf = harness.Holdfast(top, {'mcpServers': {}, 'holdfast': kb.settings(path_keys=True)})
    request.addfinalizer(kb.hf.close)
    kb.hf.start()
    return kb
