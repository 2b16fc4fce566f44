# SPDX-License-Identifier: Apache-2.0
"""The knowledge base from outside: folders on disk, agents that read and edit by MCP, the history as the
store has it, and the views of a text with suggestions in it."""
import os
import re
import sqlite3

from stored import Stored

META = r'(?:\{[^{}]*\}@@)?'


def base_view(text):
    """What the text was before anybody suggested anything."""
    text = re.sub(r'\{\+\+' + META + r'(.*?)\+\+\}', '', text, flags=re.S)
    text = re.sub(r'\{--' + META + r'(.*?)--\}', r'\1', text, flags=re.S)
    return re.sub(r'\{>>.*?<<\}', '', text, flags=re.S)


def accepted_view(text):
    text = re.sub(r'\{--' + META + r'(.*?)--\}', '', text, flags=re.S)
    text = re.sub(r'\{\+\+' + META + r'(.*?)\+\+\}', r'\1', text, flags=re.S)
    return re.sub(r'\{>>.*?<<\}', '', text, flags=re.S)


class Folder:
    """A folder of documents: `settings` for the configuration's docs."""

    def __init__(self, root, name='Lens', agent='suggest'):
        self.root, self.name, self.agent = str(root), name, agent
        os.makedirs(self.root, exist_ok=True)

    @property
    def settings(self):
        return {self.name: {'path': self.root, 'agent': self.agent}}

    def full(self, path):
        return os.path.join(self.root, path)

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.full(path)), exist_ok=True)
        with open(self.full(path), 'wb') as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def read(self, path):
        with open(self.full(path), 'rb') as file:
            return file.read()

    def staged(self):
        """What lies in .holdfast; None when it is not there."""
        try:
            return sorted(os.listdir(self.full('.holdfast')))
        except FileNotFoundError:
            return None


def history(hf, folder, path):
    """Every text a document was, oldest first, with the kind of change: [(kind, bytes)]."""
    found = Stored(hf).texts()
    with sqlite3.connect(f'file:{hf.data}/holdfast.db?mode=ro', uri=True) as db:
        rows = list(db.execute(
            'SELECT r.kind, d.id, r.revision FROM documents d JOIN document_revisions r ON r.document_id = d.id '
            'WHERE d.folder = ? AND d.path = ? ORDER BY r.revision', (folder, path)))
    # What was added since is not among the texts that were read first.
    return [(kind, found[document, number]) for kind, document, number in rows if (document, number) in found]


def texts(hf, folder, path):
    return [content for _, content in history(hf, folder, path)]


class Agent:
    """Reads and edits; every call is a transport of its own, the handle is all that holds it together."""

    def __init__(self, hf, modern=True, **options):
        self.client = hf.client('/mcp/docs', modern=modern, **options)
        self.handle = None
        if not modern:
            self.client.connect()

    def call(self, tool, **arguments):
        return self.client.call(tool, arguments)

    def read(self, path, **arguments):
        """The text as it is shown; the handle is kept."""
        if self.handle:
            arguments['session_id'] = self.handle
        reply = self.call('read', file_path=path, **arguments)
        if not reply.result.get('isError'):
            self.handle = reply.result['structuredContent']['session_id']
        return reply

    def lines(self, path):
        """The document's lines as read shows them, without numbers."""
        shown = self.read(path).text
        return [line.split('\t', 1)[1] for line in shown.split('\n') if re.match(r' *\d+\t', line)]

    def edit(self, path, old, new):
        return self.call('edit', file_path=path, old_string=old, new_string=new, session_id=self.handle)


def failed(reply):
    return bool(reply.result.get('isError'))
