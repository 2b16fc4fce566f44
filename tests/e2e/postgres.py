# SPDX-License-Identifier: Apache-2.0
"""A throw-away PostgreSQL (tests/support/pg_cluster) that a test may stop, hang and start again."""
import glob
import os
import shlex
import signal
import subprocess

from harness import BINARY, DEADLINE_S, TOP, wait_for

# Debian's psql in PATH is a script that takes ten times as long as the program which it starts.
PSQL = max(glob.glob('/usr/lib/postgresql/*/bin/psql'), key=lambda path: float(path.split('/')[4]), default='psql')


class Cluster:
    """One server on a unix socket; databases of their own for tests."""

    def __init__(self, *settings):
        self.keeper = subprocess.Popen([os.path.join(TOP, 'tests/support/pg_cluster'), '--', *settings],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.first = self.keeper.stdout.readline().decode().strip()
        self.top = self.keeper.stdout.readline().decode().strip()
        self.own = None  # the server we started ourselves, after a stop
        self.made = 0
        self.migrated = None  # the name of the database that others are copied from

    @property
    def is_there(self):
        return bool(self.first)

    def empty_database(self, *options):
        """A new database without a schema: its URL."""
        self.made += 1
        name = f'test_{os.getpid()}_{self.made}'
        self.sql(self.first, f'CREATE DATABASE {name} {" ".join(options)}')
        return self.url(name)

    def database(self):
        """A new database with the schema of this version: its URL.  Copying one takes a third of the time of migrating."""
        if not self.migrated:
            url = self.empty_database()
            done = subprocess.run([BINARY, 'db', 'migrate', '--database-url', url], capture_output=True, timeout=DEADLINE_S,
                                  check=False, cwd='/')
            assert done.returncode == 0, done.stderr.decode()
            self.migrated = url.split('?')[0].rsplit('/', 1)[1]
        return self.empty_database('TEMPLATE', self.migrated, 'STRATEGY FILE_COPY')

    def url(self, name, user='holdfast', host=None):
        return f'postgresql://{user}@/{name}?host={host or self.top}'

    @staticmethod
    def sql(url, text):
        """Rows as lists of texts."""
        done = subprocess.run([PSQL, '-XAtq', '-F', '\t', '-v', 'ON_ERROR_STOP=1', url, '-c', text], capture_output=True,
                              timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, f'{text}: {done.stderr.decode()}'
        return [line.split('\t') for line in done.stdout.decode().splitlines()]

    def postmaster(self):
        """Its pid, 0 when it does not run."""
        try:
            with open(os.path.join(self.top, 'data/postmaster.pid'), encoding='utf-8') as file:
                return int(file.readline())
        except (OSError, ValueError):
            return 0

    def processes(self):
        """The postmaster and all its children."""
        top = self.postmaster()
        found = [top] if top else []
        for entry in os.listdir('/proc'):
            try:
                with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as file:
                    parent = int(file.read().rsplit(')', 1)[1].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if top and parent == top:
                found.append(int(entry))
        return found

    def stop(self, how='fast'):
        """fast: clients are cut off; immediate: as in a crash."""
        pid = self.postmaster()
        os.kill(pid, {'fast': signal.SIGINT, 'immediate': signal.SIGQUIT}[how])
        if self.own and self.own.pid == pid:
            self.own.wait(DEADLINE_S)
        wait_for(lambda: self.postmaster() == 0, 'PostgreSQL to stop')

    def start(self):
        """Again, with the settings of before."""
        with open(os.path.join(self.top, 'data/postmaster.opts'), encoding='utf-8') as file:
            command = shlex.split(file.readline())
        owner = os.stat(os.path.join(self.top, 'data'))
        other = {'user': owner.st_uid, 'group': owner.st_gid, 'extra_groups': []} if os.geteuid() == 0 else {}
        with open(os.path.join(self.top, 'log'), 'ab') as log:
            self.own = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.top,
                                        env={'LC_ALL': 'C.UTF-8', 'HOME': self.top}, **other)
        wait_for(self.is_ready, 'PostgreSQL to start', 30)

    def is_ready(self):
        done = subprocess.run([PSQL, '-XAtq', self.first, '-c', 'SELECT 1'], capture_output=True, timeout=DEADLINE_S,
                              check=False)
        return done.returncode == 0

    def restart(self, how='fast'):
        self.stop(how)
        self.start()

    def hang(self):
        """It accepts connections (the kernel does) and answers nothing."""
        self.stopped = self.processes()
        for pid in self.stopped:
            self.signal(pid, signal.SIGSTOP)

    def resume(self):
        for pid in getattr(self, 'stopped', []):
            self.signal(pid, signal.SIGCONT)
        self.stopped = []

    @staticmethod
    def signal(pid, which):
        try:
            os.kill(pid, which)
        except ProcessLookupError:
            pass

    def backends(self, url):
        """Pids of the connections to a database but ours."""
        rows = self.sql(url, 'SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()')
        return [int(pid) for pid, in rows]

    def close(self):
        self.resume()
        if self.own and self.own.poll() is None:
            self.own.send_signal(signal.SIGQUIT)
            self.own.wait(DEADLINE_S)
        self.keeper.stdin.close()
        self.keeper.wait(DEADLINE_S)
        self.keeper.stdout.close()


def shared_keys(node):
    """The environment of another node on the same database: the key files that a fleet shares."""
    files = {'AUDIT': 'audit.key', 'MASTER': 'master.key', 'TOKEN': 'token.key'}
    return {f'HOLDFAST_{name}_KEY_FILE': os.path.join(node.data, file) for name, file in files.items()}
