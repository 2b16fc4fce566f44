# SPDX-License-Identifier: Apache-2.0
"""glob, grep, search and get_links, and the tools that make, move and comment on documents: their formats
to the letter, and that they say when they show only a part."""
import os

import pytest

from harness import wait_for
from knowledge import META, body_of, handle_of, refused, said, started

LINKS = 'Backlinks (documents linking to this):\n%s\n\nForward links (documents this links to):\n%s'
NONE = 'No matches found.'


@pytest.fixture(scope='module')
def kb(request, tmp_path_factory):
    kb = started(request, tmp_path_factory, 'find')
    kb.write('Lens/bio/Cell.md', '# The Cell\n\nA cell has a wall.\nMitochondria are the powerhouse.\n')
    kb.write('Lens/bio/Leaf.md', 'Leaf: see [[Cell]] and [wall](Cell.md#wall).\nAlso `[[NotALink]]`.\nA leaf is green.\n')
    kb.write('Lens/bio/deep/Root.md', 'See [[../Cell|cells]], [[bio/Leaf]] and [[Missing]].\n')
    kb.write('Lens/Top.md', 'one\ntwo {--old--}{++new\nlines++} here\nthree\nneedle\nfive\nsix\nseven\nneedle again\n')
    kb.write('Lens/.hidden.md', 'needle\n')
    kb.write('Lens/picture.png', 'needle\n')
    kb.write('Shelf/Book.md', 'A needle on the shelf.\n')
    wait_for(lambda: said(kb.agent().call('search', {'query': 'powerhouse'})) != NONE and
             said(kb.agent().call('search', {'query': 'shelf'})) != NONE, 'the index')
    return kb


def call(kb, tool, **arguments):
    return kb.agent().call(tool, arguments)


@pytest.mark.parametrize('pattern, path, found', [
    ('**/*.md', 'Lens', ['Lens/Top.md', 'Lens/bio/Cell.md', 'Lens/bio/Leaf.md', 'Lens/bio/deep/Root.md']),
    ('*.md', 'Lens/bio', ['Lens/bio/Cell.md', 'Lens/bio/Leaf.md', 'Lens/bio/deep/Root.md']),
    ('Lens/bio/*', None, ['Lens/bio/Cell.md', 'Lens/bio/Leaf.md']),
    ('Lens/**/R*.md', None, ['Lens/bio/deep/Root.md']),
    ('{Cell,Leaf}.md', None, ['Lens/bio/Cell.md', 'Lens/bio/Leaf.md']),
    ('[CL]e?[lf].md', 'Lens/', ['Lens/bio/Cell.md', 'Lens/bio/Leaf.md']),
    ('Book.md', None, ['Shelf/Book.md']), ('book.md', None, []), ('**', 'Shelf', ['Shelf/Book.md']), ('*.png', None, []),
    ('.hidden.md', None, [])])
def test_glob__gives_sorted_paths(kb, pattern, path, found):
    text = said(call(kb, 'glob', pattern=pattern, **({'path': path} if path else {})))
    assert text == ('\n'.join(found) or NONE)


def test_glob__that_is_none_is_refused(kb):
    assert refused(call(kb, 'glob')) == 'Missing required parameter: pattern'
    assert refused(call(kb, 'glob', pattern='')) == 'The glob pattern is empty; ** fits every document.'
    assert '[' in refused(call(kb, 'glob', pattern='a[b'))
    assert refused(call(kb, 'glob', pattern='*', path='Nowhere')) == 'Error: Folder not found: Nowhere'
    assert said(call(kb, 'glob', pattern='x' * 1024)) == NONE
    assert refused(call(kb, 'glob', pattern='x' * 1025)) == 'The glob pattern is longer than 1,024 bytes; shorten it.'


