# SPDX-License-Identifier: Apache-2.0
"""/mcp: all servers as one.  Names, uris and references find their server and nothing else changes on the way;
lists are whole, in order and paged; a server that is dead or slow spoils nobody's."""
import json

import pytest

import harness
from harness import dump
from scripted import Background, Script, get, open_gate, script

ALPHA = {
    'instructions': 'Use "alpha"\nfor A.',
    'tools': [{'name': 'deploy__now', 'inputSchema': {'type': 'object', 'properties': {'n': {'const': 9007199254740993}}},
               'title': 'h\u00e9', 'x-vendor': {'b': 1.5, 'a': [-0.0, 1e+22]}}],
    'prompts': [{'name': 'greet', 'description': 'A'}, {'name': 'only-a'}],
    'resources': [{'uri': 'doc://one', 'name': 'one of alpha'}, {'uri': 'doc://a', 'name': 'a'}],
    'templates': [{'uriTemplate': 'alpha://{id}', 'name': 'any a'}],
}
BETA = {
    'instructions': 'Then beta.',
    'prompts': [{'name': 'greet', 'description': 'B'}],
    'resources': [{'uri': 'doc://one', 'name': 'one of beta'}, {'uri': 'doc://b', 'name': 'b'}],
    'templates': [{'uriTemplate': 'beta://{id}', 'name': 'any b'}, {'uriTemplate': 'alpha://{id}', 'name': 'a second'}],
}
REGION = {'name': 'region', 'inputSchema': {'type': 'object', 'properties': {
    'where': {'type': 'string', 'x-mcp-header': 'Region'}, 'n': {'type': 'integer', 'x-mcp-header': 'Count'}}}}
ORDER = ('zeta', 'alpha', 'beta', 'new')
OURS = [f'session__{tool}' for tool in ('context_get', 'context_update', 'share', 'join', 'fork')]  # of the built-in server, after all others


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('merged')
    servers = {
        'zeta': Script(folder, 'zeta', http=True),
        'alpha': Script(folder, 'alpha', shape=ALPHA),
        'beta': Script(folder, 'beta', http=True, shape=BETA),
        'new': Script(folder, 'new', http=True, era='modern', shape={'tools': [REGION], 'resources': [{'uri': 'new://1', 'name': 'n'}]}),
    }
    one = harness.Holdfast(folder, {'mcpServers': {k: servers[k].entry for k in ORDER}, 'holdfast': {}}).start()
    one.servers = servers
    yield one
    try:
        one.close()
    finally:
        for server in servers.values():
            server.stop()


@pytest.fixture(params=['legacy', 'modern'])
def client(request, world):
    return world.client('/mcp', modern=True) if request.param == 'modern' else world.client('/mcp').connect()


def every(client, method, key):
    """All pages of a list."""
    items, cursor = [], None
    while True:
        result = client.rpc(method, {'cursor': cursor} if cursor else None).result
        items += result[key]
        cursor = result.get('nextCursor')
        if cursor is None:
            return items


# -- lists

def test_tools__are_named_after_their_server_in_the_order_of_the_configuration(client):
    tools = every(client, 'tools/list', 'tools')
    assert [t['name'] for t in tools] == [
        *(f'zeta__{n}' for n in ('script', 'echo', 'counter')), *(f'alpha__{n}' for n in ('script', 'echo', 'counter', 'deploy__now')),
        *(f'beta__{n}' for n in ('script', 'echo', 'counter')), *(f'new__{n}' for n in ('script', 'echo', 'counter', 'region')), *OURS]
    assert tools == every(client, 'tools/list', 'tools')


def test_tools__are_the_servers_own_bytes_but_for_the_name(client):
    raw = client.rpc('tools/list').raw
    assert dump({**ALPHA['tools'][0], 'name': 'alpha__deploy__now'}).encode() in raw.replace(b'": ', b'":').replace(b', ', b',')


def test_prompts__of_the_same_name_are_told_apart(client):
    names = [p['name'] for p in every(client, 'prompts/list', 'prompts')]
    assert names == ['alpha__greet', 'alpha__only-a', 'beta__greet']
    for server in ('alpha', 'beta'):
        got = client.rpc('prompts/get', {'name': f'{server}__greet'}).result
        assert got['messages'][0]['content']['text'] == 'greet'
        assert client.holdfast.servers[server].calls('prompts/get')[-1]['params']['name'] == 'greet'


