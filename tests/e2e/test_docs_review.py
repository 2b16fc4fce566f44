# SPDX-License-Identifier: Apache-2.0
"""The human side of the knowledge base over REST: documents, their history, suggestions and what becomes of them."""
import json
import os
import threading

import pytest

import commands
import keys
from harness import wait_for
from rest import refused
from test_users import PASSWORD, user
from vault import ACCEPTED, BASE, PLAN, Docs, Folder

DENIED = 'Documents are changed by people: sign in as a user, or use a key that was made with --review.'
GONE, TWICE = 'suggestion no longer found in document', 'suggestion overlaps another suggestion in this batch'
MISSING = 'document not found'


class Place:
    """A Holdfast with two folders; `docs` is the local admin."""

    def __init__(self, make, tmp_path, env=None, auth='none', **folders):
        self.lens = Folder(tmp_path / 'lens', plan=PLAN, plain='No markup here.\n')
        self.lens.write('deep/er/note.md', 'A {++deep ++}note.\n')
        self.other = Folder(tmp_path / 'other', secret='{++Hidden++} words.\n')
        settings = {'auth': auth, 'docs': {'Lens': self.lens.settings(), 'Other': self.other.settings(**folders)}}
        self.hf = make(settings=settings, env=env or {})
        self.docs = Docs(self.hf)

    def key(self, *flags):
        return Docs(self.hf, keys.create(self.hf, *flags).headers)

    def user(self, name, *flags):
        assert user(self.hf, 'create', name, *flags).returncode == 0
        reply = self.docs.post('/auth/login', {'username': name, 'password': PASSWORD})
        assert reply.status == 200, reply
        return Docs(self.hf, {'Authorization': 'Bearer ' + reply.json()['access_token']})


@pytest.fixture
def place(holdfast, tmp_path):
    return Place(holdfast, tmp_path)


@pytest.fixture
def stored(holdfast, tmp_path, database):
    """On each store."""
    return Place(holdfast, tmp_path, database)


@pytest.fixture
def guarded(holdfast, tmp_path):
    return Place(holdfast, tmp_path, auth='required')


# Reading.

def test_document__is_its_bytes_with_revision_and_etag(stored):
    one = stored.docs.document('Lens/plan.md')
    assert one['content'] == PLAN and one['path'] == 'Lens/plan.md' and one['revision'] == 1
    assert one['size'] == len(PLAN) and 'accepted' not in one
    assert stored.docs.document('Lens/plan.md', '?accepted=true')['accepted'].startswith('# Plan\n\nThe fast fox.\nIt really jumps.\n')
    assert stored.docs.read('Lens/plan.md', headers={'If-None-Match': one['etag']}).status == 304
    stored.lens.write('plan.md', 'changed\n')
    again = stored.docs.document('Lens/plan.md')
    assert again['revision'] == 2 and again['etag'] != one['etag'] and again['content'] == 'changed\n'


def test_document__bom_crlf_and_rare_characters_come_as_they_are(place):
    text = '\ufeffone\r\ntwo\t"\\\u2028\U0001f600\x01\r\n'
    place.lens.write('odd.md', text)
    assert place.docs.document('Lens/odd.md')['content'] == text
    place.lens.write('with space & ünïcode?#.md', 'x')
    assert place.docs.document('Lens/with space & ünïcode?#.md')['content'] == 'x'


@pytest.mark.parametrize('path', ['Lens/none.md', 'Nowhere/plan.md', 'Lens/deep', 'Lens/plan.txt', 'Lens/.hidden.md', 'lens/plan.md',
                                  'Lens/.holdfast/x.md', 'Lens/plan.md/more.md'])
def test_document__what_is_not_there_is_404(place, path):
    refused(place.docs.read(path), 404, 'not_found', MISSING)
    refused(place.docs.write(path, 'x', match='*'), 404, 'not_found', MISSING)


@pytest.mark.parametrize('path', ['Lens/../Other/secret.md', 'Lens/%2e%2e/Other/secret.md', 'Lens/..%2fOther/secret.md', 'Lens/a%5cb.md',
                                  'Lens/%00.md', 'Lens/%zz.md'])
def test_document__paths_that_climb_are_not_even_decoded(place, path):
    reply = place.docs.get('/docs/files/' + path)
    assert reply.status == 400, reply


