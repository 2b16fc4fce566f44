# SPDX-License-Identifier: Apache-2.0
"""find does not get worse at finding: forty wishes over fifty tools of six servers and seventy over eighty-two of eleven others,
counted.  bench/run.py --only find prints which ones are missed; docs/profiles.md has the committed counts."""
import sys

import harness

sys.path.append(harness.PEERS)  # not before ours: both have a scripted.py
import fifty  # noqa: E402

# (servers, tools, wishes, of which the tool is first, … and among five), as committed in docs/profiles.md
TABLES = {'fifty': (fifty.NAMES, 50, 40, 23, 35), 'town': (fifty.TOWN, 82, 70, 49, 64)}
SLACK = 2


def test_find__has_the_expected_tool_as_often_as_the_docs_say(holdfast):
    hf = holdfast(fifty.entries(fifty.NAMES + fifty.TOWN),
                  {'profiles': {folder: {'mode': 'search', 'servers': list(table[0])} for folder, table in TABLES.items()}})
    for folder, (_, tools, n, first, five) in TABLES.items():
        check(hf.client(f'/mcp/p/{folder}').connect(), fifty.queries(folder), tools, n, first, five)


def check(client, wishes, tools, n, first, five):
    everything = harness.wait_for(lambda: names if len(names := found(client, None, limit=100)) == tools else None, 'all servers')
    assert len(wishes) == n and {tool for _, tool in wishes} <= set(everything)
    places = {wish: found(client, wish) for wish, _ in wishes}
    assert max(map(len, places.values())) == 5
    at_first = [wish for wish, tool in wishes if places[wish][:1] == [tool]]
    among = [wish for wish, tool in wishes if tool in places[wish]]
    assert len(at_first) >= first - SLACK, f'{len(at_first)} wishes have their tool first, {first} did: {at_first}'
    assert len(among) >= five - SLACK, f'{len(among)} wishes have their tool among five, {five} did: {among}'


def found(client, wish, **more):
    reply = client.call('find', {**({'description': wish} if wish else {}), **more})
    return [t['name'] for t in reply.result['structuredContent']['tools']]
