#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""answers.py FOLDER: a legacy stdio server whose answers follow from the arguments alone, and from FOLDER/changes.

`look` (read-only) answers {"item": …, "price": …} as JSON text, `keep` counts the lines of FOLDER/kept and adds one,
`fail` (read-only) answers with isError, `refuse` (read-only) with a JSON-RPC error.  Every call is a line of
FOLDER/calls.  FOLDER/changes, a JSON object that may come later, changes it: `prices` (item: price), `gone` (names of
tools that are not there any more), `shuffled` (true: keys in another order, and the price as a float), `waits` (a
FIFO that a call of `look` for the item `slow` waits for)."""
import json
import os
import sys

FOLDER = sys.argv[1]
OBJECT = {'type': 'object'}
TOOLS = [{'name': name, 'description': 'It is the tool ' + name, 'inputSchema': OBJECT, 'annotations': {'readOnlyHint': reads}}
         for name, reads in (('look', True), ('keep', False), ('fail', True), ('refuse', True))]


def changes():
    try:
        with open(os.path.join(FOLDER, 'changes'), encoding='utf-8') as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def text(value, **more):
    return {'content': [{'type': 'text', 'text': value}], **more}


def look(arguments, now):
    item = arguments.get('item', '')
    if item == 'slow' and 'waits' in now:
        with open(now['waits'], 'rb') as fifo:
            fifo.read()
    price = now.get('prices', {}).get(item, len(item))
    found = {'item': item, 'price': price, 'asked': sorted(arguments)}
    if now.get('shuffled'):
        found = {'asked': found['asked'], 'price': float(price), 'item': item}
    return text(json.dumps(found, indent=2 if now.get('shuffled') else None))


def keep(arguments, _):
    with open(os.path.join(FOLDER, 'kept'), 'a+', encoding='utf-8') as file:
        file.write(json.dumps(arguments) + '\n')
        file.seek(0)
        return text(str(len(file.readlines())))


def answer(message, now):
    method, params = message['method'], message.get('params') or {}
    if method == 'initialize':
        return {'result': {'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}},
                           'serverInfo': {'name': 'answers', 'version': '1'}}}
    tools = [t for t in TOOLS if t['name'] not in now.get('gone', [])]
    if method == 'tools/list':
        return {'result': {'tools': tools}}
    if method != 'tools/call' or params['name'] not in [t['name'] for t in tools]:
        return {'error': {'code': -32601, 'message': 'there is no such thing'}}
    arguments = params.get('arguments') or {}
    with open(os.path.join(FOLDER, 'calls'), 'a', encoding='utf-8') as file:
        file.write(json.dumps([os.getpid(), params['name'], arguments]) + '\n')
    if params['name'] == 'fail':
        return {'result': text('it failed as always', isError=True)}
    if params['name'] == 'refuse':
        return {'error': {'code': -32050, 'message': 'refused as always', 'data': {'why': [1, 2]}}}
    return {'result': look(arguments, now) if params['name'] == 'look' else keep(arguments, now)}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if message.get('id') is not None and 'method' in message:
            sys.stdout.write(json.dumps({'jsonrpc': '2.0', 'id': message['id'], **answer(message, changes())}) + '\n')
            sys.stdout.flush()


if __name__ == '__main__':
    main()
