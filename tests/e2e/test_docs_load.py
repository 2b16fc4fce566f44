# SPDX-License-Identifier: Apache-2.0
"""Many clients on one document and on many, and what may happen meanwhile: a stop, reloads that add, change and
remove folders, files that change outside, an index that is lost, a PostgreSQL that is."""
import os
import random
import re
import shutil
import signal
import threading
import time

from editors import Agent, Folder, accepted_view, failed, texts
from harness import LONG, wait_for
from stored import Stored
from test_docs_race import Steered, no_litter
from test_operate import metrics

CLIENTS = 32
TURNS = 60 if LONG else 5
GONE = (OSError, EOFError)


def writable(tmp_path):
    """One document with a line for each client, and one for each."""
    folder = Folder(tmp_path / 'vault', agent='write')
    folder.write('One.md', ''.join(f'Client {n} wrote 0 times.\n' for n in range(CLIENTS)))
    for n in range(CLIENTS):
        folder.write(f'own/Own{n}.md', f'Client {n} wrote 0 times.\nOnly {n} is here.\n')
    return folder


class Worker(threading.Thread):
    """Counts on in its line of the common document and in its own, and looks that nobody else's answers come."""

    enough = threading.Event()

    def __init__(self, hf, number, turns):
        super().__init__(daemon=True)
        self.hf, self.number, self.turns = hf, number, turns
        self.counts, self.problem, self.cut = {'Lens/One.md': 0, f'Lens/own/Own{number}.md': 0}, None, False

    def run(self):
        try:
            agent = Agent(self.hf, modern=self.number % 2 == 0)
            for _ in range(self.turns):
                for path in self.counts:
                    self.turn(agent, path)
                if self.enough.is_set():
                    break
        except GONE:
            self.cut = True
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def turn(self, agent, path):
        lines = agent.lines(path)
        line = f'Client {self.number} wrote {self.counts[path]} times.'
        assert line in lines, (line, lines)
        if 'own' in path:
            assert lines[1:] == [f'Only {self.number} is here.'], lines
        reply = agent.edit(path, line, f'Client {self.number} wrote {self.counts[path] + 1} times.')
        assert not failed(reply) and path in reply.text, reply.text
        self.counts[path] += 1


def start_all(hf, turns=TURNS):
    Worker.enough.clear()
    workers = [Worker(hf, n, turns) for n in range(CLIENTS)]
    for worker in workers:
        worker.start()
    return workers


def join_all(workers):
    for worker in workers:
        worker.join(200)
    assert not any(w.is_alive() for w in workers), 'somebody waits for ever'
    problems = [w.problem for w in workers if w.problem]
    assert not problems, problems


def counted(folder, path):
    return {int(n): int(times) for n, times in re.findall(rb'Client (\d+) wrote (\d+) times\.\n', folder.read(path))}


def test_many_clients__neither_cross_nor_wait_for_ever(holdfast, tmp_path):
    folder = writable(tmp_path)
    hf = holdfast({}, {'docs': folder.settings})
    metrics(hf)
    began = time.monotonic()
    workers = start_all(hf)
    join_all(workers)
    took, calls = time.monotonic() - began, CLIENTS * TURNS * 4
    assert counted(folder, 'One.md') == {n: TURNS for n in range(CLIENTS)}
    for n in range(CLIENTS):
        assert counted(folder, f'own/Own{n}.md') == {n: TURNS}
    print(f'{calls} calls of {CLIENTS} clients, {calls / took:.0f}/s; '
          f"the loop stalled {metrics(hf)['holdfast_loop_stall_microseconds'] / 1000:.1f} ms at most")


