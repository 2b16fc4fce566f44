# SPDX-License-Identifier: Apache-2.0
"""The Containerfile and the compose file: no container engine runs in these tests, so the files are read strictly, held against
what the tree says elsewhere, and what the image would run is run here."""
import ipaddress
import json
import os
import re
import shutil
import subprocess

import container_lint
import harness
import keys
import pytest
from container_lint import FOLDER, environment_of, load, stages
from harness import TOP, Connection, Holdfast

TLS_FILES = ('./tls/mcp.example.com.pem', './tls/mcp.example.com.key')


def text_of(name):
    with open(os.path.join(FOLDER, name), encoding='utf-8') as file:
        return file.read()


def own_variables():
    """The variables that the configuration of the image names: {name: default}."""
    return dict(re.findall(r'\$\{([A-Z_]+):-([^}]*)\}', text_of('holdfast.json')))


def known_variables():
    done = subprocess.run([harness.BINARY, 'help', 'environment'], capture_output=True, text=True, timeout=60, check=True)
    names = {name.strip(',') for line in done.stdout.splitlines() for name in re.findall(r'^(?:[A-Z_]+, )*[A-Z_]+', line)[:1]}
    return {part for name in names for part in name.split(', ')} | set(own_variables())


@pytest.fixture(scope='module')
def compose():
    return load(text_of('compose.yaml'))


@pytest.fixture(scope='module')
def built():
    """(the stage that compiles, the stage that is the image)."""
    made, faults = stages(text_of('Containerfile'))
    assert faults == []
    return made


# The files by themselves.

def test_the_containerfile_has_no_fault():
    assert container_lint.containerfile_faults(text_of('Containerfile')) == []


def test_the_compose_file_has_no_fault():
    assert container_lint.compose_faults(text_of('compose.yaml'), known_variables(), TLS_FILES) == []


@pytest.mark.parametrize('old,new,fault', [
    ('USER 10001:10001\n', '', 'USER is None'), ('USER 10001:10001', 'USER root', 'USER is root'), ('USER 10001:10001', 'USER 0:0', 'USER is 0:0'),
    ('COPY sql sql', 'COPY sqll sql', 'sqll'), ('COPY sql sql', 'COPY . .', 'COPY of .'), ('--from=build', '--from=bild', 'bild'),
    ('COPY sql sql', 'COPY tls/a.key sql', 'puts tls/a.key'), ('HEALTHCHECK', '#', 'HEALTHCHECK is missing'),
    ('ENV HOME', 'ENV DATABASE_PASSWORD=x HOME', 'looks like a secret'), ('CMD ["up"]', 'CMD up', 'CMD is missing'),
    ('FROM debian:12 AS', 'FROM debian:latest AS', 'debian:latest'), ('    && rm -rf /var/lib/apt/lists/*\nWORKDIR', 'WORKDIR', 'ends with|lists of apt'),
    ('RUN apt-get update \\\n    && apt-get', 'RUN apt-get', 'without apt-get update'), ('EXPOSE', 'EXPOS', 'EXPOS is no'),
    ('USER 10001:10001', 'USER 10001:10001\nRUN true', 'RUN after USER'), ('COPY sql sql', 'ADD https://x/ y', 'ADD is no')])
def test_a_faulty_containerfile_is_found(old, new, fault):
    text = text_of('Containerfile')
    assert old in text
    faults = container_lint.containerfile_faults(text.replace(old, new))
    assert [one for one in faults if re.search(fault, one)], faults


