#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stands between Holdfast and PostgreSQL on a unix socket, and breaks what it is told to break.

Whole messages of the server are passed on (type, length, body), so that a connection can be cut
exactly where the server has committed and its client does not know it yet."""
import os
import socket
import struct
import threading
import time

NAME = '.s.PGSQL.5432'
SYNC = b'S\0\0\0\4'
BATCH = 400  # bytes: what is written is longer than what asks


class Link:
    """One client connection and the one to the server that belongs to it."""

    def __init__(self, proxy, client):
        self.proxy, self.client = proxy, client
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.connect(os.path.join(proxy.behind, NAME))

    def run(self):
        threading.Thread(target=self.upwards, daemon=True).start()
        self.downwards()

    def cut(self):
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def upwards(self):
        try:
            while data := self.client.recv(65536):
                self.proxy.open.wait()
                if len(data) > BATCH and data.endswith(SYNC):
                    self.proxy.overtake(self, data)
                self.server.sendall(data)
        except OSError:
            pass
        self.cut()

    def downwards(self):
        rest = b''
        try:
            while data := self.server.recv(65536):
                self.proxy.open.wait()
                rest = self.pass_on(rest + data)
                if rest is None:
                    break
        except OSError:
            pass
        self.cut()
        self.proxy.gone(self)

    def pass_on(self, data):
        """Passes whole messages on; the rest, or None when the connection is to be cut."""
        at = 0
        while len(data) - at >= 5:
            size = 1 + struct.unpack_from('!I', data, at + 1)[0]
            if len(data) - at < size:
                break
            if data[at:at + 1] == b'C' and data[at + 5:at + size] == b'COMMIT\0' and self.proxy.cuts():
                self.client.sendall(data[:at])
                return None
            at += size
        self.client.sendall(data[:at])
        return data[at:]


class Proxy:
    def __init__(self, folder, behind):
        """Listens in `folder`, a directory of its own, for a server whose socket is in `behind`."""
        self.folder, self.behind = str(folder), behind
        os.makedirs(self.folder, exist_ok=True)
        self.lock, self.links = threading.Lock(), set()
        self.open = threading.Event()
        self.open.set()
        self.cut_every, self.commits, self.n_cut = 0, 0, 0
        self.late_link, self.overtaken, self.arrived = None, threading.Event(), threading.Event()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(os.path.join(self.folder, NAME))
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                link = Link(self, client)
            except OSError:  # the server is not there
                client.close()
                continue
            with self.lock:
                self.links.add(link)
            threading.Thread(target=link.run, daemon=True).start()

    def gone(self, link):
        link.client.close()
        link.server.close()
        with self.lock:
            self.links.discard(link)

    def cuts(self):
        """Is the answer to this COMMIT to be lost?"""
        with self.lock:
            self.commits += 1
            cut = self.cut_every > 0 and self.commits % self.cut_every == 0
            self.n_cut += cut
            return cut

    def delay_next(self):
        """The next batch reaches the server only when its client was cut off, has connected again and is about to write; then first."""
        self.late_link, self.overtaken, self.arrived = 'next', threading.Event(), threading.Event()

    def overtake(self, link, data):
        with self.lock:
            late, self.late_link = self.late_link, link if self.late_link == 'next' else self.late_link
        if late == 'next':
            link.client.shutdown(socket.SHUT_RDWR)
            self.overtaken.wait(10)
            try:
                link.server.sendall(data)
                link.server.settimeout(1)
                time.sleep(0.3)  # for the server to commit it
            finally:
                self.arrived.set()
                raise OSError('its client is gone')
        if late is not None and not self.arrived.is_set():
            self.overtaken.set()
            self.arrived.wait(10)

    def cut_all(self):
        with self.lock:
            links = list(self.links)
        for link in links:
            link.cut()

    def freeze(self):
        """Connections stay, and nothing passes any more."""
        self.open.clear()

    def thaw(self):
        self.open.set()

    def close(self):
        self.cut_every = 0
        self.thaw()
        self.listener.close()
        self.cut_all()