def test_document__an_escape_is_decoded_once(place):
    refused(place.docs.get('/docs/files/Lens/%252e%252e/Other/secret.md'), 404, 'not_found')
    assert place.docs.get('/docs/files/Lens/pl%61n.md').status == 200


def test_list__documents_come_in_pages_by_folder_and_path(place):
    found, query = [], '?limit=2'
    while query:
        reply = place.docs.get('/docs/files' + query)
        page = reply.json()
        assert len(page['files']) == page['count'] <= 2
        found += [f['path'] for f in page['files']]
        query = page['next_cursor'] and '?limit=2&cursor=' + page['next_cursor']
        assert bool(query) == bool(reply.header('link'))
    assert found == ['Lens/deep/er/note.md', 'Lens/plain.md', 'Lens/plan.md', 'Other/secret.md']
    assert [f['path'] for f in place.docs.get('/docs/files?folder=Other').json()['files']] == ['Other/secret.md']
    refused(place.docs.get('/docs/files?folder=Nowhere'), 404, 'not_found', 'folder not found')
    refused(place.docs.get('/docs/files?cursor=abc'), 400, 'bad_cursor')
    for limit, status in (('0', 400), ('200', 200), ('201', 400)):
        assert place.docs.get('/docs/files?limit=' + limit).status == status


# Writing.

def test_put__needs_the_etag_of_what_was_read(stored):
    docs = stored.docs
    refused(docs.write('Lens/plan.md', 'mine'), 428, 'precondition_required')
    one = docs.document('Lens/plan.md')
    reply = docs.write('Lens/plan.md', 'mine\n', match=one['etag'], reason='simpler', author='Ada')
    assert reply.status == 200 and reply.json()['changed'] and reply.json()['revision'] == 2, reply
    assert stored.lens.read('plan.md') == 'mine\n'
    stale = refused(docs.write('Lens/plan.md', 'theirs\n', match=one['etag']), 412, 'precondition_failed')
    assert stale.header('etag') == reply.header('etag') == docs.document('Lens/plan.md')['etag']
    assert docs.write('Lens/plan.md', 'theirs\n', match='"0", ' + stale.header('etag')).status == 200
    assert docs.write('Lens/plan.md', 'any\n', match='*').status == 200
    refused(docs.write('Lens/plan.md', 'x', match='W/' + docs.document('Lens/plan.md')['etag']), 412, 'precondition_failed')
    newest = docs.revisions('Lens/plan.md')
    assert [(r['kind'], r['revision']) for r in newest] == [('write', 4), ('write', 3), ('write', 2), ('outside', 1)]
    assert newest[2]['author'] == 'Ada' and newest[2]['reason'] == 'simpler' and 'author' not in newest[3]


def test_put__same_text_is_no_change(place):
    one = place.docs.document('Lens/plain.md')
    reply = place.docs.write('Lens/plain.md', one['content'], match=one['etag'])
    assert reply.status == 200 and not reply.json()['changed'] and reply.json()['revision'] == one['revision']


def test_put__makes_a_new_document_only_where_none_is(place):
    docs = place.docs
    reply = docs.write('Lens/new/one.md', 'new\n', new=True)
    assert reply.status == 201 and reply.header('location') == '/api/v1/docs/files/Lens/new/one.md', reply
    assert place.lens.read('new/one.md') == 'new\n'
    again = refused(docs.write('Lens/new/one.md', 'newer\n', new=True), 412, 'precondition_failed')
    assert again.header('etag') == reply.header('etag')
    refused(docs.write('Lens/none.md', 'x', match='"0"'), 404, 'not_found', MISSING)
    assert docs.revisions('Lens/new/one.md')[0]['kind'] == 'create'
    for path in ('Lens/x.txt', 'Nowhere/x.md', 'Lens/.x.md'):
        refused(docs.write(path, 'x', new=True), 404, 'not_found', MISSING)


def test_put__a_document_is_taken_at_its_limit_and_refused_past_it(holdfast, tmp_path):
    lens = Folder(tmp_path / 'lens', plain='x')
    docs = Docs(holdfast(settings={'docs': {'Lens': lens.settings()}, 'limits': {'body': '16MiB'}}))
    one, limit = docs.document('Lens/plain.md'), 4 << 20
    refused(docs.write('Lens/plain.md', 'x' * (limit + 1), match=one['etag']), 413, 'too_large')
    refused(docs.write('Lens/new.md', 'x' * (limit + 1), new=True), 413, 'too_large')
    assert docs.write('Lens/plain.md', 'x' * limit, match=one['etag']).status == 200
    assert docs.document('Lens/plain.md')['size'] == limit and lens.read('plain.md') == 'x' * limit


