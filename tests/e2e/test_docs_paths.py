# SPDX-License-Identifier: Apache-2.0
"""Nothing outside a folder is opened, whatever path an agent gives and whatever lies in the folder: forms of
traversal, symlinks, FIFOs, devices, directories swapped for symlinks in mid-call.  The kernel is asked where it
can be (strace on the running process), else the answers and what lies outside are all there is to go by here,
and the vault's own hook in the unit tests (test_vault_paths.c); each test prints which it was.

Patterns that never end do, and meanwhile others are answered."""
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from editors import Agent, Folder, failed
from harness import wait_for
from test_operate import metrics

SECRET = 'the-secret-of-the-house'


class Watched:
    """strace on a running Holdfast: every file that it opened, as the kernel names it."""

    CALLS = 'open,openat,openat2,creat,truncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,link,linkat,symlinkat'

    def __init__(self, hf, folder):
        self.log, self.child, self.why = os.path.join(str(folder), 'strace.log'), None, ''
        if not shutil.which('strace'):
            self.why = 'there is no strace'
            return
        self.child = subprocess.Popen(['strace', '-f', '-y', '-s', '4096', '-e', f'trace={self.CALLS}', '-o', self.log, '-p',
                                       str(hf.process.pid)], stderr=subprocess.PIPE, text=True)
        line = self.child.stderr.readline()
        if 'attached' not in line:
            self.why = f'strace may not attach: {line.strip()}'
            self.child.kill()
            self.child.wait()
            self.child = None

    def __enter__(self):
        print('opens are watched by ' + ('strace' if self.child else f'answers alone ({self.why}); the hook is in test_vault_paths.c'))
        return self

    def __exit__(self, *args):
        if self.child:
            self.child.send_signal(signal.SIGTERM)
            self.child.stderr.read()
            self.child.wait(20)

    def opened(self):
        """What was opened, by the kernel's own name of the new descriptor; None where it cannot be told."""
        if not self.why:
            with open(self.log, encoding='utf-8', errors='replace') as file:
                return re.findall(r'(?:open|openat|openat2|creat|resumed)\b.*= \d+<(.*?)>$', file.read(), flags=re.M)
        return None


class Place:
    """A folder, and beside it what nobody may see."""

    def __init__(self, tmp_path):
        self.outside = tmp_path / 'outside'
        self.outside.mkdir()
        (self.outside / 'secret.md').write_text(f'# {SECRET}\n[link](secret.md)\n')
        (self.outside / 'sub').mkdir()
        (self.outside / 'sub' / 'Doc.md').write_text(SECRET + '\n')
        self.folder = Folder(tmp_path / 'vault', agent='write')
        self.folder.write('Doc.md', 'A document. [out](../outside/secret.md)\n')
        self.folder.write('sub/Doc.md', 'Below.\n')
        self.folder.write('.hidden/secret.md', SECRET + '\n')
        self.before = self.state()

    def state(self):
        found = {}
        for top, dirs, files in os.walk(self.outside):
            for name in sorted(dirs + files):
                path = os.path.join(top, name)
                data = open(path, 'rb').read() if os.path.isfile(path) else b''
                found[os.path.relpath(path, self.outside)] = (os.stat(path).st_mtime_ns, data)
        return found

    def plant(self):
        """What is no document, under the names of documents: all their names below the folder."""
        root, out, made = self.folder.root, str(self.outside), []

        def link(target, name):
            os.symlink(target, os.path.join(root, name))
            made.append(name)
        link(f'{out}/secret.md', 'absolute.md')
        link('../outside/secret.md', 'relative.md')
        link('/etc/passwd', 'passwd.md')
        link('/proc/self/environ', 'environ.md')
        link('loop.md', 'loop.md')
        link('Doc.md', 'inside.md')
        link(out, 'dir')
        link('..', 'up')
        link('/', 'top')
        made += ['dir/secret.md', 'up/outside/secret.md', f'top{out}/secret.md', 'top/etc/passwd', 'dir/sub/Doc.md']
        os.mkfifo(os.path.join(root, 'fifo.md'))
        os.mkdir(os.path.join(root, 'folder.md'))
        made += ['fifo.md', 'folder.md']
        self.socket = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(root)  # such names are short
        self.socket.bind('socket.md')
        os.chdir(here)
        made.append('socket.md')
        if os.geteuid() == 0:
            try:
                os.mknod(os.path.join(root, 'device.md'), stat.S_IFCHR | 0o666, os.makedev(1, 5))
                made.append('device.md')
            except PermissionError:
                print('no device could be made')
        os.mkfifo(os.path.join(root, 'sub', 'pipe.md'))
        made.append('sub/pipe.md')
        return made

    def check(self, watched):
        assert self.state() == self.before, 'something outside was changed'
        opened = watched.opened()
        if opened is not None:
            assert len(opened) > 50 and any(p.startswith(self.folder.root) for p in opened), 'strace saw too little to tell'
            bad = sorted({p for p in opened if p.startswith(str(self.outside)) or p.startswith('/etc/') or '/.hidden' in p})
            assert not bad, f'opened outside: {bad}'
            print(f'{len(opened)} opens seen')