def test_resources__keep_their_uri_and_belong_to_the_first_that_lists_them(client):
    found = every(client, 'resources/list', 'resources')
    assert [(r['uri'], r['name']) for r in found] == [
        ('doc://one', 'one of alpha'), ('doc://a', 'a'), ('doc://b', 'b'), ('new://1', 'n')]
    templates = every(client, 'resources/templates/list', 'resourceTemplates')
    assert [t['uriTemplate'] for t in templates] == ['alpha://{id}', 'beta://{id}']
    for uri, server in (('doc://one', 'alpha'), ('doc://a', 'alpha'), ('doc://b', 'beta'), ('new://1', 'new'),
                        ('alpha://x', 'alpha'), ('beta://y', 'beta')):
        assert client.rpc('resources/read', {'uri': uri}).result['contents'] == [{'uri': uri, 'text': server}]


def test_completion__goes_to_whose_reference_it_is(client):
    argument = {'name': 'x', 'value': 'y'}
    for ref, server, own in (({'type': 'ref/prompt', 'name': 'beta__greet'}, 'beta', {'type': 'ref/prompt', 'name': 'greet'}),
                             ({'type': 'ref/prompt', 'name': 'alpha__greet'}, 'alpha', {'type': 'ref/prompt', 'name': 'greet'}),
                             ({'type': 'ref/resource', 'uri': 'beta://{id}'}, 'beta', None),
                             ({'type': 'ref/resource', 'uri': 'alpha://{id}'}, 'alpha', None),
                             ({'type': 'ref/resource', 'uri': 'doc://b'}, 'beta', None)):
        reply = client.rpc('completion/complete', {'ref': ref, 'argument': argument})
        assert reply.result['completion']['values'] == [server], ref
        assert client.holdfast.servers[server].calls('completion/complete')[-1]['params']['ref'] == (own or ref)


def test_instructions__stand_under_their_servers_names(world):
    expected = world.client('/mcp').initialize().result['instructions']
    assert expected.startswith('# alpha\nUse "alpha"\nfor A.\n\n# beta\nThen beta.\n\n# session\nThe context document')
    found = world.client('/mcp', modern=True).rpc('server/discover').result
    assert found['instructions'] == expected and found['_meta']['io.modelcontextprotocol/serverInfo']['name'] == 'holdfast'
    for result in (found, world.client('/mcp').initialize().result):
        assert set(result['capabilities']) == {'tools', 'prompts', 'resources', 'completions', 'logging'}


# -- names back to their servers

def test_calls__leave_with_the_servers_own_name_and_every_other_byte_as_it_was(client):
    world, meta = client.holdfast, ''
    if client.modern:
        meta = ',"_meta":' + dump(client.envelope)
    for server in ('alpha', 'beta', 'new'):
        named = server + '__echo'
        params = ('{"arguments":{"z":9007199254740993,"a":[1.50,-0,1e400, null ],"text":"h\\u00e9\\/ \\ud83d\\ude00 \u00fc","\\u0041b":{}},'
                  '"name":"%s","extra":[ ]%s}')
        body = '{"id":"b","params":%s,"method":"tools/call","jsonrpc":"2.0"}' % (params % (named, meta))
        reply = client.rpc_bytes(body.encode(), params={'name': named})
        assert reply.text == 'h\u00e9/ \U0001f600 \u00fc', repr(reply)
        sent = world.servers[server].of('tools/call')[-1]
        own = params % ('echo', '')
        assert own[:-1].encode() in sent, (own, sent)


def test_names_that_are_nobodys__are_refused_in_words(client):
    sent = {n: len(s.messages()) for n, s in client.holdfast.servers.items()}
    for method, params, code in (
            ('tools/call', {'name': 'echo', 'arguments': {}}, -32602), ('tools/call', {'name': 'nobody__echo', 'arguments': {}}, -32602),
            ('tools/call', {'name': '__echo', 'arguments': {}}, -32602), ('tools/call', {'name': 'alpha__', 'arguments': {}}, -32602), ('tools/call', {'name': 'ALPHA__echo', 'arguments': {}}, -32602),
            ('prompts/get', {'name': 'greet'}, -32602), ('prompts/get', {'name': 'nobody__greet'}, -32602),
            ('completion/complete', {'ref': {'type': 'ref/prompt', 'name': 'greet'}, 'argument': {'name': 'a', 'value': ''}}, -32602),
            ('completion/complete', {'ref': {}, 'argument': {'name': 'a', 'value': ''}}, -32602),
            ('completion/complete', {'argument': {'name': 'a', 'value': ''}}, -32602)):
        reply = client.rpc(method, params)
        assert reply.status == 200 and reply.code == code and len(reply.error['message']) > 20, (method, params)
    assert sent == {n: len(s.messages()) for n, s in client.holdfast.servers.items()}
    for uri in ('doc://nobody', 'alpha:', ''):
        reply = client.rpc('resources/read', {'uri': uri})
        assert reply.status == 200 and reply.code == (-32602 if client.modern or not uri else -32002)
        if uri:
            assert reply.error['data'] == {'uri': uri}
    unknown = client.call('alpha__nothing')
    assert unknown.code == -32602 and 'nothing' in unknown.error['message']  # the server's own words


