# SPDX-License-Identifier: Apache-2.0
"""A Holdfast with auth required, keys of as many tenants as a test asks for, and the rows behind it."""
import keys
from harness import Holdfast
from rest import Rest
from stored import Stored
from test_operate import metrics as all_metrics


class Walk:
    """api(tenant, role): its REST interface with a key of that tenant; stored: its rows."""

    def __init__(self, folder, settings, cluster=None, url=None, env=None, servers=None):
        self.cluster = cluster
        self.url = url or (cluster.database() if cluster else None)
        env = {**({'DATABASE_URL': self.url} if self.url else {}), **(env or {})}
        self.hf = Holdfast(folder, {'mcpServers': servers or {}, 'holdfast': {'auth': 'required', **settings}}, env=env).start()
        self.stored = Stored(self.hf, self.url)
        self.made = {}
        self.anonymous = Rest(self.hf)

    @property
    def admin(self):
        return self.api('acme')

    @property
    def other(self):
        return self.api('other')

    def key(self, tenant='acme', role='admin'):
        if (tenant, role) not in self.made:
            self.made[tenant, role] = keys.create(self.hf, '--tenant', tenant, '--role', role)
        return self.made[tenant, role]

    def api(self, tenant='acme', role='admin'):
        return Rest(self.hf, self.key(tenant, role).headers)

    def client(self, tenant='acme', path='/mcp/sample', **options):
        return self.key(tenant).client(self.hf, path, **options)

    def metrics(self, tenant='acme'):
        """As this tenant sees them."""
        headers = self.key(tenant).headers

        class Page:
            @staticmethod
            def get(path):
                return self.hf.get(path, headers)
        return all_metrics(Page)

    def log(self, message):
        return [line for line in self.hf.log() if line.get('msg') == message]

    def sql(self, text):
        return self.cluster.sql(self.url, text)