def traversals(place):
    """Paths below a folder that mean to leave it, or to reach what is no document."""
    ups = ['../', '..//', './../', 'sub/../../', 'sub/./../../', '.../../', '..\\', '..%2f', '%2e%2e/', '%2e%2e%2f', '..%5c', '%252e%252e/',
           '..%c0%af', '..;/', '\u2025/', '\uff0e\uff0e/', '..\u2215', '..\uff0f', '.\u200b./', '..\x00/', '..\n/', ' ../', '.. /', '..\t/',
           '/../', '//../', '~/../', 'Doc.md/../../', 'dir/', 'dir/../', 'up/', 'up/../', '.hidden/../../', 'sub/../sub/../../', '\u202e../',
           '..;x/', '..%00/', '%2e./', '.%2e/', '..%u2215', '0x2e0x2e/', '&#46;&#46;/', '..\x0b/', '\u2024\u2024/', '..\u29f8', '....//', '..../']
    forms = [up + tail for up in ups for tail in ('outside/secret.md', '../outside/secret.md', 'vault/../outside/secret.md')]
    out = str(place.outside)
    forms += [f'{out}/secret.md', f'/{out}/secret.md', f'//{out[1:]}/secret.md', f'file://{out}/secret.md', '/etc/passwd', '/etc/passwd.md',
              '/etc/passwd\x00.md', 'Doc.md\x00', 'Doc.md\x00.md', '/proc/self/environ', '/proc/self/root/etc/passwd', '/proc/self/cwd/secret.md',
              '/dev/stdin', '/dev/fd/0', '~/secret.md', '~root/secret.md', '$HOME/secret.md', 'C:\\secret.md', '\\\\host\\share\\secret.md', '',
              '.', '..', '/', './', '../', '.md', 'sub/.md', '.hidden/secret.md', 'sub/../.hidden/secret.md', './Doc.md', 'sub//Doc.md',
              'sub/./Doc.md', 'sub/../Doc.md', '/Doc.md', 'Doc.md/', 'Doc.md/.', 'Doc.md//', 'Doc.md/x.md', '.holdfast/x.md', '.git/config.md',
              'sub', 'sub/', 'Doc', 'Doc.txt', 'Doc.md.', 'Doc.md ', ' Doc.md', 'x' * 252 + '.mdx.md', 'd/' * 40 + 'x.md', 'x' * 1100 + '.md',
              '-rf.md', '--help.md', '*.md', '?oc.md', '[D]oc.md', '{Doc}.md', 'Doc.md;ls', '|Doc.md', '`id`.md', '$(id).md', 'Doc\r.md',
              'Doc\n.md', '\x7f.md', '\u0000', 'nul/con/aux.md', 'Doc.md?raw=1', 'Doc.md#x', 'Doc%2emd', '\ufeffDoc.md']
    return forms


# Paths that are merely odd: creating them makes a document inside.
READ_TOOLS = {
    'read': lambda p: {'file_path': p},
    'get_links': lambda p: {'file_path': p},
    'glob': lambda p: {'pattern': '**', 'path': p},
    'grep': lambda p: {'pattern': SECRET, 'path': p, 'output_mode': 'content'},
}


def write_tools(handle):
    return {
        'edit': lambda p: {'file_path': p, 'old_string': SECRET, 'new_string': 'x', 'session_id': handle},
        'comment': lambda p: {'file_path': p, 'quote': SECRET, 'comment': 'x'},
        'move': lambda p: {'file_path': p, 'new_path': 'Lens/taken.md'},
        'move to': lambda p: {'file_path': 'Lens/Doc.md', 'new_path': p},
        'create': lambda p: {'file_path': p, 'content': 'made'},
    }


# Where glob and grep may look, of all the paths that traversals() gives, and the documents that are there.
SEARCHED = {
    '': 'Lens/Doc.md\nLens/sub/Doc.md', '/': 'Lens/Doc.md\nLens/sub/Doc.md',
    'Lens/': 'Lens/Doc.md\nLens/sub/Doc.md', 'Lens//': 'Lens/Doc.md\nLens/sub/Doc.md',
    'Lens/sub': 'Lens/sub/Doc.md', 'Lens/sub/': 'Lens/sub/Doc.md',
    'Lens/Doc.md/': 'Lens/Doc.md', 'Lens/Doc.md//': 'Lens/Doc.md',
}