def test_mirrored_arguments__are_checked_and_written_with_the_servers_name(world):
    client, server = world.client('/mcp', modern=True), world.servers['new']
    arguments = {'where': 'us west', 'n': 7}
    good = {'Mcp-Param-Region': 'us west', 'Mcp-Param-Count': '7'}
    assert client.call('new__region', arguments, headers=good).text == 'region'
    head = {n.lower(): v for n, v in server.heads()[-1]['headers']}
    assert head['mcp-name'] == 'region' and head['mcp-param-region'] == 'us west' and head['mcp-param-count'] == '7'
    count = len(server.messages())
    for bad in ({}, {**good, 'Mcp-Param-Region': 'eu'}, {**good, 'Mcp-Param-Count': '8'}, {**good, 'Mcp-Name': 'region'},
                {**good, 'Mcp-Param-Count': None}):
        reply = client.call('new__region', arguments, headers=bad)
        assert reply.status == 400 and reply.code == -32020, bad
    assert len(server.messages()) == count
    legacy = world.client('/mcp').connect()
    assert legacy.call('new__region', arguments).text == 'region'
    head = {n.lower(): v for n, v in server.heads()[-1]['headers']}
    assert head['mcp-name'] == 'region' and head['mcp-param-region'] == 'us west'


def test_sessions__keep_one_child_for_each_server(world):
    server = world.servers['alpha']
    first, second = world.client('/mcp').connect(), world.client('/mcp').connect()
    before = len(server.starts())
    assert [first.call('alpha__counter').text for _ in range(3)] == ['1', '2', '3']
    assert [second.call('alpha__counter').text for _ in range(2)] == ['1', '2']
    assert [first.call('beta__counter').text, first.call('alpha__counter').text, first.call('zeta__counter').text] == ['1', '4', '1']
    assert len(server.starts()) == before + 2
    for prompt in ('alpha__greet', 'alpha__only-a'):
        first.rpc('prompts/get', {'name': prompt})
    assert len(server.starts()) == before + 2


def test_ids_of_the_client__come_back_with_their_type(client):
    for ident in (0, 'x', 9007199254740991, 'h\u00e9 "'):
        assert client.call('beta__echo', {'text': 'i'}, ident=ident).json['id'] == ident
        assert client.rpc('tools/list', ident=ident).json['id'] == ident


# -- pages

@pytest.fixture(scope='module')
def crowd(tmp_path_factory):
    """Exactly 1,000 tools with our own five, exactly 1,001 resources, and prompts of two servers across the border of a page."""
    folder = tmp_path_factory.mktemp('crowd')
    tools = [{'name': f't{n}', 'inputSchema': {'type': 'object'}} for n in range(496)]
    resources = [{'uri': f'r://{n}', 'name': str(n)} for n in range(600)]
    servers = {
        'one': Script(folder, 'one', http=True, shape={'tools': tools, 'resources': resources, 'page': 300,
                                                       'prompts': [{'name': f'p{n}'} for n in range(1001)]}),
        'two': Script(folder, 'two', http=True, shape={'tools': tools[:-3], 'resources': [
            *resources[:50], *({'uri': f's://{n}', 'name': str(n)} for n in range(401))],
            'prompts': [{'name': f'p{n}'} for n in range(1000)]}),
    }
    one = harness.Holdfast(folder, {'mcpServers': {k: s.entry for k, s in servers.items()}, 'holdfast': {}}).start()
    one.servers = servers
    yield one
    try:
        one.close()
    finally:
        for server in servers.values():
            server.stop()


def test_a_list_of_1000__is_one_page_and_of_1001_two(crowd):
    client = crowd.client('/mcp').connect()
    tools = client.rpc('tools/list').result
    assert len(tools['tools']) == 1000 and 'nextCursor' not in tools
    first = client.rpc('resources/list').result
    assert len(first['resources']) == 1000 and first['nextCursor']
    second = client.rpc('resources/list', {'cursor': first['nextCursor']}).result
    assert len(second['resources']) == 1 and 'nextCursor' not in second
    uris = [r['uri'] for r in first['resources'] + second['resources']]
    assert uris == [f'r://{n}' for n in range(600)] + [f's://{n}' for n in range(401)]


