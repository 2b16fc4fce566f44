# SPDX-License-Identifier: Apache-2.0
"""A test that hangs fails by itself, in words and where it hangs, and those behind it run (conftest.py)."""
import os
import subprocess
import sys
import textwrap

import harness

HANGING = textwrap.dedent("""
    import subprocess, threading, pytest

    @pytest.fixture
    def slow_start():
        threading.Event().wait()

    @pytest.fixture
    def slow_end():
        yield
        subprocess.run(['sleep', '600'])

    def test_event(): threading.Event().wait()
    def test_pipe(): subprocess.Popen(['sleep', '5'], stdout=subprocess.PIPE).stdout.readline()
    def test_start(slow_start): pass
    def test_end(slow_end): pass
    def test_behind(): pass
""")


def test_what_hangs__fails_and_the_rest_runs(tmp_path):
    (tmp_path / 'test_hanging.py').write_text(HANGING, encoding='utf-8')
    done = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'conftest', 'test_hanging.py'],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, 'HOLDFAST_TEST_S': '1.0', 'PYTHONPATH': os.path.dirname(os.path.abspath(harness.__file__))})
    said = done.stdout
    assert '2 failed, 2 passed, 2 errors' in said, said
    for what in ('test_event', 'test_pipe', 'the set-up of test_start', 'the end of test_end'):
        assert f'AssertionError: {what} took more than 1 s' in said, said