def test_glob__caps_its_results_and_says_so(kb):
    for i in range(1001):
        kb.write(f'Desk/many/{i:04}.md', 'x\n')
    text = said(call(kb, 'glob', pattern='*', path='Desk/many'))
    paths, rest = text.split('\n\n')
    assert len(paths.split('\n')) == 1000 and rest == '[1 more not shown; use a narrower pattern or path.]'
    os.unlink(kb.file('Desk/many/0000.md'))
    assert 'not shown' not in said(call(kb, 'glob', pattern='*', path='Desk/many'))


@pytest.mark.parametrize('arguments, text', [
    ({}, 'Lens/Top.md\nShelf/Book.md'),
    ({'output_mode': 'files_with_matches', 'path': 'Shelf'}, 'Shelf/Book.md'),
    ({'output_mode': 'count'}, 'Lens/Top.md:2\nShelf/Book.md:1'),
    ({'output_mode': 'content', 'path': 'Lens'}, 'Lens/Top.md:5:needle\nLens/Top.md:9:needle again'),
    ({'output_mode': 'content', 'path': 'Lens/Top.md', '-C': 1},
     'Lens/Top.md-4-three\nLens/Top.md:5:needle\nLens/Top.md-6-five\n--\nLens/Top.md-8-seven\nLens/Top.md:9:needle again'),
    ({'output_mode': 'content', '-B': 1, '-A': 0},
     'Lens/Top.md-4-three\nLens/Top.md:5:needle\n--\nLens/Top.md-8-seven\nLens/Top.md:9:needle again\n--\n'
     'Shelf/Book.md:1:A needle on the shelf.'),
    ({'output_mode': 'content', '-A': 3, 'path': 'Lens'},
     'Lens/Top.md:5:needle\nLens/Top.md-6-five\nLens/Top.md-7-six\nLens/Top.md-8-seven\nLens/Top.md:9:needle again'),
    ({'output_mode': 'content', 'head_limit': 1},
     'Lens/Top.md:5:needle\n\n[There are more matches; raise head_limit, or narrow pattern or path.]'),
    ({'head_limit': 2}, 'Lens/Top.md\nShelf/Book.md')])
def test_grep__has_the_layout_of_ripgrep(kb, arguments, text):
    assert said(kb.agent().call('grep', {'pattern': 'needle', **arguments})) == text


def test_grep__numbers_lines_as_read_does_and_sees_what_it_shows(kb):
    assert '\n     3\tlines here\n' in body_of(kb.read('Lens/Top.md'))
    assert said(call(kb, 'grep', pattern='^lines here$', output_mode='content')) == 'Lens/Top.md:3:lines here'
    assert said(call(kb, 'grep', pattern='old', path='Lens/Top.md')) == NONE


def test_grep__ignores_case_when_told(kb):
    assert said(call(kb, 'grep', pattern='NEEDLE')) == NONE
    assert said(call(kb, 'grep', pattern='NEEDLE', output_mode='count', **{'-i': True})) == 'Lens/Top.md:2\nShelf/Book.md:1'


def test_grep__hides_a_byte_order_mark(kb):
    path = kb.new(b'\xef\xbb\xbfmarked\r\nby bytes\r\n', 'Talk')
    assert said(call(kb, 'grep', pattern='^marked$', output_mode='content')) == f'{path}:1:marked'
    assert said(call(kb, 'grep', pattern='bytes$', output_mode='content')) == f'{path}:2:by bytes'


@pytest.mark.parametrize('arguments, text', [
    ({'pattern': '('}, 'Invalid regex pattern: missing closing parenthesis at offset 1.'),
    ({'pattern': '['}, 'Invalid regex pattern: missing terminating ] for character class at offset 1.'),
    ({'pattern': 'x', 'output_mode': 'all'}, 'Parameter output_mode must be files_with_matches, content or count.'),
    ({'pattern': 'x', '-C': 51}, 'Parameter -C must be a whole number from 0 to 50.'),
    ({'pattern': 'x', '-i': 'yes'}, 'Parameter -i must be true or false, not a string.'),
    ({'pattern': 'x', 'head_limit': 0}, 'Parameter head_limit must be a whole number from 1 to 10000.'),
    ({'pattern': 'x', 'path': 'Nowhere/x'}, 'Error: Folder not found: Nowhere'), ({}, 'Missing required parameter: pattern')])
