# SPDX-License-Identifier: Apache-2.0
"""Sinks: every event reaches its receiver at least once and in order, through dead receivers, kills and reloads."""
import base64
import contextlib
import glob
import hashlib
import hmac
import json
import os
import random
import re
import signal
import socketserver
import ssl
import stat
import subprocess
import threading
import time

import pytest

import pages
from commands import control, run
from harness import BINARY, LONG, node, wait_for
from postgres import shared_keys
from receiver import Receiver
from rest import Rest
from test_ages import DAY, Slept

KEY = 'a-signing-key-of-the-tests'


@pytest.fixture(name='receiver')
def fixture_receiver():
    with contextlib.ExitStack() as stack:
        def make(**options):
            one = Receiver(**options)
            stack.callback(one.close)
            return one
        yield make


def said(hf, message, what, since=0):
    return hf.wait_log(lambda line: line.get('msg') == message, what, since)


def call(hf, n=1, text='hello'):
    client = hf.client()
    client.connect()
    for i in range(n):
        assert client.call('echo', {'message': f'{text} {i}'}).status == 200


def record(hf):
    """Ids of all events on record, in order."""
    found, after = [], ''
    while True:
        page = json.loads(hf.get(f'/api/v1/audit/events?limit=200{after}').body)['events']
        found += [e['id'] for e in page if e['kind'] != 'anchor']
        if not page:
            return found
        after = '&after=' + page[-1]['id']


def lines(*paths):
    found = []
    for path in filter(os.path.exists, paths):
        with open(path, encoding='utf-8') as file:
            text = file.read()
        text = text[:text.rfind('\n') + 1]  # the last line may just be written
        found += [json.loads(line) for line in text.splitlines() if line != 'not ours']
    return [e for e in found if e['kind'] != 'anchor']


def posted(to):
    return [e for p in to.taken() for e in json.loads(p['body'])['data']['events'] if e['kind'] != 'anchor']


def number(ident):
    return tuple(map(int, ident.split('.')))


def first_times(events):
    """Ids in the order in which they came first."""
    return list(dict.fromkeys(e['id'] for e in events))


def complete(events, hf):
    """Each event on record came, in its order within its writer."""
    came = first_times(events)
    assert came == sorted(came, key=number)
    return set(record(hf)) <= set(came)


def file_sink(path, **members):
    return {'name': 'lines', 'type': 'file', 'path': str(path), 'from': 'start', **members}


def hook(to, **members):
    return {'name': 'hook', 'type': 'webhook', 'url': to.url + '/in?x=1', 'from': 'start', **members}


def metric(hf, name, sink='lines'):
    wanted = f'holdfast_sink_{name}{{sink="{sink}"}} '
    return next((int(line[len(wanted):]) for line in hf.get('/metrics').body.decode().splitlines() if line.startswith(wanted)), None)


