# SPDX-License-Identifier: Apache-2.0
"""Profiles that search: find says which tools there are, run calls one as if its own server had been asked."""
import json
import subprocess

import pytest

import commands
import harness
import keys
from harness import dump, wait_for
from scripted import Later, open_gate
from test_pins import POKE, Shifting

MAIL = {'tools': [
    {'name': 'send_email', 'description': 'Sends an email to somebody.', 'inputSchema': {
        'type': 'object', 'properties': {'to': {'type': 'string', 'description': 'Receiver.'}, 'copies': {'type': 'integer', 'maximum': 3}},
        'required': ['to'], 'additionalProperties': False}},
    {'name': 'read_inbox', 'description': 'Lists messages.', 'inputSchema': {'type': 'object', 'properties': {}}},
    {'name': 'send_fax', 'description': 'Nobody does.', 'inputSchema': {'type': 'object'}}],
    'instructions': 'Words of mail.'}
REGION = {'name': 'region', 'inputSchema': {'type': 'object', 'properties': {'where': {'type': 'string', 'x-mcp-header': 'Region'}}}}
SETTINGS = {'profiles': {'s': {'servers': ['mail', 'web', 'new'], 'mode': 'search'}, 'few': {'mode': 'search', 'toolsets': ['safe']}},
            'toolsets': {'safe': {'tools': ['mail__read*', 'mail__send_email', 'web__echo']}}}
both_eras = pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])


@pytest.fixture
def world(holdfast, scripted):
    servers = {'mail': scripted('mail', shape=MAIL), 'web': scripted('web', http=True),
               'new': scripted('new', http=True, era='modern', shape={'tools': [REGION]})}
    hf = holdfast({k: v.entry for k, v in servers.items()}, SETTINGS)
    hf.servers = servers
    return hf


def client_of(hf, path, modern, **options):
    client = hf.client(path, modern=modern, **options)
    return client if modern else client.connect()


@pytest.fixture(params=['legacy', 'modern'])
def client(request, world):
    return client_of(world, '/mcp/p/s', request.param == 'modern')


def find(client, description=None, **more):
    reply = client.call('find', {**({'description': description} if description is not None else {}), **more})
    assert not reply.result.get('isError'), reply
    return reply


def found(client, description=None, **more):
    return [t['name'] for t in find(client, description, **more).result['structuredContent']['tools']]


def run(client, tool, parameters=None, meta=None, **more):
    return client.call('run', {'tool': tool, **({'parameters': parameters} if parameters is not None else {}), **more}, meta=meta)


def refusal(reply):
    assert reply.status == 200 and reply.result['isError'] is True, reply
    return reply.text


def params_of(raw):
    """The bytes of params in a recorded request."""
    return raw[raw.index(b'"params":'):]


# -- lists

def test_list__has_find_and_run_and_waits_for_nobody(holdfast, scripted):
    gate = scripted('gate').gate()
    mail = scripted('mail', shape={**MAIL, 'gates': {'start': gate}})
    hf = holdfast({'mail': mail.entry}, SETTINGS)
    for modern in (True, False):
        client = hf.client('/mcp/p/s', modern=modern)
        tools = client.rpc('tools/list').result['tools']
        assert [t['name'] for t in tools] == ['find', 'run']
        assert not mail.messages()
    open_gate(gate)
    hf.wait_asked('mail')
    assert client.initialize().result['capabilities']['tools'] == {}
    assert b'Words of mail' not in client.initialize().raw and b'find' in client.initialize().raw


def test_names_of_the_servers_own_work_as_well(client):
    assert client.call('web__echo', {'text': 'x'}).text == 'x'


# -- run: what the server sees, and what the client gets back