@pytest.mark.parametrize('old,new,fault', [
    ('      node1: {condition: service_healthy}', '      node3: {condition: service_healthy}', 'depends_on node3'),
    ('condition: service_healthy', 'condition: service_started', 'service_started'), ('node2:/var/lib/holdfast', 'nodeX:/var/lib/holdfast', 'no volume nodeX'),
    ('  database:\n  node1', '  node1', 'no volume database'), ('REDIS_URL', 'REDIS_URI', 'does not read REDIS_URI'), ('image: redis:7', 'image: redis', 'no version'),
    (':?write DATABASE_PASSWORD into .env', '', 'may be empty'), ('    networks: [holdfast]', '    networks: [back]', 'the network back'),
    ('nginx.conf:/etc', 'ngin.conf:/etc', 'there is no'), ('redis:\n    image', 'redis:\n    ports: ["6379:6379"]\n    image', 'publishes ports'),
    ('read_only: true', 'read_only: false', 'read_only'), ('  node2:\n    <<', '  node1:\n    <<', 'twice'), ('init: true', 'privileged: true', 'privileged'),
    ('POSTGRES_PASSWORD: ${DATABASE_PASSWORD:?write DATABASE_PASSWORD into .env}', 'POSTGRES_PASSWORD: hunter2', 'holds a secret')])
def test_a_faulty_compose_file_is_found(old, new, fault):
    text = text_of('compose.yaml')
    assert old in text
    faults = container_lint.compose_faults(text.replace(old, new), known_variables(), TLS_FILES)
    assert [one for one in faults if re.search(fault, one)], faults


# Against the rest of the tree.

def test_apt_knows_every_package(built):
    wanted = {package for stage in built for package in stage.packages()}
    known = set(subprocess.run(['apt-cache', 'pkgnames'], capture_output=True, text=True, timeout=60, check=True).stdout.split())
    if 'build-essential' not in known:
        pytest.skip('apt of this machine has no lists of packages')
    assert len(wanted) > 15 and wanted - known == set()


def test_the_image_is_built_with_what_install_deps_installs(built):
    with open(os.path.join(TOP, 'tools/install-deps'), encoding='utf-8') as file:
        needs = re.search(r'(?s)needs_run\(\) \{\n(.*?)\n\}', file.read()).group(1)
    assert sorted(built[0].packages()) == sorted(re.findall(r'need (\S+)', needs))


def test_the_image_has_what_the_package_depends_on(built, tmp_path):
    if not shutil.which('dpkg-shlibdeps'):
        pytest.skip('dpkg-dev is not installed; tools/install-deps test installs it')
    (tmp_path / 'debian').mkdir()
    (tmp_path / 'debian/control').write_text('Source: holdfast\n\nPackage: holdfast\nArchitecture: any\n', encoding='utf-8')
    done = subprocess.run(['dpkg-shlibdeps', '-O', '--ignore-missing-info', harness.BINARY], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60, check=True)
    depends = {one.split()[0] for one in done.stdout.removeprefix('shlibs:Depends=').split(', ')}
    with open(os.path.join(TOP, 'deploy/debian/control'), encoding='utf-8') as file:
        recommends = re.search(r'(?m)^Recommends: (.*)$', file.read()).group(1).split(', ')
    # Every Debian has libc6.
    assert set(built[1].packages()) == (depends | set(recommends)) - {'libc6'}


def test_the_names_and_addresses_of_compose_are_those_of_nginx(compose):
    services = compose['services']
    with open(os.path.join(TOP, 'deploy/examples/nginx.conf'), encoding='utf-8') as file:
        nginx = file.read()
    address = {name: s['networks']['holdfast']['ipv4_address'] for name, s in services.items() if isinstance(s['networks'], dict)}
    subnet = ipaddress.ip_network(compose['networks']['holdfast']['ipam']['config'][0]['subnet'])
    assert all(ipaddress.ip_address(one) in subnet for one in address.values())
    assert set(re.findall(r'server (\S+):4653', nginx)) == {address['node1'], address['node2']}
    for node in ('node1', 'node2'):
        environment = environment_of(services[node])
        assert environment['TRUSTED_PROXY'] == address['nginx']
        assert environment['PUBLIC_URL'] == 'https://' + re.search(r'server_name (\S+);', nginx).group(1)
    targets = {mount.split(':')[1] for mount in services['nginx']['volumes']}
    assert set(re.findall(r'ssl_certificate(?:_key)? (\S+);', nginx)) < targets