def test_grep__of_wrong_arguments_names_them(kb, arguments, text):
    assert refused(kb.agent().call('grep', arguments)) == text


def test_grep__shows_250_lines_unless_told_and_says_so(kb):
    path = kb.new('haystack\n' * 251, 'Talk')
    more = '\n\n[There are more matches; raise head_limit, or narrow pattern or path.]'
    text = said(call(kb, 'grep', pattern='haystack', output_mode='content'))
    assert text.endswith(f'{path}:250:haystack{more}') and text.count('\n') == 249 + 2
    assert said(call(kb, 'grep', pattern='haystack', output_mode='content', head_limit=251)).endswith(f'{path}:251:haystack')


@pytest.mark.parametrize('tool', ['glob', 'grep'])
@pytest.mark.parametrize('path, text', [
    ('Lens/boi', 'Error: Path not found: Lens/boi. Did you mean Lens/bio?'),
    ('Lens/bio/cell', 'Error: Path not found: Lens/bio/cell. Did you mean Lens/bio/Cell.md?'),
    ('Lens/Root.md', 'Error: Path not found: Lens/Root.md. Did you mean Lens/bio/deep/Root.md?'),
    ('Lens/bio/Celery/Stalks.md', 'Error: Path not found: Lens/bio/Celery/Stalks.md. There is no such document, and no folder with documents.'),
    ('Lans', 'Error: Folder not found: Lans. Did you mean Lens?')])
def test_a_path_that_is_not_there__is_an_error_with_the_nearest(kb, tool, path, text):
    assert refused(call(kb, tool, pattern='*' if tool == 'glob' else 'x', path=path)) == text


def test_grep__tells_of_documents_it_cannot_read(kb):
    path = kb.new(b'unreadable caf\xe9\n', 'Desk')
    assert said(call(kb, 'grep', pattern='unreadable')) == NONE + '\n\n[1 document was not searched: not UTF-8 text, or too large.]'
    os.unlink(kb.file(path))


def test_grep__that_would_never_end_ends(kb):
    path = kb.new('a' * 60 + '!\n', 'Talk')
    text = said(call(kb, 'grep', pattern=r'^(a+)+(b|\1c)$', path=path))
    assert text == NONE + '\n\n[The pattern takes too long in 1 document; make it simpler.]'


def test_search__ranks_and_shows_where(kb):
    text = said(call(kb, 'search', query='cell'))
    assert text.split('\n')[0] == 'Lens/bio/Cell.md: The Cell'
    assert '**cell**' in text.lower() or '**Cell**' in text
    assert said(call(kb, 'search', query='leaf')).startswith('Lens/bio/Leaf.md: Leaf\n  ')
    assert said(call(kb, 'search', query='"a wall"')).startswith('Lens/bio/Cell.md: ')
    assert said(call(kb, 'search', query='mitoch*')).startswith('Lens/bio/Cell.md: ')
    assert said(call(kb, 'search', query='needle -again')).startswith('Shelf/Book.md: Book\n')
    assert said(call(kb, 'search', query='nosuchword')) == NONE


def test_search__caps_its_results_and_says_so(kb):
    assert said(call(kb, 'search', query='needle', limit=1)).endswith('\n\n[There are more; these are the best 1.]')
    assert 'There are more' not in said(call(kb, 'search', query='needle', limit=2))
    assert refused(call(kb, 'search', query='x', limit=101)) == 'Parameter limit must be a whole number from 1 to 100.'
    assert refused(call(kb, 'search', query='')) == 'The query has no word to look for; name at least one.'
    assert refused(call(kb, 'search')) == 'Missing required parameter: query'


def test_search__follows_the_files(kb):
    path = kb.new('# Fresh\n\nzebrafinch\n', 'Talk')
    wait_for(lambda: said(call(kb, 'search', query='zebrafinch')) == f'{path}: Fresh\n  # Fresh **zebrafinch**', 'the new document')
    kb.write(path, '# Fresh\n\nsparrow\n')
    wait_for(lambda: said(call(kb, 'search', query='zebrafinch')) == NONE, 'the change')
    os.unlink(kb.file(path))
    wait_for(lambda: said(call(kb, 'search', query='sparrow')) == NONE, 'the end')