def test_apply__what_would_be_too_large_a_document_is_refused(holdfast, tmp_path):
    lens = Folder(tmp_path / 'lens', full='{++a++}' + 'x' * ((4 << 20) - 7))
    docs = Docs(holdfast(settings={'docs': {'Lens': lens.settings()}, 'limits': {'body': '16MiB'}}))
    one = {'raw_markup': '{++a++}', 'from': 0}
    reply = docs.apply('Lens/full.md', 'accept', [one], text='y' * 8)
    assert reply.status in (400, 413), reply
    assert lens.read('full.md').startswith('{++a++}x')
    assert docs.apply('Lens/full.md', 'accept', [one], text='y' * 7).json()['applied'] == [0]


def test_put__of_many_with_one_etag_one_wins(place):
    one, answers = place.docs.document('Lens/plain.md'), []
    line = threading.Barrier(8)

    def write(number):
        line.wait()
        answers.append((place.docs.write('Lens/plain.md', f'by {number}\n', match=one['etag']), number))
    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [number for reply, number in answers if reply.status == 200]
    assert len(won) == 1 and sorted(reply.status for reply, _ in answers) == [200] + [412] * 7
    assert place.lens.read('plain.md') == f'by {won[0]}\n'


# History.

def test_history__has_every_text_newest_first_and_the_way_back(stored):
    docs = stored.docs
    docs.document('Lens/plain.md')
    texts = ['No markup here.\n']
    for number in range(2, 7):
        texts.append(f'version {number}\n')
        stored.lens.write('plain.md', texts[-1])
        assert docs.document('Lens/plain.md')['revision'] == number
    assert [r['revision'] for r in docs.revisions('Lens/plain.md')] == [6, 5, 4, 3, 2, 1]
    for number, text in enumerate(texts, 1):
        reply = docs.revision('Lens/plain.md', number)
        assert reply.json()['content'] == text and reply.json()['size'] == len(text)
    reply = docs.restore('Lens/plain.md', 3, author='Ada')
    assert reply.status == 200 and reply.json()['revision'] == 7, reply
    assert stored.lens.read('plain.md') == texts[2]
    newest = docs.revisions('Lens/plain.md')[0]
    assert (newest['kind'], newest['reason'], newest['author']) == ('restore', 'restored revision 3', 'Ada')
    assert docs.restore('Lens/plain.md', 3).json()['changed'] is False


def test_history__what_nobody_has_read_yet_is_in_it(place):
    assert [r['kind'] for r in place.docs.revisions('Lens/deep/er/note.md')] == ['outside']
    place.lens.write('deep/er/note.md', 'saved\n')
    assert [r['size'] for r in place.docs.revisions('Lens/deep/er/note.md')] == [6, 19]


def test_history__what_is_not_there_is_404(place):
    docs = place.docs
    refused(docs.history('Lens/none.md'), 404, 'not_found', MISSING)
    refused(docs.revision('Lens/none.md', 1), 404, 'not_found', 'revision not found')
    docs.document('Lens/plain.md')
    for number in (0, 2, 10 ** 12):
        refused(docs.revision('Lens/plain.md', number), 404, 'not_found', 'revision not found')
    refused(docs.restore('Lens/plain.md', 2), 404, 'not_found', 'revision not found')
    refused(docs.history('Lens/plain.md', '?cursor=x'), 400, 'bad_cursor')
    page = docs.get('/docs/files?limit=1').json()['next_cursor']
    refused(docs.history('Lens/plain.md', '?cursor=' + page), 400, 'bad_cursor')


def test_restore__only_while_it_is_what_was_seen(place):
    docs = place.docs
    one = docs.document('Lens/plain.md')
    place.lens.write('plain.md', 'typed meanwhile\n')
    stale = refused(docs.restore('Lens/plain.md', 1, match=one['etag']), 412, 'precondition_failed')
    assert place.lens.read('plain.md') == 'typed meanwhile\n'
    assert docs.restore('Lens/plain.md', 1, match=stale.header('etag')).status == 200
    assert 'typed meanwhile\n' in [docs.revision('Lens/plain.md', r['revision']).json()['content'] for r in docs.revisions('Lens/plain.md')]


