# SPDX-License-Identifier: Apache-2.0
"""What becomes of a session: made, idle, expired; limits of tenants; what is logged and counted."""
import os
import re
import signal

import pytest

from harness import wait_for
from test_clock import count, rows
from test_operate import metrics

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 'session limit exceeded for tenant'
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}')


def settings(ttl='24h', idle='30m', interval='100ms', batch=100, **others):
    return {'session': {'limits': {'default_ttl': ttl, 'idle_timeout': idle},
                        'cleanup': {'interval': interval, 'batch_size': batch}}, **others}


def reload(hf, holdfast):
    since = len(hf.log())
    hf.write_config({'mcpServers': {}, 'holdfast': holdfast})
    hf.process.send_signal(signal.SIGHUP)
    hf.wait_log(lambda l: l.get('msg') == 'configuration reloaded', 'the reload', since)


def said(hf, message):
    return [l for l in hf.log() if l.get('msg') == message]


def test_session__is_logged_when_it_is_made_by_its_row_id_and_never_by_its_handle(holdfast):
    hf = holdfast()
    client = hf.client('/mcp/sample')
    count(client)
    count(client)
    line, = wait_for(lambda: said(hf, 'Session created'), 'the log line')
    assert line['level'] == 'info' and UUID.fullmatch(line['session_id'])
    row, = rows(hf)
    assert line['session_id'] == row['id'] and line['tenant_id'] == 'default'
    assert line['edge_mcp_id'] == row['edge_mcp_id'] and re.fullmatch(r'20\d\d-.*Z', line['expires_at'])
    assert row['session_id'] not in hf.text()


def test_session__is_idle_after_its_timeout_and_active_again_by_use(holdfast):
    hf = holdfast(settings=settings(idle='1s'))
    client = hf.client('/mcp/sample')
    assert count(client) == 1
    wait_for(lambda: rows(hf)[0]['status'] == 'idle', 'the session to be idle')
    assert count(client) == 2
    wait_for(lambda: rows(hf)[0]['status'] == 'active', 'the session to be active')
    assert len(rows(hf)) == 1 and metrics(hf)['sessions_active'] == 1


def test_session__expires_and_its_key_begins_another(holdfast):
    hf = holdfast(settings=settings(ttl='1s', idle='1s', batch=2))
    client = hf.client('/mcp/sample')
    for n in range(5):
        assert count(client, f'thread {n}') == 1
    wait_for(lambda: metrics(hf)['sessions_expired_total'] == 5, 'all to expire')
    wait_for(lambda: sum(l['count'] for l in said(hf, 'Cleaned up expired sessions')) == 5, 'the log to tell of all')
    assert all(r['status'] == 'expired' and r['terminated_at'] for r in rows(hf))
    assert count(client, 'thread 0') == 1 and len(rows(hf)) == 6
    after = metrics(hf)
    assert after['sessions_created_total{tenant_id="default",client_type=""}'] == 6
    assert after['holdfast_sessions_counted{tenant_id="default"}'] == 1
    assert after['session_duration_seconds_count'] == 5 and 5 <= after['session_duration_seconds_sum'] < 60


def test_cleanup__goes_by_a_new_configuration(holdfast):
    hf = holdfast(settings=settings(interval='1h'))
    client = hf.client('/mcp/sample')
    assert count(client, 'long') == 1
    reload(hf, settings(ttl='1s', idle='1s'))
    assert count(client, 'short') == 1
    wait_for(lambda: metrics(hf)['sessions_expired_total'] == 1, 'the short one to expire')
    assert sorted(r['status'] for r in rows(hf)) == ['expired', 'idle']


def test_cleanup__that_fails_is_told_and_tried_again(holdfast):
    hf = holdfast(settings=settings(ttl='1s', idle='1s'), env={'HOLDFAST_FAULT': 'reaper.batch:1,reaper.batch:3'})
    client = hf.client('/mcp/sample')
    assert count(client) == 1
    hf.wait_log(lambda l: 'cleaning up expired sessions failed' in l.get('msg', ''), 'the failure')
    wait_for(lambda: metrics(hf)['sessions_expired_total'] == 1, 'the session to expire')
    assert metrics(hf)['holdfast_cleanup_failures_total'] == 2


