// SPDX-License-Identifier: Apache-2.0
// The official clients behind one face, so that a feature is written once for all of them.
//
// sdk1 is @modelcontextprotocol/sdk; v2-legacy, v2-auto and v2-modern are @modelcontextprotocol/client in
// its three ways of choosing an era.  What a server asks of the client and what it notifies is kept in
// order (asked, notices), so that a feature can look back at it and cannot miss what came early.
const MODERN = '2026-07-28';
const MODES = {'v2-legacy': 'legacy', 'v2-auto': 'auto', 'v2-modern': {pin: MODERN}};
const CAPABILITIES = {sampling: {}, elicitation: {form: {}, url: {}}, roots: {listChanged: true}};
const REQUESTS = ['sampling/createMessage', 'elicitation/create', 'roots/list'];
const NOTICES = ['notifications/message', 'notifications/resources/updated', 'notifications/resources/list_changed',
    'notifications/tools/list_changed', 'notifications/prompts/list_changed', 'notifications/elicitation/complete'];

export const CLIENTS = ['sdk1', ...Object.keys(MODES)];

async function sdk1() {
    const [{Client}, http, sse, stdio, types] = await Promise.all([
        import('@modelcontextprotocol/sdk/client/index.js'), import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
        import('@modelcontextprotocol/sdk/client/sse.js'), import('@modelcontextprotocol/sdk/client/stdio.js'),
        import('@modelcontextprotocol/sdk/types.js')]);
    const schemas = Object.values(types).filter((s) => s?.shape?.method);
    const schema = (method) => schemas.find((s) => (s.shape.method.value ?? s.shape.method._def?.value) === method);
    return {
        Client, Http: http.StreamableHTTPClientTransport, Sse: sse.SSEClientTransport, Stdio: stdio.StdioClientTransport,
        onRequest: (client, method, run) => client.setRequestHandler(schema(method), run),
        onNotice: (client, method, run) => client.setNotificationHandler(schema(method), run),
        call: (client, params, options) => client.callTool(params, undefined, options),
    };
}

async function v2() {
    const [main, stdio] = await Promise.all([import('@modelcontextprotocol/client'), import('@modelcontextprotocol/client/stdio')]);
    return {
        Client: main.Client, Http: main.StreamableHTTPClientTransport, Sse: main.SSEClientTransport, Stdio: stdio.StdioClientTransport,
        onRequest: (client, method, run) => client.setRequestHandler(method, run),
        onNotice: (client, method, run) => client.setNotificationHandler(method, run),
        call: (client, params, options) => client.callTool(params, options),
    };
}

// fetch that can lose a connection: when `line.cut` is set, the next event stream that answers a POST ends
// after its first message, as if a proxy had dropped it.
function cuttable(line) {
    return async (url, init) => {
        const response = await fetch(url, init);
        const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
        if (!line.cut || init?.method !== 'POST' || !isStream) return response;
        line.cut = false;
        let seen = '';
        const cutter = new TransformStream({
            transform(chunk, controller) {
                controller.enqueue(chunk);
                seen += Buffer.from(chunk).toString('latin1');
                if (/^data: ?\{.*\n\r?\n/m.test(seen)) controller.terminate();
            },
        });
        return new Response(response.body.pipeThrough(cutter), {status: response.status, headers: response.headers});
    };
}

function transportOf(kit, target, line) {
    if (target.stdio) {
        const [command, ...args] = target.stdio.split(' ').filter(Boolean);
        return new kit.Stdio({command, args, env: process.env, stderr: 'inherit'});
    }
    return target.sse ? new kit.Sse(new URL(target.sse)) : new kit.Http(new URL(target.url), {fetch: cuttable(line)});
}

// One client connected to one target.
export class Peer {
    // `always` answers what a server may ask at any time, as a table from method to result.
    constructor(kit, client, transport, prefix, always) {
        Object.assign(this, {kit, client, transport, prefix, always, asked: [], notices: [], answers: {}, waiting: []});
        this.timeout = 20000;
        this.noticeMs = 6000;
    }

    static async connect(name, target, always = {}) {
        const kit = await (name === 'sdk1' ? sdk1() : v2());
        const options = {capabilities: CAPABILITIES, ...(MODES[name] && {versionNegotiation: {mode: MODES[name]}})};
        const client = new kit.Client({name: `drive-${name}`, version: '1'}, options);
        const line = {cut: false};
        const peer = new Peer(kit, client, transportOf(kit, target, line), target.prefix ?? '', always);
        peer.line = line;
        peer.listen();
        await client.connect(peer.transport, {timeout: 30000});
        return peer;
    }

    listen() {
        for (const method of REQUESTS) {
            this.kit.onRequest(this.client, method, (request) => {
                this.asked.push({method, params: request.params});
                const answer = this.answers[method] ?? this.always[method];
                if (answer === undefined) throw new Error(`nothing should ask ${method} now`);
                return typeof answer === 'function' ? answer(request.params) : answer;
            });
        }
        for (const method of NOTICES) {
            this.kit.onNotice(this.client, method, (notice) => {
                this.notices.push({method, params: notice.params ?? {}});
                this.waiting.forEach((look) => look());
            });
        }
    }

    get isModern() { return this.version === MODERN; }
    get version() {
        return this.client.getNegotiatedProtocolVersion?.() ?? this.transport.protocolVersion ?? this.transport._protocolVersion;
    }

    // The first notice since mark() that satisfies wanted.
    notice(method, wanted = () => true, since = 0) {
        return new Promise((resolve, reject) => {
            const late = setTimeout(() => reject(new Error(`no ${method} within ${this.noticeMs} ms, only ` +
                JSON.stringify(this.notices.slice(since).map((n) => n.method)))), this.noticeMs);
            const look = () => {
                const found = this.notices.slice(since).find((n) => n.method === method && wanted(n.params));
                if (!found) return;
                clearTimeout(late);
                this.waiting = this.waiting.filter((w) => w !== look);
                resolve(found.params);
            };
            this.waiting.push(look);
            look();
        });
    }
    // Fails unless the server said that it does `what` (such as "tools.listChanged").
    advertised(what) {
        const found = what.split('.').reduce((at, key) => at?.[key], this.client.getServerCapabilities());
        if (!found) throw new Error(`the server does not advertise ${what}`);
    }
    mark() { return this.notices.length; }

    name(own) { return this.prefix + own; }
    call(tool, args = {}, options = {}, _meta = undefined) {
        const params = {name: this.name(tool), arguments: args, ...(_meta && {_meta})};
        return this.kit.call(this.client, params, {timeout: this.timeout, ...options});
    }

    // The everything server makes such tools only after it has heard `initialized`, and that may take it a while.
    async once_there(call) {
        const until = Date.now() + this.timeout;
        for (;;) {
            const result = await call();
            if (!/Tool \S+ not found/.test(JSON.stringify(result.content)) || Date.now() > until) return result;
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }

    // Calls a tool that asks one thing of the client, which is answered; gives the result and what was asked.
    async asking(method, answer, tool, args) {
        const since = this.asked.length;
        this.answers = {[method]: answer};
        try {
            const result = await this.once_there(() => this.call(tool, args));
            const asked = this.asked.slice(since).filter((a) => a.method === method);
            if (asked.length !== 1) {
                throw new Error(`${method} was asked ${asked.length} times; the tool said: ${JSON.stringify(result.content)}`);
            }
            return {result, asked: asked[0].params ?? {}};
        } finally {
            this.answers = {};
        }
    }

    async close() {
        if (!this.isModern) await this.transport.terminateSession?.();
        await this.client.close();
    }
}