def test_suggestions__of_a_path_below_a_folder_and_of_none(place):
    assert [f['path'] for f in place.docs.get('/docs/suggestions?folder=Lens&path=deep').json()['files']] == ['Lens/deep/er/note.md']
    assert place.docs.get('/docs/suggestions?folder=Lens&path=plain.md').json()['files'] == []
    for path, detail in (('nothing-like-it', 'Path not found: Lens/nothing-like-it. There is no such document, and no folder with documents.'),
                         ('dee', 'Path not found: Lens/dee. Did you mean Lens/deep?'),
                         ('plan', 'Path not found: Lens/plan. Did you mean Lens/plan.md?')):
        reply = refused(place.docs.get(f'/docs/suggestions?folder=Lens&path={path}'), 404, 'not_found', MISSING)
        assert reply.json()['detail'] == detail
    assert refused(place.docs.get('/docs/suggestions?folder=lens'), 404, 'not_found', 'folder not found').json()['detail'] == (
        'Folder not found: lens. Did you mean Lens?')


def test_reject__of_a_document_that_an_agent_made_takes_it_away(place):
    agent = place.hf.client('/mcp/docs').connect()
    for name in ('made', 'kept', 'typed'):
        agent.call('create', {'file_path': f'Lens/new/{name}.md', 'content': f'{name} by an agent\n'})
    place.lens.write('stub.md', '')
    handle = agent.call('read', {'file_path': 'Lens/stub.md'}).result['structuredContent']['session_id']
    agent.call('edit', {'file_path': 'Lens/stub.md', 'old_string': '', 'new_string': 'more\n', 'session_id': handle})
    place.lens.write('new/typed.md', place.lens.read('new/typed.md') + 'by a person\n')
    def reject(path):
        return place.docs.apply(path, 'reject', place.docs.suggestions(path)).json()
    assert reject('Lens/new/made.md')['removed'] is True
    assert not os.path.exists(os.path.join(place.lens.root, 'new/made.md'))
    refused(place.docs.read('Lens/new/made.md'), 404, 'not_found', MISSING)
    # Not what a person made, nor what one has written to.
    assert reject('Lens/stub.md')['removed'] is False and place.lens.read('stub.md') == ''
    assert reject('Lens/new/typed.md')['removed'] is False and place.lens.read('new/typed.md') == 'by a person\n'
    assert place.docs.restore('Lens/new/made.md', 1).status == 200
    assert 'made by an agent' in place.lens.read('new/made.md')


def linking(place, path):
    """The documents that the index knows to link to this one."""
    client = place.hf.client('/mcp/docs').connect()
    return client.call('get_links', {'file_path': path}).text.split('Forward')[0]


def test_move__by_a_person_rewrites_links_and_is_in_the_history(place):
    place.lens.write('from.md', 'See [[plain]] and [it](plain.md).\n')
    wait_for(lambda: 'Lens/from.md' in linking(place, 'Lens/plain.md'), 'the links')
    reply = place.docs.move('Lens/plain.md', 'Lens/deep/{++x++}.md', author='Ada', reason='tidy')
    assert reply.status == 200 and reply.json() == {'path': 'Lens/deep/{++x++}.md', 'links_rewritten': 1}
    # Markup is never written into a link: the wiki link stays, the other is encoded.
    assert place.lens.read('from.md') == 'See [[plain]] and [it](deep/%7B++x++%7D.md).\n'
    newest = place.docs.revisions('Lens/from.md')[0]
    assert (newest['kind'], newest['author'], newest['reason']) == ('move', 'Ada', 'tidy')
    refused(place.docs.move('Lens/plan.md', 'Lens/from.md'), 409, 'conflict', 'the new path exists')
    refused(place.docs.move('Lens/plan.md', 'Other/plan.md'), 400, 'bad_input', 'new_path is in another folder')
    refused(place.docs.move('Lens/plan.md', 'Lens/../plan.md'), 400, 'bad_input')
    refused(place.docs.move('Lens/nope.md', 'Lens/x.md'), 404, 'not_found', MISSING)


def test_restore__brings_back_what_was_deleted(place):
    docs = place.docs
    one = docs.document('Lens/plain.md')
    os.unlink(os.path.join(place.lens.root, 'plain.md'))
    assert docs.read('Lens/plain.md').status == 404
    assert docs.revisions('Lens/plain.md')[0]['revision'] == one['revision']
    assert docs.restore('Lens/plain.md', one['revision']).status == 200
    assert place.lens.read('plain.md') == one['content']


