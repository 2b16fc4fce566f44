# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL stopped, restarted, hung, cut off after COMMIT, under load: nothing acknowledged is
lost, nothing is executed or recorded twice, errors come within the deadline, and Holdfast comes back
by itself with an empty spool."""
import os
import sys
import threading
import time

import pytest

import test_undelivered as undelivered
from commands import outcomes
from harness import LONG, PEERS, wait_for
from ledger import Ledger, spooled, verify
from scripted import open_gate

sys.path.insert(0, PEERS)
from pg_proxy import Proxy  # noqa: E402

LOAD_S = 3.0 if LONG else 0.7
ROUNDS = 12 if LONG else 1
STORE_DEADLINE_S = 5.0


@pytest.fixture
def node(holdfast, cluster, stdio_server):
    """node(url=None): a Holdfast on a PostgreSQL of its own with the recording server `up`."""
    def make(url=None, **options):
        entry, record = stdio_server('up', handles='never')
        url = url or cluster.database()
        hf = holdfast({'up': entry}, env={'DATABASE_URL': url}, **options)
        return hf, record, url
    return make


@pytest.fixture
def proxy(tmp_path, cluster):
    one = Proxy(tmp_path / 'proxy', cluster.top)
    yield one
    one.close()


def through(url, cluster, proxy):
    return url.replace(cluster.top, proxy.folder)


def is_served(hf, ledger):
    before = len(ledger.told)
    ledger.call(hf, f'probe.{time.monotonic_ns()}', 1)
    assert not ledger.problems, ledger.problems
    return len(ledger.told) > before


def recover(hf, ledger, within=15):
    wait_for(lambda: is_served(hf, ledger), 'calls to be served again', within)
    wait_for(lambda: hf.get('/readyz').status == 200, '/readyz to say 200', 5)


def check_all(hf, ledger):
    ledger.check(hf)
    wait_for(lambda: spooled(hf) == 0, 'the spool to be empty')
    verify(hf)
    hf.check()


@pytest.mark.parametrize('how', ['fast', 'immediate'])
def test_stopped_and_started_under_load(node, cluster, how):
    hf, record, _ = node()
    ledger = Ledger([hf], record).run_for(LOAD_S)
    assert ledger.told and not ledger.refused
    for _ in range(ROUNDS):
        ledger.start()
        time.sleep(LOAD_S / 3)
        cluster.stop(how)
        wait_for(lambda: hf.get('/readyz').status == 503, '/readyz to say 503')
        time.sleep(LOAD_S)
        cluster.start()
        recover(hf, ledger)
        ledger.stop()
    assert ledger.refused
    assert ledger.slowest < STORE_DEADLINE_S + 3
    check_all(hf, ledger)


def test_gone__refusals_are_quick_and_say_what_to_do(node, cluster):
    hf, record, _ = node()
    ledger = Ledger([hf], record)
    assert is_served(hf, ledger)
    cluster.stop('immediate')
    wait_for(lambda: not is_served(hf, ledger), 'a refusal')
    wait_for(lambda: hf.get('/readyz').status == 503, '/readyz to say 503')
    began = time.monotonic()
    for _ in range(20):
        assert not is_served(hf, ledger)
    assert time.monotonic() - began < 2
    told = hf.get('/readyz').body  # to anybody: not where the database is, nor who uses it
    assert b'the database cannot be written' in told and b'postgresql://' not in told, told
    cluster.start()
    recover(hf, ledger)
    check_all(hf, ledger)


def test_hung__errors_come_within_the_deadline(node, cluster):
    hf, record, _ = node()
    ledger = Ledger([hf], record).run_for(LOAD_S / 2)
    ledger.start()
    cluster.hang()
    try:
        wait_for(lambda: ledger.refused, 'a refusal', STORE_DEADLINE_S + 3)
        time.sleep(LOAD_S)
    finally:
        cluster.resume()
    recover(hf, ledger)
    ledger.stop()
    assert ledger.slowest < 2 * STORE_DEADLINE_S + 2
    check_all(hf, ledger)


def test_cut_after_commit__is_neither_lost_nor_done_twice(node, cluster, proxy):
    url = cluster.database()
    hf, record, _ = node(through(url, cluster, proxy))
    ledger = Ledger([hf], record).run_for(LOAD_S / 2)
    for every in (7, 3, 2) if not LONG else (11, 7, 5, 3, 2) * 3:
        proxy.cut_every = every
        ledger.run_for(LOAD_S)
        proxy.cut_every = 0
        recover(hf, ledger)
    assert proxy.n_cut >= 3
    check_all(hf, ledger)


def test_cut_at_any_time(node, cluster, proxy):
    url = cluster.database()
    hf, record, _ = node(through(url, cluster, proxy))
    ledger = Ledger([hf], record).start()
    for _ in range(20 if LONG else 5):
        time.sleep(LOAD_S / 4)
        proxy.cut_all()
    recover(hf, ledger)
    ledger.stop()
    check_all(hf, ledger)


def test_commit_that_arrives_after_its_connection_was_cut__takes_no_number(node, cluster, proxy):
    url = cluster.database()
    hf, record, _ = node(through(url, cluster, proxy))
    ledger = Ledger([hf], record).start()
    for _ in range(3):
        proxy.delay_next()
        wait_for(proxy.arrived.is_set, 'the batch that is late')
        recover(hf, ledger)
    ledger.stop()
    check_all(hf, ledger)


def test_frozen_network__is_left_after_the_deadline(node, cluster, proxy):
    url = cluster.database()
    hf, record, _ = node(through(url, cluster, proxy))
    ledger = Ledger([hf], record).run_for(LOAD_S / 3)
    ledger.start()
    proxy.freeze()
    wait_for(lambda: ledger.refused, 'a refusal', STORE_DEADLINE_S + 3)
    proxy.thaw()
    proxy.cut_all()
    recover(hf, ledger)
    ledger.stop()
    check_all(hf, ledger)


class Slow:
    """A call that is under way for a while, on a thread of its own."""

    def __init__(self, hf, seconds):
        self.reply = None
        self.client = hf.client('/mcp/up')
        self.thread = threading.Thread(target=self.call, args=(seconds,))
        self.thread.start()

    def call(self, seconds):
        self.reply = self.client.call('slow', {'steps': 1, 'delay_ms': int(seconds * 1000)})

    def join(self):
        self.thread.join(30)
        return self.reply


def under_way(record, n):
    wait_for(lambda: len(record.of('tools/call')) >= n, f'{n} calls to be under way')


def test_outcomes_while_it_is_gone__are_answered_and_survive_a_kill(node, cluster):
    hf, record, url = node()
    calls = [Slow(hf, 2) for _ in range(5)]
    under_way(record, 5)
    cluster.stop('immediate')
    try:
        for call in calls:  # durable in the spool, so they may be told
            reply = call.join()
            assert reply.status == 200 and 'result' in reply.json, repr(reply)
        assert spooled(hf) == 5
        hf.kill()
    finally:
        cluster.start()
    assert spooled(hf) == 5
    hf.start()
    assert spooled(hf) == 0
    assert cluster.sql(url, "SELECT outcome, count(*) FROM mcp.session_tool_executions WHERE tool_name = 'slow' GROUP BY 1") == [['ok', '5']]
    assert outcomes(hf, 'slow') == ['ok'] * 5
    verify(hf)


def test_outcomes_while_it_is_gone__are_written_when_it_is_back(node, cluster):
    hf, record, _ = node()
    calls = [Slow(hf, 1.5) for _ in range(3)]
    under_way(record, 3)
    cluster.stop('fast')
    try:
        assert all(call.join().status == 200 for call in calls)
        assert spooled(hf) == 3
    finally:
        cluster.start()
    wait_for(lambda: spooled(hf) == 0, 'the spool to be drained', 15)
    assert outcomes(hf, 'slow') == ['ok'] * 3
    assert len(record.of('tools/call')) == 3
    verify(hf)


def test_a_stop_while_it_is_gone__loses_nothing(node, cluster):
    hf, record, _ = node()
    call = Slow(hf, 1)
    under_way(record, 1)
    cluster.stop('fast')
    try:
        assert call.join().status == 200
        hf.stop()
        hf.check_sanitizers()
        assert spooled(hf) == 1
    finally:
        cluster.start()
    hf.start()
    assert outcomes(hf, 'slow') == ['ok'] and spooled(hf) == 0


def test_a_result_whose_client_left_while_it_was_gone__is_handed_out_once(holdfast, cluster, scripted):
    server = scripted('srv')
    hf = holdfast({'srv': server.entry}, env={'DATABASE_URL': cluster.database()})
    client = undelivered.connect(hf)
    call = undelivered.Call(server, undelivered.result_of('it ran'))
    call.leave(client)
    cluster.stop('fast')
    try:
        open_gate(call.gate)
        wait_for(lambda: undelivered.counted(hf, 'kept') == 1, 'the result to be kept')
        assert spooled(hf) == 1
    finally:
        cluster.start()
    wait_for(lambda: spooled(hf) == 0, 'the spool to be drained', 15)
    again = call.ask(client)
    assert undelivered.is_redelivered(again) and len(server.calls()) == 1


def test_start__waits_for_a_database_that_comes(holdfast, cluster):
    url = cluster.database()
    cluster.stop('fast')
    hf = holdfast(start=False, env={'DATABASE_URL': url})
    try:
        hf.start(wait=False)
        line = hf.wait_log(lambda l: l.get('msg') == 'waiting for the database', 'a line about the wait')
        assert 'postgresql://' in line['database']
    finally:
        cluster.start()
    hf.wait_ready(0)


@pytest.mark.skipif(not LONG, reason='takes half a minute; in make test-long')
def test_start__gives_up_after_half_a_minute(holdfast, tmp_path):
    hf = holdfast(start=False, env={'DATABASE_URL': f'postgresql://u:geheim@/x?host={tmp_path}'})
    began = time.monotonic()
    hf.start(wait=False)
    assert hf.process.wait(60) == 4
    assert 25 < time.monotonic() - began < 40
    hf.readers[-1].join(20)
    assert 'could not be reached' in hf.text() and 'geheim' not in hf.text()


@pytest.mark.parametrize('url', ['mysql://u:geheim@h/x', 'postgresql://u:geheim@[h/x', 'postgresql://u@h/x?nonsense=geheim'])
def test_start__a_url_that_cannot_be_read_is_exit_7(holdfast, url):
    hf = holdfast(start=False, env={'DATABASE_URL': url})
    hf.start(wait=False)
    assert hf.process.wait(20) == 7
    hf.readers[-1].join(20)
    assert 'geheim' not in hf.text() and 'postgresql://' in hf.text(), hf.text()
    assert not os.path.exists(os.path.join(hf.data, 'holdfast.db'))


def test_start__a_spool_of_another_database_is_refused_in_words(node, cluster):
    hf, record, _ = node()
    call = Slow(hf, 1)
    under_way(record, 1)
    cluster.stop('fast')
    assert call.join().status == 200
    hf.kill()
    cluster.start()
    first, hf.env['DATABASE_URL'] = hf.env['DATABASE_URL'], cluster.database()
    hf.start(wait=False)
    assert hf.process.wait(20) == 7
    hf.readers[-1].join(20)
    assert 'another database' in hf.text() and spooled(hf) == 1
    hf.env['DATABASE_URL'] = first
    hf.start()
    assert spooled(hf) == 0
