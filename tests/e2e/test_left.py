# SPDX-License-Identifier: Apache-2.0
"""The memory of requests whose clients left during slow calls."""
import os

from harness import Client, wait_for
from scripted import open_gate, script
from test_pressure import needs_real_memory
from test_undelivered import outcomes, result_of, running, waiting

N = 200
PADDING = 200_000


def resident(hf):
    with open(f'/proc/{hf.process.pid}/statm', encoding='utf-8') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


@needs_real_memory
def test_clients_that_left__hold_no_memory_of_their_requests(holdfast, scripted):
    """The calls keep their own copies.  The requests of later clients fit into the memory of those that left."""
    server = scripted('srv', http=True)
    hf = holdfast({'srv': server.entry})
    client = Client(hf, '/mcp/srv').connect('2025-06-18')
    gate = server.gate()
    grown = []
    for wave, filler in enumerate('xy'):
        before = resident(hf)
        left = [script(client, {'wait': gate}, {'result': result_of('it ran')}, {'padding': filler * PADDING}) for _ in range(N)]
        wait_for(lambda: (waiting(hf), running(hf)) == (N, N * (wave + 1)), 'every call to run')
        grown.append(resident(hf) - before)
        for later in left:
            later.close()
        wait_for(lambda: waiting(hf) == 0, 'the requests to end')
        assert running(hf) == N * (wave + 1)
    assert grown[0] > 2 * N * PADDING and grown[1] < 0.92 * grown[0], grown
    open_gate(gate)
    wait_for(lambda: running(hf) == 0, 'the calls to end')
    assert outcomes(hf) == ['ok'] * 2 * N