@both_eras
@pytest.mark.parametrize('name', ['web:script', 'web__script'])
def test_run__is_the_call_that_the_server_would_have_got(world, modern, name):
    parameters = '{"steps" : [{"result":"{}"}], "n":9007199254740993, "t":"h\\u00e9\\/", "d":1.50}'
    meta = '"session_id":"test123", "custom_field": {"b":1,"a":[]}'
    direct, through = client_of(world, '/mcp/web', modern), client_of(world, '/mcp/p/s', modern)
    envelope = (',' + dump(harness.ENVELOPE)[1:-1]) if modern else ''
    body = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{%s%s}}}'
    assert direct.rpc_bytes(body % ('script', parameters, meta, envelope), params={'name': 'script'}).result is not None
    asked = '{"tool":"%s", "parameters": %s}' % (name, parameters)
    assert through.rpc_bytes(body % ('run', asked, meta, envelope), params={'name': 'run'}).result is not None
    first, second = world.servers['web'].of('tools/call')
    assert params_of(first) == params_of(second)
    assert b'"custom_field": {"b":1,"a":[]}' in second and parameters.encode() in second


def test_run__session_id_is_seen_twice_and_state_is_kept(client, world):
    meta = {'session_id': 'test123'}
    assert [run(client, 'mail:counter', {}, meta=meta).text for _ in range(2)] == ['1', '2']
    seen = [c['params']['_meta'] for c in world.servers['mail'].calls()]
    assert seen == [meta, meta]


def test_run__without_meta_sends_none_and_without_parameters_an_empty_object(world):
    client = world.client('/mcp/p/s').connect()
    assert run(client, 'mail:counter').text == '1'
    assert run(client, 'mail:counter', meta={}).text == '2'
    first, second = [c['params'] for c in world.servers['mail'].calls()]
    assert first == {'name': 'counter', 'arguments': {}}
    assert second == {'name': 'counter', 'arguments': {}, '_meta': {}}


RICH = ('{"content":[{"type":"image","data":"aGk=", "mimeType":"image/png"},{"type":"text","text":"\\u00fc"},'
        '{"type":"resource","resource":{"uri":"a://b","text":"x"}}],"structuredContent":{"n":9007199254740993,"d":1.50},'
        '"isError":true,"_meta":{"b": 1,"a":[ ]}}')


@pytest.mark.parametrize('server', ['web', 'new'])
@both_eras
def test_run__gives_back_every_part_of_a_result(world, modern, server):
    direct, through = client_of(world, f'/mcp/{server}', modern), client_of(world, '/mcp/p/s', modern)
    steps = {'steps': [{'result': RICH if server == 'web' else RICH[:-1] + ',"resultType":"complete"}'}]}
    one = direct.call('script', steps, ident=5)
    other = run_with_id(through, f'{server}:script', steps, 5)
    assert one.raw == other.raw
    assert other.result['isError'] is True and other.result['content'][0]['mimeType'] == 'image/png'
    assert b'"structuredContent":{"n":9007199254740993,"d":1.50}' in other.raw and other.result['_meta']['a'] == []


def run_with_id(client, tool, parameters, ident):
    return client.call('run', {'tool': tool, 'parameters': parameters}, ident=ident)


def test_run__passes_progress_on_with_the_clients_token(client):
    reply = client.call('run', {'tool': 'web:script', 'parameters': {'steps': [{'progress': 1}, {'progress': 2}, {'result': '{"content":[]}'}]}},
                        meta={'progressToken': 'mine'})
    assert [m['params']['progressToken'] for m in reply.before] and {m['params']['progressToken'] for m in reply.before} == {'mine'}


def test_run__is_audited_as_the_tool_it_calls(world):
    client = world.client('/mcp/p/s').connect()
    run(client, 'mail:send_email', {'to': 'ann'})
    rows = wait_for(lambda: [r for r in commands.run_json(world, 'audit', 'list') if r['tool'] == 'send_email'], 'the audit row')
    assert [(r['server'], r['outcome']) for r in rows] == [('mail', 'ok')]


def test_run__mirrors_arguments_for_a_server_that_wants_it(client, world):
    assert run(client, 'new:region', {'where': 'eu'}).result
    headers = {name.lower(): value for name, value in world.servers['new'].heads()[-1]['headers']}
    assert headers['mcp-param-region'] == 'eu' and headers['mcp-name'] == 'region'