def check_refused(tool, path, reply):
    """Every tool refuses the path; glob and grep look into a folder, and find nothing but its documents."""
    if tool == 'glob' and path in SEARCHED:
        assert reply.text == SEARCHED[path], (path, reply.text)
    elif tool == 'grep' and path in SEARCHED:
        assert reply.text == 'No matches found.', (path, reply.text)
    else:
        assert failed(reply), (tool, path, reply.text)


def ask(agent, tool, arguments, form):
    """One call; it is answered soon, and not with what lies outside."""
    began = time.monotonic()
    reply = agent.client.call(tool.split(' ')[0], arguments)
    took = time.monotonic() - began
    assert took < 5, f'{tool} {form!r} took {took:.1f} s'
    assert reply.status in (200, 400), repr(reply)
    assert SECRET not in reply.raw.decode().replace(f'old_string: {SECRET}', ''), (tool, form, reply.raw)
    assert b'root:' not in reply.raw, (tool, form)
    return reply


def test_paths_that_lead_elsewhere__open_nothing_there(holdfast, tmp_path):
    place = Place(tmp_path)
    planted = place.plant()
    hf = holdfast({}, {'docs': place.folder.settings})
    forms, calls = traversals(place), 0
    assert len(forms) >= 200 - len(planted)
    agent = Agent(hf)
    agent.read('Lens/Doc.md')
    with Watched(hf, tmp_path) as watched:
        for form in forms + planted:
            for path in (f'Lens/{form}', form):
                for tool, arguments in READ_TOOLS.items():
                    check_refused(tool, path, ask(agent, tool, arguments(path), path))
                    calls += 1
        for form in planted:
            reply = ask(agent, 'read', {'file_path': f'Lens/{form}'}, form)
            assert failed(reply) and 'not found' in reply.text.lower(), (form, reply.text)
    place.check(watched)
    print(f'{len(forms)} forms and {len(planted)} things that are no documents, {calls} calls')


def test_writes_that_lead_elsewhere__change_nothing_there(holdfast, tmp_path):
    place = Place(tmp_path)
    planted = place.plant()
    hf = holdfast({}, {'docs': place.folder.settings})
    agent, calls = Agent(hf), 0
    agent.read('Lens/Doc.md')
    kinds = {name: os.lstat(place.folder.full(name)).st_mode for name in planted if os.path.lexists(place.folder.full(name))}
    with Watched(hf, tmp_path) as watched:
        for form in traversals(place) + planted:
            for tool, arguments in write_tools(agent.handle).items():
                place.folder.write('Doc.md', 'A document.\n')
                ask(agent, tool, arguments(f'Lens/{form}'), form)
                calls += 1
                if os.path.exists(place.folder.full('taken.md')):
                    os.unlink(place.folder.full('taken.md'))
    place.check(watched)
    for name, mode in kinds.items():
        if 'up/' not in name and 'top/' not in name:
            assert os.lstat(place.folder.full(name)).st_mode == mode, f'{name} was replaced'
    around = sorted(os.listdir(tmp_path))
    assert set(around) <= {'outside', 'vault', 'strace.log', 'holdfast-0'}, around
    print(f'{calls} calls')


def test_directories_swapped_for_symlinks__are_not_followed(holdfast, tmp_path):
    place = Place(tmp_path)
    hf = holdfast({}, {'docs': place.folder.settings})
    root, ending, swaps = place.folder.root, threading.Event(), [0]

    def swap():
        real, fake, aside = os.path.join(root, 'sub'), os.path.join(root, 'fake'), os.path.join(root, 'aside')
        os.symlink(str(place.outside / 'sub'), fake)
        while not ending.is_set():
            os.rename(real, aside)
            os.rename(fake, real)
            time.sleep(0.0005)
            os.rename(real, fake)
            os.rename(aside, real)
            swaps[0] += 1
            time.sleep(0.0005)

    thread, agent, seen = threading.Thread(target=swap, daemon=True), Agent(hf), [0, 0]
    with Watched(hf, tmp_path) as watched:
        thread.start()
        end = time.monotonic() + 4
        while time.monotonic() < end:
            reply = ask(agent, 'read', {'file_path': 'Lens/sub/Doc.md', **({'session_id': agent.handle} if agent.handle else {})}, 'sub')
            seen[failed(reply)] += 1
            if not failed(reply):
                agent.handle = reply.result['structuredContent']['session_id']
                number = sum(seen)
                ask(agent, 'edit', {'file_path': 'Lens/sub/Doc.md', 'old_string': 'Below', 'new_string': 'Above', 'session_id': agent.handle}, 'sub')
                ask(agent, 'create', {'file_path': f'Lens/sub/new{number}.md', 'content': 'made'}, 'sub')
                ask(agent, 'grep', {'pattern': '.', 'path': 'Lens/sub'}, 'sub')
        ending.set()
        thread.join(20)
    place.check(watched)
    assert swaps[0] > 50 and all(seen), (swaps, seen)


