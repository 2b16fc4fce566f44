// SPDX-License-Identifier: Apache-2.0
// Decodes exports of traces with OpenTelemetry's own definitions: one ExportTraceServiceRequest as base64 in each
// line of standard input, one JSON line for each.  `check` in the answer is what verify() of the definitions says
// (null: nothing), and `canonical` is whether encoding the message again gives the same bytes.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const require = createRequire(resolve(process.argv[2], 'x.js'));
const root = require('@opentelemetry/otlp-transformer/build/src/generated/root.js');
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex');
const value = (v) => v.stringValue ?? (v.intValue === undefined ? null : Number(v.intValue));
const attributes = (list) => Object.fromEntries((list ?? []).map((a) => [a.key, value(a.value)]));

function spanOf(s) {
  return {
    trace: hex(s.traceId), id: hex(s.spanId), parent: hex(s.parentSpanId), state: s.traceState ?? '', name: s.name,
    kind: s.kind, start: s.startTimeUnixNano.toString(), end: s.endTimeUnixNano.toString(), flags: s.flags,
    attributes: attributes(s.attributes), status: s.status?.code ?? 0, message: s.status?.message ?? '',
    links: (s.links ?? []).map((l) => ({ trace: hex(l.traceId), id: hex(l.spanId) })),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const bytes = Buffer.from(line, 'base64');
  const request = Request.decode(bytes);
  const out = { check: Request.verify(request), canonical: Buffer.from(Request.encode(request).finish()).equals(bytes), spans: [] };
  for (const one of request.resourceSpans)
    for (const scope of one.scopeSpans) {
      out.resource = attributes(one.resource.attributes);
      out.scope = scope.scope.name;
      out.spans.push(...scope.spans.map(spanOf));
    }
  process.stdout.write(JSON.stringify(out) + '\n');
}
