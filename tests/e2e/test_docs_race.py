# SPDX-License-Identifier: Apache-2.0
"""People save documents whenever they like, as editors do: in place (cut, then written piece by piece) and
by a new file renamed over the old one.  Agents edit the same documents, and Holdfast is killed now and then.
What a person saved is in the file or in the history, byte for byte, unless they overwrote it themselves; so
is every edit that was acknowledged; the file is one whole version; nothing is left lying about.

Which save overwrote which is known by inodes: a text whose inode its own next save did not write to, or
that still has a name after it, was taken out of the way by Holdfast.  A crash may leave an older text of theirs
as the document again; one that was, whole, what they then saved over is their own loss too.  HOLDFAST_SEED
repeats a run."""
import os
import random
import signal
import threading
import time
from email.utils import parsedate_to_datetime

from commands import run
from harness import LONG, wait_for
from editors import Agent, Folder, accepted_view, base_view, failed, history, texts

SEED = int(os.environ.get('HOLDFAST_SEED') or random.SystemRandom().randrange(1 << 32))
SAVES = int(os.environ.get('HOLDFAST_SAVES') or (6000 if LONG else 300))
KILLS = 60 if LONG else 4
DOCUMENTS = 4
AGENTS = 4
TEXT = ''.join(f'Line {n} tells of thing{n} and of matter{n}.\n' for n in range(12))
# What an agent may be told beside an editor that saves all the time.
REFUSALS = ('Document changed since last read', 'old_string not found', 'old_string is not unique', 'You must read this document',
            'was saved several times', 'would change or remove', 'Session not found')


class Steered:
    """The monotonic clock, for waits of a minute (src/base/clock.c)."""

    def __init__(self, folder):
        self.file = os.path.join(str(folder), 'slept')
        self.env = {'HOLDFAST_FAULT_SLEEP': self.file}
        self.seconds = 0
        self.sleep(0)

    def sleep(self, seconds):
        self.seconds += seconds
        with open(self.file + '.new', 'w', encoding='ascii') as file:
            file.write(f'{self.seconds}\n')
        os.rename(self.file + '.new', self.file)


def date_of(hf):
    """What the time is for Holdfast, in seconds."""
    return parsedate_to_datetime(hf.get('/healthz').header('Date')).timestamp()


def no_litter(hf, steered, *folders):
    """After their minute the displaced files are gone, and nothing else is left.  What is found written to
    then is watched for another: the clock goes on, each time when Holdfast has seen how late it is."""
    def is_gone(folder):
        before = date_of(hf)
        steered.sleep(5)  # less than a request may take to arrive
        wait_for(lambda: date_of(hf) >= before + 5, 'Holdfast to look at the clock')
        return folder.staged() is None
    for folder in folders:
        wait_for(lambda f=folder: is_gone(f), f'.holdfast of {folder.name} to go', 30)


class Save:
    def __init__(self, text, fd):
        self.text, self.fd, self.inode = text, fd, os.fstat(fd).st_ino
        self.is_their_own_loss = False

    def close(self):
        os.close(self.fd)


