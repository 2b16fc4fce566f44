# SPDX-License-Identifier: Apache-2.0
"""Rows that are deleted after a time of their own: ended sessions, results that no client received, old texts of documents."""
import pytest

from commands import run
from harness import wait_for
from knowledge import handle_of, said
from rest import Rest, refused
from stored import Stored, ms
from test_limits import Slept
from test_undelivered import Call, connect, is_redelivered, result_of, server  # noqa: F401  (a fixture)
from vault import Docs, Folder

DAY = 86400


@pytest.fixture
def slept(tmp_path):
    return Slept(tmp_path)


def new_session(api):
    reply = api.post('/sessions', {'edge_mcp_id': 'edge-1'})
    assert reply.status == 201
    return reply.json()['session_id']


def test_ended_session__is_deleted_after_its_time_with_context_and_stays_in_the_record(holdfast, slept, database):
    hf = holdfast(settings={'session': {'cleanup': {'interval': '100ms', 'keep': '2d'}}}, env={**slept.env, **database})
    api = Rest(hf)
    ended, live = new_session(api), new_session(api)
    assert api.put(f'/sessions/{ended}/context', {'a': 1}, headers={'If-None-Match': '*'}).status in (200, 201)
    assert api.post(f'/sessions/{ended}/tools', {'tool_name': 'lint'}).status == 200
    assert api.delete(f'/sessions/{ended}').status in (200, 204)
    slept.set(2 * DAY - 60)
    hf.restart(kill=False)
    assert api.get(f'/sessions/{ended}').json()['status'] == 'terminated'
    slept.set(2 * DAY + 60)
    wait_for(lambda: api.get(f'/sessions/{ended}').status == 404, 'the ended session to be deleted')
    refused(api.get(f'/sessions/{ended}/context'), 404, 'session_not_found')
    hf.wait_log(lambda l: l.get('msg') == 'Deleted sessions that had ended', 'the deletion to be logged')
    found = api.get('/audit/executions?limit=10').json()['executions']
    assert [e['tool'] for e in found if e.get('tool')] == ['lint'], found
    assert api.get(f'/sessions/{live}').json()['status'] == 'expired'  # after 24 h; its time begins there


@pytest.mark.parametrize('late', [False, True], ids=['in_time', 'too_late'])
def test_undelivered__results_are_stored_as_long_as_configured(holdfast, slept, server, database, late):  # noqa: F811
    settings = {'session': {'cleanup': {'undelivered': '60s', 'interval': '100ms'}}}
    hf = holdfast({'srv': server.entry}, settings, env={**slept.env, **database})
    stored = Stored(hf, database.get('DATABASE_URL'))
    client = connect(hf)
    call = Call(server, result_of('one'))
    call.lose(client)
    row, = stored.rows('undelivered')
    assert ms(row['expires_at']) - ms(row['created_at']) == 60_000
    slept.set(61 if late else 50)
    hf.restart(kill=False)
    if late:
        wait_for(lambda: not stored.rows('undelivered'), 'the result to be deleted')
    assert is_redelivered(call.ask(client)) == (not late)


def test_document_history__old_texts_go_and_the_list_of_who_decided_stays(holdfast, slept, tmp_path, database):
    lens = Folder(tmp_path / 'lens')
    lens.write('doc.md', 'One line.\nTwo lines.\nThree lines.\n')
    hf = holdfast(settings={'docs': {'Lens': lens.settings(history_keep='2d')}, 'session': {'cleanup': {'interval': '100ms'}}},
                  env={**slept.env, **database})
    docs = Docs(hf)
    client = hf.client('/mcp/docs').connect()
    handle = handle_of(client.call('read', {'file_path': 'Lens/doc.md'}))
    for old, new in (('One', 'First'), ('Two', 'Second')):
        said(client.call('edit', {'file_path': 'Lens/doc.md', 'old_string': old, 'new_string': new, 'session_id': handle}))
    first, second = docs.suggestions('Lens/doc.md')
    assert docs.apply('Lens/doc.md', 'accept', [first]).status == 200
    before = docs.revisions('Lens/doc.md')
    assert [r['kind'] for r in before] == ['accept', 'suggest', 'suggest', 'outside'] and all(r['has_text'] for r in before)
    slept.set(2 * DAY - 60)
    hf.restart(kill=False)
    assert docs.revision('Lens/doc.md', 1).status == 200
    slept.set(2 * DAY + 60)
    hf.restart(kill=False)
    wait_for(lambda: docs.revision('Lens/doc.md', 1).status == 404, 'the first text to be deleted')
    gone = refused(docs.revision('Lens/doc.md', 3), 404, 'not_found').json()['detail']
    assert gone.startswith('The text of revision 3 was deleted') and 'history_keep' in gone
    assert refused(docs.restore('Lens/doc.md', 2), 404, 'not_found').json()['detail'].startswith('The text of revision 2 was')
    after = docs.revisions('Lens/doc.md')
    assert [{**r, 'has_text': True} for r in after] == before and [r['has_text'] for r in after] == [True, False, False, False]
    assert docs.revision('Lens/doc.md', 4).json()['content'] == lens.read('doc.md') == docs.document('Lens/doc.md')['content']
    assert [s['id'] for s in docs.suggestions('Lens/doc.md')] == [second['id']]
    assert docs.apply('Lens/doc.md', 'reject', [second]).status == 200
    assert lens.read('doc.md') == 'First line.\nTwo lines.\nThree lines.\n'
    assert docs.restore('Lens/doc.md', 4).status == 200
    assert [r['revision'] for r in docs.revisions('Lens/doc.md')] == [6, 5, 4, 3, 2, 1]
    listed = run(hf, 'docs', 'log', 'Lens/doc.md').stdout.splitlines()
    assert len([line for line in listed if line.endswith('(text deleted)')]) == 3, listed
