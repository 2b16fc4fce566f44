#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""between.py ERA URL: what the suite starts as the client under test: Holdfast, with a driver in front of it.

Holdfast serves the mock server at URL and speaks ERA to it; driver.mjs then plays the scenario
against Holdfast.  The exit status is not 0 when the driver missed an answer, or when Holdfast did
not end well."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'e2e'))
import harness  # noqa: E402

DRIVER_S = 25


def main():
    era, url = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        server = {'url': url, 'era': era, 'handles': 'never'}
        holdfast = harness.Holdfast(folder, {'mcpServers': {'mock': server}})
        try:
            holdfast.start()
            driver = subprocess.run([harness.node(), os.path.join(HERE, 'driver.mjs'), f'http://127.0.0.1:{holdfast.port}/mcp/mock'],
                                    stdin=subprocess.DEVNULL, timeout=DRIVER_S, check=False)
            if driver.returncode != 0:
                print(holdfast.text(), file=sys.stderr)
            return driver.returncode
        finally:
            holdfast.close()


if __name__ == '__main__':
    sys.exit(main())