def test_sigterm_under_load__ends_cleanly_and_keeps_what_it_told(holdfast, tmp_path):
    folder = writable(tmp_path)
    hf = holdfast({}, {'docs': folder.settings})
    for _ in range(5 if LONG else 2):
        for path in ['One.md'] + [f'own/Own{n}.md' for n in range(CLIENTS)]:
            folder.write(path, re.sub(rb'wrote \d+', b'wrote 0', folder.read(path)))
        workers = start_all(hf, 10**6)
        wait_for(lambda: any(sum(w.counts.values()) > 1 for w in workers), 'some edits')
        hf.stop()
        for worker in workers:
            worker.join(60)
        problems = [w.problem for w in workers if w.problem and 'stopping' not in str(w.problem) and '503' not in str(w.problem)]
        assert not problems, problems
        for worker in workers:
            for path, count in worker.counts.items():
                found = counted(folder, path.removeprefix('Lens/'))[worker.number]
                assert found in (count, count + 1), (path, count, found)
        hf.start()


def reload(hf, docs):
    since = len(hf.log())
    hf.write_config({'mcpServers': {}, 'holdfast': {'docs': docs}})
    hf.process.send_signal(signal.SIGHUP)
    hf.wait_log(lambda l: l.get('msg') == 'configuration reloaded', 'the reload', since)


def test_reloads_under_load__add_change_and_remove_folders(holdfast, tmp_path):
    folder, other = writable(tmp_path), Folder(tmp_path / 'other', 'Other')
    other.write('Doc.md', 'Other words.\n')
    later = {'Later': {'path': str(tmp_path / 'later'), 'agent': 'read'}}
    hf = holdfast({}, {'docs': folder.settings})
    workers, guest = start_all(hf, 10**6), Agent(hf)
    for _ in range(3):
        reload(hf, {**folder.settings, **other.settings})
        assert 'Other words.' in guest.read('Other/Doc.md').text
        wait_for(lambda: 'Other/Doc.md' in guest.call('search', query='words').text, 'the index')
        reload(hf, {**folder.settings, 'Other': {**other.settings['Other'], 'agent': 'read'}})
        assert 'may not change' in guest.edit('Other/Doc.md', 'words', 'things').text
        reload(hf, {**folder.settings, **later})
        assert 'not found' in guest.read('Other/Doc.md').text
        wait_for(lambda: 'Other/Doc.md' not in guest.call('search', query='words').text, 'the index to forget')
        assert 'not found' in guest.read('Later/Doc.md').text
        os.makedirs(tmp_path / 'later')
        (tmp_path / 'later' / 'Doc.md').write_text('Made later.\n')
        reload(hf, {**folder.settings, **later})
        assert 'Made later.' in guest.read('Later/Doc.md').text
        shutil.rmtree(tmp_path / 'later')
    Worker.enough.set()
    join_all(workers)
    assert counted(folder, 'One.md') == {w.number: w.counts['Lens/One.md'] for w in workers}


def test_the_served_folder_itself_changing__is_taken_up_by_those_at_work(holdfast, tmp_path):
    """Its mode and its root change under edits: each edit is whole, in the one or in the other."""
    folder, second = writable(tmp_path), Folder(tmp_path / 'second', agent='write')
    shutil.copytree(folder.root, second.root, dirs_exist_ok=True)
    hf = holdfast({}, {'docs': folder.settings})
    ending, told = threading.Event(), []

    def edit():
        agent, number = Agent(hf), 0
        while not ending.is_set():
            line = agent.lines('Lens/One.md')[5]
            number += 1
            reply = agent.edit('Lens/One.md', line, f'Edit {number} of it.')
            if not failed(reply):
                told.append(f'Edit {number} of it.')
    thread = threading.Thread(target=edit, daemon=True)
    thread.start()
    for turn in range(8):
        which = (folder, second)[turn % 2]
        before = len(told)
        reload(hf, {'Lens': {'path': which.root, 'agent': random.choice(('write', 'suggest'))}})
        wait_for(lambda n=before: len(told) > n, 'an edit after the reload')
    ending.set()
    thread.join(60)
    assert not thread.is_alive()
    known = '\n'.join(accepted_view(t.decode()) for t in texts(hf, 'Lens', 'One.md'))
    assert told and all(t in known for t in told)
    for one in (folder, second):
        assert len(accepted_view(one.read('One.md').decode()).splitlines()) == CLIENTS


# The index follows the files.

def found(agent, word):
    return set(re.findall(r'^(\S+\.md): ', agent.call('search', query=word).text, flags=re.M))