@pytest.mark.parametrize('where', ['limits', 'tenants'])
def test_limit__of_a_tenant_holds_for_calls_and_follows_the_configuration(holdfast, where):
    def limited(n):
        if where == 'tenants':
            return settings(tenants={'default': {'max_sessions': n}})
        return {**settings(), 'session': {'limits': {'max_per_tenant': n}}}

    hf = holdfast(settings=limited(2))
    client = hf.client('/mcp/sample')
    for key in 'ab':
        assert count(client, key) == 1
    refused = client.call('counter', meta={'session_id': 'c'})
    assert refused.result['isError'] and refused.text == LIMIT
    assert count(client, 'a') == 2 and len(rows(hf)) == 2
    shown = metrics(hf)
    assert shown['holdfast_sessions_counted{tenant_id="default"}'] == 2
    assert shown['holdfast_sessions_limit{tenant_id="default"}'] == 2
    assert shown['holdfast_session_create_failures_total{reason="limit"}'] == 1
    reload(hf, limited(3))
    assert count(client, 'c') == 1
    assert metrics(hf)['holdfast_sessions_limit{tenant_id="default"}'] == 3


def test_alerts__name_only_metrics_that_are_there(holdfast):
    with open(os.path.join(TOP, 'deploy/prometheus/alerts.yml'), encoding='utf-8') as file:
        rules = '\n'.join(line for line in file if not line.lstrip().startswith('#'))
    exprs = re.findall(r'expr: (?:\|\n((?:\s{10,}.*\n)+)|(.*)\n)', rules)
    named = {n for block in exprs for n in re.findall(r'\b(?:holdfast|sessions?|tools|tokens)_\w+', ' '.join(block))}
    assert len(exprs) == rules.count('- alert:') > 10 and len(named) > 10, (exprs, named)
    hf = holdfast()
    count(hf.client('/mcp/sample'))
    shown = {name.split('{')[0] for name in metrics(hf)}
    # These appear with the first change of a tool, with a certificate, and with a sink.
    later = {'holdfast_tool_definitions_changed_total', 'holdfast_certificate_expires_timestamp_seconds', 'holdfast_sink_up'}
    assert later <= named <= shown | later, named - shown


def test_metrics__of_sessions_are_all_there_from_the_start(holdfast):
    text = holdfast().get('/metrics').body.decode()
    for name, kind in (('sessions_created_total', 'counter'), ('sessions_terminated_total', 'counter'),
                       ('sessions_expired_total', 'counter'), ('sessions_active', 'gauge'),
                       ('tools_executed_total', 'counter'), ('tokens_used_total', 'counter'),
                       ('session_duration_seconds', 'histogram'), ('holdfast_session_create_failures_total', 'counter'),
                       ('holdfast_sessions_counted', 'gauge'), ('holdfast_sessions_limit', 'gauge'),
                       ('holdfast_cleanup_failures_total', 'counter'), ('holdfast_crypt_failures_total', 'counter'),
                       ('holdfast_clock_jump_seconds', 'gauge')):
        assert f'# TYPE {name} {kind}\n' in text, name


def test_metrics__count_what_rest_does_as_what_calls_do(rest):
    api = rest(settings={'tenants': {'default': {'max_sessions': 2}}})
    hf = api.holdfast
    before = metrics(hf)
    one, two = api.create(client_type='ide'), api.create(client_type='cli')
    assert api.post('/sessions', {'edge_mcp_id': 'e'}).status == 429
    told = [{'tool_name': 'grep', 'tokens_used': 40}, {'tool_name': 'grep', 'tokens_used': 2}, {'tool_name': 'sed'}]
    assert api.post(f'/sessions/{one["session_id"]}/tools', told).status in (200, 201)
    assert api.delete(f'/sessions/{two["session_id"]}?reason=done').status == 200
    after = metrics(hf)

    def grown(name):
        return after[name] - before.get(name, 0)
    assert grown('sessions_created_total{tenant_id="default",client_type="ide"}') == 1
    assert grown('sessions_created_total{tenant_id="default",client_type="cli"}') == 1
    assert grown('holdfast_session_create_failures_total{reason="limit"}') == 1
    assert grown('tools_executed_total{tenant_id="default",tool_name="grep"}') == 2
    assert grown('tools_executed_total{tenant_id="default",tool_name="sed"}') == 1
    assert grown('tokens_used_total{tenant_id="default"}') == 42
    assert grown('sessions_terminated_total') == 1 and grown('session_duration_seconds_count') == 1
    assert grown('sessions_active') == 1 and grown('holdfast_sessions_counted{tenant_id="default"}') == 1
    line, = wait_for(lambda: said(hf, 'Session terminated'), 'the log line')
    assert line['reason'] == 'done' and line['session_id'] == two['id'] and line['tenant_id'] == 'default'