def test_the_nodes_share_database_and_key_files(compose):
    one, two = (compose['services'][name] for name in ('node1', 'node2'))
    files = {name: path for name, path in environment_of(two).items() if name.endswith('_KEY_FILE')}
    assert {os.path.basename(path) for path in files.values()} == {'audit.key', 'master.key', 'token.key'}
    assert {os.path.dirname(path) for path in files.values()} == {'/var/lib/node1'}
    assert 'node1:/var/lib/node1:ro' in two['volumes'] and 'node1:/var/lib/holdfast' in one['volumes']
    assert 'node1' in two['depends_on'], 'the first node makes the keys'
    shared = {name: value for name, value in environment_of(two).items() if name not in files}
    assert shared == environment_of(one) and '@postgres/' in shared['DATABASE_URL']


def test_the_image_is_the_version_of_the_program(compose):
    version = subprocess.run([harness.BINARY, 'version'], capture_output=True, text=True, timeout=60, check=True).stdout.split()[1]
    assert {s['image'] for s in compose['services'].values() if 'build' in s} == {f'holdfast:{version}'}


# What the image would run.

class Image(Holdfast):
    """ENTRYPOINT and CMD with ENV of the image: /etc/holdfast, /var/lib/holdfast and the port are of this machine."""

    def __init__(self, folder, stage, variables):
        super().__init__(folder)
        self.stage, self.data = stage, os.path.join(str(folder), 'data')
        os.mkdir(self.data, 0o700)
        text = text_of('holdfast.json')
        assert '"listen": "0.0.0.0:4653"' in text
        with open(self.config_file, 'w', encoding='utf-8') as file:
            file.write(text.replace('"listen": "0.0.0.0:4653"', '"listen": "0.0.0.0:0"'))
        self.env = {name: self.place(value) for name, value in (pair.split('=', 1) for pair in stage.last('ENV').split())}
        self.env.update(variables)

    def place(self, text):
        return text.replace('/etc/holdfast/holdfast.json', self.config_file).replace('/var/lib/holdfast', self.data)

    def words(self, instruction):
        return [harness.BINARY if word == 'holdfast' else word for word in container_lint.exec_form(self.stage.last(instruction))]

    def command(self):
        return self.words('ENTRYPOINT') + self.words('CMD')

    def wait_ready(self, since):
        self.port = int(self.wait_log(lambda l: l.get('msg') == 'listening', 'the listening line', since)['address'].rsplit(':', 1)[1])

    def health(self):
        """The exit status of HEALTHCHECK."""
        words = json.loads(self.stage.last('HEALTHCHECK').partition(' CMD ')[2])
        done = subprocess.run([harness.BINARY, *words[1:]], env={**os.environ, **self.env}, cwd=self.folder, capture_output=True, text=True,
                              timeout=60, check=False)
        assert words[0] == 'holdfast'
        return done.returncode


def ping(image, source, headers):
    with Connection(image.port, source=source) as connection:
        return connection.request('POST', '/mcp', {'Host': 'mcp.example.com', 'Accept': 'application/json, text/event-stream', **headers},
                                  b'{"jsonrpc":"2.0","id":1,"method":"ping"}')


def test_the_image_serves_what_its_proxy_brings_and_says_how_it_is(built, tmp_path):
    image = Image(tmp_path, built[1], {'TRUSTED_PROXY': '127.0.0.2', 'PUBLIC_URL': 'https://mcp.example.com'})
    assert image.health() != 0
    image.start()
    try:
        assert image.health() == 0
        key = keys.create(image)
        assert ping(image, '127.0.0.2', key.headers).status == 200
        assert ping(image, '127.0.0.2', {}).status == 401
        refused = ping(image, '127.0.0.3', key.headers)
        assert refused.status == 403 and '127.0.0.3 may not connect here' in refused.json()['error']
    finally:
        image.close()
    assert image.health() != 0


def test_the_image_starts_without_any_variable(built, tmp_path):
    image = Image(tmp_path, built[1], {}).start()
    try:
        assert image.health() == 0
    finally:
        image.close()