def test_fifos__stall_nobody(holdfast, tmp_path):
    place = Place(tmp_path)
    for number in range(50):
        os.mkfifo(place.folder.full(f'pipe{number}.md'))
    hf = holdfast({}, {'docs': place.folder.settings})
    agent = Agent(hf)
    for tool, arguments in (('grep', {'pattern': 'document'}), ('glob', {'pattern': '**'}), ('search', {'query': 'document'})):
        ask(agent, tool, arguments, tool)
    assert failed(agent.read('Lens/pipe0.md'))
    writer = os.open(place.folder.full('pipe1.md'), os.O_RDWR | os.O_NONBLOCK)
    os.write(writer, SECRET.encode())
    assert failed(agent.read('Lens/pipe1.md'))
    ask(agent, 'grep', {'pattern': 'house', 'output_mode': 'content'}, 'a FIFO with bytes in it')
    assert os.read(writer, 100) == SECRET.encode(), 'somebody took what was in the FIFO'
    os.close(writer)


CATASTROPHES = [r'(a+)+$', r'(a|aa)+$', r'(a|a?)+$', r'(.*)*x$', r'([a-z]+)*!', r'(?:a?){60}a{60}b', r'^(([a-z])+.)+[A-Z]([a-z])+$', r'(x+x+)+y',
                r'(?=(a+))\1*b', r'((a{0,90}){0,90}){0,6}b', r'(?:(?:(?:(?:a*)*)*)*)*b', r'(?R)?a*b|(a(?1)?)b', r'\b(\w+\s*)+\?$', r'(a*)*\1b']


def test_catastrophic_patterns__end_while_others_are_answered(holdfast, tmp_path):
    folder = Folder(tmp_path / 'vault')
    for number in range(40):
        folder.write(f'Long{number}.md', 'a' * 4000 + '!\n' + 'a b c d e f g h ' * 200 + '!\n' + 'x' * 30000 + '\n')
    folder.write('Doc.md', 'A document. [[Long1]]\n')
    hf = holdfast({}, {'docs': folder.settings})
    agent = Agent(hf)
    wait_for(lambda: 'Doc.md' in agent.call('search', query='document').text, 'the index')
    metrics(hf)
    took, ending = {}, threading.Event()

    def grep(pattern):
        began = time.monotonic()
        reply = Agent(hf).call('grep', pattern=pattern, output_mode='count')
        took[pattern] = time.monotonic() - began, reply.status

    def others():
        """What is asked beside them: (tool, seconds)."""
        while not waits or not ending.is_set():
            for tool, arguments in (('read', {'file_path': 'Lens/Doc.md'}), ('search', {'query': 'document'}),
                                    ('glob', {'pattern': '*.md'}), ('get_links', {'file_path': 'Lens/Doc.md'})):
                began = time.monotonic()
                reply = agent.call(tool, **arguments)
                assert not failed(reply), reply.text
                waits.append((time.monotonic() - began, tool))
    waits = []
    beside = threading.Thread(target=others, daemon=True)
    beside.start()
    threads = [threading.Thread(target=grep, args=(p,), daemon=True) for p in CATASTROPHES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    ending.set()
    beside.join(60)
    assert len(took) == len(CATASTROPHES) and all(status == 200 for _, status in took.values()), took
    stall = metrics(hf)['holdfast_loop_stall_microseconds']
    print(f'longest grep {max(t for t, _ in took.values()):.1f} s of {len(took)} at once; {len(waits)} other calls meanwhile, '
          f'the longest {max(waits)[0]:.2f} s ({max(waits)[1]}); the loop stalled {stall / 1000:.1f} ms at most')
    assert max(waits)[0] < 5 and {tool for _, tool in waits} == {'read', 'search', 'glob', 'get_links'}
    assert stall < 1_000_000


@pytest.mark.parametrize('pattern, words', [
    ('(', 'missing closing parenthesis'),
    ('a{1,70000}', 'number too big in {} quantifier'),
    ('\\C', 'using \\C is disabled'),
    ('(' * 300 + ')' * 300, 'parentheses are too deeply nested'),
    ('a' * 5000, 'pattern string is longer than the limit'),
], ids=['open', 'many', 'byte', 'deep', 'long'])
def test_patterns_that_are_none__are_refused_in_words(holdfast, tmp_path, pattern, words):
    folder = Folder(tmp_path / 'vault')
    folder.write('Doc.md', 'A document.\n')
    agent = Agent(holdfast({}, {'docs': folder.settings}))
    reply = agent.call('grep', pattern=pattern)
    assert failed(reply) and reply.text.startswith('Invalid regex pattern: ' + words), reply.text
    assert agent.call('grep', pattern='document').text == 'Lens/Doc.md'