def test_links__go_both_ways(kb):
    assert said(call(kb, 'get_links', file_path='Lens/bio/Cell.md')) == LINKS % ('- Lens/bio/Leaf.md\n- Lens/bio/deep/Root.md', '- (none)')
    assert said(call(kb, 'get_links', file_path='Lens/bio/deep/Root.md')) == LINKS % ('- (none)', '- Lens/bio/Cell.md\n- Lens/bio/Leaf.md')
    assert said(call(kb, 'get_links', file_path='Lens/Top.md')) == LINKS % ('- (none)', '- (none)')
    assert refused(call(kb, 'get_links', file_path='Lens/No.md')) == 'Error: Document not found: Lens/No.md'


def test_create__is_itself_a_suggestion(kb):
    assert said(call(kb, 'create', file_path='Lens/made/New.md', content='# New\n\nWords.\n')) == 'Created Lens/made/New.md'
    assert kb.plain('Lens/made/New.md') == b'{++# New\n\nWords.\n++}'
    assert body_of(kb.read('Lens/made/New.md')).startswith('     1\t# New\n     2\t\n     3\tWords.\n\n[Pending suggestions]\n  L1: ')
    assert said(call(kb, 'create', file_path='Lens/made/Empty.md', content='')) == 'Created Lens/made/Empty.md'
    assert kb.bytes('Lens/made/Empty.md') == b''
    assert said(call(kb, 'create', file_path='Desk/Direct.md', content='text\n')) == 'Created Desk/Direct.md'
    assert kb.bytes('Desk/Direct.md') == b'text\n'


def test_create__counts_as_read(kb):
    handle = said(call(kb, 'create_session')).split('\n')[0]
    said(call(kb, 'create', file_path='Lens/made/Own.md', content='one\ntwo\n', session_id=handle))
    said(kb.edit('Lens/made/Own.md', 'two', 'three', handle))
    assert kb.plain('Lens/made/Own.md') == b'{++one\nthree\n++}'


def test_create__at_its_limit_and_past_it(kb):
    said(call(kb, 'create', file_path='Lens/made/Large.md', content='x' * (2 << 20)))
    assert refused(call(kb, 'create', file_path='Lens/made/Larger.md', content='x' * ((2 << 20) + 1))) == (
        'Error: a new document holds at most 2 MiB; create several.')
    assert not os.path.exists(kb.file('Lens/made/Larger.md'))


@pytest.mark.parametrize('path, text', [
    ('Lens/Top.md', "Path 'Top.md' already exists in folder 'Lens'"), ('Lens/x.html', None), ('Lens/.md', None), ('x.md', None),
    ('Nowhere/x.md', "Unknown folder 'Nowhere'. Available folders: Desk, Lens, Shelf, Talk"),
    ('Lens/../x.md', 'Error: Document not found: Lens/../x.md'), ('Lens/.x/y.md', None), ('Lens//x.md', None)])
def test_create__where_it_cannot_be_says_why(kb, path, text):
    before = kb.bytes('Lens/Top.md')
    found = refused(call(kb, 'create', file_path=path, content='x'))
    assert not text or found == text
    assert kb.bytes('Lens/Top.md') == before


def test_create__with_markup_is_refused_and_comments_are_signed(kb):
    assert refused(call(kb, 'create', file_path='Lens/m.md', content='{++x++}')).startswith(
        "Error: content contains CriticMarkup syntax '{++'. Do not include CriticMarkup in your input")
    assert refused(call(kb, 'create', file_path='Lens/m.md')) == 'Missing required parameter: content'
    assert not os.path.exists(kb.file('Lens/m.md'))