@pytest.mark.parametrize('path,total', [('/mcp', 2001), ('/mcp/one', 1001), ('/mcp/two', 1000)])
def test_pages__together_are_the_whole_list_in_both_eras(crowd, path, total):
    legacy, modern = crowd.client(path).connect(), crowd.client(path, modern=True)
    names = [p['name'] for p in every(legacy, 'prompts/list', 'prompts')]
    assert len(names) == len(set(names)) == total
    assert names == [p['name'] for p in every(modern, 'prompts/list', 'prompts')]
    if path == '/mcp':
        assert names == [f'one__p{n}' for n in range(1001)] + [f'two__p{n}' for n in range(1000)]


def test_cursors__that_are_bad_foreign_or_stale_are_refused(crowd):
    client = crowd.client('/mcp').connect()
    good = client.rpc('prompts/list').result['nextCursor']
    elsewhere = crowd.client('/mcp/one').connect()
    bad = ['', 'x', good + '0', good[:-1], ' ' + good, good + ' ', '0' + good[1:], '-1.0', good.replace('.', ','), good.upper() + 'Z',
           '1' * 100, '99999999.0', 5, None, {}, [good], True]
    for cursor in bad:
        reply = client.rpc('prompts/list', {'cursor': cursor})
        assert reply.status == 200 and reply.code == -32602, cursor
    assert elsewhere.rpc('prompts/list', {'cursor': good}).code == -32602
    for method in ('tools/list', 'resources/list', 'resources/templates/list'):
        assert client.rpc(method, {'cursor': good}).code == -32602, method
    assert len(client.rpc('prompts/list', {'cursor': good}).result['prompts']) == 1000
    script(client, {'send': {'jsonrpc': '2.0', 'method': 'notifications/prompts/list_changed'}}, tool='one__script').rest()
    stale = client.rpc('prompts/list', {'cursor': good})
    assert stale.code == -32602 and 'begin again' in stale.error['message']
    assert len(every(client, 'prompts/list', 'prompts')) == 2001


# -- servers that do not play along

def test_a_dead_and_a_hanging_server__spoil_nothing_and_are_told_of_when_they_come(holdfast, scripted, tmp_path):
    gate = str(tmp_path / 'gate')
    good = scripted('good', http=True, shape={'resources': [{'uri': 'g://1', 'name': 'g'}]})
    slow = scripted('slow', shape={'gates': {'initialize': gate, 'server/discover': gate}})
    dead = {'command': str(tmp_path / 'no-such-program'), 'args': []}
    gone = {'url': 'http://127.0.0.1:1/mcp'}
    hf = holdfast({'dead': dead, 'gone': gone, 'slow': slow.entry, 'good': good.entry})
    modern = hf.client('/mcp', modern=True)
    tasks = [Background(lambda: modern.rpc('tools/list')),
             Background(lambda: hf.client('/mcp', modern=True).rpc('resources/read', {'uri': 'g://1'}))]
    called = hf.client('/mcp', modern=True).call('good__echo', {'text': 'at once'})  # needs no list of the others
    assert called.text == 'at once'
    own = ['good__script', 'good__echo', 'good__counter', *OURS]
    assert [t['name'] for t in tasks[0].result().result['tools']] == own
    assert tasks[1].result().result['contents'][0]['text'] == 'good'
    for name in ('dead', 'gone'):
        reply = modern.call(f'{name}__echo')
        assert reply.status == 200 and name in reply.error['message']
    # Nobody waits for it a second time; it is in the list when it has come, and listeners hear of that.
    legacy = hf.client('/mcp').connect()
    stream = get(legacy)
    assert [t['name'] for t in legacy.rpc('tools/list').result['tools']] == own
    open_gate(gate)
    heard = []
    while 'notifications/tools/list_changed' not in heard:
        heard.append(json.loads(stream.message())['method'])
    assert [t['name'] for t in legacy.rpc('tools/list').result['tools']] == ['slow__script', 'slow__echo', 'slow__counter', *own]
    stream.close()


def test_a_server_that_dies_later__keeps_its_place_in_the_list(holdfast, scripted):
    one, two = scripted('one', http=True), scripted('two', http=True)
    hf = holdfast({'one': one.entry, 'two': two.entry})
    client = hf.client('/mcp').connect()
    before = client.rpc('tools/list').result
    script(client, {'send': {'jsonrpc': '2.0', 'method': 'notifications/tools/list_changed'}}, tool='one__script').rest()
    one.stop()
    assert client.rpc('tools/list').result == before
    reply = client.call('one__echo')
    assert reply.status == 200 and 'one' in reply.error['message']
    assert client.call('two__echo', {'text': 'fine'}).text == 'fine'