# Suggestions.

def test_suggestions__tell_everything_a_person_decides_by(place):
    files = place.docs.files()
    assert [f['path'] for f in files] == ['Lens/deep/er/note.md', 'Lens/plan.md', 'Other/secret.md']
    plan = files[1]
    assert plan['total'] == 4 and plan['etag'] == place.docs.document('Lens/plan.md')['etag']
    one, two, three, four = plan['suggestions']
    assert (one['type'], one['old_content'], one['new_content'], one['content']) == ('substitution', 'quick', 'fast', 'fast')
    assert (one['author'], one['timestamp'], one['line']) == ("Ada's AI", 1794730000000, 3)
    assert PLAN.encode()[one['from']:one['to']].decode() == one['raw_markup'] and one['raw_markup'].startswith('{--{"author"')
    assert one['context_before'].endswith('\n\nThe ') and one['context_after'].startswith(' fox.\nIt ')
    assert (two['type'], two['old_content'], two['new_content'], two['line']) == ('addition', None, 'really ', 4)
    assert (three['type'], three['old_content'], three['new_content'], three['author']) == ('deletion', 'the ', None, None)
    assert three['timestamp'] is None and three['content'] == 'the '
    assert (four['type'], four['content']) == ('comment', 'too many?')
    assert len({s['id'] for s in plan['suggestions']}) == 4


def test_suggestions__come_in_pages_by_file_and_for_one_folder_or_document(place):
    reply = place.docs.get('/docs/suggestions?limit=1')
    assert [f['path'] for f in reply.json()['files']] == ['Lens/deep/er/note.md'] and 'rel="next"' in reply.header('link')
    after = place.docs.get('/docs/suggestions?limit=1&cursor=' + reply.json()['next_cursor']).json()
    assert [f['path'] for f in after['files']] == ['Lens/plan.md']
    assert [f['path'] for f in place.docs.files('&folder=Other')] == ['Other/secret.md']
    assert len(place.docs.suggestions('Lens/plan.md')) == 4 and place.docs.suggestions('Lens/plain.md') == []
    refused(place.docs.get('/docs/suggestions?path=plan.md'), 400, 'bad_input')
    refused(place.docs.get('/docs/suggestions?folder=Nowhere'), 404, 'not_found', 'folder not found')
    refused(place.docs.get('/docs/suggestions?folder=Lens&cursor=' + reply.json()['next_cursor']), 400, 'bad_cursor')


def test_suggestions__of_a_document_are_shown_to_a_thousand(place):
    place.lens.write('many.md', ''.join(f'{{++{n}++}} ' for n in range(1001)))
    file, = (f for f in place.docs.files('&folder=Lens') if f['path'] == 'Lens/many.md')
    assert file['total'] == 1001 and len(file['suggestions']) == 1000


def test_suggestions__alike_have_names_of_their_own(place):
    place.lens.write('twins.md', '{++a++}' + '-' * 200 + '{++a++}' + '-' * 200 + '{++b++}\n\n{++b++}')
    found = [s['id'] for s in place.docs.suggestions('Lens/twins.md')]
    assert len(set(found)) == 4


def test_suggestions__keep_their_names_when_others_are_decided(place):
    marks = ''.join('one {--{"author":"AI","time":%d}@@a--}{++{"author":"AI","time":%d}@@b%d++} ' % (n, n, n) for n in range(5))
    place.lens.write('near.md', marks + '{++twin++} {++twin++} {>>said<<}')
    for action in ('reject', 'accept', 'reject'):
        waiting = place.docs.suggestions('Lens/near.md')
        assert len({s['id'] for s in waiting}) == len(waiting)
        assert place.docs.apply('Lens/near.md', action, waiting[1:2]).json()['failed'] == []
        left = {s['id'] for s in place.docs.suggestions('Lens/near.md')}
        assert left == {s['id'] for s in waiting} - {waiting[1]['id']}
    # Of two that are the same, the one that is left has a name that neither had.
    twins = [s for s in place.docs.suggestions('Lens/near.md') if s['content'] == 'twin']
    assert place.docs.apply('Lens/near.md', 'reject', twins[:1]).json()['failed'] == []
    last, = [s for s in place.docs.suggestions('Lens/near.md') if s['content'] == 'twin']
    assert last['id'] not in {s['id'] for s in twins}


# Deciding.

