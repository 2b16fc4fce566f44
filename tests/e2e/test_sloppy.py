# SPDX-License-Identifier: Apache-2.0
"""Servers whose definitions break the specification: in a list of several servers they are mended, so that clients that
validate keep the list; a server of its own path is passed through as it is."""
import json
import subprocess

import pytest

import commands
import harness
from harness import NODE_MODULES, PEERS

OBJECT = {'type': 'object'}
SLOPPY = {
    'tools': [
        {'name': 'no-schema'}, {'name': 'no-type', 'inputSchema': {'properties': {'a': {'type': 'string'}}, 'required': ['a']}},
        {'name': 'null-schema', 'inputSchema': None}, {'name': 'listed-schema', 'inputSchema': []},
        {'name': 'other-type', 'inputSchema': {'type': ['object', 'null']}},
        {'name': 'odd-properties', 'inputSchema': {**OBJECT, 'properties': {'any': True, 'none': False, 'a': {'type': 'string'}, 'z': 3}}},
        {'name': 'null-properties', 'inputSchema': {**OBJECT, 'properties': None, 'required': True}},
        {'name': 'null-words', 'inputSchema': OBJECT, 'description': None, 'title': 5, 'annotations': None, 'icons': {}, '_meta': []},
        {'name': 'odd-hints', 'inputSchema': OBJECT, 'annotations': {'readOnlyHint': 'yes', 'title': 'kept'}},
        {'name': 'odd-output', 'inputSchema': OBJECT, 'outputSchema': {'type': 'array'}},
        {'name': 'odd-execution', 'inputSchema': OBJECT, 'execution': {'taskSupport': 'maybe'}},
        {'name': 'fine', 'inputSchema': {**OBJECT, 'x-vendor': [1.50]}, 'description': 'Fine.'},
        {'inputSchema': OBJECT}, {'name': '', 'inputSchema': OBJECT}, {'name': 7}, 'text'],
    'prompts': [{'name': 'a', 'arguments': [{'name': 'x', 'required': 'yes'}, {'description': 'nameless'}]}, {'name': 'b', 'arguments': None},
                {'description': 'nameless'}],
    'resources': [{'uri': 'a://1'}, {'uri': 'a://2', 'name': None, 'mimeType': 5, 'size': '1', 'annotations': {'audience': 'user'}},
                  {'name': 'without a uri'}],
    'templates': [{'uriTemplate': 'a://{x}'}, {'name': 'nothing'}],
}
LISTS = {'tools/list': 'tools', 'prompts/list': 'prompts', 'resources/list': 'resources', 'resources/templates/list': 'resourceTemplates'}


@pytest.fixture(scope='module')
def validate():
    """validate(method, result): the first fault that the schemas of the SDKs find, or ''."""
    if not harness.node():
        pytest.skip('node is not installed')
    peer = subprocess.Popen([harness.node(), f'{PEERS}/valid_list.mjs', NODE_MODULES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def check(method, result):
        peer.stdin.write(json.dumps({'method': method, 'result': result}) + '\n')
        peer.stdin.flush()
        return peer.stdout.readline().rstrip('\n')
    yield check
    peer.stdin.close()
    peer.wait()
    peer.stdout.close()


def test_validator__finds_faults(validate):
    assert validate('tools/list', {'tools': [{'name': 'a', 'inputSchema': OBJECT}]}) == ''
    for tool in SLOPPY['tools'][:5]:
        assert validate('tools/list', {'tools': [tool]}), tool


@pytest.mark.parametrize('path', ['/mcp', '/mcp/p/few'])
@pytest.mark.parametrize('modern', [False, True], ids=['legacy', 'modern'])
def test_merged_lists__of_sloppy_servers_are_valid(holdfast, scripted, validate, modern, path):
    sloppy, good = scripted('sloppy', shape=SLOPPY), scripted('good')
    settings = {'profiles': {'few': {'mode': 'static', 'toolsets': ['t']}}, 'toolsets': {'t': {'tools': ['*']}}}
    hf = holdfast({'sloppy': sloppy.entry, 'good': good.entry}, settings)
    client = hf.client(path, modern=modern)
    if not modern:
        client.connect()
    for method, key in LISTS.items():
        result = client.rpc(method).result
        assert validate(method, result) == '', method
        assert result[key]
    tools = {t['name']: t for t in client.rpc('tools/list').result['tools']}
    named = [t['name'] for t in SLOPPY['tools'] if isinstance(t, dict) and t.get('name') and isinstance(t['name'], str)]
    assert [t for t in tools if t.startswith('sloppy__')][3:] == [f'sloppy__{n}' for n in named]
    schema = tools['sloppy__no-type']['inputSchema']
    assert schema == {'properties': {'a': {'type': 'string'}}, 'required': ['a'], 'type': 'object'}
    assert tools['sloppy__odd-properties']['inputSchema']['properties'] == {'any': {}, 'none': {'not': {}}, 'a': {'type': 'string'}, 'z': {}}
    assert tools['sloppy__odd-hints']['annotations'] == {'title': 'kept'}
    assert tools['sloppy__fine'] == {**SLOPPY['tools'][11], 'name': 'sloppy__fine'}
    assert client.call('sloppy__no-type', {'text': 'called'}).text == 'called'


def test_own_path__passes_definitions_as_they_are(holdfast, scripted):
    hf = holdfast({'sloppy': scripted('sloppy', shape=SLOPPY).entry})
    client = hf.client('/mcp/sloppy').connect()
    assert client.rpc('tools/list').result['tools'][3:] == SLOPPY['tools'][:12]
    assert client.rpc('resources/list').result['resources'] == SLOPPY['resources'][:2]


def test_servers_show__tells_what_was_mended(holdfast, scripted):
    hf = holdfast({'sloppy': scripted('sloppy', shape=SLOPPY).entry})
    hf.client('/mcp').connect().rpc('tools/list')
    done = commands.run(hf, 'servers', 'show', 'sloppy').stderr
    assert 'note: 4 of its tools have no usable "name" and are left out' in done
    assert 'note: 11 of its tools break the MCP schema; /mcp and profiles show them mended' in done
    assert 'note: 1 of its resources have no usable "uri" and are left out' in done


def test_merged_lists__of_published_servers_are_valid(holdfast, scripted, validate, tmp_path):
    servers = {'sloppy': scripted('sloppy', shape=SLOPPY).entry}
    for name, args in (('mcp-server-everything', ['stdio']), ('mcp-server-filesystem', [str(tmp_path)])):
        if not harness.npm_bin(name):
            pytest.skip(f'{name} is not installed')
        servers[name[11:]] = {'command': harness.node(), 'args': [harness.npm_bin(name), *args]}
    hf = holdfast(servers)
    client = hf.client('/mcp').connect()
    for name in servers:
        hf.wait_log(lambda l, n=name: l.get('msg') == 'server probed' and l.get('server') == n, f'the probe of {name}', timeout=90)
    for method in LISTS:
        assert validate(method, client.rpc(method).result) == '', method
    names = [t['name'] for t in client.rpc('tools/list').result['tools']]
    assert {n.split('__')[0] for n in names} == {*servers, 'session'}