def test_run__gives_a_handle_where_the_server_keeps_state(holdfast, scripted):
    mail = scripted('mail', shape=MAIL, handles='auto')
    hf = holdfast({'mail': mail.entry}, SETTINGS)
    client = hf.client('/mcp/p/s', modern=True)
    first = run(client, 'mail:counter')
    handle = first.result['_meta']['holdfast/session']
    assert [run(client, 'mail:counter', {'session_id': handle}).text for _ in range(2)] == ['2', '3']
    assert run(client, 'mail:counter').text == '1'
    assert run(client, 'mail:send_email', {'to': 'ann', 'session_id': handle}).text == 'send_email'
    assert mail.calls()[-1]['params']['arguments'] == {'to': 'ann'}
    tool = find(client, 'send an email').result['structuredContent']['tools'][0]
    assert 'session_id' in tool['schema']['properties']


# -- run: what is wrong

def test_run__names_what_was_meant(client, world):
    assert refusal(run(client, 'mail:send_emial', {})).startswith("Tool 'mail:send_emial' not found. Did you mean: mail:send_email")
    assert 'mail:read_inbox' in refusal(run(client, 'web:read_inbox'))
    assert 'mail:send_email' in refusal(run(client, 'send_email'))
    assert refusal(run(client, 'mail:qqqqqqqq')) == "Tool 'mail:qqqqqqqq' not found. Call find to see what there is."
    assert refusal(run(client, 'post:send')) == "MCP 'post' not found. Available MCPs: mail, web, new"
    assert not any(s.calls() for s in world.servers.values())


@pytest.mark.parametrize('arguments,words', [
    ({}, 'run needs "tool"'), ({'tool': 7}, 'run needs "tool"'), ({'tool': 'mail:read_inbox', 'parameters': []}, '"parameters" must be an object'),
    ({'tool': 'mail:read_inbox', 'dry_run': 'yes'}, '"dry_run" must be true or false'), ({'tool': ':'}, 'not found'), ({'tool': 'x' * 3000}, 'not found')],
    ids=['none', 'number', 'array', 'dry', 'colon', 'long'])
def test_run__says_what_it_needs(client, arguments, words):
    assert words in refusal(client.call('run', arguments))


@pytest.mark.parametrize('arguments,name', [({'arguments': {'x': 1}}, 'arguments'), ({'dryRun': True}, 'dryRun'), ({'session_id': 'x'}, 'session_id')], ids=dump)
def test_run__does_nothing_when_it_is_told_what_it_does_not_know(client, world, arguments, name):
    text = refusal(client.call('run', {'tool': 'mail:read_inbox', **arguments}))
    assert text == f'run has no "{name}"; it takes tool, parameters and dry_run. What the tool itself takes goes into parameters.'
    assert not world.servers['mail'].calls()


def test_null__is_an_argument_left_out(client):
    assert run(client, 'mail:counter', dry_run=None).text == '1'
    assert client.call('run', {'tool': 'mail:counter', 'parameters': None}).text == '2'
    assert len(found(client, None, limit=2.0, page=None, depth=None, confidence_threshold=None)) == 2


def test_run__takes_parameters_as_large_as_a_body_may_be(world):
    client = client_of(world, '/mcp/p/s', False)
    text = 'y' * (4 * 1024 * 1024 - 200)
    assert run(client, 'web:echo', {'text': text}).text == text
    assert refusal(run(client, 'mail:send_email', {'to': 5, 'subject': text[:-100]})).startswith('parameters.to must be a string')
    assert not world.servers['mail'].calls()


def test_run__checks_parameters_before_the_call(client, world):
    text = refusal(run(client, 'mail:send_email', {'copies': 9, 'subjct': 'x'}))
    assert text.startswith('Missing required parameters: to\nReceived parameters: copies, subjct\n')
    assert 'parameters.copies must be at most 3' in text and 'subjct' in text.split('\n', 2)[2]
    assert refusal(run(client, 'mail:send_email', {'to': 5})).startswith('parameters.to must be')
    assert not world.servers['mail'].calls()
    assert run(client, 'mail:send_email', {'to': 'ann', 'copies': 3}).text == 'send_email'


@both_eras
def test_run__and_find_show_nothing_that_the_caller_may_not_see(world, modern):
    key = keys.create(world, '--role', 'member', '--server', 'mail')
    client = client_of(world, '/mcp/p/few', modern, headers=key.headers)
    assert found(client) == ['mail:send_email', 'mail:read_inbox']
    hidden, absent = refusal(run(client, 'mail:send_fax')), refusal(run(client, 'mail:send_fox'))
    assert hidden.replace('send_fax', 'X') == absent.replace('send_fox', 'X') and 'send_fax' not in absent
    assert refusal(run(client, 'web:echo')) == "MCP 'web' not found. Available MCPs: mail"
    assert 'web' not in find(client, 'no such thing at all').text