class Person(threading.Thread):
    """Saves documents until it is told to stop, or has saved often enough."""

    def __init__(self, folder, paths, seed, saves):
        super().__init__(daemon=True)
        self.folder, self.paths, self.saves = folder, paths, saves
        self.dice = random.Random(seed)
        self.buffers = {p: folder.read(p) for p in paths}
        self.last, self.made, self.typed = {}, {p: [] for p in paths}, 0
        self.problem, self.enough = None, threading.Event()

    def run(self):
        try:
            while self.typed < self.saves and not self.enough.is_set():
                self.save(self.dice.choice(self.paths))
                time.sleep(self.dice.choice((0, 0, 0.002, 0.01, 0.03, 0.08)))
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def save(self, path):
        if self.dice.random() < 0.6:  # the editor saw that the file changed, or has just opened it
            self.buffers[path] = self.folder.read(path) or self.buffers[path]
        self.typed += 1
        lines = self.buffers[path].decode('utf-8', 'replace').splitlines(keepends=True)
        lines = [line for line in lines if 'typed' not in line or self.dice.random() < 0.8]
        lines.insert(self.dice.randrange(len(lines) + 1), f'I typed{self.typed}x{self.dice.randrange(10**9)} here.\n')
        text = ''.join(lines).encode()
        self.buffers[path] = text
        with open(self.folder.full(path), 'rb') as there:
            (self.in_place if self.dice.random() < 0.5 else self.by_rename)(path, text, there)

    def overwrote(self, path, old):
        for save in self.made[path]:
            save.is_their_own_loss = save.is_their_own_loss or save.text == old

    def in_place(self, path, text, there):
        old = there.read()
        fd = os.open(self.folder.full(path), os.O_WRONLY | os.O_TRUNC)
        before, inode = self.last.get(path), os.fstat(fd).st_ino
        if before and before.inode == inode:
            before.is_their_own_loss = True
        if os.fstat(there.fileno()).st_ino == inode:
            self.overwrote(path, old)
        cut = sorted(self.dice.randrange(len(text) + 1) for _ in range(self.dice.choice((0, 0, 1, 2))))
        for begin, end in zip([0] + cut, cut + [len(text)]):
            os.write(fd, text[begin:end])
            time.sleep(self.dice.choice((0, 0, 0.001, 0.02, 0.07)) if end < len(text) else 0)
        keep = os.open(f'/proc/self/fd/{fd}', os.O_RDONLY)
        os.close(fd)
        self.saved(path, Save(text, keep))

    def by_rename(self, path, text, there):
        old = there.read()
        temp = self.folder.full(os.path.join(os.path.dirname(path), f'.{self.typed}.swp'))
        with open(temp, 'wb') as file:
            file.write(text)
        keep = os.open(temp, os.O_RDONLY)
        os.rename(temp, self.folder.full(path))
        before = self.last.get(path)
        if before and os.fstat(before.fd).st_nlink == 0:
            before.is_their_own_loss = True
        if os.fstat(there.fileno()).st_nlink == 0:
            self.overwrote(path, old)
        self.saved(path, Save(text, keep))

    def saved(self, path, save):
        if path in self.last:
            self.last[path].close()
        self.last[path] = save
        self.made[path].append(save)


class Editor(threading.Thread):
    """An agent that reads a document and suggests something in it, again and again."""

    def __init__(self, hf, folder, paths, name, seed, ending):
        super().__init__(daemon=True)
        self.hf, self.folder, self.paths, self.name, self.ending = hf, folder, paths, name, ending
        self.dice = random.Random(seed)
        self.told, self.refused, self.cut, self.problem = {p: [] for p in paths}, 0, 0, None

    def run(self):
        agent, number = None, 0
        while not self.ending.is_set():
            number += 1
            try:
                if agent is None or self.dice.random() < 0.05:
                    agent = Agent(self.hf, modern=self.dice.random() < 0.5)
                self.turn(agent, self.dice.choice(self.paths), f'{self.name}e{number}')
            except (OSError, EOFError):  # it was killed
                agent = None
                self.cut += 1
                time.sleep(0.02)
            except Exception as problem:  # pylint: disable=broad-except
                self.problem = problem
                return

    def turn(self, agent, path, mark):
        full = f'{self.folder.name}/{path}'
        lines = [line for line in agent.lines(full) if line.startswith('Line ') and '{' not in line]
        if not lines:
            return
        line = self.dice.choice(lines)
        words = line.split(' ')
        if len(words) < 4:  # of a text that was half written
            return
        words[self.dice.randrange(2, len(words))] = mark
        reply = agent.edit(full, line, ' '.join(words))
        if not failed(reply):
            assert reply.text.startswith(f'Edited {full}'), reply.text
            self.told[path].append(mark)
        else:
            assert any(r in reply.text for r in REFUSALS), reply.text
            self.refused += 1


def check_saves(hf, folder, person):
    """Everything they saved and did not overwrite themselves."""
    checked = 0
    for path, saves in person.made.items():
        known = set(texts(hf, folder.name, path)) | {folder.read(path)}
        for number, save in enumerate(saves):
            if save.is_their_own_loss:
                continue
            checked += 1
            assert save.text in known, (f'seed {SEED}: save {number} of {len(saves)} of {path} is neither in the file nor in the '
                                        f'history of {len(known)} texts:\n{save.text.decode()}')
    return checked


