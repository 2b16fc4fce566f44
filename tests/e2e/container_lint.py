# SPDX-License-Identifier: Apache-2.0
"""Strict readers of deploy/container: a Containerfile as stages of instructions, compose.yaml as data, and what is wrong
with them.  A word that they do not know is a fault: it would be a word that nobody checks."""
import json
import os
import re
import shlex

import yaml

from harness import TOP

FOLDER = os.path.join(TOP, 'deploy/container')
SECRET = re.compile(r'PASSWORD|PASSWD|SECRET|TOKEN|PRIVATE|CREDENTIAL|(^|_)KEY($|_)', re.I)
SECRET_FILE = re.compile(r'\.(key|pem|p12|env)$|(^|/)\.env')
VARIABLE = re.compile(r'\$\{([A-Z_]+)(:[-?][^}]*)?\}')
INSTRUCTIONS = {'FROM', 'RUN', 'COPY', 'ENV', 'WORKDIR', 'USER', 'VOLUME', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'}
HEALTH_FLAGS = {'--interval', '--timeout', '--start-period', '--retries'}
SERVICE_KEYS = {'image', 'build', 'init', 'restart', 'read_only', 'cap_drop', 'security_opt', 'tmpfs', 'stop_grace_period', 'healthcheck',
                'environment', 'depends_on', 'volumes', 'networks', 'ports', 'command'}
CHECK_KEYS = {'test', 'interval', 'timeout', 'start_period', 'retries'}
TOP_KEYS = {'name', 'services', 'networks', 'volumes'}


class Stage:
    def __init__(self, image, name):
        self.image, self.name, self.lines = image, name, []

    def all(self, word):
        return [rest for found, rest in self.lines if found == word]

    def last(self, word):
        return (self.all(word) or [None])[-1]

    def packages(self):
        """What apt-get installs."""
        found = []
        for rest in self.all('RUN'):
            for command in rest.split('&&'):
                words = shlex.split(command)
                if words[:2] == ['apt-get', 'install']:
                    found += [word for word in words[2:] if not word.startswith('-')]
        return found


def instructions(text):
    """(WORD, rest), with continued lines joined and comments left out."""
    found, open_line = [], ''
    for line in text.splitlines():
        if line.strip().startswith('#') or (not line.strip() and not open_line):
            continue
        open_line += line.strip()
        if open_line.endswith('\\'):
            open_line = open_line[:-1] + ' '
            continue
        word, _, rest = open_line.partition(' ')
        found.append((word, rest.strip()))
        open_line = ''
    if open_line:
        found.append((open_line.split()[0], 'ends with a continued line'))
    return found


def stages(text):
    """(the stages, faults of the words themselves)."""
    made, faults = [], []
    for word, rest in instructions(text):
        if word not in INSTRUCTIONS:
            faults.append(f'{word} is no instruction that this file should need')
        elif word == 'FROM':
            found = re.fullmatch(r'(\S+)(?: AS (\S+))?', rest)
            made.append(Stage(found.group(1), found.group(2)))
        elif not made:
            faults.append(f'{word} before FROM')
        else:
            made[-1].lines.append((word, rest))
    return made, faults


def exec_form(rest):
    """The words of CMD ["a", "b"], or None."""
    try:
        words = json.loads(rest)
    except ValueError:
        return None
    return words if isinstance(words, list) and all(isinstance(w, str) for w in words) else None


def faults_of_run(rest):
    faults = []
    if 'apt-get' in rest:
        commands = [' '.join(c.split()) for c in rest.split('&&')]
        if commands[0] != 'apt-get update':
            faults.append('apt-get install without apt-get update in the same RUN')
        if not any(c.startswith('apt-get install -y --no-install-recommends ') for c in commands):
            faults.append('apt-get install needs -y --no-install-recommends')
        if 'rm -rf /var/lib/apt/lists/*' not in commands:
            faults.append('the lists of apt stay in the image')
    if re.search(r'\b(curl|wget|git)\b', rest):
        faults.append('RUN fetches something that no package manager checks')
    return faults


def faults_of_copy(rest, earlier):
    words = shlex.split(rest)
    flags, paths = [w for w in words if w.startswith('--')], [w for w in words if not w.startswith('--')]
    faults = [f'COPY has the flag {flag}' for flag in flags if not flag.startswith('--from=')]
    where = flags[0].removeprefix('--from=') if flags else None
    if where and where not in {one.name for one in earlier}:
        faults.append(f'COPY from {where}, which is no earlier stage')
    for path in paths[:-1]:
        if SECRET_FILE.search(path):
            faults.append(f'COPY puts {path} into the image')
        if not where and (path in ('.', '/') or not os.path.exists(os.path.join(TOP, path))):
            faults.append(f'COPY of {path}, which is not in the tree (or is all of it)')
    return faults


def faults_of_last(stage):
    """Of the stage that is the image."""
    faults, user = [], stage.last('USER')
    if not user or not re.fullmatch(r'[1-9]\d*:[1-9]\d*', user):
        faults.append(f'USER is {user}: numbers other than 0 are wanted')
    else:
        after = [word for word, _ in stage.lines[stage.lines.index(('USER', user)):] if word in ('RUN', 'COPY')]
        faults += [f'{word} after USER' for word in after]
    for word in ('ENTRYPOINT', 'CMD', 'VOLUME'):
        if exec_form(stage.last(word) or '') is None:
            faults.append(f'{word} is missing, or is no JSON array')
    health = stage.last('HEALTHCHECK') or ''
    flags, _, command = health.partition(' CMD ')
    if exec_form(command) is None or {flag.split('=')[0] for flag in flags.split()} != HEALTH_FLAGS:
        faults.append('HEALTHCHECK is missing, or not --interval --timeout --start-period --retries CMD [...]')
    return faults


def containerfile_faults(text):
    made, faults = stages(text)
    for number, stage in enumerate(made):
        if not re.fullmatch(r'debian:12(-slim)?', stage.image):
            faults.append(f'FROM {stage.image}: not debian:12')
        for word, rest in stage.lines:
            if word == 'RUN':
                faults += faults_of_run(rest)
            elif word == 'COPY':
                faults += faults_of_copy(rest, made[:number])
            elif word == 'ENV':
                faults += [f'ENV {pair} looks like a secret' for pair in shlex.split(rest) if SECRET.search(pair.split('=')[0])]
            elif word == 'WORKDIR' and not rest.startswith('/'):
                faults.append(f'WORKDIR {rest} is relative')
    if len(made) < 2:
        faults.append('the compiler is in the image: it needs a stage of its own')
    return faults + (faults_of_last(made[-1]) if made else ['no FROM'])


class Strict(yaml.SafeLoader):
    """Refuses a key that is there twice."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if key.tag != 'tag:yaml.org,2002:merge']
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f'{sorted(twice)} twice')
        return super().construct_mapping(node, deep)


def load(text):
    return yaml.load(text, Loader=Strict)


def environment_of(service):
    return service.get('environment') or {}


def faults_of_mount(mount, volumes, expected):
    source, target = mount.split(':')[:2]
    if not target.startswith('/'):
        return [f'{mount}: the target is not absolute']
    if not source.startswith(('.', '/')):
        return [] if source in volumes else [f'{mount}: there is no volume {source}']
    path = os.path.normpath(os.path.join(FOLDER, source))
    if not mount.endswith(':ro'):
        return [f'{mount}: a file of the host that can be written']
    return [] if source in expected or os.path.isfile(path) else [f'{mount}: there is no {path}']


def faults_of_service(name, service, top, known, expected):
    services, volumes, networks = top['services'], top.get('volumes') or {}, top.get('networks') or {}
    faults = [f'the key {key}' for key in set(service) - SERVICE_KEYS]
    if not re.fullmatch(r'[a-z]+:\d[\d.]*', service.get('image', '')):
        faults.append(f'the image {service.get("image")} has no version')
    check = service.get('healthcheck') or {}
    if not check.get('test') or check['test'][0] != 'CMD' or set(check) - CHECK_KEYS:
        faults.append('healthcheck is missing, or has other keys')
    for other, how in (service.get('depends_on') or {}).items():
        if other not in services or how != {'condition': 'service_healthy'}:
            faults.append(f'depends_on {other}: {how}')
    for mount in service.get('volumes') or []:
        faults += faults_of_mount(mount, volumes, expected)
    faults += [f'the network {one}' for one in service.get('networks') or [None] if one not in networks]
    if service.get('ports') and name != 'nginx':
        faults.append('publishes ports beside nginx')
    for variable, value in environment_of(service).items():
        if 'build' in service and variable not in known:
            faults.append(f'Holdfast does not read {variable}')
        if SECRET.search(variable) and not str(value).startswith(('${', '/')):
            faults.append(f'{variable} holds a secret')
    if 'build' in service:
        faults += faults_of_node(service)
    return faults


def faults_of_node(service):
    context = os.path.normpath(os.path.join(FOLDER, service['build']['context']))
    faults = [] if os.path.isfile(os.path.join(context, service['build']['dockerfile'])) else ['no Containerfile at build']
    for key, value in (('read_only', True), ('cap_drop', ['ALL']), ('init', True)):
        if service.get(key) != value:
            faults.append(f'{key} is not {value}')
    return faults


def compose_faults(text, known, expected=()):
    """`known`: the variables that Holdfast or its configuration reads; `expected`: files that the operator brings."""
    try:
        top = load(text)
    except yaml.YAMLError as bad:
        return [str(bad)]
    faults = [f'the key {key}' for key in set(top) - TOP_KEYS if not key.startswith('x-')]
    for name, service in top['services'].items():
        faults += [f'{name}: {fault}' for fault in faults_of_service(name, service, top, known, expected)]
    used = {m.split(':')[0] for s in top['services'].values() for m in s.get('volumes') or []}
    faults += [f'the volume {one} is not used' for one in set(top.get('volumes') or {}) - used]
    for variable, rest in VARIABLE.findall(text):
        if SECRET.search(variable) and not rest.startswith(':?'):
            faults.append(f'${{{variable}}} may be empty')
    return faults
