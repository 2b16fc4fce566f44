// SPDX-License-Identifier: Apache-2.0
// node --import on_loopback.mjs SERVER: a server that would listen on every address listens on 127.0.0.1
// only, and says where with a line "listening PORT" on stdout.
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
    this.once('listening', () => process.stdout.write(`listening ${this.address().port}\n`));
    return listen.call(this, Number(port), '127.0.0.1', ...rest);
};
