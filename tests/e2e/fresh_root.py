# SPDX-License-Identifier: Apache-2.0
"""A Debian 12 root (tools/fresh-root) with an overlay, processes and a network of its own: what a test changes
there is gone after it, and every process there ends with it."""
import contextlib
import ctypes
import os
import signal
import subprocess
import sys

from harness import DEADLINE_S, TOP

# Makes the overlay, mounts what a machine mounts, switches the loopback interface on, and is the first process:
# it reaps the others.  It ends when its standard input is closed, and the kernel ends the others then.
HOLDER = '''
import fcntl, os, signal, socket, struct, subprocess, sys
base, stage, shared = sys.argv[1:]

def mount(*words):
    subprocess.run(['mount', *words], check=True)

mount('-t', 'tmpfs', 'none', stage)
for name in ('upper', 'work', 'root'):
    os.mkdir(os.path.join(stage, name))
root = stage + '/root'
mount('-t', 'overlay', 'none', '-o', f'lowerdir={base},upperdir={stage}/upper,workdir={stage}/work', root)
mount('-t', 'proc', 'none', root + '/proc')
mount('-t', 'tmpfs', 'none', root + '/run')
mount('-t', 'tmpfs', 'none', root + '/tmp')
os.mkdir(root + '/mnt/shared')
mount('--bind', shared, root + '/mnt/shared')
os.chmod(root + '/tmp', 0o1777)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flags = struct.pack('16sh14x', b'lo', 0x41)  # IFF_UP | IFF_RUNNING
fcntl.ioctl(sock, 0x8914, flags)  # SIOCSIFFLAGS
os.chroot(root)
os.chdir('/')
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print('ready', flush=True)
sys.stdin.read()
'''
CLONE_NEWNET = 0x40000000
ENVIRONMENT = {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C.UTF-8',
               'DEBIAN_FRONTEND': 'noninteractive', 'TZ': 'UTC', 'HOME': '/root', 'NO_COLOR': '1'}


def path():
    """(the root, '') or (None, why there is none).  tools/install-deps test made it; else it is made now."""
    if os.geteuid() != 0:
        return None, 'only root can enter a Debian root'
    try:
        done = subprocess.run([os.path.join(TOP, 'tools/fresh-root')], capture_output=True, text=True, check=False, timeout=150)
    except subprocess.TimeoutExpired:
        return None, 'tools/fresh-root takes longer than a test may: run it once by hand'
    if done.returncode != 0:
        return None, 'tools/fresh-root could not make a Debian root: ' + (done.stderr.splitlines() or [''])[-1]
    return done.stdout.strip(), ''


class FreshRoot:
    """Commands inside, as root or as a user.  `shared` is a folder of this machine, there as /mnt/shared."""

    def __init__(self, base, folder):
        stage, self.shared = os.path.join(str(folder), 'stage'), os.path.join(str(folder), 'shared')
        for one in (stage, self.shared):
            os.mkdir(one)
        self.holder = subprocess.Popen(
            ['unshare', '--mount', '--pid', '--net', '--ipc', '--uts', '--fork', '--kill-child', sys.executable, '-c', HOLDER,
             base, stage, self.shared], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.why = '' if self.holder.stdout.readline() == b'ready\n' else self.holder.communicate()[1].decode().strip()
        if not self.why:
            with open(f'/proc/{self.holder.pid}/task/{self.holder.pid}/children', encoding='ascii') as file:
                self.first = int(file.read())

    def command(self, *words, user=None, env=None):
        """The words that run a command inside."""
        given = [f'{n}={v}' for n, v in {**ENVIRONMENT, **(env or {})}.items()]
        other = ['setpriv', '--reuid', user, '--regid', user, '--init-groups', '--'] if user else []
        return ['nsenter', '--target', str(self.first), '--mount', '--pid', '--net', '--ipc', '--uts', '--root', '--wd',
                'env', '-i', *given, *other, *words]

    def run(self, *words, stdin='', **how):
        """The finished process."""
        return subprocess.run(self.command(*words, **how), input=stdin, capture_output=True, text=True, timeout=DEADLINE_S * 2,
                              check=False)

    def ok(self, *words, **how):
        """What a command that must succeed prints."""
        done = self.run(*words, **how)
        assert done.returncode == 0, f'{words}: {done.returncode}\n{done.stdout}{done.stderr}'
        return done.stdout

    def start(self, *words, **how):
        """A process that goes on: its output is one pipe."""
        return subprocess.Popen(self.command(*words, **how), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def end(self, process):
        """SIGTERM to the program that start() began, and its output to the end.  nsenter stays as its parent."""
        with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='ascii') as file:
            for child in file.read().split():
                os.kill(int(child), signal.SIGTERM)
        text, _ = process.communicate(timeout=DEADLINE_S)
        return text

    def files(self):
        """Every path but those of the running machine, with what tells a changed file."""
        text = self.ok('find', '/', '-xdev', '-path', '/mnt', '-prune', '-o', '-not', '-type', 'd', '-printf', '%p\t%s\t%l\n', '-o', '-printf',
                       '%p/\n')
        return set(text.splitlines())

    @contextlib.contextmanager
    def network(self):
        """Sockets that this thread opens meanwhile are inside."""
        libc = ctypes.CDLL(None, use_errno=True)

        def enter(fd):
            assert libc.setns(fd, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        with open('/proc/thread-self/ns/net', encoding='ascii') as ours, open(f'/proc/{self.first}/ns/net', encoding='ascii') as theirs:
            enter(theirs.fileno())
            try:
                yield
            finally:
                enter(ours.fileno())

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.holder.stdin.close()
        self.holder.wait(DEADLINE_S)
        self.holder.stdout.close()
        self.holder.stderr.close()
