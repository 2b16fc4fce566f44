#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""recorder.py FILE [--era legacy|modern|both] [--exit-on-probe] [--page N] [--garbage N] [--stderr N]
[--exit-at-start]: an MCP server on stdio that appends every received line to FILE verbatim, and to
FILE.starts one line per process.

--exit-on-probe ends the process on a first message that is not initialize, as some servers do.
--garbage N writes N lines that are no messages before every message, --stderr N as many bytes to
stderr.  --exit-at-start ends the process at once."""
import json
import os
import sys
import threading

from mcp_server import MODERN, Server, State, append, claim, dump, options


GARBAGE = (b'Server listening...', b'\x1b[31mnpm warn\x1b[0m deprecated', b'{not json', b'\xff\xfe\x00', b'', b'[]',
           b'{"jsonrpc":"2.0","id":"never asked","result":{}}', b'{"jsonrpc":"2.0","id":999999999,"result":{}}',
           b'42', b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}')


class Stdio:
    def __init__(self, args):
        self.args = args
        self.server = Server('recorder', args.era, args.page)
        self.state = State()
        self.lock = threading.Lock()
        self.initialized = False

    def send(self, text):
        with self.lock:
            for n in range(self.args.garbage):
                sys.stdout.buffer.write(GARBAGE[n % len(GARBAGE)] + b'\n')
            left = self.args.stderr
            while left > 0:
                left -= os.write(2, (b'e' * 99 + b'\n') * (min(left, 65536) // 100 + 1))
            sys.stdout.buffer.write(text.encode() + b'\n')
            sys.stdout.buffer.flush()

    def refuse(self, message, code, text, data=None):
        error = {'code': code, 'message': text, **({'data': data} if data else {})}
        self.send(dump({'jsonrpc': '2.0', 'id': message['id'], 'error': error}))

    def take(self, line):
        message = json.loads(line)
        is_request = 'method' in message and 'id' in message
        modern = claim(message) is not None and self.args.era != 'legacy'
        if is_request and message['method'] == 'initialize':
            self.initialized = True
            if self.args.era == 'modern':
                self.refuse(message, -32022, 'Unsupported protocol version', {'supported': [MODERN]})
                return
        elif is_request and self.args.exit_on_probe and not self.initialized:
            os._exit(1)
        elif is_request and self.args.era == 'modern' and not modern:
            self.refuse(message, -32602, 'Missing protocolVersion in _meta')
            return
        # A thread each: a slow call must not delay the cancellation that ends it.
        if is_request and message['method'] == 'tools/call':
            threading.Thread(target=self.server.handle, args=(self.state, message, self.send, modern), daemon=True).start()
        else:
            self.server.handle(self.state, message, self.send, modern)

    def run(self):
        append(self.args.file + '.starts', b'%d\n' % os.getpid())
        if self.args.exit_at_start:
            sys.exit('told to exit')
        for line in sys.stdin.buffer:
            append(self.args.file, line)
            self.take(line)


def main():
    Stdio(options(file='', era='legacy', exit_on_probe=False, exit_at_start=False, page=0, garbage=0, stderr=0)).run()


if __name__ == '__main__':
    main()
