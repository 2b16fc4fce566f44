#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""shifting.py FOLDER: a legacy stdio server whose tools are those of FOLDER/tools.json, a list of editions:
the n-th tools/list that it ever answers, over all its processes, gives the n-th edition, and the last one for
good.  Calling `poke` makes it say that its list has changed."""
import json
import os
import sys

FOLDER = sys.argv[1]
COUNT = os.path.join(FOLDER, 'lists')


def edition():
    with open(COUNT, 'ab') as file:
        file.write(b'.')
    with open(os.path.join(FOLDER, 'tools.json'), encoding='utf-8') as file:
        editions = json.load(file)
    return editions[min(os.path.getsize(COUNT), len(editions)) - 1]


def send(message):
    sys.stdout.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n')
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    ident, method = message.get('id'), message.get('method')
    if method == 'initialize':
        send({'id': ident, 'result': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {'listChanged': True}},
                                      'serverInfo': {'name': 'shifting', 'version': '1'}}})
    elif method == 'tools/list':
        send({'id': ident, 'result': {'tools': edition()}})
    elif method == 'tools/call':
        with open(os.path.join(FOLDER, 'calls'), 'a', encoding='utf-8') as file:
            file.write(json.dumps(message['params']) + '\n')
        if message['params']['name'] == 'poke':
            send({'method': 'notifications/tools/list_changed'})
        send({'id': ident, 'result': {'content': [{'type': 'text', 'text': 'done'}]}})
    elif ident is not None:
        send({'id': ident, 'error': {'code': -32601, 'message': 'no such method'}})
