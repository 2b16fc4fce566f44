# SPDX-License-Identifier: Apache-2.0
"""The Debian package: built twice with the same bytes, lintian-clean, with everything in its place."""
import json
import os
import shutil
import subprocess

import harness
import pytest
from harness import TOP


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == 0, f'{command}\n{done.stdout}{done.stderr}'
    return done.stdout


def build():
    """The package of the program under test, as (bytes, path)."""
    path = os.path.join(TOP, run(os.path.join(TOP, 'tools/build-deb'), harness.BINARY).split()[-1])
    with open(path, 'rb') as file:
        return file.read(), path


@pytest.fixture(scope='module')
def package(tmp_path_factory):
    if not shutil.which('dpkg-shlibdeps'):
        pytest.skip('dpkg-dev is not installed; tools/install-deps test installs it')
    content, path = build()
    copy = tmp_path_factory.mktemp('package') / os.path.basename(path)
    copy.write_bytes(content)
    return copy


@pytest.fixture(scope='module')
def root(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp('root')
    run('dpkg-deb', '-x', str(package), str(folder))
    return folder


def test_two_builds_give_the_same_bytes(package):
    assert build()[0] == package.read_bytes()


def test_lintian_has_no_complaint(package):
    if not shutil.which('lintian'):
        pytest.skip('lintian is not installed; tools/install-deps test installs it')
    assert run('lintian', '--allow-root', '--fail-on', 'error,warning', str(package)) == ''


def test_the_package_names_what_it_needs_and_keeps_the_configuration(package):
    assert 'libssl3' in run('dpkg-deb', '-f', str(package), 'Depends')
    assert 'libpq5' in run('dpkg-deb', '-f', str(package), 'Recommends')
    assert run('dpkg-deb', '--info', str(package), 'conffiles') == '/etc/holdfast/holdfast.json\n'
    for script in ('postinst', 'prerm', 'postrm'):
        assert 'rm -r' not in run('dpkg-deb', '--info', str(package), script)


def test_the_program_of_the_package_runs(root):
    config = str(root / 'etc/holdfast/holdfast.json')
    run(str(root / 'usr/bin/holdfast'), 'config', 'check', '--config', config)
    assert (root / 'usr/share/man/man1/holdfast.1.gz').exists()
    assert 'ExecStart=/usr/bin/holdfast up' in (root / 'usr/lib/systemd/system/holdfast.service').read_text(encoding='utf-8')


def test_the_sbom_names_the_libraries(root):
    with open(root / 'usr/share/doc/holdfast/holdfast.cdx.json', encoding='utf-8') as file:
        sbom = json.load(file)
    assert sbom['bomFormat'] == 'CycloneDX'
    names = {one['name'] for one in sbom['components']}
    assert {'libssl3', 'libsqlite3-0', 'libpq5', 'libc6'} <= names
    assert all(one['purl'].startswith('pkg:deb/debian/') for one in sbom['components'])
