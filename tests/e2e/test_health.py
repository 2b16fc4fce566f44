# SPDX-License-Identifier: Apache-2.0
"""How servers do: healthy, degraded or down, with a reason and the last error; on /readyz, /metrics and for
`holdfast servers list`.  Holdfast itself is ready whatever they do."""
import pytest

from commands import run, run_json
from harness import stdio_server, wait_for
from scripted import Script


@pytest.fixture
def web(tmp_path):
    one = Script(tmp_path, 'web', http=True, era='modern')
    yield one
    one.stop()


def ready(hf):
    answer = hf.get('/readyz')
    assert answer.status == 200 and answer.json()['status'] == 'ready'
    return answer.json()['servers']


def health(hf, name='web'):
    return next(s for s in run_json(hf, 'servers', 'list') if s['name'] == name)['health']


def metrics(hf, name='web'):
    lines = [l for l in hf.get('/metrics').body.decode().splitlines() if f'{{server="{name}"}}' in l]
    return {l.split('{')[0].removeprefix('holdfast_upstream_'): int(l.rsplit(' ', 1)[1]) for l in lines if 'holdfast_upstream_' in l}


def call(client, tool='echo', **arguments):
    return client.rpc('tools/call', {'name': tool, 'arguments': arguments})


def test_states__follow_what_requests_come_to(holdfast, web):
    hf = holdfast({'web': web.entry}).wait_asked('web')
    client = hf.client('/mcp/web', modern=True)
    assert ready(hf)['web'] == {'state': 'healthy'} and metrics(hf)['up'] == 1
    assert call(client).result
    assert ready(hf)['web'] == {'state': 'healthy'} and metrics(hf) == {'up': 1, 'degraded': 0, 'requests_total': 1, 'failures_total': 0}

    web.stop()
    assert call(client).error
    assert ready(hf)['web'] == {'state': 'degraded', 'reason': 'the last 2 requests failed'}  # one call, tried twice
    assert metrics(hf) == {'up': 1, 'degraded': 1, 'requests_total': 3, 'failures_total': 2}
    assert call(client).error
    assert ready(hf)['web'] == {'state': 'down', 'reason': 'the last 4 requests failed'}
    assert metrics(hf) == {'up': 0, 'degraded': 0, 'requests_total': 5, 'failures_total': 4}
    told = health(hf)
    assert told['state'] == 'down' and told['calls'] == 5 and told['failures'] == 4 and 'web' in told['last_error']
    assert told['last_failed_at'] >= told['last_ok_at']

    web.start()
    assert call(client).result
    assert ready(hf)['web'] == {'state': 'degraded', 'reason': '4 of the last 6 requests failed'}
    for _ in range(16):
        assert call(client).result
    assert ready(hf)['web'] == {'state': 'healthy'} and health(hf)['last_error'] == told['last_error']


def test_states__many_failures_among_answers_are_degraded(holdfast, web):
    hf = holdfast({'web': web.entry})
    client = hf.client('/mcp/web', modern=True)
    assert call(client).result
    for _ in range(2):
        web.stop()
        assert call(client).error
        web.start()
        assert call(client).result
    assert ready(hf)['web'] == {'state': 'degraded', 'reason': '4 of the last 7 requests failed'}


def test_states__an_error_result_is_an_answer(holdfast, tmp_path):
    entry, _ = stdio_server(tmp_path, 's')
    hf = holdfast({'s': entry})
    client = hf.client('/mcp/s').connect()
    for _ in range(4):
        assert call(client, 'fail').result['isError'] and call(client, 'no such tool')
    assert ready(hf)['s'] == {'state': 'healthy'} and health(hf, 's')['failures'] == 0


def test_states__a_server_that_does_not_start_is_down_and_nobody_else(holdfast, web):
    hf = holdfast({'gone': {'command': '/nonexistent/server'}, 'web': web.entry})
    client = hf.client('/mcp', modern=True)
    assert client.rpc('tools/list').result
    assert wait_for(lambda: ready(hf)['gone']['state'] == 'down', 'the server to be down')
    assert ready(hf)['gone']['reason'].startswith('it could not be started (') and ready(hf)['web'] == {'state': 'healthy'}
    assert wait_for(lambda: ready(hf)['gone']['reason'].endswith('; the next request tries again'), 'the pause after the failed start to end')
    assert '/nonexistent/server' not in hf.get('/readyz').body.decode()
    told = health(hf, 'gone')
    assert told['state'] == 'down' and told['last_error'] and told['failures'] >= 1 and 'last_ok_at' not in told
    table = run(hf, 'servers', 'list').stdout.splitlines()
    assert [l.split()[:2] for l in table[1:] if l[0] != ' '][:2] == [['gone', 'down'], ['web', 'healthy']]
    assert table[2].startswith('  reason: it could not be started (') and 'last error: ' + told['last_error'] in ' '.join(' '.join(table).split()), table
    shown = run(hf, 'servers', 'show', 'gone')
    assert shown.returncode == 0 and 'gone: down' in shown.stderr and told['last_error'] in ' '.join(shown.stderr.split()), shown.stderr
    assert 'Holdfast has not seen its tools yet' in shown.stderr


def test_state__is_unknown_until_the_first_probe_has_ended(holdfast, scripted, tmp_path):
    hf = holdfast({'web': scripted('web', shape={'gates': {'start': str(tmp_path / 'gate')}}).entry})
    assert ready(hf)['web'] == {'state': 'unknown', 'reason': 'its first probe has not ended yet'}
    assert run(hf, 'servers', 'list').stdout.splitlines()[1].split()[:2] == ['web', 'starting']
    assert metrics(hf)['up'] == -1
    (tmp_path / 'gate').write_text('')
    hf.wait_asked('web')
    assert ready(hf)['web'] == {'state': 'healthy'}


def test_counts__outlive_a_restart(holdfast, web):
    hf = holdfast({'web': web.entry})
    client = hf.client('/mcp/web', modern=True)
    assert call(client).result and call(client).result
    web.stop()
    assert call(client).error
    before = health(hf)
    web.start()
    hf.restart(kill=False)
    after = health(hf)
    assert after['state'] in ('unknown', 'healthy') and [after[k] for k in ('calls', 'failures', 'last_error')] == [4, 2, before['last_error']]
    assert call(hf.client('/mcp/web', modern=True)).result
    assert (health(hf)['calls'], health(hf)['state']) == (5, 'healthy')
    hf.restart(kill=False)
    assert health(hf)['calls'] == 5


def test_readyz__names_no_server_where_callers_must_say_who_they_are(holdfast, web):
    hf = holdfast({'web': web.entry}, {'auth': 'required'}).wait_asked('web')
    assert ready(hf) == {'unknown': 0, 'healthy': 2, 'degraded': 0, 'down': 0}