def linked(kb, folder):
    """Two documents that link to each other, and the index knows."""
    kb.write(f'{folder}/m/A.md', 'A, see [[B]]\n')
    kb.write(f'{folder}/m/B.md', 'B, see [[m/A]] and [a](A.md#part) and ![[A|name]]\n')
    wait_for(lambda: f'{folder}/m/B.md' in said(call(kb, 'get_links', file_path=f'{folder}/m/A.md')), 'the links')


def test_move__rewrites_the_links_where_agents_write(kb):
    linked(kb, 'Desk')
    text = said(call(kb, 'move', file_path='Desk/m/A.md', new_path='Desk/m/sub/C.md'))
    assert text == 'Moved Desk/m/A.md -> Desk/m/sub/C.md (4 links rewritten)'
    assert not os.path.exists(kb.file('Desk/m/A.md'))
    assert b'C' in kb.bytes('Desk/m/B.md') and b'A.md' not in kb.bytes('Desk/m/B.md')
    assert b'#part' in kb.bytes('Desk/m/B.md') and b'|name]]' in kb.bytes('Desk/m/B.md')
    wait_for(lambda: said(call(kb, 'get_links', file_path='Desk/m/sub/C.md')) == LINKS % ('- Desk/m/B.md', '- Desk/m/B.md'), 'the index')


def test_move__finds_links_in_other_case_and_in_either_encoding_of_accents(kb):
    kb.write('Desk/n/\u00dcber.md', 'x\n')
    kb.write('Desk/n/L.md', 'see [[u\u0308ber]] and [[n/\u00fcBER]]\n')
    wait_for(lambda: 'Desk/n/L.md' in said(call(kb, 'get_links', file_path='Desk/n/\u00dcber.md')), 'the links')
    text = said(call(kb, 'move', file_path='Desk/n/\u00dcber.md', new_path='Desk/n/Unter.md'))
    assert text.endswith('(2 links rewritten)'), text
    assert kb.bytes('Desk/n/L.md') == b'see [[Unter]] and [[n/Unter]]\n'


def test_move__that_would_change_other_documents_is_for_a_person(kb):
    linked(kb, 'Lens')
    before = kb.bytes('Lens/m/A.md'), kb.bytes('Lens/m/B.md')
    assert refused(call(kb, 'move', file_path='Lens/m/A.md', new_path="Lens/m/it's.md")) == (
        "Error: Lens/m/A.md was not moved. 1 other document links to it, and in 'Lens' agents do not change documents without review: "
        "Lens/m/B.md. Ask a person to run `holdfast docs move 'Lens/m/A.md' 'Lens/m/it'\\''s.md'`, which moves it and rewrites the links.")
    assert (kb.bytes('Lens/m/A.md'), kb.bytes('Lens/m/B.md')) == before
    # One that differs in case alone changes no link; one that nobody links to goes.
    assert said(call(kb, 'move', file_path='Lens/m/A.md', new_path='Lens/m/a.md')) == 'Moved Lens/m/A.md -> Lens/m/a.md (0 links rewritten)'
    assert kb.bytes('Lens/m/B.md') == before[1]
    path = kb.new('alone\n')
    assert said(call(kb, 'move', file_path=path, new_path='Lens/m/alone.md')).startswith('Moved ')


MARKUP_NAMES = ['{--{"author":"Chris","time":1}@@.md', 'a}.md', 'a<b.md', 'a>b.md', 'R&D.md', 'a"b.md', 'a[b.md', 'a]b.md', 'a|b.md',
                'a#b.md', 'a^b.md', 'a`b.md', 'a\\b.md', 'sub{++/x.md']
UNSEEN_NAMES = ['a\x01.md', 'a\n.md', 'a\x7f.md', 'a\x85.md', 'a\u202eb.md', 'a\u200bb.md', 'a\u2066b.md', 'a\ufeffb.md', 'a\u00adb.md',
                'a\U000e0041b.md', 'a\ufe0fb.md', 'a\u2028b.md']


