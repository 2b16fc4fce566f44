#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""train.py BINARY: a few seconds of load on a Holdfast that counts what it does, for tools/build-release.

Calls of both eras over HTTP, with durable audit and without, by sessions that have an id and by requests that have
none: what a gateway does all day.  What is not done here is compiled as in any other build."""
import os
import shutil
import sys
import tempfile

from subjects import TOP, Holdfast, Upstream, load

SECONDS = 1.5


def main():
    os.makedirs(os.path.join(TOP, '.cache'), exist_ok=True)
    folder = tempfile.mkdtemp(prefix='train-', dir=os.path.join(TOP, '.cache'))
    Holdfast.binary = os.path.abspath(sys.argv[1])
    upstream = Upstream('upstream', '/mcp').start()
    running = [upstream]
    try:
        for audit in (None, 'none'):
            for era in ('legacy', 'modern'):
                subject = Holdfast(folder, f'holdfast {era} {audit}', upstream, audit, era).start()
                running.append(subject)
                for modern in (0, 1):
                    load(subject, upstream, connections=64, body=504, modern=modern, warmup=0.1, seconds=SECONDS)
    finally:
        for one in reversed(running):
            one.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
