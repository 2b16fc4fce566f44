# SPDX-License-Identifier: Apache-2.0
"""Reads exported sessions (docs/export.md) as another program would: lines, chain, signature, bodies."""
import base64
import hashlib
import json
import os
import re
import subprocess
import tempfile

TAIL = re.compile(rb',"chain":"([0-9a-f]{64})"\}$')
ED25519 = bytes.fromhex('302a300506032b6570032100')  # what precedes the 32 bytes in a public key file
# What belongs to one Holdfast: names of rows and people there, its version and its key.
IDS = ('id', 'session_id', 'tenant_id', 'owner', 'user_name', 'key_name', 'core_session_id', 'context_id', 'lineage')


def is_signed(key, text, signature):
    """By openssl, which is not the code under test."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: os.path.join(folder, name) for name in ('key', 'text', 'signature')}
        for name, data in (('key', ED25519 + key), ('text', text), ('signature', signature)):
            with open(paths[name], 'wb') as file:
                file.write(data)
        done = subprocess.run(['openssl', 'pkeyutl', '-verify', '-pubin', '-keyform', 'DER', '-inkey', paths['key'], '-rawin',
                               '-in', paths['text'], '-sigfile', paths['signature']], capture_output=True, check=False)
        return done.returncode == 0


class Export:
    """One exported session: head, calls, end."""

    def __init__(self, data):
        assert data.endswith(b'\n'), data[-200:]
        self.lines = data[:-1].split(b'\n')
        link = bytes(32)
        for number, line in enumerate(self.lines, 1):
            tail = TAIL.search(line)
            assert tail, f'line {number}: {line[-100:]}'
            before = link
            link = hashlib.sha256(link + line[:tail.start()]).digest()
            assert tail.group(1).decode() == link.hex(), f'line {number} is not the one that was written'
        self.head, *self.calls, self.end = map(json.loads, self.lines)
        assert (self.head['type'], self.end['type']) == ('session', 'end') and self.head['format'] == 1
        assert [c['number'] for c in self.calls] == list(range(1, self.end['calls'] + 1))
        self.session = self.head['session']
        if 'key' in self.head:
            text = f'holdfast-session-export 1\n{self.end["calls"]}\n{before.hex()}'
            assert is_signed(bytes.fromhex(self.head['key']), text.encode(), bytes.fromhex(self.end['signature']))

    def body(self, number, which):
        """The bytes of a body as they were recorded."""
        part = self.calls[number - 1][which]
        if 'json' in part:
            line = self.lines[number]
            at = line.index(b'"%s":{"state"' % which.encode())
            start = line.index(b'"json":', at) + 7
            _, length = json.JSONDecoder().raw_decode(line[start:].decode())
            return line[start:].decode()[:length].encode()
        return base64.b64decode(part['base64']) if 'base64' in part else part['text'].encode()


def without_ids(data):
    """The lines of an export without what differs between two Holdfasts: ids of rows and people, key, signature and
    chain.  Everything else is left byte for byte."""
    found = []
    for line in data.splitlines():
        line = TAIL.sub(b'', line)
        if line.startswith(b'{"type":"session"'):
            head = json.loads(line + b'}')
            head['session'] = {k: v for k, v in head['session'].items() if k not in IDS}
            head = {k: v for k, v in head.items() if k not in ('key', 'holdfast')}
            line = json.dumps(head, ensure_ascii=False).encode()
        elif line.startswith(b'{"type":"end"'):
            line = re.sub(rb',"signature":"[0-9a-f]*"', b'', line)
        found.append(line)
    return found


def split(data):
    """The sessions of a file that holds several."""
    parts = []
    for line in data.splitlines(keepends=True):
        if line.startswith(b'{"type":"session"'):
            parts.append(b'')
        parts[-1] += line
    return parts


def forged(data, change):
    """The file with `change` applied to its lines (bytes without chains), and the chain made anew by a forger who has
    no key; the signature stays."""
    link, out = bytes(32), []
    for line in change([TAIL.sub(b'', line) for line in data.splitlines()]):
        link = hashlib.sha256(link + line).digest()
        out.append(line + b',"chain":"' + link.hex().encode() + b'"}')
    return b'\n'.join(out) + b'\n'


class Signer:
    """A key of our own, and files that it signs: as another Holdfast writes them, or as somebody likes them."""

    def __init__(self, folder):
        self.path = os.path.join(folder, 'signer.pem')
        subprocess.run(['openssl', 'genpkey', '-algorithm', 'ed25519', '-out', self.path], check=True, capture_output=True)
        self.public = subprocess.run(['openssl', 'pkey', '-in', self.path, '-pubout', '-outform', 'DER'], check=True,
                                     capture_output=True).stdout[-32:]

    def sign(self, text):
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            return subprocess.run(['openssl', 'pkeyutl', '-sign', '-inkey', self.path, '-rawin', '-in', file.name], check=True,
                                  capture_output=True).stdout

    def file(self, session, calls):
        """`session`: its members; `calls`: lines as bytes without chain."""
        link, out = bytes(32), []

        def add(line):
            nonlocal link
            link = hashlib.sha256(link + line).digest()
            out.append(line + b',"chain":"' + link.hex().encode() + b'"}\n')
        add(written({'type': 'session', 'format': 1, 'holdfast': '9.9', 'key': self.public.hex(), 'session': session})[:-1])
        for line in calls:
            add(line)
        signature = self.sign(b'holdfast-session-export 1\n%d\n%s' % (len(calls), link.hex().encode()))
        add(written({'type': 'end', 'calls': len(calls), 'signature': signature.hex()})[:-1])
        return b''.join(out)


def written(value):
    """JSON as Holdfast writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(',', ':')).encode()


def is_json(data):
    try:
        text = data.decode()
        json.loads(text, parse_constant=lambda name: 1 / 0)
        return text == text.strip(' \t') and '\n' not in text and '\r' not in text
    except (ValueError, ZeroDivisionError):
        return False


def body(data):
    """The member that holds these bytes."""
    if is_json(data):
        return b'"json":' + data
    try:
        text = written(data.decode())
        if len(text) <= 4 * ((len(data) + 2) // 3) + 4096:
            return b'"text":' + text
    except UnicodeDecodeError:
        pass
    return b'"base64":"' + base64.b64encode(data) + b'"'


def text(value):
    """A text that may be bytes which are not UTF-8."""
    try:
        return written(value.decode())
    except UnicodeDecodeError:
        return b'{"hex":"' + value.hex().encode() + b'"}'


def call_line(number, members, params, result):
    """The line of a call without its chain; `members`: (name, JSON) in order; bodies: (state, length, sha256, bytes)."""
    parts = [b'"type":"call"', b'"number":%d' % number] + [b'"%s":%s' % (name.encode(), value) for name, value in members]
    for name, (state, length, sha, data) in (('params', params), ('result', result)):
        inner = [b'"state":"' + state.encode() + b'"']
        inner += [b'"length":%d' % length] if length is not None else []
        inner += [b'"sha256":"' + sha.hex().encode() + b'"'] if sha else []
        inner += [body(data)] if data is not None else []
        parts.append(b'"%s":{' % name.encode() + b','.join(inner) + b'}')
    return b'{' + b','.join(parts)
