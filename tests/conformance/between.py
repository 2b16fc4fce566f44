#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""between.py ERA URL: what the suite starts as the client under test: Holdfast, with a driver in front of it.

Holdfast serves the mock server at URL and speaks ERA to it; driver.mjs then plays the scenario
against the path of Holdfast that HOLDFAST_PATH names.  The exit status is not 0 when the driver missed an answer, or when Holdfast did
not end well."""
import contextlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'e2e'))
import harness  # noqa: E402

DRIVER_S = 15  # the suite gives up after 30


def drive(url):
    """True when the driver got every answer it wanted."""
    try:
        driver = subprocess.run([harness.node(), os.path.join(HERE, 'driver.mjs'), url], stdin=subprocess.DEVNULL,
                                timeout=DRIVER_S, check=False)
    except subprocess.TimeoutExpired:
        print(f'the driver still waits after {DRIVER_S} s', file=sys.stderr)
        return False
    return driver.returncode == 0


def main():
    era, url = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        server = {'url': url, 'era': era, 'handles': 'never'}
        holdfast = harness.Holdfast(folder, {'mcpServers': {'mock': server}})
        with contextlib.closing(holdfast):
            holdfast.start()
            ok = drive(f'http://127.0.0.1:{holdfast.port}{os.environ["HOLDFAST_PATH"]}')
            if not ok:  # with calls that still wait it would take its time to end
                print(holdfast.text(), file=sys.stderr)
                holdfast.kill()
            return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main())