def test_run__is_refused_at_the_next_call_once_the_key_is_gone(world):
    key = keys.create(world, '--role', 'member')
    client = client_of(world, '/mcp/p/s', False, headers=key.headers)
    assert run(client, 'mail:read_inbox').result
    keys.revoke(world, key)
    assert run(client, 'mail:read_inbox').status == 401


def test_run__by_an_auditor_is_refused_and_find_is_not(world):
    key = keys.create(world, '--role', 'auditor')
    client = client_of(world, '/mcp/p/s', False, headers=key.headers)
    assert found(client, 'send an email')[0] == 'mail:send_email'
    assert run(client, 'mail:read_inbox').status == 403


# -- dry run

@both_eras
def test_dry_run__starts_and_touches_nothing(world, modern):
    mail, client = world.servers['mail'], world.client('/mcp/p/s', modern=modern)
    client = client_of(world, '/mcp/p/s', modern)
    assert 'mail:send_email' in found(client)
    before = (len(mail.messages()), len(mail.starts()))
    shown = run(client, 'mail:send_email', {'to': 'ann'}, dry_run=True)
    assert '🔍 DRY RUN PREVIEW:' in shown.text and 'isError' not in shown.result
    assert shown.result['structuredContent'] == {'dry_run': True, 'mcp': 'mail', 'tool': 'send_email', 'parameters': {'to': 'ann'}}
    assert refusal(run(client, 'mail:send_email', {}, dry_run=True)).startswith('Missing required parameters: to')
    assert 'Did you mean' in refusal(run(client, 'mail:send_emial', {}, dry_run=True))
    assert (len(mail.messages()), len(mail.starts())) == before
    assert run(client, 'mail:send_email', {'to': 'ann'}, dry_run=False).text == 'send_email'
    assert len(mail.calls()) == 1


ODD = {'tools': [{'name': 'away', 'inputSchema': {'type': 'object', 'properties': {'at': {'$ref': 'https://example.com/at.json'}}}}]}


def test_dry_run__says_what_it_cannot_tell(holdfast, scripted):
    odd = scripted('mail', shape=ODD)
    hf = holdfast({'mail': odd.entry, 'web': {'command': '/nonexistent/server'}}, SETTINGS)
    client = client_of(hf, '/mcp/p/s', False)
    assert 'mail:away' in found(client)
    shown = run(client, 'mail:away', {'at': 1}, dry_run=True)
    assert 'Holdfast could not check the parameters against the schema ("$ref": ' in shown.text and 'The parameters fit' not in shown.text
    assert shown.result['structuredContent']['unchecked'].startswith('"$ref": ')
    assert run(client, 'mail:away', {'at': 1}).text == 'away'
    text = refusal(run(client, 'web:echo', {}, dry_run=True))
    assert text.startswith("'web' is unavailable, and its tools are not known: it could not be started") and 'Call find first' not in text


# -- find

def test_find__ranks_by_what_tools_do(client):
    reply = find(client, 'send an email')
    first = reply.result['structuredContent']['tools'][0]
    assert {k: first[k] for k in ('name', 'mcp', 'tool', 'description', 'healthy')} == {
        'name': 'mail:send_email', 'mcp': 'mail', 'tool': 'send_email', 'description': 'Sends an email to somebody.', 'healthy': True}
    assert 'to (string, required): Receiver.' in reply.text and 'copies (integer)' in reply.text and 'parameters' not in first
    assert first['schema'] == MAIL['tools'][0]['inputSchema'] and 0.5 < first['confidence'] <= 1
    assert reply.text.startswith('✅ **MCPs**: 3/3 healthy\n') and 'mail:send_email (0.' in reply.text
    assert reply.result['structuredContent']['health'] == {'total': 3, 'healthy': 3, 'unavailable': []}
    assert reply.result['structuredContent']['indexing'] == {'pending': []}


