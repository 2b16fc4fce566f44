# SPDX-License-Identifier: Apache-2.0
"""Somebody sets the wall clock, by an hour or a year, back or forth: no session ends by it, and none
lives on for it.  The file that HOLDFAST_FAULT_CLOCK names holds the seconds (src/base/clock.c)."""
import os
import sqlite3
import time

import pytest

from harness import wait_for
from test_operate import metrics

HOUR, DAY, YEAR = 3600, 86400, 365 * 86400
JUMPS = [HOUR, -HOUR, YEAR, -YEAR]
SETTINGS = {'session': {'cleanup': {'interval': '100ms'}}}


class Clock:
    def __init__(self, folder):
        self.file = os.path.join(str(folder), 'clock')
        self.set(0)
        self.env = {'HOLDFAST_FAULT_CLOCK': self.file}

    def set(self, seconds):
        """Whole or not at all, as the reader may come at any time."""
        with open(self.file + '.new', 'w', encoding='ascii') as file:
            file.write(f'{seconds}\n')
        os.rename(self.file + '.new', self.file)


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path)


def count(client, key='thread'):
    reply = client.call('counter', meta={'session_id': key})
    assert reply.status == 200, repr(reply)
    return int(reply.result['structuredContent']['count'])


def rows(hf):
    with sqlite3.connect(f'file:{hf.data}/holdfast.db?mode=ro', uri=True) as db:
        db.row_factory = sqlite3.Row
        return [dict(r) for r in db.execute('SELECT * FROM edge_mcp_sessions ORDER BY id')]


def lives_a_day_from_now(row):
    now = time.time()
    assert abs(row['last_activity_at'] / 1000 - now) < 120, (row, now)
    assert abs(row['expires_at'] / 1000 - now - DAY) < 120, (row, now)
    return True


def jumped(hf, since=0):
    return hf.wait_log(lambda l: 'wall clock jumped' in l.get('msg', ''), 'the jump to be noticed', since)


def cleanups(seconds=0.5):
    """Several of them pass, and tell nobody when there is nothing to do."""
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > end, 'the clock')


@pytest.mark.parametrize('jump', JUMPS)
def test_jump__while_running_ends_no_session_and_prolongs_none(holdfast, clock, jump):
    hf = holdfast(settings=SETTINGS, env=clock.env)
    client = hf.client('/mcp/sample')
    legacy = hf.client('/mcp/sample').connect()
    assert count(client) == 1 and legacy.call('counter').result['structuredContent']['count'] == 1
    clock.set(jump)
    assert jumped(hf)['seconds_ahead'] in range(jump - 5, jump + 5)
    cleanups()
    assert count(client) == 2 and legacy.call('counter').result['structuredContent']['count'] == 2
    shown = metrics(hf)
    assert abs(shown['holdfast_clock_jump_seconds'] - jump) < 5
    assert shown['sessions_expired_total'] == 0 and shown['sessions_active'] == 2
    cleanups(1.5)  # the fold, too
    for row in rows(hf):
        assert row['status'] == 'active' and row['version'] == 1 and lives_a_day_from_now(row)
    clock.set(0)
    hf.wait_log(lambda l: 'wall clock agrees' in l.get('msg', ''), 'the end of the jump')
    assert count(client) == 3
    assert metrics(hf)['holdfast_clock_jump_seconds'] == 0


@pytest.mark.parametrize('jump', JUMPS)
@pytest.mark.parametrize('kill', [True, False])
def test_jump__across_a_restart_ends_no_session_and_prolongs_none(holdfast, clock, jump, kill):
    hf = holdfast(settings=SETTINGS, env=clock.env)
    client = hf.client('/mcp/sample')
    assert count(client) == 1
    since = len(hf.log())
    clock.set(jump)
    hf.restart(kill)
    jumped(hf, since)
    assert count(client) == 1  # a new process counts from the start, in the same session
    cleanups(1.5)
    row, = rows(hf)
    assert row['status'] == 'active' and lives_a_day_from_now(row)
    assert metrics(hf)['sessions_expired_total'] == 0


@pytest.mark.parametrize('ahead', [HOUR, YEAR])
def test_reboot__with_a_clock_that_was_ahead_before_pulls_sessions_back(holdfast, clock, ahead):
    clock.set(ahead)
    hf = holdfast(settings=SETTINGS, env=clock.env)
    client = hf.client('/mcp/sample')
    assert count(client) == 1
    hf.stop()
    os.unlink(os.path.join(hf.data, 'life-clock'))  # of another boot, it would not be believed
    clock.set(0)
    since = len(hf.log())
    hf.start()
    assert count(client) == 1
    hf.wait_log(lambda l: 'used in the future' in l.get('msg', ''), 'the sessions to be pulled back', since)
    cleanups(1.5)
    row, = rows(hf)
    assert row['status'] == 'active' and lives_a_day_from_now(row)


def test_jump__does_not_keep_a_session_alive_that_nobody_uses(holdfast, clock):
    short = {'session': {'limits': {'default_ttl': '2s', 'idle_timeout': '1s'}, 'cleanup': {'interval': '100ms'}}}
    hf = holdfast(settings=short, env=clock.env)
    client = hf.client('/mcp/sample')
    assert count(client) == 1
    clock.set(-YEAR)
    jumped(hf)
    line = hf.wait_log(lambda l: l.get('msg') == 'Cleaned up expired sessions', 'the session to expire')
    assert line['count'] == 1 and rows(hf)[0]['status'] == 'expired'
    assert count(client) == 1  # another session, another counter
    assert len(rows(hf)) == 2
