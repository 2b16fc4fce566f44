# SPDX-License-Identifier: Apache-2.0
"""Keys from `holdfast key`, tokens signed by the openssl command, and an issuer that serves its keys."""
import base64
import http.server
import json
import os
import subprocess
import threading
import time

from commands import run, run_json
from harness import Client


class Key:
    def __init__(self, row):
        self.row, self.text, self.id = row, row['key'], row['id']
        self.headers = {'Authorization': 'Bearer ' + self.text}

    def client(self, hf, path='/mcp/sample', **options):
        return Client(hf, path, headers=self.headers, **options)


def create(hf, *flags, env=None):
    done = run(hf, 'key', 'create', '--json', *flags, env=env)
    assert done.returncode == 0, done.stderr
    return Key(json.loads(done.stdout))


def listed(hf, *flags):
    return {row['id']: row for row in run_json(hf, 'key', 'list', *flags)}


def revoke(hf, key):
    done = run(hf, 'key', 'revoke', key.id)
    assert done.returncode == 0, done.stderr


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


class Issuer:
    """Signs tokens (RS256), and keeps its public key as a JWK Set in a file."""

    def __init__(self, folder, name='https://issuer.example', kid='one'):
        self.name, self.kid = name, kid
        self.key = os.path.join(str(folder), f'{kid}.key')
        self.file = os.path.join(str(folder), 'jwks.json')
        subprocess.run(['openssl', 'genrsa', '-out', self.key, '2048'], check=True, capture_output=True, timeout=30)
        shown = subprocess.run(['openssl', 'rsa', '-in', self.key, '-noout', '-modulus'], check=True, capture_output=True)
        modulus = bytes.fromhex(shown.stdout.decode().strip().split('=')[1])
        self.jwk = {'kty': 'RSA', 'kid': kid, 'alg': 'RS256', 'use': 'sig', 'n': base64url(modulus), 'e': 'AQAB'}
        self.publish([self.jwk])

    def publish(self, jwks):
        with open(self.file, 'w', encoding='utf-8') as file:
            json.dump({'keys': jwks}, file)

    def settings(self, **more):
        return {'issuer': self.name, 'audience': 'holdfast', 'jwks': self.file, **more}

    def token(self, **claims):
        now = int(time.time())
        payload = {'iss': self.name, 'aud': 'holdfast', 'sub': 'alice', 'iat': now, 'exp': now + 600, **claims}
        head = {'alg': 'RS256', 'kid': self.kid, 'typ': 'JWT'}
        text = '.'.join(base64url(json.dumps(part).encode()) for part in (head, payload))
        signed = subprocess.run(['openssl', 'dgst', '-sha256', '-sign', self.key], input=text.encode(), check=True,
                                capture_output=True, timeout=30)
        return text + '.' + base64url(signed.stdout)

    def headers(self, **claims):
        return {'Authorization': 'Bearer ' + self.token(**claims)}


class KeyServer:
    """Serves an issuer's JWK Set over HTTP on loopback."""

    def __init__(self, issuer):
        outer = self
        self.asked = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked += 1
                with open(issuer.file, 'rb') as file:
                    body = file.read()
                self.send_response(200)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_port}/jwks.json'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
