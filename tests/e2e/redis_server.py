# SPDX-License-Identifier: Apache-2.0
"""A throw-away Redis (tests/support/redis_server) that a test may kill, stop and start again."""
import os
import socket
import subprocess

from harness import TOP


class Redis:
    def __init__(self, *args):
        self.keeper = subprocess.Popen([os.path.join(TOP, 'tests/support/redis_server'), *args],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.keeper.stdout.readline().strip()
        self.keeper.stdout.readline()

    @property
    def is_there(self):
        return bool(self.url)

    def order(self, word):
        """kill, stop, cont or start."""
        self.keeper.stdin.write(word + '\n')
        self.keeper.stdin.flush()
        assert self.keeper.stdout.readline().strip() == 'ok'

    def say(self, *words):
        """The first bytes of the answer to one command."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            s.connect(self.url.removeprefix('unix://'))
            bulk = b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in (word.encode() for word in words))
            s.sendall(b'*%d\r\n%s' % (len(words), bulk))
            return s.recv(1 << 16)

    def strings(self, *words):
        """A short answer that is a list of strings."""
        return self.say(*words).split(b'\r\n')[2::2]

    def close(self):
        self.keeper.stdin.close()
        self.keeper.wait(10)