def check_edits(hf, folder, editors):
    for path in editors[0].paths:
        known = b'\n'.join(texts(hf, folder.name, path)) + folder.read(path)
        for editor in editors:
            missing = [m for m in editor.told[path] if m.encode() + b' ' not in known + b' ' and m.encode() not in known]
            assert not missing, f'seed {SEED}: acknowledged, and nowhere in {path}: {missing}'
    return sum(len(marks) for e in editors for marks in e.told.values())


def is_begun(now, saves):
    """The beginning of a text that an editor was still writing when its file was displaced."""
    return any(s.text.decode().startswith(now) for s in saves)


def check_whole(hf, folder, person, kills):
    """The file is a whole version: one that a person saved, with nothing but suggestions put in.  A crash within two seconds of an
    edit that met a half-written text leaves that as the document; the whole text is in the history (docs/rough-edges.md)."""
    for path, saves in person.made.items():
        now = folder.read(path).decode()
        bases = [base_view(s.text.decode()) for s in reversed(saves)] + [base_view(TEXT)]
        halves = [t.decode('utf-8', 'replace') for k, t in history(hf, folder.name, path) if k == 'outside'] if kills else []
        halves = [base_view(t) for t in halves if is_begun(t, saves)]
        assert base_view(now) in bases + halves, f'seed {SEED}: {path} is none of the versions that were saved:\n{now}'


def check_all(hf, folder, person, editors, steered, kills=False):
    problems = [t.problem for t in (person, *editors) if t.problem]
    assert not problems, f'seed {SEED}: {problems!r}'
    no_litter(hf, steered, folder)
    checked, told = check_saves(hf, folder, person), check_edits(hf, folder, editors)
    check_whole(hf, folder, person, kills)
    verified = run(hf, 'audit', 'verify')
    assert verified.returncode == 0, verified.stdout + verified.stderr
    refused = sum(e.refused for e in editors)
    print(f'{person.typed} saves, {checked} of them not overwritten by the next; {told} edits acknowledged, {refused} refused')
    return checked, told


def begin(holdfast, tmp_path, saves):
    print(f'HOLDFAST_SEED={SEED}')
    folder, steered, ending = Folder(tmp_path / 'vault'), Steered(tmp_path), threading.Event()
    paths = [f'Doc{n}.md' for n in range(DOCUMENTS - 1)] + ['deep/er/Doc.md']
    for path in paths:
        folder.write(path, TEXT)
    hf = holdfast({}, {'docs': folder.settings}, env=steered.env)
    person = Person(folder, paths, SEED, saves)
    editors = [Editor(hf, folder, paths, f'a{n}', SEED + 1 + n, ending) for n in range(AGENTS)]
    for thread in (person, *editors):
        thread.start()
    return hf, folder, steered, person, editors, ending


def finish(person, editors, ending):
    person.join(600)
    ending.set()
    for editor in editors:
        editor.join(60)
    assert not any(t.is_alive() for t in (person, *editors)), 'somebody hangs'


def test_saves_beside_edits__lose_nothing(holdfast, tmp_path):
    hf, folder, steered, person, editors, ending = begin(holdfast, tmp_path, SAVES)
    finish(person, editors, ending)
    checked, told = check_all(hf, folder, person, editors, steered)
    assert checked > SAVES // 20 and told > SAVES // 20


def test_kill_9_beside_saves_and_edits__loses_nothing(holdfast, tmp_path):
    hf, folder, steered, person, editors, ending = begin(holdfast, tmp_path, 10**9)
    dice = random.Random(SEED)
    for _ in range(KILLS):
        time.sleep(dice.uniform(0.2, 1.5))
        hf.restart()
    person.enough.set()
    finish(person, editors, ending)
    checked, told = check_all(hf, folder, person, editors, steered, kills=True)
    assert sum(e.cut for e in editors) > 0 and checked > KILLS and told > KILLS



# An editor that holds the file open: what it writes later goes to a file that has been displaced.