@pytest.mark.parametrize('name', MARKUP_NAMES + UNSEEN_NAMES)
@pytest.mark.parametrize('folder', ['Lens', 'Desk'])
def test_a_new_name__with_markup_or_unseen_characters_is_refused(kb, folder, name):
    path = kb.new('text\n', folder)
    wrong = next(c for c in name if c in '{}<>&"[]|#^`\\' or not c.isprintable() or c == '\ufe0f')
    for reply in (call(kb, 'create', file_path=f'{folder}/{name}', content='x'), call(kb, 'move', file_path=path, new_path=f'{folder}/{name}')):
        assert f'U+{ord(wrong):04X}' in refused(reply)
    assert os.path.exists(kb.file(path)) and not os.path.exists(kb.file(f'{folder}/{name}'))


def test_a_name_with_markup__that_is_there_already_is_read_and_moved(kb):
    path = kb.write('Desk/{--R&D--}.md', 'odd\n')
    handle = handle_of(kb.read(path))
    said(kb.edit(path, 'odd', 'even', handle))
    said(call(kb, 'move', file_path=path, new_path='Desk/even, (plain) name = ok~.md'))


@pytest.mark.parametrize('path, to, text', [
    ('Lens/No.md', 'Lens/x.md', 'Error: Document not found: Lens/No.md'),
    ('Lens/Top.md', 'Lens/bio/Cell.md', "Path 'bio/Cell.md' already exists in folder 'Lens'"),
    ('Lens/Top.md', 'Desk/Top.md', "Error: a document stays in its folder; give a new_path that begins with 'Lens/'."),
    ('Lens/Top.md', 'Lens/Top.txt', "Error: a document's path ends in .md; give one such as 'Folder/Name.md'."),
    ('Lens/Top.md', 'Lens/../Top.md', None), ('Lens/Top.md', None, 'Missing required parameter: new_path')])
def test_move__where_it_cannot_go_says_why(kb, path, to, text):
    found = refused(call(kb, 'move', file_path=path, **({'new_path': to} if to else {})))
    assert found == text if text else found.startswith('Error: ')
    assert os.path.exists(kb.file('Lens/Top.md'))


def test_comment__stands_after_its_passage_and_answers_a_thread(kb):
    path = kb.new('a claim here\r\nmore\r\n')
    assert said(call(kb, 'comment', file_path=path, quote='claim', comment='why?')) == f'Commented on {path}.'
    assert kb.plain(path) == b'a claim{>>why?<<} here\r\nmore\r\n'
    assert META.search(kb.bytes(path)).group(1) == b'AI'
    said(call(kb, 'comment', file_path=path, quote='claim', comment='indeed'))
    assert kb.plain(path) == b'a claim{>>why?<<}{>>indeed<<} here\r\nmore\r\n'
    said(call(kb, 'comment', file_path=path, quote='more', comment='yes'))
    assert kb.plain(path).endswith(b' here\r\nmore{>>yes<<}\r\n')


@pytest.mark.parametrize('quote, comment, text', [
    ('nowhere', 'x', 'Error: quote not found in %s. Make sure it matches exactly.'),
    ('a', 'x', 'Error: quote is not unique in %s (2 occurrences found). Include more surrounding context to make it unique.'),
    ('', 'x', 'Error: quote is empty. Give the text that the comment is about.'),
    ('claim', ' ', None), ('claim', '{++x++}', None), ('claim', 'a<<}b', None), ('claim', '{>>b', None)])
def test_comment__that_cannot_be_says_why(kb, quote, comment, text):
    path = kb.new('a claim\n')
    found = refused(call(kb, 'comment', file_path=path, quote=quote, comment=comment))
    assert not text or found == text.replace('%s', path)
    assert kb.bytes(path) == b'a claim\n'


def test_comment__of_an_agent_may_be_changed_by_agents(kb):
    path = kb.new('a claim here\n')
    said(call(kb, 'comment', file_path=path, quote='claim', comment='why?'))
    reply = kb.read(path)
    line = body_of(reply).split('\t')[1]
    said(kb.edit(path, line, 'a claim here', handle_of(reply)))
    assert kb.bytes(path) == b'a claim here\n'