def wait_found(agent, word, paths, timeout=20):
    wait_for(lambda: found(agent, word) == set(paths), f'{word} to be found in {paths}', timeout)


def test_changes_outside__reach_the_index(holdfast, tmp_path):
    folder = Folder(tmp_path / 'vault')
    folder.write('Old.md', 'An aardvark. [[New]]\n')
    hf = holdfast({}, {'docs': folder.settings})
    agent = Agent(hf)
    wait_found(agent, 'aardvark', ['Lens/Old.md'])
    folder.write('New.md', 'A badger.\n')
    wait_found(agent, 'badger', ['Lens/New.md'])
    assert 'Lens/Old.md' in agent.call('get_links', file_path='Lens/New.md').text
    folder.write('Old.md', 'A civet.\n')
    wait_found(agent, 'civet', ['Lens/Old.md'])
    wait_found(agent, 'aardvark', [])
    os.rename(folder.full('Old.md'), folder.full('Renamed.md'))
    wait_found(agent, 'civet', ['Lens/Renamed.md'])
    os.unlink(folder.full('Renamed.md'))
    wait_found(agent, 'civet', [])
    folder.write('deep/er/Doc.md', 'A dingo.\n')
    wait_found(agent, 'dingo', ['Lens/deep/er/Doc.md'])
    os.rename(folder.full('deep'), folder.full('moved'))
    wait_found(agent, 'dingo', ['Lens/moved/er/Doc.md'])
    folder.write('moved/er/Doc.md', 'An echidna.\n')
    wait_found(agent, 'echidna', ['Lens/moved/er/Doc.md'])
    os.rename(folder.full('moved'), tmp_path / 'elsewhere')
    wait_found(agent, 'echidna', [])
    os.rename(tmp_path / 'elsewhere', folder.full('back'))
    wait_found(agent, 'echidna', ['Lens/back/er/Doc.md'])
    shutil.rmtree(folder.full('back'))
    wait_found(agent, 'echidna', [])