def test_find__lists_pages_and_filters_by_server(client):
    everything = found(client, limit=100)
    assert len(everything) == 6 + 3 + 4 and everything[0] == 'mail:script'
    assert [n for page in (1, 2, 3) for n in found(client, limit=5, page=page)] == everything
    page = find(client, limit=5, page=3).result['structuredContent']['pagination']
    assert page == {'page': 3, 'limit': 5, 'total': 13, 'pages': 3, 'has_more': False}
    assert found(client, limit=5, page=4) == [] and 'There is no page 4' in find(client, limit=5, page=4).text
    assert found(client, 'web') == ['web:script', 'web:echo', 'web:counter']
    assert set(found(client, 'send an email | region', limit=2)) == {'mail:send_email', 'new:region'}
    assert all(n.startswith('web:') for n in found(client, 'web: counter'))


def test_find__tells_as_much_as_is_asked_for(client):
    names, words, whole = (find(client, 'send an email', depth=d).result['structuredContent']['tools'][0] for d in (0, 1, 2))
    assert set(names) == {'name', 'mcp', 'tool', 'confidence', 'healthy'}
    assert set(words) == {*names, 'description'} and set(whole) == {*words, 'schema'}
    assert found(client, 'send an email', confidence_threshold=1) == []
    assert 'No tool fits "xyzzy"' in find(client, 'xyzzy').text


def sized(name, size):
    """A tool with a schema of that many bytes."""
    schema = {'type': 'object', 'properties': {'to': {'type': 'string', 'enum': ['']}}, 'required': ['to']}
    schema['properties']['to']['enum'] = ['x' * (size - len(dump(schema)))]
    return {'name': name, 'inputSchema': schema}


def test_find__tells_parameters_where_a_schema_is_too_long(holdfast, scripted):
    mail = scripted('mail', shape={'tools': [sized('fits', 32 * 1024), sized('long', 32 * 1024 + 1)]})
    client = client_of(holdfast({'mail': mail.entry}, {'profiles': {'s': {'mode': 'search'}}}), '/mcp/p/s', False)
    told = {t['tool']: t for t in find(client).result['structuredContent']['tools']}
    fits, long = told['fits'], told['long']
    assert 'parameters' not in fits and 'schema_omitted' not in fits and fits['schema']['required'] == ['to']
    assert 'schema' not in long and long['schema_omitted'] is True
    assert long['parameters'] == [{'name': 'to', 'type': 'string', 'required': True}]


@pytest.mark.parametrize('arguments', [{'limit': 0}, {'limit': 101}, {'limit': 'x'}, {'page': 0}, {'depth': 3}, {'confidence_threshold': 1.1},
                                       {'confidence_threshold': '0'}, {'description': 7}], ids=dump)
def test_find__says_what_is_wrong_with_its_arguments(client, arguments):
    assert f'"{list(arguments)[0]}" must be' in refusal(client.call('find', arguments))


def test_find__does_not_guess_what_was_meant_by_an_argument(client):
    assert refusal(client.call('find', {'query': 'send an email'})) == (
        'find has no "query"; it takes description, limit, page, depth and confidence_threshold.')


def test_find__has_what_a_server_offers_this_session_alone(holdfast, tmp_path):
    server = Shifting(tmp_path, [POKE], [POKE, {'name': 'extra', 'inputSchema': {'type': 'object'}}], name='mail', share='session')
    hf = holdfast({'mail': server.entry}, SETTINGS)
    client, other = (client_of(hf, '/mcp/p/s', False) for _ in range(2))
    assert found(client) == ['mail:poke']
    run(client, 'mail:poke')  # says that its list has changed
    assert found(client, 'extra') == ['mail:extra'] and found(other) == ['mail:poke']
    assert run(client, 'mail:extra').text == 'done' and 'not found' in refusal(run(other, 'mail:extra'))


def test_find__marks_what_is_unavailable_and_goes_on(holdfast, scripted):
    mail = scripted('mail', shape=MAIL)
    hf = holdfast({'mail': mail.entry, 'web': {'command': '/nonexistent/server'}}, SETTINGS)
    client = hf.client('/mcp/p/s', modern=True)
    reply = find(client, 'send an email')
    assert reply.text.startswith('✅ **MCPs**: 1/2 healthy (web unavailable)\n')
    assert reply.result['structuredContent']['health'] == {'total': 2, 'healthy': 1, 'unavailable': ['web']}
    assert run(client, 'mail:send_email', {'to': 'ann'}).text == 'send_email'


