# SPDX-License-Identifier: Apache-2.0
"""The package in a fresh Debian 12: installation, the units, the service user, a developer's first minutes, an upgrade,
removal and purge."""
import json
import os
import re
import shutil
import socket
import subprocess
import types

import fresh_root
import harness
import pytest
from harness import TOP, Client

CONFIG = '/etc/holdfast/holdfast.json'
DATA = '/var/lib/holdfast'
UNIT = '/usr/lib/systemd/system/holdfast.service'
SERVER = ['/usr/bin/python3', '/mnt/shared/peers/start.py', 'recorder', '/tmp/record']
PORT = 4653


def build(folder):
    """The package of the program under test, and the same one with a higher version."""
    done = subprocess.run([os.path.join(TOP, 'tools/build-deb'), harness.BINARY], capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    shutil.copy(os.path.join(TOP, done.stdout.split()[-1]), os.path.join(folder, 'holdfast.deb'))
    tree = os.path.join(folder, 'tree')
    subprocess.run(['dpkg-deb', '-R', os.path.join(folder, 'holdfast.deb'), tree], check=True, timeout=60)
    control = os.path.join(tree, 'DEBIAN/control')
    with open(control, encoding='utf-8') as file:
        text = re.sub(r'(?m)^Version: .*', r'\g<0>+later', file.read())
    with open(control, 'w', encoding='utf-8') as file:
        file.write(text)
    subprocess.run(['dpkg-deb', '-Znone', '-b', tree, os.path.join(folder, 'later.deb')], check=True, timeout=60, capture_output=True)
    shutil.rmtree(tree)


@pytest.fixture(scope='module')
def bare(tmp_path_factory):
    """A Debian in which Holdfast was never installed; the packages are in /mnt/shared."""
    if not shutil.which('dpkg-shlibdeps'):
        pytest.skip('dpkg-dev is not installed; tools/install-deps test installs it')
    base, why = fresh_root.path()
    if not base:
        pytest.skip(why)
    root = fresh_root.FreshRoot(base, tmp_path_factory.mktemp('fresh'))
    if root.why:
        pytest.skip('this machine does not let root make an overlay in a namespace: ' + root.why)
    shutil.copytree(harness.PEERS, os.path.join(root.shared, 'peers'), ignore=shutil.ignore_patterns('everything', 'town', '*.c'))
    build(root.shared)
    yield root
    root.close()


@pytest.fixture(scope='module')
def root(bare):
    """The same, with Holdfast installed."""
    bare.before = bare.files()
    text = bare.ok('apt-get', 'install', '-y', '--no-install-recommends', '/mnt/shared/holdfast.deb')
    assert 'Setting up holdfast' in text, text
    return bare


class Unit:
    """What a unit file says: a setting that is there more than once is a list."""

    def __init__(self, text):
        self.settings = {}
        for line in text.splitlines():
            found = re.fullmatch(r'([A-Za-z]+)=(.*)', line)
            if found:
                self.settings.setdefault(found.group(1), []).append(found.group(2))

    def one(self, name):
        assert len(self.settings[name]) == 1, name
        return self.settings[name][0]


class Service:
    """ExecStart of the installed unit: its user, environment, directories and privileges, and a service manager's socket."""

    def __init__(self, root):
        self.root, unit = root, Unit(root.ok('cat', UNIT))
        user, state = unit.one('User'), '/var/lib/' + unit.one('StateDirectory')
        root.ok('install', '-d', '-o', user, '-g', unit.one('Group'), '-m', unit.one('CacheDirectoryMode'),
                '/var/cache/' + unit.one('CacheDirectory'))
        self.env = dict(pair.split('=', 1) for pair in unit.one('Environment').split())
        self.env.update(USER=user, STATE_DIRECTORY=state, CACHE_DIRECTORY='/var/cache/holdfast', CONFIGURATION_DIRECTORY='/etc/holdfast',
                        NOTIFY_SOCKET='/mnt/shared/notify')
        assert unit.one('NoNewPrivileges') == 'true' and unit.one('CapabilityBoundingSet') == ''
        self.words = ['setpriv', '--reuid', user, '--regid', unit.one('Group'), '--init-groups', '--no-new-privs', '--bounding-set=-all',
                      '--inh-caps=-all', '--', 'sh', '-c', f'umask {unit.one("UMask")}; cd {unit.one("WorkingDirectory")}; exec "$@"', 'sh',
                      *unit.one('ExecStart').split()]
        self.path = os.path.join(root.shared, 'notify')
        self.process = None

    def start(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(self.path)
            os.chmod(self.path, 0o777)
            manager.settimeout(1)
            self.process = self.root.start(*self.words, env=self.env)
            while True:
                try:
                    if b'READY=1' in manager.recv(4096):
                        return self
                except TimeoutError:
                    assert self.process.poll() is None, self.process.communicate()[0]

    def stop(self):
        if not self.process:
            return
        text = self.root.end(self.process)
        assert self.process.returncode == 0, text


@pytest.fixture
def service(root):
    one = Service(root)
    yield one
    one.stop()


def call(root, path, modern=False):
    """One call through MCP: the answer's text."""
    with root.network(), Client(types.SimpleNamespace(connection=lambda: harness.Connection(PORT)), path, modern=modern) as client:
        if not modern:
            client.connect()
        return client.call('echo', {'text': 'from outside'}).text


def as_service(root, *words):
    return root.ok('holdfast', *words, '--data', DATA, user='holdfast', env={'HOME': DATA})


def test_what_apt_installs(root):
    version = root.ok('holdfast', 'version').split()[1]
    assert version == root.ok('dpkg-query', '-W', '-f', '${Version}', 'holdfast')
    assert root.ok('dpkg', '--verify', 'holdfast') == ''
    assert root.ok('stat', '-c', '%U %a', DATA) == 'holdfast 700\n'
    assert root.ok('stat', '-c', '%U %G %a', CONFIG) == 'root holdfast 640\n'
    assert 'nologin' in root.ok('getent', 'passwd', 'holdfast')
    assert not [line for line in root.files() if re.match(r'/etc/systemd/.*holdfast', line)], 'nothing is enabled'


def test_systemd_accepts_the_installed_units(root):
    for words in (['holdfast.service', 'holdfast.socket'], ['--user', '/usr/lib/systemd/user/holdfast.service']):
        done = root.run('systemd-analyze', 'verify', '--man=no', *words, env={'XDG_RUNTIME_DIR': '/tmp'})
        assert [line for line in done.stderr.splitlines() if 'holdfast' in line] == [], done.stderr
        assert done.returncode == 0, done.stderr


def test_the_service_user_serves_and_the_data_is_in_place(root, service):
    config = {'mcpServers': {'rec': {'command': SERVER[0], 'args': SERVER[1:-1] + [DATA + '/record']}}, 'holdfast': {}}
    root.ok('tee', CONFIG, stdin=json.dumps(config))
    service.start()
    assert 'from outside' in call(root, '/mcp/rec')
    assert 'from outside' in call(root, '/mcp/rec', modern=True)
    assert root.ok('stat', '-c', '%U %a', DATA + '/holdfast.db') == 'holdfast 600\n'
    assert len(as_service(root, 'audit', 'list', '--server', 'rec', '--json').splitlines()) == 2
    as_service(root, 'key', 'create', '--name', 'kept')


def test_an_administrator_adds_a_server_to_the_running_service(root, service):
    service.start()
    # The server writes there, tried by root first and run by the service then.
    root.ok('sh', '-c', 'umask 0; mkdir /srv/more; touch /srv/more/record /srv/more/record.starts')
    root.ok('holdfast', 'add', 'more', '--config', CONFIG, '-e', 'API_KEY=canary-5f0e77b1', '--', *SERVER[:-1], '/srv/more/record')
    assert root.ok('stat', '-c', '%U %G %a', CONFIG) == 'root holdfast 640\n'
    text = root.ok('cat', CONFIG)
    assert '${secret:more.API_KEY}' in text and 'canary-5f0e77b1' not in text
    assert 'more.API_KEY' in as_service(root, 'secret', 'list')
    harness.wait_for(lambda: 'healthy' in as_service(root, 'servers', 'list').split('more ')[-1].splitlines()[0], 'the server to be up')
    assert 'from outside' in call(root, '/mcp/more')
    root.ok('rm', '-r', '/srv/more')


def test_a_deleted_configuration_stays_deleted_and_stops_no_installation(root):
    kept = root.ok('cat', CONFIG)
    root.ok('rm', CONFIG)
    root.ok('dpkg-reconfigure', 'holdfast')
    assert root.run('test', '-e', CONFIG).returncode == 1
    root.ok('sh', '-c', f'cat > {CONFIG}; chown root:holdfast {CONFIG}; chmod 640 {CONFIG}', stdin=kept)


def test_an_upgrade_keeps_data_and_changed_configuration(root, service):
    changed = root.ok('cat', CONFIG)
    text = root.ok('apt-get', 'install', '-y', '--no-install-recommends', '/mnt/shared/later.deb')
    assert 'Unpacking holdfast' in text and '+later' in root.ok('dpkg-query', '-W', '-f', '${Version}', 'holdfast')
    assert root.ok('cat', CONFIG) == changed
    assert root.ok('stat', '-c', '%U %G %a', CONFIG) == 'root holdfast 640\n'
    assert 'kept' in as_service(root, 'key', 'list')
    service.start()
    assert 'from outside' in call(root, '/mcp/rec')
    assert len(as_service(root, 'audit', 'list', '--server', 'rec', '--json').splitlines()) == 3
    as_service(root, 'audit', 'verify')


@pytest.fixture
def ann(root):
    """How commands run as a new user of that machine."""
    root.ok('adduser', '--disabled-password', '--gecos', '', '--quiet', 'ann')
    yield {'user': 'ann', 'env': {'HOME': '/home/ann'}}
    root.run('holdfast', 'stop', user='ann', env={'HOME': '/home/ann'})
    root.ok('userdel', '--remove', 'ann')


def test_a_developer_adds_a_server_starts_and_sees_a_call(root, ann):
    # /etc/holdfast/holdfast.json is there, and ann may not read it: it is for the service.
    assert re.search(r'notes +\d+ tools', root.ok('holdfast', 'add', 'notes', '--', *SERVER, **ann))
    root.ok('holdfast', 'start', **ann)
    assert '127.0.0.1:4653' in root.ok('holdfast', 'status', **ann)
    assert 'from outside' in call(root, '/mcp/notes')
    tail = root.start('holdfast', 'tail', **ann)
    lines = []
    while not lines or 'from outside' not in lines[-1]:
        lines.append(tail.stdout.readline())
        assert lines[-1], lines
    assert 'notes.echo' in lines[-1] and ' ok ' in lines[-1], lines
    root.end(tail)
    root.ok('holdfast', 'stop', **ann)
    assert root.run('holdfast', 'status', **ann).returncode == 4


def left(root):
    """Paths that were not there before the installation, without apt's and dpkg's notes."""
    return {line.split('\t')[0] for line in root.files() - root.before
            if not re.match(r'/var/(lib/(dpkg|apt|systemd)|log|cache/(apt|debconf|ldconfig))/|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?\t|'
                            r'/etc/\.pwd\.lock', line)}


def test_removal_keeps_configuration_and_data_and_purge_leaves_only_data(root):
    root.ok('apt-get', 'remove', '-y', 'holdfast')
    remains = left(root)
    assert CONFIG in remains and DATA + '/holdfast.db' in remains
    assert [line for line in remains if not line.startswith(('/etc/holdfast/', DATA, '/var/cache/holdfast/'))] == []
    root.ok('apt-get', 'purge', '-y', 'holdfast')
    remains = left(root)
    assert DATA + '/holdfast.db' in remains and DATA + '/audit.key' in remains
    assert [line for line in remains if not line.startswith((DATA, '/var/cache/holdfast/'))] == []


def test_the_data_is_used_again_after_a_new_installation(root):
    root.ok('apt-get', 'install', '-y', '--no-install-recommends', '/mnt/shared/holdfast.deb')
    assert 'kept' in as_service(root, 'key', 'list')
    as_service(root, 'audit', 'verify')
