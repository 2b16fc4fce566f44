// SPDX-License-Identifier: Apache-2.0
// What a feature says when something is not as it should be: one sentence that holds what came instead.
import {isDeepStrictEqual} from 'node:util';

const show = (value) => (value === undefined ? 'undefined' : JSON.stringify(value).slice(0, 300));

export function must(condition, what, got) {
    if (!condition) throw new Error(got === undefined ? what : `${what}, got ${show(got)}`);
}

export function same(got, wanted, what) {
    must(isDeepStrictEqual(got, wanted), `${what} should be ${show(wanted)}`, got);
}

export function includes(got, wanted, what) {
    const missing = wanted.filter((w) => !got.includes(w));
    must(missing.length === 0, `${what} should hold ${show(missing)}`, got);
}

// The text blocks of a tool result, which must not be an error.
export function text(result) {
    const all = result.content.filter((b) => b.type === 'text').map((b) => b.text).join('\n');
    must(!result.isError, `the tool failed: ${all}`);
    return all;
}

// The failure of a promise that must not succeed: an error, or a result with isError.
export async function failure(promise, what) {
    let result;
    try {
        result = await promise;
    } catch (error) {
        return error;
    }
    must(result.isError, `${what} should fail`, result);
    return new Error(result.content.map((b) => b.text).join('\n'));
}

// Runs try_() until it gives something true; for state that a server changes on its own time.
export async function eventually(try_, what, timeout = 8000) {
    const end = Date.now() + timeout;
    let got;
    do {
        got = await try_();
        if (got) return got;
        await new Promise((resolve) => setTimeout(resolve, 50));
    } while (Date.now() < end);
    throw new Error(`waited ${timeout} ms for ${what}`);
}

// Calls a long tool, aborts it at its first progress, and waits until the client has given up on it.
export async function cancelled(peer, tool, args) {
    const abort = new AbortController();
    const begun = Date.now();
    const call = peer.call(tool, args, {signal: abort.signal, timeout: 30000, onprogress: () => abort.abort('stop it')});
    const error = await failure(call, 'an aborted call');
    must(abort.signal.aborted, `the call ended before it was aborted: ${error.message}`);
    return {error, ms: Date.now() - begun};
}

// Progress may be thinned out on its way, and the clients drop a step that they read together with the
// result; what arrives is in order, and begins with the first.
export async function progressed(peer, tool, args, wanted) {
    const seen = [];
    const result = await peer.call(tool, args, {onprogress: (p) => seen.push([p.progress, p.total])});
    same(seen, wanted.filter((w) => seen.some((s) => isDeepStrictEqual(s, w))), 'progress');
    must(isDeepStrictEqual(seen[0], wanted[0]), 'progress begins with the first step', seen);
    return result;
}