def hold(folder, path):
    return os.open(folder.full(path), os.O_RDWR)


def write_late(fd, text):
    os.ftruncate(fd, 0)
    os.pwrite(fd, text, 0)
    os.close(fd)


def held_open(holdfast, tmp_path, **options):
    """A document that somebody has open, displaced by an agent's edit."""
    folder, steered = Folder(tmp_path / 'vault', **options), Steered(tmp_path)
    folder.write('Held.md', TEXT)
    hf = holdfast({}, {'docs': folder.settings}, env=steered.env)
    fd, agent = hold(folder, 'Held.md'), Agent(hf)
    agent.lines('Lens/Held.md')
    assert not failed(agent.edit('Lens/Held.md', 'matter3', 'stuff3'))
    assert os.fstat(fd).st_ino != os.stat(folder.full('Held.md')).st_ino
    return hf, folder, steered, fd, agent


def wait_history(hf, folder, path, text):
    wait_for(lambda: text in texts(hf, folder.name, path), 'the late save to be in the history')


def test_late_save__is_merged_with_the_edit_that_displaced_it(holdfast, tmp_path):
    hf, folder, steered, fd, _ = held_open(holdfast, tmp_path)
    late = TEXT.replace('thing9', 'what I typed').encode()
    write_late(fd, late)
    wait_for(lambda: b'what I typed' in folder.read('Held.md'), 'the late save to be in the file')
    now = folder.read('Held.md').decode()
    assert base_view(now) == late.decode()
    assert accepted_view(now) == late.decode().replace('matter3', 'stuff3')
    wait_history(hf, folder, 'Held.md', late)
    no_litter(hf, steered, folder)


def test_late_save__is_merged_with_every_edit_made_since(holdfast, tmp_path):
    hf, folder, steered, fd, agent = held_open(holdfast, tmp_path)
    for n in (4, 5):
        assert not failed(agent.edit('Lens/Held.md', f'matter{n}', f'stuff{n}'))
    late = TEXT.replace('thing9', 'what I typed').encode()
    os.pwrite(fd, late, 0)
    wait_for(lambda: b'what I typed' in folder.read('Held.md'), 'the late save to be in the file')
    agent.lines('Lens/Held.md')
    assert not failed(agent.edit('Lens/Held.md', 'matter6', 'stuff6'))
    last = late.replace(b'thing8', b'what I typed last')
    write_late(fd, last)
    wait_for(lambda: b'what I typed last' in folder.read('Held.md'), 'the second late save to be in the file')
    now = folder.read('Held.md').decode()
    assert base_view(now) == last.decode()
    expected = last.decode()
    for n in (3, 4, 5, 6):
        expected = expected.replace(f'matter{n}', f'stuff{n}')
    assert accepted_view(now) == expected
    wait_history(hf, folder, 'Held.md', late)
    no_litter(hf, steered, folder)


def test_late_save_that_takes_no_edit__wins(holdfast, tmp_path):
    hf, folder, steered, fd, _ = held_open(holdfast, tmp_path)
    late = b'All of it anew.\n'
    write_late(fd, late)
    wait_for(lambda: folder.read('Held.md') == late, 'the late save to be the document')
    assert any(b'stuff3' in text for text in texts(hf, 'Lens', 'Held.md'))
    no_litter(hf, steered, folder)


def test_late_save_after_another_save__is_in_the_history(holdfast, tmp_path):
    hf, folder, steered, fd, _ = held_open(holdfast, tmp_path)
    mine, late = TEXT.replace('thing1 ', 'mine ').encode(), TEXT.replace('thing2 ', 'late ').encode()
    folder.write('Held.md', mine)
    write_late(fd, late)
    wait_history(hf, folder, 'Held.md', late)
    assert folder.read('Held.md') == mine
    no_litter(hf, steered, folder)