def test_find__is_in_the_audit(world):
    client = world.client('/mcp/p/s').connect()
    find(client, 'send an email')
    wait_for(lambda: any(e.get('tool') == 'find' for e in commands.events(world)), 'the event')
    assert commands.run(world, 'audit', 'verify').returncode == 0


# -- pipes

@pytest.mark.parametrize('choice', [['--profile', 's'], ['--search']])
def test_stdio__runs_a_tool_of_a_searching_profile_and_exits(holdfast, scripted, choice):
    mail = scripted('mail', shape=MAIL)
    hf = holdfast({'mail': mail.entry}, SETTINGS if '--profile' in choice else {}, start=False)
    line = dump({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {
        'name': 'run', 'arguments': {'tool': 'mail:counter'}, '_meta': {'session_id': 'test123'}}})
    command = [harness.BINARY, 'stdio', *choice, '--data', hf.data, '--config', hf.config_file]
    done = subprocess.run(command, input=f'{line}\n{line}\n'.encode(), env=commands.command_env(hf), cwd=hf.folder, capture_output=True,
                          timeout=harness.DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(l)['result']['content'][0]['text'] for l in done.stdout.splitlines()) == ['1', '2']
    assert [c['params']['_meta'] for c in mail.calls()] == [{'session_id': 'test123'}] * 2