def test_file__has_each_event_as_it_is_on_record(holdfast, tmp_path):
    path = tmp_path / 'events.jsonl'
    hf = holdfast(settings={'sinks': [file_sink(path)]})
    call(hf, 3)
    wait_for(lambda: path.exists() and complete(lines(path), hf), 'the events in the file')
    on_record = {e['id']: e for e in json.loads(hf.get('/api/v1/audit/events?limit=200').body)['events']}
    assert all(on_record[e['id']] == e for e in lines(path)) and not any('body' in e for e in lines(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert metric(hf, 'up') == 1 and metric(hf, 'events_total') >= 6
    before = first_times(lines(path))
    hf.restart(kill=False)
    call(hf)
    wait_for(lambda: complete(lines(path), hf), 'the events after the restart')
    assert len(first_times(lines(path))) > len(before)


def test_file__loses_no_line_to_a_kill(holdfast, tmp_path):
    path = tmp_path / 'events.jsonl'
    hf = holdfast(settings={'sinks': [file_sink(path)]})
    for n in range(3):
        call(hf, 30, f'round {n}')
        hf.kill()
        with open(path, 'ab') as file:  # what a write may leave that was cut short
            file.write(b'{"id":"1.99999","kind":"out' if n else b'not ours')
        hf.restart(kill=False)
        wait_for(lambda: complete(lines(path), hf), 'every event')
    text = path.read_text()
    assert text.count('not ours\n') == 1 and '1.99999' not in text


def test_file__is_rotated_by_size_and_by_others(holdfast, tmp_path):
    path = tmp_path / 'events.jsonl'
    hf = holdfast(settings={'sinks': [file_sink(path, max_size='8KiB', keep=40)]})
    call(hf, 40)

    def all_files():
        rotated = [tmp_path / f'events.jsonl.{i}' for i in range(40, 0, -1)]
        return [f for f in rotated if f.exists()] + [path]

    wait_for(lambda: complete(lines(*all_files()), hf), 'the events in all files')
    files = all_files()
    assert len(files) > 3 and all(f.stat().st_size <= 8192 for f in files)
    assert all(stat.S_IMODE(f.stat().st_mode) == 0o600 for f in files)
    last = len(lines(*files))
    os.rename(path, tmp_path / 'moved')
    call(hf, 2)
    wait_for(lambda: path.exists() and complete(lines(*files[:-1], tmp_path / 'moved', path), hf), 'a new file')
    assert len(lines(*files[:-1], tmp_path / 'moved')) == last
    hf.write_config({'mcpServers': {}, 'holdfast': {'sinks': [file_sink(path, max_size='8KiB', keep=2)]}})
    hf.process.send_signal(signal.SIGHUP)
    said(hf, 'configuration reloaded', 'the reload')
    call(hf, 20)
    wait_for(lambda: [f.name for f in all_files()] == ['events.jsonl.2', 'events.jsonl.1', 'events.jsonl'], 'two rotated files')


def test_file__that_cannot_be_written_is_tried_again(holdfast, tmp_path):
    path = tmp_path / 'later' / 'events.jsonl'
    hf = holdfast(settings={'sinks': [file_sink(path)]})
    call(hf, 5)
    line = said(hf, 'a sink does not take events', 'the failure')
    assert str(path) in line['why'] and 'make its directory' in line['why']
    assert metric(hf, 'up') == 0 and metric(hf, 'failures_total') >= 1
    path.parent.mkdir()
    wait_for(lambda: path.exists() and complete(lines(path), hf), 'the events')
    wait_for(lambda: metric(hf, 'up') == 1, 'the sink to be up')
    os.unlink(path)
    os.symlink(tmp_path / 'elsewhere', path)
    call(hf)
    wait_for(lambda: any('symbolic link' in line.get('why', '') for line in hf.log() if isinstance(line, dict)), 'the refusal')
    os.unlink(path)
    with open(path, 'w', encoding='utf-8') as other:
        import fcntl
        fcntl.flock(other, fcntl.LOCK_EX)
        wait_for(lambda: any('another process' in line.get('why', '') for line in hf.log() if isinstance(line, dict)), 'the lock to be seen')
    wait_for(lambda: lines(path), 'the events in the new file')


def check_signature(post, key=KEY.encode()):
    head = {name.lower(): value for name, value in post['headers'].items()}
    signed = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + post['body']
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert head['webhook-signature'] == 'v1,' + wanted
    assert abs(int(head['webhook-timestamp']) - time.time()) < 120 and head['content-type'] == 'application/json'
    return head['webhook-id']


def test_webhook__is_signed_and_tried_again_until_it_takes(holdfast, receiver):
    to = receiver()
    to.answers = [500, (429, {'Retry-After': '1'}, b''), b'garbage', (302, {'Location': '/'}, b'')][:3]
    hf = holdfast(settings={'sinks': [hook(to, secret=KEY, headers={'X-Team': 'a'})]})
    call(hf, 3)
    wait_for(lambda: complete(posted(to), hf), 'the events')
    ids = [check_signature(p) for p in to.posts]
    assert ids[0] == ids[1] == ids[2] == ids[3] and to.posts[0]['body'] == to.posts[3]['body']
    assert len(set(ids)) == len({p['body'] for p in to.posts})
    assert to.posts[0]['path'] == '/in?x=1' and to.posts[0]['headers']['X-Team'] == 'a'
    body = json.loads(to.posts[0]['body'])
    assert body['type'] == 'holdfast.events' and body['data']['sink'] == 'hook'
    assert len(posted(to)) == len(first_times(posted(to)))
    assert metric(hf, 'failures_total', 'hook') == 3
    assert any(line.get('why') == 'it answered HTTP 500' for line in hf.log() if isinstance(line, dict))
    assert KEY not in hf.text()


def test_key__is_a_secret_that_nobody_sees(holdfast, receiver):
    to, key = receiver(), 'canary-8e21b7d0-as-a-key'
    hf = holdfast(settings={'sinks': [hook(to, secret='${secret:SOC_KEY}', headers={'X-Key': '${secret:SOC_HEADER}'})]})
    call(hf)
    wait_for(lambda: metric(hf, 'up', 'hook') == 0, 'the sink to fail')
    assert 'SOC_' in json.loads(hf.get('/readyz').body)['sinks']['hook']['reason'] and not to.posts
    for name, value in (('SOC_HEADER', 'canary-9f-header'), ('SOC_KEY', key)):
        assert run(hf, 'secret', 'set', name, '--value-file', '-', stdin=value).returncode == 0
    wait_for(lambda: complete(posted(to), hf), 'the events')
    check_signature(to.posts[-1], key.encode())
    assert to.posts[-1]['headers']['X-Key'] == 'canary-9f-header'
    client = hf.client()
    client.connect()
    client.call('echo', {'message': f'it is {key}'})
    wait_for(lambda: complete(posted(to), hf), 'the events')
    shown = run(hf, 'config', 'show', '--config', hf.config_file, with_data=False).stdout
    assert 'SOC_KEY' in shown or 'secret' in shown
    everything = [hf.text(), shown, hf.get('/readyz').body.decode(), control(hf, '/api/v1/audit/events?limit=200&bodies=1').body.decode()]
    for path in glob.glob(os.path.join(hf.data, '**'), recursive=True):
        if os.path.isfile(path):
            with open(path, 'rb') as file:
                everything.append(file.read().decode('latin-1'))
    assert not any('canary' in text for text in everything)


def test_page__its_checks_of_a_signature_work(holdfast, receiver, tmp_path):
    to = receiver()
    hf = holdfast(settings={'sinks': [hook(to, secret=KEY)]})
    call(hf)
    wait_for(to.taken, 'a request')
    post = to.posts[0]
    head = {name.lower(): value for name, value in post['headers'].items()}
    wrong = {**head, 'webhook-timestamp': str(int(head['webhook-timestamp']) + 1)}
    old = {**head, 'webhook-timestamp': '1700000000'}
    blocks = {language: text for language, text, _ in pages.blocks(pages.read('docs/sinks.md'))}
    place = {}
    exec(blocks['python'], place)  # pylint: disable=exec-used
    genuine = place['is_genuine']
    assert genuine(head, post['body'], KEY.encode())
    assert not any((genuine(head, post['body'] + b' ', KEY.encode()), genuine(head, post['body'], b'x'), genuine(wrong, post['body'], KEY.encode()),
                    genuine(old, post['body'], KEY.encode())))
    if not node():
        return
    (tmp_path / 'check.mjs').write_text(blocks['js'] + """
import { readFileSync } from 'node:fs';
const { heads, body, key } = JSON.parse(readFileSync(0));
console.log(JSON.stringify(heads.map((head) => isGenuine(head, Buffer.from(body, 'base64'), key))));
""")
    given = json.dumps({'heads': [head, wrong, old], 'body': base64.b64encode(post['body']).decode(), 'key': KEY})
    done = subprocess.run([node(), tmp_path / 'check.mjs'], input=given, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [True, False, False]


def test_webhook__takes_a_key_of_standard_webhooks_and_smaller_batches(holdfast, receiver):
    key = os.urandom(24)
    to = receiver()
    hf = holdfast(settings={'sinks': [hook(to, secret='whsec_' + base64.b64encode(key).decode(), bodies=True)]})
    to.answers = [503, 413]
    call(hf, 20)
    wait_for(lambda: complete(posted(to), hf), 'the events')
    for post in to.posts:
        check_signature(post, key)
    sizes = [len(json.loads(p['body'])['data']['events']) for p in to.posts]
    assert sizes[2] <= sizes[1] // 2 or sizes[1] == 1
    assert any('hello 7' in e.get('body', '') for e in posted(to))


def test_key__that_is_no_base64_or_short_is_refused(holdfast, receiver):
    """The receiver would refuse every batch, and its answer would not say why."""
    to = receiver()
    hf = holdfast(settings={'sinks': [hook(to, secret='${secret:SOC_KEY}')]})
    for value, says in (('whsec_not+base64_at_all!', 'whsec_'), ('whsec_' + base64.b64encode(b'x' * 15).decode(), 'whsec_'), ('short', '16 bytes')):
        with open(hf.config_file, encoding='utf-8') as file:
            config = json.load(file)
        config['holdfast']['sinks'][0]['secret'] = value
        path = os.path.join(hf.folder, 'literal.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(config, file)
        checked = run(hf, 'config', 'check', '--config', path, with_data=False)
        assert checked.returncode == 7 and says in checked.stdout + checked.stderr and 'sink' in checked.stdout + checked.stderr, checked
        assert run(hf, 'secret', 'set', 'SOC_KEY', '--value-file', '-', stdin=value).returncode == 0
        wait_for(lambda says=says: says in json.loads(hf.get('/readyz').body)['sinks']['hook'].get('reason', ''), 'the reason')
    assert not to.posts
    run(hf, 'secret', 'set', 'SOC_KEY', '--value-file', '-', stdin='whsec_' + base64.b64encode(b'y' * 16).decode())
    wait_for(to.taken, 'a request')
    check_signature(to.posts[-1], b'y' * 16)


def test_dead_and_slow_receivers__do_not_touch_a_call(holdfast, receiver):
    to, gate = receiver(), threading.Event()
    to.answers = [gate]
    dead = {'name': 'dead', 'type': 'webhook', 'url': 'http://127.0.0.1:9/', 'from': 'start'}
    hf = holdfast(settings={'sinks': [hook(to, url=to.url), dead]})
    call(hf, 100)
    assert metric(hf, 'up', 'dead') == 0
    assert json.loads(hf.get('/readyz').body)['status'] == 'ready'
    hf.kill()
    gate.set()
    hf.restart(kill=False)
    call(hf, 3)
    wait_for(lambda: complete(posted(to), hf), 'every event', 60)


class Small(Receiver):
    """Takes requests up to a size."""
    most = 4000

    def answer(self, handler, answer):
        post = self.posts[-1]  # one connection: no other came meanwhile
        if len(post['body']) > self.most:
            post['answer'] = answer = 413
        super().answer(handler, answer)


def test_large_event__comes_without_its_body(holdfast):
    to = Small()
    hf = holdfast(settings={'sinks': [hook(to, bodies=True)]})
    call(hf, 6, 'short')
    client = hf.client()
    client.connect()
    assert client.call('echo', {'message': 'x' * 6000}).status == 200
    call(hf, 3, 'after')
    wait_for(lambda: complete(posted(to), hf), 'the events')
    by_size = {e['body_len']: e for e in posted(to) if e.get('server') == 'sample'}
    large = [e for n, e in by_size.items() if n > 5000]
    assert large and not any('body' in e for e in large) and all('body' in e for n, e in by_size.items() if n < 1000)
    assert metric(hf, 'up', 'hook') == 1
    to.close()


@pytest.mark.parametrize('auth', ('none', 'required'))
def test_dead_receiver__is_seen(holdfast, tmp_path, auth):
    dead = {'name': 'dead', 'type': 'webhook', 'url': 'http://127.0.0.1:9/', 'from': 'start'}
    hf = holdfast(settings={'sinks': [file_sink(tmp_path / 'lines'), dead], 'auth': auth})
    ready = lambda: json.loads(hf.get('/readyz').body)
    if auth == 'required':
        wait_for(lambda: ready()['sinks'] == {'starting': 0, 'standby': 0, 'sending': 2, 'failing': 0}, 'both to send')
        return
    call(hf, 2)
    wait_for(lambda: ready()['sinks']['dead']['state'] == 'failing' and ready()['sinks']['lines']['state'] == 'sending', 'the states')
    assert ready()['status'] == 'ready' and ready()['sinks']['dead']['reason'] and 'reason' not in ready()['sinks']['lines']
    wait_for(lambda: metric(hf, 'lag_seconds', 'dead') >= 1, 'the lag')
    assert hf.get('/api/v1/sinks').status == 403
    listed = control(hf, '/api/v1/sinks').json()['sinks']
    assert [(s['name'], s['receiver'], s['state']) for s in listed] == [('lines', 'file', 'sending'), ('dead', 'webhook', 'failing')]
    assert listed[1]['failures'] >= 1 and listed[1]['lag_ms'] >= 1000 and listed[0]['last_delivery_at']
    found = [f for f in json.loads(run(hf, 'doctor', '--no-trial', '--json', '--config', hf.config_file).stdout)['findings'] if f['check'] == 'sinks']
    assert [f['level'] for f in found] == ['ok', 'warning'] and 'the webhook sink dead' in found[1]['what'], found


def test_filters__choose_what_is_sent(holdfast, tmp_path):
    sinks = [file_sink(tmp_path / 'a', name='a', filter={'types': ['outcome'], 'tool': ['sample__add']}),
             file_sink(tmp_path / 'b', name='b', tenants=['elsewhere']),
             file_sink(tmp_path / 'c', name='c', tenants=['default', 'elsewhere'], filter={'outcome': ['ok']}),
             {**file_sink(tmp_path / 'd', name='d', bodies=True), 'from': 'now'}]
    hf = holdfast(settings={'sinks': sinks})
    call(hf, 2)
    client = hf.client()
    client.connect()
    client.call('add', {'a': 1, 'b': 2})
    wait_for(lambda: (tmp_path / 'd').exists() and any('"a":1' in e.get('body', '') for e in lines(tmp_path / 'd')), 'd')
    wait_for(lambda: (tmp_path / 'a').exists() and lines(tmp_path / 'a'), 'a')
    wait_for(lambda: (tmp_path / 'c').exists() and len(lines(tmp_path / 'c')) >= 2, 'c')
    assert {(e['kind'], e['tool']) for e in lines(tmp_path / 'a')} == {('outcome', 'add')}
    assert {e['outcome'] for e in lines(tmp_path / 'c')} == {'ok'} and not (tmp_path / 'b').exists()


def test_removed_events__leave_a_line_where_they_were(holdfast, receiver, tmp_path):
    to, dead, slept = receiver(), {'name': 'hook', 'type': 'webhook', 'url': 'http://127.0.0.1:9/', 'from': 'start'}, Slept(tmp_path)
    hf = holdfast(settings={'audit': {'keep': '10d'}, 'sinks': [hook(to), file_sink(tmp_path / 'lines')]}, env=slept.env)
    call(hf, 2)
    wait_for(lambda: complete(posted(to), hf), 'the first events')
    hf.stop()
    delivered = first_times(posted(to))

    def start(sink):
        hf.write_config({'mcpServers': {}, 'holdfast': {'audit': {'keep': '10d'}, 'sinks': [sink, file_sink(tmp_path / 'lines')]}})
        hf.start()

    start(dead)
    call(hf, 5)
    wait_for(lambda: complete(lines(tmp_path / 'lines'), hf), 'the file')
    missed = set(record(hf)) - set(delivered)
    hf.stop()
    slept.set(11 * DAY)
    start(dead)
    wait_for(lambda: not missed & set(record(hf)), 'the removal')
    hf.stop()
    start(hook(to))
    call(hf)
    wait_for(lambda: set(record(hf)) <= {e['id'] for e in posted(to) if 'id' in e}, 'the events that are left')
    events = posted(to)[len(delivered):]
    gap = [e for e in events if e['kind'] == 'removed']
    assert len(gap) == 1 and gap[0]['sink'] == 'hook' and 'retention' in gap[0]['why']
    assert number(delivered[-1]) <= number(gap[0]['after'].split(',')[-1]) < min(map(number, missed)), gap
    assert min(number(e['id']) for e in events if e is not gap[0]) > number(delivered[-1])
    assert metric(hf, 'gaps_total', 'hook') == 1 and not metric(hf, 'gaps_total')
    assert all(e['kind'] != 'removed' for e in lines(tmp_path / 'lines'))


def test_random_kills__lose_nothing_and_keep_the_order(holdfast, receiver, tmp_path):
    """With --long: 100 kills.  Calls go on in threads while Holdfast is killed; the receiver fails every third time."""
    to, chance = receiver(), random.Random(7)
    to.answers = [500 if n % 3 == 0 else 200 for n in range(100000)]
    path = tmp_path / 'lines'
    hf = holdfast(settings={'sinks': [hook(to, secret=KEY), file_sink(path, max_size='64KiB', keep=1000)]})

    def calls(seed):
        with contextlib.suppress(Exception):  # the kill may come at any moment
            client = hf.client()
            client.connect()
            for n in range(60):
                client.call('echo', {'message': f'{seed}.{n}'})

    for seed in range(100 if LONG else 4):
        threads = [threading.Thread(target=calls, args=(f'{seed}.{n}',)) for n in range(3)]
        before = len(to.posts)
        for t in threads:
            t.start()
        wait_for(lambda b=before, n=chance.randrange(1, 4): len(to.posts) >= b + n, 'some requests')
        hf.kill()
        for t in threads:
            t.join()
        hf.restart(kill=False)

    def rotated():
        return sorted(tmp_path.glob('lines.*'), key=lambda f: -int(f.suffix[1:])) + [path]

    wait_for(lambda: complete(posted(to), hf) and complete(lines(*rotated()), hf), 'every event', 120)


def test_reload__adds_changes_and_removes(holdfast, receiver, tmp_path):
    to = receiver()
    hf = holdfast(settings={'sinks': []})
    call(hf, 2)

    def reload(sinks):
        since = len(hf.log())
        hf.write_config({'mcpServers': {}, 'holdfast': {'sinks': sinks}})
        hf.process.send_signal(signal.SIGHUP)
        said(hf, 'configuration reloaded', 'the reload', since)

    first = file_sink(tmp_path / 'first')
    reload([first, hook(to, secret=KEY)])
    wait_for(lambda: complete(posted(to), hf) and complete(lines(tmp_path / 'first'), hf), 'both')
    wait_for(lambda: metric(hf, 'events_total') >= len(lines(tmp_path / 'first')), 'the sink to know of it')
    reload([{**first, 'path': str(tmp_path / 'second')}, hook(to, secret=KEY)])
    call(hf)
    wait_for(lambda: (tmp_path / 'second').exists() and complete(lines(tmp_path / 'first', tmp_path / 'second'), hf), 'second')
    assert not {e['id'] for e in lines(tmp_path / 'first')} & {e['id'] for e in lines(tmp_path / 'second')}
    reload([hook(to, secret=KEY + '2')])
    size = (tmp_path / 'second').stat().st_size
    call(hf)
    wait_for(lambda: complete(posted(to), hf), 'the events')
    check_signature(to.posts[-1], (KEY + '2').encode())
    assert (tmp_path / 'second').stat().st_size == size
    since = len(hf.log())
    hf.write_config({'mcpServers': {}, 'holdfast': {'sinks': [{**first, 'filter': {'types': ['outcomes']}}]}})
    hf.process.send_signal(signal.SIGHUP)
    line = said(hf, 'the configuration was not reloaded; the old one stays', 'the refusal', since)
    assert 'the sink "lines"' in line['why'] and 'outcomes' in line['why']


@pytest.fixture(name='authority', scope='module')
def fixture_authority(tmp_path_factory):
    """(certificate, key) for localhost that is its own authority."""
    folder = tmp_path_factory.mktemp('tls')
    cert, key = str(folder / 'cert.pem'), str(folder / 'key.pem')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
                    '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
                   check=True, capture_output=True, timeout=30)
    return cert, key


def test_https__is_verified(holdfast, receiver, authority):
    to = receiver(tls=authority)
    hf = holdfast(settings={'sinks': [hook(to, secret=KEY), hook(to, name='known', secret=KEY, tls={'ca': authority[0]})]})
    call(hf)
    wait_for(lambda: complete(posted(to), hf), 'the events')
    assert {json.loads(p['body'])['data']['sink'] for p in to.posts} == {'known'}
    wait_for(lambda: metric(hf, 'up', 'hook') == 0, 'the other to fail')
    assert any(line.get('sink') == 'hook' and 'certificate' in line.get('why', '') for line in hf.log() if isinstance(line, dict))


class Syslog:
    """A syslog server that counts octets.  `drops`: closes each of so many connections after its first bytes."""

    def __init__(self, tls=None, drops=0):
        self.messages, self.drops, self.connections = [], drops, 0
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    stream = outer.context.wrap_socket(self.request, server_side=True) if outer.context else self.request
                except OSError:
                    return
                outer.connections += 1
                rest, drops = b'', outer.connections <= outer.drops
                while chunk := stream.recv(65536):
                    rest += chunk
                    while b' ' in rest:
                        size, _, after = rest.partition(b' ')
                        if len(after) < int(size):
                            break
                        outer.messages.append(after[:int(size)].decode())
                        rest = after[int(size):]
                        if drops:
                            return

        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        self.server = socketserver.ThreadingTCPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def events(self):
        found = []
        for message in list(self.messages):
            head, _, body = message.partition(' - ')
            priority, at, node, name, writer, kind = head.split(' ')
            event = json.loads(body)
            assert at == event['time'] and node and name == 'holdfast' and kind == event['kind']
            assert writer == event['id'].split('.')[0] and re.fullmatch(r'<1(08|09|10)>1', priority)
            assert (priority == '<108>1') == (event.get('outcome', 'ok') != 'ok')
            found.append(event)
        return [e for e in found if e['kind'] != 'anchor']

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(name='syslog')
def fixture_syslog():
    with contextlib.ExitStack() as stack:
        def make(**options):
            one = Syslog(**options)
            stack.callback(one.close)
            return one
        yield make


def test_syslog__gets_each_event_over_tls(holdfast, syslog, authority):
    to = syslog(tls=authority)
    sink = {'name': 'siem', 'type': 'syslog', 'url': f'tls://localhost:{to.port}', 'from': 'start'}
    hf = holdfast(settings={'sinks': [{**sink, 'tls': {'ca': authority[0]}}, {**sink, 'name': 'other'}]})
    call(hf, 20)
    hf.client().call('no-such-tool')
    wait_for(lambda: complete(to.events(), hf), 'the events')
    assert len(to.events()) == len(first_times(to.events())) and to.connections == 1
    wait_for(lambda: metric(hf, 'up', 'other') == 0, 'the unknown authority to be refused')
    hf.kill()
    hf.restart(kill=False)
    call(hf, 3)
    wait_for(lambda: complete(to.events(), hf), 'the events after the kill')


def test_syslog__that_drops_connections_gets_what_it_may_have_lost_again(holdfast, syslog):
    to = syslog(drops=2)
    sink = {'name': 'siem', 'type': 'syslog', 'url': f'tcp://127.0.0.1:{to.port}', 'from': 'start'}
    hf = holdfast(settings={'sinks': [sink]})
    for _ in range(4):
        call(hf, 3)
        sent = len(record(hf))
        wait_for(lambda n=sent: len(first_times(to.events())) >= n or to.connections < 3, 'the events')
    wait_for(lambda: complete(to.events(), hf), 'every event')
    assert to.connections == 3


def test_syslog__without_tls_stays_on_this_machine(holdfast):
    for url, status in (('tcp://127.0.0.1:1', 0), ('tcp://[::1]:1', 0), ('tcp://localhost:1', 0), ('tcp://10.0.0.1:1', 7), ('tcp://siem.example:1', 7),
                        ('tls://siem.example:1', 0)):
        hf = holdfast(settings={'sinks': [{'name': 'siem', 'type': 'syslog', 'url': url}]}, start=False)
        done = subprocess.run([BINARY, 'config', 'check', '--config', hf.config_file], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == status, (url, done)
        assert status == 0 or 'use tls://' in done.stderr


def test_two_nodes__one_of_them_sends(holdfast, cluster, receiver):
    to, url = receiver(), cluster.database()
    settings = {'sinks': [hook(to, secret=KEY)]}
    one = holdfast(settings=settings, env={'DATABASE_URL': url, 'HOLDFAST_FAULT': 'sinks.lease:1+'})
    two = holdfast(settings=settings, env={'DATABASE_URL': url, 'HOLDFAST_FAULT': 'sinks.lease:1+', **shared_keys(one)})
    call(one, 10)
    call(two, 10)

    def writers_are_complete():
        came = first_times(posted(to))
        for writer in {i.split('.')[0] for i in came}:
            mine = [i for i in came if i.split('.')[0] == writer]
            assert mine == sorted(mine, key=number)
        return set(record(two)) <= set(came)

    wait_for(writers_are_complete, 'the events of both')
    assert len(posted(to)) == len(first_times(posted(to))), 'both nodes sent'
    assert (metric(one, 'events_total', 'hook') > 0) != (metric(two, 'events_total', 'hook') > 0)
    sends, other = (one, two) if metric(one, 'events_total', 'hook') else (two, one)
    call(sends, 5)
    sends.kill()
    call(other, 5)
    wait_for(lambda: writers_are_complete() and metric(other, 'events_total', 'hook') > 0, 'the other to go on', 60)
    sends.restart(kill=False)
    call(sends, 2)
    wait_for(writers_are_complete, 'the events of both again')
    since = len(sends.log())
    other.stop()
    said(sends, 'the sink sends from here', 'the hand-over at an orderly stop', since)
    call(sends, 2)
    wait_for(lambda: {i for i in record(sends)} <= set(first_times(posted(to))), 'the rest')
    assert Rest(sends).get('/sessions').status == 200