def test_more_changes_than_the_kernel_remembers__are_found_by_a_scan(holdfast, tmp_path):
    folder = Folder(tmp_path / 'vault')
    folder.write('Doc.md', 'Some words.\n')
    folder.write('Gone.md', 'Some words.\n')
    hf = holdfast({}, {'docs': folder.settings})
    agent = Agent(hf)
    wait_found(agent, 'words', ['Lens/Doc.md', 'Lens/Gone.md'])
    with open('/proc/sys/fs/inotify/max_queued_events', encoding='ascii') as file:
        most = int(file.read())
    hf.process.send_signal(signal.SIGSTOP)
    a, b = folder.full('.a'), folder.full('.b')
    open(a, 'w', encoding='ascii').close()
    for _ in range(most // 4 + 1000):  # two renames there and back are four events, and no two alike follow each other
        os.rename(a, b)
        os.rename(b, a)
    os.unlink(folder.full('Gone.md'))
    folder.write('After.md', 'Some words.\n')
    folder.write('sub/After.md', 'Some words.\n')
    hf.process.send_signal(signal.SIGCONT)
    wait_found(agent, 'words', ['Lens/Doc.md', 'Lens/After.md', 'Lens/sub/After.md'], 40)
    folder.write('sub/Later.md', 'A heron.\n')
    wait_found(agent, 'heron', ['Lens/sub/Later.md'])


def test_folders_that_cannot_be_watched__are_listed(holdfast, tmp_path):
    folder = Folder(tmp_path / 'vault')
    folder.write('sub/Doc.md', 'A heron.\n')
    steered = Steered(tmp_path)
    hf = holdfast({}, {'docs': folder.settings}, env={**steered.env, 'HOLDFAST_FAULT': 'vault.watch:2+'})
    agent = Agent(hf)
    wait_found(agent, 'heron', ['Lens/sub/Doc.md'])
    folder.write('sub/Other.md', 'A heron.\n')
    steered.sleep(601)
    wait_found(agent, 'heron', ['Lens/sub/Doc.md', 'Lens/sub/Other.md'])


def damage(path):
    size = os.path.getsize(path)
    with open(path, 'r+b') as file:
        for at in range(0, size, 4096):
            file.seek(at + 40 if at == 0 else at)
            file.write(os.urandom(600))


def test_index_deleted_or_damaged__is_made_anew(holdfast, tmp_path):
    folder = Folder(tmp_path / 'vault')
    for number in range(30):
        folder.write(f'Doc{number}.md', f'A heron and bird{number}. [[Doc0]]\n')
    every = [f'Lens/Doc{n}.md' for n in range(20)]
    hf = holdfast({}, {'docs': folder.settings})
    agent, path = Agent(hf), os.path.join(hf.data, 'docs-index.db')

    def is_whole():
        return all(found(agent, f'bird{n}') == {f'Lens/Doc{n}.md'} for n in (0, 17, 29)) and len(found(agent, 'heron')) == len(every)
    wait_for(is_whole, 'the index')
    hf.stop()
    for tail in ('', '-wal', '-shm'):
        if os.path.exists(path + tail):
            os.unlink(path + tail)
    hf.start()
    wait_for(is_whole, 'the index after it was deleted')
    for what in (lambda: damage(path), lambda: open(path, 'wb').write(b'no database at all'), lambda: open(path, 'wb').close()):
        hf.stop()
        what()
        hf.start()
        wait_for(is_whole, 'the index after it was damaged')


def test_index_damaged_while_it_is_used__is_made_anew(holdfast, tmp_path):
    folder = Folder(tmp_path / 'vault')
    for number in range(300):
        folder.write(f'Doc{number}.md', f'A heron and bird{number}. ' + ' '.join(f'w{number}x{n}' for n in range(200)) + '\n')
    hf = holdfast({}, {'docs': folder.settings})
    agent, path = Agent(hf), os.path.join(hf.data, 'docs-index.db')

    def is_whole():
        return all(found(agent, f'bird{n}') == {f'Lens/Doc{n}.md'} for n in (0, 170, 299))
    wait_for(is_whole, 'the index')
    damage(path)
    if os.path.exists(path + '-wal'):
        damage(path + '-wal')
    folder.write('New.md', 'A heron.\n')
    for number in range(50):
        folder.write(f'Doc{number}.md', f'A heron, again, and bird{number}.\n')
    wait_for(is_whole, 'the index after it was damaged', 40)
    assert not failed(agent.read('Lens/Doc5.md'))


# A store that goes away.

def test_a_folder_that_is_replaced__is_noticed_and_opened_anew(holdfast, tmp_path):
    """mv vault away; mkdir vault."""
    folder = Folder(tmp_path / 'vault')
    folder.write('Doc.md', 'The first text.\n')
    hf = holdfast({}, {'docs': folder.settings})
    agent = Agent(hf)
    agent.read('Lens/Doc.md')
    os.rename(folder.root, str(folder.root) + '-away')
    for reply in (agent.read('Lens/Doc.md'), agent.edit('Lens/Doc.md', 'first', 'second'), agent.call('glob', pattern='**', path='Lens'),
                  agent.call('create', file_path='Lens/New.md', content='x')):
        assert failed(reply) and 'does not exist on the disk any more' in reply.text, reply.text
    os.mkdir(folder.root)
    folder.write('Doc.md', 'Another text.\n')
    wait_for(lambda: 'Another text.' in agent.read('Lens/Doc.md').text, 'the new folder')
    assert not failed(agent.edit('Lens/Doc.md', 'Another', 'Yet another'))
    assert b'Yet' in folder.read('Doc.md')
    with open(str(folder.root) + '-away/Doc.md', 'rb') as file:
        assert file.read() == b'The first text.\n'
    assert sorted(os.listdir(str(folder.root) + '-away')) == ['Doc.md']
    wait_found(agent, 'another', ['Lens/Doc.md'])
    assert any('was replaced on disk' in line.get('msg', '') for line in hf.log())
    # One that is put back is the one it was.
    os.rename(folder.root, str(folder.root) + '-out')
    assert failed(agent.read('Lens/Doc.md'))
    os.rename(str(folder.root) + '-out', folder.root)
    wait_for(lambda: not failed(agent.read('Lens/Doc.md')), 'the folder to be back')


def test_readyz__tells_which_folders_are_lost_and_stays_ready(holdfast, tmp_path):
    folder, missing = Folder(tmp_path / 'vault'), str(tmp_path / 'nowhere')
    folder.write('Doc.md', 'The first text.\n')
    settings = {'docs': {**folder.settings, 'Missing': {'path': missing}}}
    hf = holdfast({}, settings)

    def folders():
        reply = hf.request('GET', '/readyz')
        assert reply.status == 200 and reply.json()['status'] == 'ready', reply
        return reply.json()['folders']

    assert folders()['Lens'] == {'state': 'served'}
    assert folders()['Missing']['state'] == 'unavailable' and 'could not be opened' in folders()['Missing']['reason']
    os.rename(folder.root, str(folder.root) + '-away')
    wait_for(lambda: folders()['Lens']['state'] == 'lost', 'readyz to tell that the folder is lost')
    assert 'no longer at its path' in folders()['Lens']['reason']
    os.mkdir(folder.root)
    wait_for(lambda: folders()['Lens']['state'] == 'served', 'the new folder')
    assert folders()['Lens']['replaced_at'].startswith('20')


def test_readyz__counts_folders_for_callers_who_are_not_known(holdfast, tmp_path):
    folder = Folder(tmp_path / 'vault')
    hf = holdfast({}, {'docs': folder.settings, 'auth': 'required'})
    assert hf.request('GET', '/readyz').json()['folders'] == {'served': 1, 'lost': 0, 'unavailable': 0}
    os.rename(folder.root, str(folder.root) + '-away')
    wait_for(lambda: hf.request('GET', '/readyz').json()['folders'] == {'served': 0, 'lost': 1, 'unavailable': 0}, 'the count')


def test_postgres_stopped_while_editing__fails_in_words_and_loses_nothing(holdfast, tmp_path, cluster):
    folder, steered = Folder(tmp_path / 'vault'), Steered(tmp_path)
    folder.write('Doc.md', ''.join(f'Line {n} tells of thing{n}.\n' for n in range(20)))
    url = cluster.database()
    hf = holdfast({}, {'docs': folder.settings}, env={'DATABASE_URL': url, **steered.env})
    told, words, ending, saved = [], [], threading.Event(), []

    def edit(name):
        agent, number = Agent(hf), 0
        while not ending.is_set():
            number += 1
            mark = f'{name}e{number}'
            try:
                lines = [line for line in agent.lines('Lens/Doc.md') if line.startswith('Line')]
                if not lines:
                    continue
                reply = agent.edit('Lens/Doc.md', lines[number % len(lines)], f'Line tells of {mark}, {number}.')
                if failed(reply):
                    words.append(reply.text)
                else:
                    told.append(mark)
            except AssertionError as refused:  # an answer without a result: 503
                words.append(str(refused))
                time.sleep(0.01)
    threads = [threading.Thread(target=edit, args=(name,), daemon=True) for name in 'abcd']
    for thread in threads:
        thread.start()
    for turn in range(3):
        wait_for(lambda n=len(told): len(told) > n + 5, 'edits')
        cluster.stop('immediate' if turn % 2 else 'fast')
        wait_for(lambda n=len(words): len(words) > n + 5, 'refusals')
        saved.append(folder.read('Doc.md') + f'I typed {turn} while it was away.\n'.encode())
        folder.write('Doc.md', saved[-1])
        cluster.start()
    wait_for(lambda n=len(told): len(told) > n + 5, 'edits')
    ending.set()
    for thread in threads:
        thread.join(60)
    no_litter(hf, steered, folder)
    known = b'\n'.join(Stored(hf, url).texts().values()) + folder.read('Doc.md')
    assert all(mark.encode() in known for mark in told), [m for m in told if m.encode() not in known]
    for text in saved:
        assert text in known, text
    away = [w for w in words if not w.startswith('Error: old_string')]
    assert away and all(re.search(r'store|PostgreSQL|again', w) for w in away), [w for w in away if not re.search(r'store|PostgreSQL|again', w)]