def test_two_late_saves__are_both_kept(holdfast, tmp_path):
    hf, folder, steered, first, agent = held_open(holdfast, tmp_path)
    second = hold(folder, 'Held.md')
    agent.lines('Lens/Held.md')
    assert not failed(agent.edit('Lens/Held.md', 'matter5', 'stuff5'))
    one, two = TEXT.replace('thing9', 'one').encode(), TEXT.replace('thing10', 'two').encode()
    write_late(first, one)
    write_late(second, two)
    wait_history(hf, folder, 'Held.md', one)
    wait_history(hf, folder, 'Held.md', two)
    assert base_view(folder.read('Held.md').decode()).encode() in (one, two)
    no_litter(hf, steered, folder)


def test_late_save_after_kill_9__is_in_the_history(holdfast, tmp_path):
    hf, folder, steered, fd, _ = held_open(holdfast, tmp_path)
    hf.restart()
    late = TEXT.replace('thing9', 'what I typed').encode()
    write_late(fd, late)
    wait_history(hf, folder, 'Held.md', late)
    no_litter(hf, steered, folder)


def test_late_save_after_a_polite_restart__is_in_the_history(holdfast, tmp_path):
    hf, folder, steered, fd, _ = held_open(holdfast, tmp_path)
    hf.restart(kill=False)
    late = TEXT.replace('thing9', 'what I typed').encode()
    write_late(fd, late)
    wait_history(hf, folder, 'Held.md', late)
    no_litter(hf, steered, folder)


def test_late_save_while_it_was_down__is_in_the_history(holdfast, tmp_path):
    hf, folder, steered, fd, _ = held_open(holdfast, tmp_path)
    hf.stop()
    late = TEXT.replace('thing9', 'what I typed').encode()
    write_late(fd, late)
    hf.start()
    wait_history(hf, folder, 'Held.md', late)
    no_litter(hf, steered, folder)


def test_a_polite_end__leaves_no_litter_where_nobody_has_it_open(holdfast, tmp_path):
    hf, folder, _, fd, _ = held_open(holdfast, tmp_path)
    os.close(fd)
    hf.stop()
    assert folder.staged() is None


def test_many_edits__do_not_pile_up_displaced_files(holdfast, tmp_path):
    """Past a hundred, those go early that nobody has open; one that somebody has stays."""
    hf, folder, steered, fd, agent = held_open(holdfast, tmp_path)
    for number in range(110):
        agent.lines('Lens/Held.md')
        assert not failed(agent.edit('Lens/Held.md', 'of thing7' if number % 2 == 0 else 'with thing7',
                                     'with thing7' if number % 2 == 0 else 'of thing7'))
    steered.sleep(3)
    wait_for(lambda: len(folder.staged()) <= 100, 'the displaced files to go')
    write_late(fd, b'Typed late.\n')
    wait_history(hf, folder, 'Held.md', b'Typed late.\n')
    no_litter(hf, steered, folder)


def test_crash_at_every_step_of_publishing__loses_nothing(holdfast, tmp_path):
    """Fault points stop the change where they stand, as kill -9 would; then the process is killed."""
    for point in ('vault.writing', 'vault.staged', 'vault.exchanged'):
        folder = Folder(tmp_path / point, name='Lens')
        folder.write('Doc.md', TEXT)
        steered = Steered(tmp_path)
        hf = holdfast({}, {'docs': folder.settings}, env={**steered.env, 'HOLDFAST_FAULT': f'{point}:1'})
        agent = Agent(hf)
        agent.lines('Lens/Doc.md')
        assert failed(agent.edit('Lens/Doc.md', 'matter3', 'stuff3'))
        hf.env.pop('HOLDFAST_FAULT')
        hf.restart()
        no_litter(hf, steered, folder)
        now = folder.read('Doc.md').decode()
        assert base_view(now) == TEXT, (point, now)
        assert TEXT.encode() in texts(hf, 'Lens', 'Doc.md') or now == TEXT, point
        hf.stop(signal.SIGTERM)


def test_who_wrote_what__is_told_in_order(holdfast, tmp_path):
    hf, folder, _, fd, agent = held_open(holdfast, tmp_path)
    os.close(fd)
    folder.write('Held.md', TEXT + 'Mine.\n')
    agent.lines('Lens/Held.md')
    kinds = [kind for kind, _ in history(hf, 'Lens', 'Held.md')]
    assert kinds == ['outside', 'suggest', 'outside'], kinds