def test_apply__accepts_and_rejects_as_one_revision_with_author_and_reason(stored):
    docs = stored.docs
    waiting = docs.suggestions('Lens/plan.md')
    reply = docs.apply('Lens/plan.md', 'accept', waiting[:2], reason='reads better', author='Ada').json()
    assert reply['applied'] == [0, 1] and reply['failed'] == [] and reply['remaining_suggestions'] == 2
    assert stored.lens.read('plan.md') == PLAN.replace(waiting[0]['raw_markup'], 'fast').replace(waiting[1]['raw_markup'], 'really ')
    after = docs.apply('Lens/plan.md', 'reject', waiting[2:]).json()
    assert after['applied'] == [0, 1] and after['remaining_suggestions'] == 0
    assert stored.lens.read('plan.md') == '# Plan\n\nThe fast fox.\nIt really jumps.\nOver the dogs.\n'
    assert after['etag'] == docs.document('Lens/plan.md')['etag']
    told = [(r['revision'], r['kind'], r.get('author'), r.get('reason')) for r in docs.revisions('Lens/plan.md')]
    assert told == [(3, 'reject', 'local', None), (2, 'accept', 'Ada', 'reads better'), (1, 'outside', None, None)]


def test_apply__all_accepted_is_the_accepted_text_and_all_rejected_the_base(place):
    waiting = place.docs.suggestions('Lens/plan.md')
    assert place.docs.apply('Lens/plan.md', 'accept', waiting).json()['applied'] == [0, 1, 2, 3]
    assert place.lens.read('plan.md') == ACCEPTED
    place.lens.write('plan.md', PLAN)
    assert place.docs.apply('Lens/plan.md', 'reject', waiting).json()['applied'] == [0, 1, 2, 3]
    assert place.lens.read('plan.md') == BASE


def test_apply__a_batch_says_of_each_how_it_went(place):
    waiting = place.docs.suggestions('Lens/plan.md')
    gone = {**waiting[0], 'raw_markup': '{++never there++}'}
    reply = place.docs.apply('Lens/plan.md', 'accept', [gone, waiting[1], waiting[1], waiting[2]]).json()
    assert reply['applied'] == [1, 3]
    assert reply['failed'] == [{'index': 0, 'reason': GONE}, {'index': 2, 'reason': TWICE}]
    again = place.docs.apply('Lens/plan.md', 'accept', [waiting[1]]).json()
    assert again['applied'] == [] and again['failed'] == [{'index': 0, 'reason': GONE}]
    assert again['revision'] == reply['revision'] and again['etag'] == reply['etag']


def test_apply__finds_what_has_moved_since_it_was_listed(place):
    waiting = place.docs.suggestions('Lens/plan.md')
    place.lens.write('plan.md', 'Somebody typed this.\n\n' + PLAN)
    reply = place.docs.apply('Lens/plan.md', 'accept', waiting).json()
    assert reply['applied'] == [0, 1, 2, 3], reply
    assert place.lens.read('plan.md') == 'Somebody typed this.\n\n' + ACCEPTED


def test_apply__with_a_text_writes_that_instead(place):
    waiting = place.docs.suggestions('Lens/plan.md')
    assert place.docs.apply('Lens/plan.md', 'accept', waiting[:1], text='swift').json()['applied'] == [0]
    assert 'The swift fox.' in place.lens.read('plan.md')
    refused(place.docs.apply('Lens/plan.md', 'accept', waiting[1:3], text='x'), 400, 'bad_input')
    refused(place.docs.apply('Lens/plan.md', 'reject', waiting[1:2], text='x'), 400, 'bad_input')


def test_apply__a_reply_is_a_comment_behind_it_in_the_persons_name(place):
    waiting = place.docs.suggestions('Lens/plan.md')
    reply = place.docs.apply('Lens/plan.md', 'reply', waiting[:1], text='why not swift?', author='Ada "the" <boss>')
    assert reply.status == 200 and reply.json()['remaining_suggestions'] == 5, reply
    now = place.lens.read('plan.md')
    start = now.index(waiting[0]['raw_markup']) + len(waiting[0]['raw_markup'])
    assert now[start:].startswith('{>>{"author":"Ada the boss","time":') and '@@why not swift?<<} fox.' in now
    assert [s['author'] for s in place.docs.suggestions('Lens/plan.md') if s['content'] == 'why not swift?'] == ['Ada the boss']
    assert place.docs.revisions('Lens/plan.md')[0]['kind'] == 'comment'
    for text in ('', ' ', 'a <<} b', '{++x++}', None):
        refused(place.docs.apply('Lens/plan.md', 'reply', waiting[:1], **({} if text is None else {'text': text})), 400, 'bad_input')


