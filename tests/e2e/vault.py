# SPDX-License-Identifier: Apache-2.0
"""A folder of documents on disk, and a client of REST that knows its operations."""
import os
import urllib.parse

from rest import Rest

PLAN = ('# Plan\n\nThe {--{"author":"Ada\'s AI","time":1794730000}@@quick--}{++{"author":"Ada\'s AI","time":1794730000}@@fast++} fox.\n'
        'It {++{"author":"Ada\'s AI","time":1794730001}@@really ++}jumps.\nOver {--the --}dogs.{>>too many?<<}\n')
ACCEPTED = '# Plan\n\nThe fast fox.\nIt really jumps.\nOver dogs.\n'
BASE = '# Plan\n\nThe quick fox.\nIt jumps.\nOver the dogs.\n'


class Folder:
    def __init__(self, root, **files):
        self.root = str(root)
        os.makedirs(self.root, exist_ok=True)
        for name, text in files.items():
            self.write(name + '.md', text)

    def write(self, path, text):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, 'wb') as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def read(self, path):
        with open(os.path.join(self.root, path), 'rb') as file:
            return file.read().decode()

    def settings(self, **more):
        return {'path': self.root, **more}


def quoted(path):
    return urllib.parse.quote(path, safe='/')


class Docs(Rest):
    """The operations on documents, as whoever the headers say."""

    def read(self, path, query='', **options):
        return self.get(f'/docs/files/{quoted(path)}{query}', **options)

    def document(self, path, query=''):
        reply = self.read(path, query)
        assert reply.status == 200, reply
        assert reply.header('etag') == reply.json()['etag']
        return reply.json()

    def write(self, path, content, match=None, new=False, **members):
        headers = {**({'If-Match': match} if match else {}), **({'If-None-Match': '*'} if new else {})}
        return self.put(f'/docs/files/{quoted(path)}', {'content': content, **members}, headers=headers)

    def history(self, path, query=''):
        return self.get(f'/docs/files/{quoted(path)}/history{query}')

    def revisions(self, path):
        """The whole history, newest first."""
        found, query = [], '?limit=2'
        while True:
            page = self.history(path, query).json()
            found += page['revisions']
            assert page['count'] == len(page['revisions'])
            if page['next_cursor'] is None:
                return found
            query = '?limit=2&cursor=' + page['next_cursor']

    def revision(self, path, number):
        return self.get(f'/docs/files/{quoted(path)}/history/{number}')

    def move(self, path, new_path, **members):
        return self.post(f'/docs/files/{quoted(path)}/move', {'new_path': new_path, **members})

    def restore(self, path, revision, match=None, **members):
        return self.post(f'/docs/files/{quoted(path)}/restore', {'revision': revision, **members},
                         headers={'If-Match': match} if match else None)

    def files(self, query=''):
        """Every file with suggestions, of all pages."""
        found, cursor = [], ''
        while True:
            reply = self.get(f'/docs/suggestions?limit=100{query}{cursor}')
            assert reply.status == 200, reply
            found += reply.json()['files']
            if reply.json()['next_cursor'] is None:
                return found
            cursor = '&cursor=' + reply.json()['next_cursor']

    def suggestions(self, path):
        folder, _, inside = path.partition('/')
        files = self.files(f'&folder={urllib.parse.quote(folder)}&path={urllib.parse.quote(inside, safe="")}')
        return files[0]['suggestions'] if files else []

    def apply(self, path, action, suggestions, **members):
        return self.post('/docs/suggestions/apply', {'path': path, 'action': action, 'suggestions': suggestions, **members})
