# SPDX-License-Identifier: Apache-2.0
"""A disk that fills: calls are refused in words before the database fails, nothing acknowledged is lost, and calls are
accepted again by themselves once there is space."""
import contextlib
import json
import os
import subprocess
import threading

import pytest

from commands import outcomes, run
from harness import Connection, Reply, Stream, wait_for
from rest import Rest, refused
from test_children import begin
from test_operate import reload

HUGE = '900000GiB'
NEW = {'edge_mcp_id': 'edge-1'}
WORDS = 'nothing was executed, because the audit record of the call cannot be written: the disk of the data directory has '


UNSURE = 'The call ran, but its outcome could not be recorded yet, so it is not acknowledged'


def is_refused(reply):
    """Whether the call was refused for want of space; any other refusal is a failure of the test."""
    if reply.status == 200 and 'result' in reply.json and not reply.result.get('isError'):
        return False
    text = reply.json['error']['message'] if 'error' in reply.json else reply.text
    assert text.startswith(WORDS) and 'limits.disk_reserve' in text and 'free some space' in text, text
    return True


def begin_modern(client, gate):
    params = {'name': 'slow', 'arguments': {'steps': 1, 'gate': gate}, '_meta': client.envelope}
    connection = Connection(client.holdfast.port)
    body = json.dumps({'jsonrpc': '2.0', 'id': 'busy', 'method': 'tools/call', 'params': params}).encode()
    connection.send(connection.head_bytes('POST', client.path, client.headers_for('tools/call', params), body) + body)
    return connection


@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_reserve__refuses_what_is_new_and_lets_end_what_has_begun(holdfast, stdio_server, tmp_path, modern):
    entry, _ = stdio_server()
    gate = str(tmp_path / 'gate')
    os.mkfifo(gate)
    hf = holdfast({'rec': entry})
    api = Rest(hf)
    client = hf.client('/mcp/rec', modern=modern)
    if not modern:
        client.connect()
    assert not is_refused(client.call('echo', {'text': 'x'}))
    session = api.post('/sessions', NEW).json()
    under_way = begin(client, 'slow', {'steps': 1, 'gate': gate}) if not modern else begin_modern(client, gate)
    wait_for(lambda: 'open' in outcomes(hf, 'slow'), 'the call to leave')
    reload(hf, {'mcpServers': {'rec': entry}, 'holdfast': {'limits': {'disk_reserve': HUGE}}})
    wait_for(lambda: is_refused(client.call('echo', {'text': 'x'})), 'the disk to be looked at')
    with open(gate, 'wb'):
        assert not Reply(Stream(under_way)).result.get('isError')
    ready = hf.get('/readyz')
    assert ready.status == 503 and 'nearly full' in ready.json()['status'] and 'free some space' in ready.json()['reason']
    detail = refused(api.post('/sessions', NEW), 503, 'unavailable').json()['detail']
    assert 'limits.disk_reserve' in detail
    refused(api.post(f"/sessions/{session['session_id']}/tools", {'tool_name': 't'}), 503, 'unavailable')
    if not modern:
        late = hf.client('/mcp/rec').initialize()
        assert late.status == 503 and 'limits.disk_reserve' in late.error['message'], late
    assert api.get(f"/sessions/{session['session_id']}").status == 200
    assert api.delete(f"/sessions/{session['session_id']}").status in (200, 204)
    reload(hf, {'mcpServers': {'rec': entry}, 'holdfast': {'limits': {'disk_reserve': 0}}})
    wait_for(lambda: not is_refused(client.call('echo', {'text': 'x'})), 'the disk to be looked at again')
    assert hf.get('/readyz').status == 200
    assert set(outcomes(hf, 'slow')) == {'ok'} and set(outcomes(hf, 'echo')) == {'ok'}


