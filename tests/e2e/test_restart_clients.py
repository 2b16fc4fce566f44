# SPDX-License-Identifier: Apache-2.0
"""A crowd of official clients lives through a crash: each has a session, Holdfast is killed and started
again on the same port and data, and every client goes on with the id that it has.  Calls under way end
with a sentence.  When the data is gone too, every client is told so and starts over, once."""
import json
import os
import shutil
import subprocess

import pytest

import harness

HERD = os.path.join(harness.TOP, 'tests/clients/herd.mjs')
CLIENTS = 1000
FEWER = 100

pytestmark = pytest.mark.skipif(not harness.node(), reason='the packages of tests/package.json are not installed')


class Herd:
    """tests/clients/herd.mjs: one process, one transport for each of its clients."""

    def __init__(self, hf, clients):
        url = f'http://127.0.0.1:{hf.port}/mcp/web'
        self.process = subprocess.Popen([harness.node(), HERD, '--url', url, '--clients', str(clients)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def told(self):
        line = self.process.stdout.readline()
        assert line, 'the clients ended'
        return json.loads(line)

    def order(self, word):
        self.process.stdin.write(word + '\n')
        self.process.stdin.flush()
        return self.told()

    def again(self):
        return self.order('again')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_kill_9__a_thousand_clients_go_on_with_their_sessions(holdfast, http_server):
    hf = holdfast({'web': http_server().entry(handles='never')})
    with Herd(hf, CLIENTS) as herd:
        first = herd.told()
        assert first['failures'] == 0, first
        hf.restart()
        second = herd.again()
        print(f"{second['went_on']} went on, {second['started_over']} started over, {second['lost']} were told of lost state")
        assert second['failures'] == 0 and second['went_on'] == CLIENTS and second['started_over'] == 0, second
        third = herd.again()
        assert third['failures'] == 0 and third['went_on'] == CLIENTS and third['lost'] == 0, third
        assert herd.order('tell') == {'told': CLIENTS}, 'the streams that were open came back'


def test_kill_9__ends_the_calls_under_way_with_a_sentence(holdfast, http_server):
    hf = holdfast({'web': http_server().entry(handles='never')})
    with Herd(hf, FEWER) as herd:
        assert herd.told()['failures'] == 0
        assert herd.order('stream') == {'streaming': FEWER}
        hf.restart()
        ended = herd.order('end')
        assert ended['open'] == 0 and sum(n for why, n in ended['errors'].items() if 'Holdfast was restarted' in why) == FEWER, ended
        again = herd.again()
        assert again['failures'] == 0 and again['went_on'] == FEWER, again


def test_lost_data__every_client_starts_over_once(holdfast, http_server):
    hf = holdfast({'web': http_server().entry(handles='never')})
    with Herd(hf, FEWER) as herd:
        assert herd.told()['failures'] == 0
        hf.kill()
        shutil.rmtree(hf.data)
        hf.start()
        second = herd.again()
        assert second['failures'] == 0 and second['started_over'] == FEWER and second['went_on'] == 0, second
        third = herd.again()
        assert third['failures'] == 0 and third['went_on'] == FEWER, third
