# SPDX-License-Identifier: Apache-2.0
"""The rows behind a Holdfast, read from outside: SQLite's file read-only, PostgreSQL by psql."""
import datetime
import json
import sqlite3

from postgres import Cluster

DAY_MS = 24 * 3600 * 1000


def ms(value):
    """A time in milliseconds, whichever form the store or the JSON has it in."""
    if value is None or isinstance(value, int):
        return value
    moment = datetime.datetime.fromisoformat(value.replace('Z', '+00:00'))
    return round(moment.timestamp() * 1000)


class Stored:
    """rows('edge_mcp_sessions', "session_id = 'x'"): dicts, whichever store it is."""

    def __init__(self, holdfast, url=None):
        self.holdfast, self.url = holdfast, url
        self.kind = 'postgres' if url else 'sqlite'

    def rows(self, table, where='true', order='1'):
        if self.url:
            text = f'SELECT row_to_json(t) FROM (SELECT * FROM mcp.{table} WHERE {where} ORDER BY {order}) t'
            return [json.loads(row[0]) for row in Cluster.sql(self.url, text)]
        with sqlite3.connect(f'file:{self.holdfast.data}/holdfast.db?mode=ro', uri=True) as db:
            db.row_factory = sqlite3.Row
            return [dict(r) for r in db.execute(f'SELECT * FROM {table} WHERE {where} ORDER BY {order}')]

    def texts(self):
        """What documents were: {(document, revision): bytes}, put together by hand."""
        def raw(value):
            return bytes.fromhex(value.removeprefix('\\x')) if isinstance(value, str) else value
        deltas = self.rows('document_deltas', order='document_id, revision')  # first: what they follow is there then
        found = {(r['document_id'], r['revision']): raw(r['content']) for r in self.rows('document_contents')}
        for row in deltas:
            before = found[row['document_id'], row['revision'] - 1]
            found[row['document_id'], row['revision']] = (
                before[:row['prefix']] + raw(row['middle']) + before[len(before) - row['suffix']:])
        return found

    def session(self, name, tenant='acme'):
        row, = self.rows('edge_mcp_sessions', f"session_id = '{name}' AND tenant_id = '{tenant}'")
        row['initialized'], row['counted'] = bool(row['initialized']), bool(row['counted'])
        if isinstance(row['connection_metadata'], str):
            row['connection_metadata'] = json.loads(row['connection_metadata'])
        return row

    def counted(self, tenant):
        """Live counted sessions: what the tenant's row says, which must be what its sessions say."""
        said = [t['counted_sessions'] for t in self.rows('tenants', f"id = '{tenant}'")]
        live = self.rows('edge_mcp_sessions', f"tenant_id = '{tenant}' AND counted AND status IN ('active', 'idle')")
        assert said == [len(live)] or (not said and not live), (said, len(live))
        return len(live)