def test_apply__bytes_outside_are_identical(place):
    text = '\ufeffone\r\n\ttwo {++three++}\r\n\x01{--four--}  \r\n'
    place.lens.write('odd.md', text)
    waiting = place.docs.suggestions('Lens/odd.md')
    assert place.docs.apply('Lens/odd.md', 'accept', waiting).json()['applied'] == [0, 1]
    assert place.lens.read('odd.md') == '\ufeffone\r\n\ttwo three\r\n\x01  \r\n'


def test_apply__takes_as_many_as_it_says(place):
    place.lens.write('many.md', ''.join(f'{{++{n}++}} ' for n in range(501)))
    waiting = place.docs.suggestions('Lens/many.md')
    refused(place.docs.apply('Lens/many.md', 'accept', waiting), 400, 'bad_input')
    refused(place.docs.apply('Lens/many.md', 'accept', []), 400, 'bad_input')
    assert len(place.docs.apply('Lens/many.md', 'accept', waiting[:500]).json()['applied']) == 500


@pytest.mark.parametrize('body', [
    {}, {'path': 'Lens/plan.md'}, {'path': 'Lens/plan.md', 'action': 'accept'}, {'path': 'Lens/plan.md', 'action': 'accept', 'suggestions': {}},
    {'path': 'Lens/plan.md', 'action': 'accept', 'suggestions': [1]}, {'path': 'Lens/plan.md', 'action': 'accept', 'suggestions': [{}]},
    {'path': 'Lens/plan.md', 'action': 'accept', 'suggestions': [{'raw_markup': ''}]},
    {'path': 'Lens/plan.md', 'action': 'maybe', 'suggestions': [{'raw_markup': '{++a++}'}]},
    {'path': 1, 'action': 'accept', 'suggestions': [{'raw_markup': '{++a++}'}]},
    {'path': 'Lens/plan.md', 'action': 'accept', 'suggestions': [{'raw_markup': '{++a++}'}], 'surprise': 1},
    {'path': 'Lens/plan.md', 'action': 'accept', 'suggestions': [{'raw_markup': '{++a++}', 'from': -1}]}])
def test_apply__what_cannot_be_understood_is_400(place, body):
    refused(place.docs.post('/docs/suggestions/apply', body), 400, 'bad_input')


def test_apply__what_is_not_there_is_404(place):
    for path in ('Lens/none.md', 'Nowhere/x.md', '../Other/secret.md', 'Lens/../Other/secret.md', 'Lens', '/Lens/plan.md'):
        refused(place.docs.apply(path, 'accept', [{'raw_markup': '{++a++}'}]), 404, 'not_found', MISSING)


def test_apply__of_two_at_once_each_decision_stands(place):
    waiting = place.docs.suggestions('Lens/plan.md')
    answers, line = [], threading.Barrier(4)

    def accept(one):
        line.wait()
        answers.append(place.docs.apply('Lens/plan.md', 'accept', [one]).json())
    threads = [threading.Thread(target=accept, args=(one,)) for one in waiting]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a['applied'] for a in answers] == [[0]] * 4 and place.lens.read('plan.md') == ACCEPTED
    assert len(place.docs.revisions('Lens/plan.md')) == 5


# Who may.

def everything(docs):
    """The status of each operation that changes something."""
    one = docs.read('Lens/plain.md')
    match = one.json()['etag'] if one.status == 200 else '*'
    return [docs.write('Lens/plain.md', 'mine\n', match=match), docs.write('Lens/fresh.md', 'x', new=True),
            docs.restore('Lens/plain.md', 1), docs.move('Lens/deep/er/note.md', 'Lens/deep/note.md'), docs.apply('Lens/plan.md', 'accept', [{'raw_markup': '{--the --}'}])]