def test_stdio__search_lists_find_and_run_alone_and_finds_tools_of_all_servers(holdfast, scripted):
    hf = holdfast({'mail': scripted('mail', shape=MAIL).entry})
    lines = [dump({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/list'}),
             dump({'jsonrpc': '2.0', 'id': 2, 'method': 'tools/call', 'params': {'name': 'find', 'arguments': {'description': 'read the inbox'}}})]
    done = commands.run(hf, 'stdio', '--search', stdin='\n'.join(lines) + '\n')
    answers = {a['id']: a['result'] for a in map(json.loads, done.stdout.splitlines())}
    assert [t['name'] for t in answers[1]['tools']] == ['find', 'run']
    assert 'mail:read_inbox' in dump(answers[2])
    for wrong in (['--search', '--server', 'mail'], ['--search', '--profile', 's']):
        refused = commands.run(hf, 'stdio', *wrong)
        assert refused.returncode == 2 and '--search' in refused.stderr


def test_find__of_tools_that_go_on_for_ever_ends(holdfast, tmp_path):
    wide = {'name': 'wide', 'inputSchema': {'type': 'object', 'properties': {
        'p' * 5000: {'type': ['a'] * 9000}, 'q': {'type': 'b' * 5000}}}}
    about = {'type': 'string', 'description': '"' * 2000}
    large = [{'name': f'large{i}', 'inputSchema': {'type': 'object', 'properties': {f'p{n}': about for n in range(64)}}} for i in range(6)]
    hf = holdfast({'mail': Shifting(tmp_path, [wide, *large]).entry}, SETTINGS)
    client = hf.client('/mcp/p/s').connect()
    first, second = find(client, 'wide', limit=1).result['structuredContent']['tools'][0]['parameters']
    assert first['type'] == '|'.join('a' * 8) and first['name'] == 'p' * 256 and second['type'] == 'b' * 64
    reply = find(client, limit=100)
    tools = {t['tool']: t for t in reply.result['structuredContent']['tools']}
    assert len(tools['large0']['parameters']) == 64 and 'parameters' not in tools['large5'] and tools['large5']['schema_omitted'] is True
    assert 'this page is full' in reply.text
    assert len(find(client, 'large5', limit=1).result['structuredContent']['tools'][0]['parameters']) == 64


def test_run__of_a_name_that_goes_on_for_ever_means_nothing(client):
    for name in ('mail:' + 'send_email' * 300000, 'send_email' * 300000):
        assert 'Did you mean' not in refusal(run(client, name))
    assert 'Did you mean' in refusal(run(client, 'mail:' + 'send_email' * 204))


@pytest.mark.parametrize('modern', [False, True])
@pytest.mark.parametrize('dies', ['before', 'after'])
def test_run__of_a_dead_server_answers_as_a_direct_call_does(holdfast, stdio_server, tmp_path, modern, dies):
    """Before or after it has told what it offers."""
    entry, _ = stdio_server('up', handles='never')
    stop = tmp_path / 'dead'
    if dies == 'before':
        stop.touch()
    entry['args'] = ['-c', f'import os, sys\nif os.path.exists({str(stop)!r}): sys.exit("Error: gone")\n'
                     'os.execv(sys.executable, [sys.executable] + sys.argv[1:])', *entry['args']]
    hf = holdfast({'up': entry}, {'profiles': {'desk': {'servers': ['up'], 'mode': 'search'}}})
    direct, through = hf.client('/mcp/up', modern=modern), hf.client('/mcp/p/desk', modern=modern)
    if dies == 'after':
        assert direct.call('echo', {'text': 'x'}).text.startswith('x')
        stop.touch()
        direct.call('crash')
    one, other = direct.call('echo', {'text': 'x'}), through.call('run', {'tool': 'up:echo', 'parameters': {'text': 'x'}})
    assert one.status == other.status and set(one.json) == set(other.json), (one, other)
    assert one.error['code'] == other.error['code'] and 'Error: gone' in one.error['message'] and 'Error: gone' in other.error['message']


def test_find__calls_a_server_that_is_starting_starting(holdfast, scripted):
    gate = scripted('gate').gate()
    hf = holdfast({'mail': scripted('mail', shape=MAIL).entry, 'slow': scripted('slow', shape={'gates': {'start': gate}}).entry}, {'profiles': {'s': {'mode': 'search'}}})
    client = client_of(hf.wait_asked('mail'), '/mcp/p/s', True)
    reply = client.call('find', {'description': 'send an email'})
    assert '(' not in reply.text.split('\n')[0] and '⏳ still starting: slow' in reply.text
    assert reply.result['structuredContent']['health']['unavailable'] == []
    assert reply.result['structuredContent']['indexing']['pending'] == ['slow']
    open_gate(gate)


def test_run__suggests_the_name_that_has_all_its_words(holdfast, scripted):
    hf = holdfast({'time': scripted('time', shape={'tools': [
        {'name': n, 'inputSchema': {'type': 'object'}} for n in ('get_current_time', 'convert_time')]}).entry}, {'profiles': {'s': {'mode': 'search'}}})
    client = client_of(hf, '/mcp/p/s', True)
    found(client)
    assert refusal(run(client, 'time:get_time', {})) == "Tool 'time:get_time' not found. Did you mean: time:get_current_time?"


@pytest.mark.parametrize('modern', [False, True])
@pytest.mark.parametrize('dies', ['before', 'after', 'during'])
def test_run__of_a_dead_http_server_answers_as_a_direct_call_does(holdfast, scripted, modern, dies):
    """Before or after it has told what it offers, or while the call runs; each call has a server of its own."""
    servers = [scripted(name, http=True) for name in ('one', 'two')]
    for server in servers if dies == 'before' else []:
        server.stop()
    hf = holdfast({s.name: s.entry for s in servers}, {'profiles': {'desk': {'mode': 'search'}}}).wait_asked('one', 'two')
    steps = {'steps': [{'say': 'begun'}, {'wait': servers[0].gate()}]}
    replies = []
    for server, path, params in ((servers[0], '/mcp/one', {'name': 'script', 'arguments': steps}),
                                 (servers[1], '/mcp/p/desk', {'name': 'run', 'arguments': {'tool': 'two:script', 'parameters': steps}})):
        if dies == 'after':
            server.stop()
        with Later(hf.client(path, modern=modern), 'tools/call', params) as later:
            if dies == 'during':
                server.wait_time('begun')
                server.stop()
            replies += later.rest()
    direct, through = replies
    assert set(direct) == set(through) == {'jsonrpc', 'id', 'error'}, replies
    for reply in replies:
        assert reply['error']['code'] == -32000, replies
        assert ('without an answer' if dies == 'during' else 'cannot connect') in reply['error']['message'], replies
