# SPDX-License-Identifier: Apache-2.0
"""Random sessions as files: every kind of call and state of a body, odd texts, bytes of any kind."""
import hashlib
import json

from exported import call_line, text, written

WORDS = ['ok', 'café ☕', '=1+1', '`` ` ```', '<b>&', '', 'a\tb\r\nc', '\u202e\u0000\x7f', '😀' * 5, '|x|', '# h', '@all', '[a](http://b)', "it's \"q\" \\"]
OUTCOMES = ['ok', 'tool_error', 'error', 'timeout', 'cancelled', 'refused', 'upstream_lost', 'indeterminate', 'redelivered', 'open']


def some_text(chance):
    if chance.random() < 0.05:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(1, 20)))
    return ''.join(chance.choice(WORDS) for _ in range(chance.randrange(1, 4))).encode()


def value(chance, depth=0):
    kind = chance.randrange(9 if depth < 4 else 6)
    if kind < 3:
        return ''.join(chance.choice(WORDS) for _ in range(chance.randrange(3)))
    if kind < 6:
        return chance.choice([None, True, False, 0, -1, 9007199254740993, 1.5])
    if kind < 7:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {f'k{n}' + chance.choice(WORDS): value(chance, depth + 1) for n in range(chance.randrange(4))}


def some_json(chance):
    data = json.dumps(value(chance), ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, None, None, 1])).encode()
    return data + b' ' * (chance.random() < 0.1)


def some_bytes(chance, size):
    kind = chance.randrange(10)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(1, 200)))  # mostly not UTF-8
    if kind == 1:
        return some_text(chance)
    if kind == 2:
        return chance.choice([b'"%s"' % (b'x' * size), b'\n' * size, b'\xff' * size, '☕'.encode() * (size // 3), b'[' * 60 + b']' * 60, b''])
    return some_json(chance)


def some_body(chance, size):
    data = some_bytes(chance, size)
    original = data + b'more' * chance.randrange(3)
    sha = hashlib.sha256(original).digest()
    state = chance.choice(['complete'] * 6 + ['redacted', 'cut', 'digest', 'removed', 'none'])
    if state == 'none':
        return state, None, None, None
    if state in ('digest', 'removed'):
        return state, len(original), sha, None
    if state == 'complete':
        return chance.choice([(state, len(data), hashlib.sha256(data).digest(), data), (state, None, None, data)])
    return state, len(original), sha, data


def some_call(chance, number, size):
    members = [('id', written(f'{chance.randrange(1, 9)}.{number + 2}'))]
    if chance.random() < 0.2:
        members.append(('parent', written(f'1.{number + 1}')))
    members += [('kind', written(chance.choice(['call', 'call', 'note', 'reported']))),
                ('at', written(f'2026-0{chance.randrange(1, 10)}-1{chance.randrange(10)}T0{chance.randrange(10)}:00:{number % 60:02}.{chance.randrange(1000):03}Z'))]
    for name, most in (('duration_us', 10**10), ('tokens', 10**6)):
        if chance.random() < 0.7:
            members.append((name, b'%d' % chance.randrange(1, most)))
    for name in ('owner', 'transport', 'carrier', 'client', 'server', 'method', 'tool', 'tool_id', 'era'):
        if chance.random() < 0.8:
            members.append((name, text(b'tools/call' if name == 'method' and chance.random() < 0.8 else some_text(chance))))
    members.append(('outcome', text(chance.choice(OUTCOMES).encode())))
    if chance.random() < 0.3:
        members.append(('error', text(some_text(chance))))
    return call_line(number, members, some_body(chance, size), some_body(chance, size))


def some_session(chance, signer, calls, size=2000):
    """The bytes of a file."""
    status = chance.choice(['active', 'expired', 'terminated'])
    session = {'id': f'0192f0c0-0000-7000-8000-{chance.randrange(1 << 48):012x}', 'session_id': f'ses_{chance.randrange(1 << 60)}', 'tenant_id': 'there',
               'owner': 'user:x', 'edge_mcp_id': chance.choice(['', 'e 1'])}
    for name in ('client_name', 'client_type', 'client_version'):
        if chance.random() < 0.7:
            session[name] = chance.choice(['ide', 'cli', 'agent'] if name == 'client_type' else [w for w in WORDS if w and '\0' not in w])
    session['status'] = status
    if status != 'active':
        session['termination_reason'] = 'client request'
    session |= {'origin': chance.choice(['rest', 'tool', 'derived']), 'carrier': chance.choice(['rest', 'header']), 'initialized': chance.random() < 0.5}
    if chance.random() < 0.7:
        session['connection_metadata'] = {'a': 1, 'ü': '=x', 'deep': [[{}]]}
    if chance.random() < 0.5:
        session['setup'] = {'template': 'support@3', 'audit': 'full', 'limits': {'calls': 2}}
    if chance.random() < 0.5:
        session['toolsets'] = ['one', 'zwei ü']
    session |= {'created_at': '2026-01-02T03:04:05.006Z', 'last_activity_at': '2026-01-03T00:00:00.000Z'}
    if status != 'active':
        session['terminated_at'] = '2026-01-04T00:00:00.000Z'
    session |= {'tool_execution_count': chance.randrange(100), 'total_tokens_used': chance.randrange(100)}
    if chance.random() < 0.6:
        session |= {'context_id': '0192f0c0-0000-7000-8000-000000000009', 'context': {'json': {'goal': '☕', 'n': [1, 2, {'x': None}]}}}
    return signer.file(session, [some_call(chance, n, size) for n in range(1, calls + 1)])