def test_access__users_and_keys_with_the_scope_decide_others_read(guarded):
    member, reviewer = guarded.key(), guarded.key('--review', '--name', 'proofreader')
    person, auditor = guarded.user('ada'), guarded.key('--role', 'auditor', '--review')
    for docs in (member, guarded.key('--role', 'admin'), guarded.key('--role', 'service')):
        before = guarded.lens.read('plain.md')
        assert docs.document('Lens/plain.md')['content'] == before and docs.files() and docs.revisions('Lens/plain.md')
        for reply in everything(docs):
            assert refused(reply, 403, 'denied', 'access denied').json()['detail'] == DENIED
        assert guarded.lens.read('plain.md') == before
    for reply in everything(auditor):
        refused(reply, 403, 'denied')
    assert auditor.document('Lens/plain.md')
    assert [r.status for r in everything(reviewer)] == [200, 201, 200, 200, 200]
    assert {r.get('author') for r in member.revisions('Lens/plain.md')} == {None, 'proofreader'}
    one = person.document('Lens/plain.md')
    assert person.write('Lens/plain.md', 'hers\n', match=one['etag'], author='somebody else').status == 200
    assert member.revisions('Lens/plain.md')[0]['author'] == 'ada'


def test_access__read_only_keys_change_nothing_even_with_the_scope(guarded):
    for reply in everything(guarded.key('--review', '--read-only')):
        assert 'read-only' in refused(reply, 403, 'denied').json()['detail']
    assert guarded.key('--read-only').document('Lens/plan.md')['content'] == PLAN


def test_access__a_key_for_one_folder_knows_of_no_other(guarded):
    docs = guarded.key('--review', '--folder', 'Lens')
    assert [f['path'] for f in docs.files()] == ['Lens/deep/er/note.md', 'Lens/plan.md']
    assert all(f['path'].startswith('Lens/') for f in docs.get('/docs/files').json()['files'])
    for folder in ('Other', 'Nowhere'):
        paths = f'{folder}/secret.md'
        answers = [docs.read(paths), docs.history(paths), docs.revision(paths, 1), docs.write(paths, 'x', match='*'),
                   docs.write(paths, 'x', new=True), docs.restore(paths, 1), docs.move(paths, 'Other/p.md'), docs.apply(paths, 'accept', [{'raw_markup': '{++Hidden++}'}])]
        for reply in answers:
            refused(reply, 404, 'not_found', MISSING)
        refused(docs.get('/docs/files?folder=' + folder), 404, 'not_found')
        refused(docs.get('/docs/suggestions?folder=' + folder), 404, 'not_found')
    assert guarded.other.read('secret.md') == '{++Hidden++} words.\n'


def test_access__a_folder_of_one_tenant_is_unknown_to_others(holdfast, tmp_path):
    one = Place(holdfast, tmp_path, auth='required', tenants=['acme'])
    theirs, mine = one.key('--tenant', 'rival', '--review'), one.key('--tenant', 'acme', '--review')
    assert mine.document('Other/secret.md') and [f['path'] for f in mine.files('&folder=Other')] == ['Other/secret.md']
    for ask in (lambda d, p: d.read(p), lambda d, p: d.history(p), lambda d, p: d.write(p, 'x', match='*'),
                lambda d, p: d.apply(p, 'reject', [{'raw_markup': '{++Hidden++}'}])):
        foreign, unknown = ask(theirs, 'Other/secret.md'), ask(theirs, 'Nowhere/secret.md')
        drop = ('request_id',)
        assert foreign.status == unknown.status == 404
        assert {k: v for k, v in foreign.json().items() if k not in drop} == {k: v for k, v in unknown.json().items() if k not in drop}
    refused(theirs.get('/docs/files?folder=Other'), 404, 'not_found')
    assert one.other.read('secret.md') == '{++Hidden++} words.\n'


def test_access__keys_for_other_servers_see_no_documents(guarded):
    docs = guarded.key('--server', 'files', '--review')
    refused(docs.read('Lens/plan.md'), 404, 'not_found', MISSING)
    refused(docs.get('/docs/files'), 404, 'not_found')
    assert guarded.key('--server', 'docs').document('Lens/plan.md')


def test_access__the_control_socket_is_the_local_admin(guarded):
    refused(guarded.docs.read('Lens/plan.md'), 401, 'tenant_not_found')
    assert commands.control(guarded.hf, '/api/v1/docs/files/Lens/plan.md').json()['content'] == PLAN


def test_nothing__without_folders_there_are_no_documents(holdfast):
    docs = Docs(holdfast(settings={}))
    assert docs.get('/docs/files').json() == {'files': [], 'count': 0, 'next_cursor': None}
    assert docs.files() == []
    refused(docs.read('Lens/plan.md'), 404, 'not_found', MISSING)