@contextlib.contextmanager
def mounted(folder, *how):
    """`folder` is a small file system of its own; skips where a test may not mount."""
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run(['mount', *how, folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f'this machine does not let tests mount a file system: {done.stderr.strip()}')
    try:
        yield
    finally:
        subprocess.run(['umount', folder], check=True)


@pytest.fixture(name='small_disk')
def fixture_small_disk(tmp_path):
    """Gives a function that mounts a file system of so many MiB for the data directory of a Holdfast."""
    with contextlib.ExitStack() as stack:
        def make(folder, mib):
            data = os.path.join(folder, 'data')
            if not os.environ.get('HOLDFAST_LONG'):
                stack.enter_context(mounted(data, '-t', 'tmpfs', '-o', f'size={mib}m,mode=0700', 'none'))
                return data
            image = str(tmp_path / 'disk.img')
            with open(image, 'wb') as file:
                file.truncate(2 << 30)
            subprocess.run(['mkfs.ext4', '-q', '-m', '0', '-F', image], check=True)
            stack.enter_context(mounted(data, '-o', 'loop', image))
            os.rmdir(os.path.join(data, 'lost+found'))
            os.chmod(data, 0o700)
            return data
        yield make


def free_bytes(folder):
    fs = os.statvfs(folder)
    return fs.f_bavail * fs.f_frsize


def fill(folder, leave):
    """A file that leaves so many bytes free; 0: not one block is left."""
    path = os.path.join(folder, 'junk')
    with open(path, 'ab', buffering=0) as file, contextlib.suppress(OSError):
        while free_bytes(folder) > leave:
            file.write(bytes(max(1, min(1 << 20, free_bytes(folder) - leave))))
    return path


class Callers:
    """Threads that call without end, and remember what was acknowledged and what was refused."""

    def __init__(self, hf, n=4):
        self.acknowledged, self.refused, self.unsure, self.others = [], [], [], []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(hf, i)) for i in range(n)]
        for thread in self.threads:
            thread.start()

    def run(self, hf, number):
        client, count = hf.client(modern=True), 0
        while not self.stop.is_set():
            name, count = f'{number}-{count}', count + 1
            reply = client.call('echo', {'message': name + ' ' + 'x' * 2000})
            if reply.status == 200 and 'result' in reply.json and not reply.result.get('isError'):
                self.acknowledged.append(name)
            else:
                text = reply.json['error']['message'] if 'error' in reply.json else reply.text
                (self.refused if 'disk' in text else self.unsure if text.startswith(UNSURE) else self.others).append(text)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.others, self.others[:3]


@pytest.mark.parametrize('leave', [20 << 20, 0], ids=['below_the_reserve', 'to_the_last_block'])
def test_disk__that_fills_loses_nothing_acknowledged_and_recovers_alone(small_disk, holdfast, leave):
    hf = holdfast(settings={'limits': {'disk_reserve': '32MiB'}}, start=False)
    data = small_disk(hf.folder, 160)
    assert hf.start().data == data
    callers = Callers(hf)
    wait_for(lambda: len(callers.acknowledged) > 200, 'calls to be acknowledged')
    junk = fill(data, leave)
    wait_for(lambda: len(callers.refused) > 50, 'calls to be refused')
    assert hf.get('/healthz').status == 200 and hf.get('/readyz').status == 503
    os.unlink(junk)
    n = len(callers.acknowledged)
    wait_for(lambda: len(callers.acknowledged) > n + 200, 'calls to be accepted again')
    callers.end()
    assert hf.get('/readyz').status == 200
    recorded = outcomes(hf, 'echo').count('ok')
    assert len(callers.acknowledged) <= recorded <= len(callers.acknowledged) + len(callers.unsure)
    verified = run(hf, 'audit', 'verify')
    assert verified.returncode == 0 and verified.stdout.startswith('chain ok'), verified
    if leave:
        assert not callers.unsure
        assert all('limits.disk_reserve' in text for text in callers.refused), callers.refused[:3]
        assert not [line for line in hf.log() if 'SQL' in json.dumps(line) or 'database or disk is full' in json.dumps(line)]
