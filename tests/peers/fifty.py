#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fifty.py NAME: one MCP server of two sets, on stdio.  The first, fifty/, is six servers (files, git, office, tracker, database,
web) with fifty tools in all; the second, town/, is eleven others (weather, chat, payments and so on) with eighty-two.

Their definitions, NAME.json, are worded and shaped as servers of that kind are: long and short, from zod and from
docstrings, with camels and with snakes.  A call changes nothing and says what it was asked.  The queries.tsv of a set has
wishes in plain words and the tool that each means, forty and seventy.  Both were written before anything was ranked with
them and stay as they are: who rewords a wish because it is not found measures nothing.  Benchmark and tests share all this
by importing the file."""
import json
import os
import sys

from mcp_server import RpcError, Server, State, dump, text_result

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ('files', 'git', 'office', 'tracker', 'database', 'web')
TOWN = ('weather', 'chat', 'payments', 'monitoring', 'notes', 'images', 'maps', 'cluster', 'home', 'music', 'crm')


def tools_of(name):
    with open(os.path.join(HERE, 'town' if name in TOWN else 'fifty', name + '.json'), encoding='utf-8') as file:
        return json.load(file)


def queries(folder='fifty'):
    """[(wish, 'server:tool')] in their order, in which every second one is held out when weights are chosen."""
    with open(os.path.join(HERE, folder, 'queries.tsv'), encoding='utf-8') as file:
        return [tuple(line.rstrip('\n').split('\t')) for line in file]


def entries(names=NAMES):
    """The servers as they stand in mcpServers."""
    return {name: {'command': '/usr/bin/python3', 'args': ['-S', '-E', os.path.abspath(__file__), name]} for name in names}


class Fifty(Server):
    def __init__(self, name):
        super().__init__(name)
        self.tools = tools_of(name)

    def answer(self, state, message, send, modern):
        method, params = message['method'], message.get('params') or {}
        if method == 'initialize':
            return {**super().answer(state, message, send, modern), 'capabilities': {'tools': {}}, 'instructions': ''}
        if method == 'tools/list':
            return {'tools': self.tools}
        if method == 'tools/call':
            if params.get('name') not in [t['name'] for t in self.tools]:
                raise RpcError(-32602, f"Unknown tool: {params.get('name')}")
            return text_result(f"{params['name']} {dump(params.get('arguments') or {})}")
        if method == 'ping':
            return {}
        raise RpcError(-32601, f'Method not found: {method}')


def send(text):
    sys.stdout.buffer.write(text.encode() + b'\n')
    sys.stdout.buffer.flush()


def main():
    server, state = Fifty(sys.argv[1]), State()
    for line in sys.stdin.buffer:
        server.handle(state, json.loads(line), send)


if __name__ == '__main__':
    main()
