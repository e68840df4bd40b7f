import type { IncomingHttpHeaders } from 'node:http';
import { Refusal } from './refusal.ts';
import { allWires } from './wires/wire-table.ts';

/** What a header on the list may contain. */
const shortText = /^[\x20-\x7e]{1,500}$/;
const word = /^[\w.:-]{1,200}$/;

/**
 * The headers of a client that reach its model, and how each may look. All others are left out, not refused:
 * clients send many that say nothing to a model, and what is left out steers nothing. Credentials, the host,
 * the length and the type of the body are made anew.
 */
const passed: ReadonlyMap<string, RegExp> = new Map([
  ['accept', shortText],
  ['user-agent', shortText],
  ...allWires.flatMap(({ passedHeaders }) => Object.entries(passedHeaders)),
  ['idempotency-key', word],
  ['x-client-request-id', word],
  ...[
    'arch',
    'async',
    'helper',
    'helper-method',
    'lang',
    'os',
    'package-version',
    'retry-count',
    'runtime',
    'runtime-version',
    'timeout',
  ].map((name): [string, RegExp] => [`x-stainless-${name}`, word]),
]);

/** The headers of a model request that go on to the upstream. */
export function toUpstream(headers: IncomingHttpHeaders): Record<string, string> {
  const sent: Record<string, string> = { 'content-type': 'application/json' };
  for (const [name, form] of passed) {
    const value = headers[name];
    if (typeof value === 'string' && form.test(value)) sent[name] = value;
  }
  return sent;
}

/**
 * Throws a {@link Refusal} (415) for a body that is said to be anything but JSON in UTF-8, as it is read
 * here.
 */
export function requireReadable(headers: IncomingHttpHeaders): void {
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new Refusal(415, 'BODY_COMPRESSED', 'the gateway reads bodies, and takes none that is compressed');
  }
  const type = headers['content-type'];
  if (type === undefined || /^application\/json\s*(;\s*charset=("utf-8"|utf-8)\s*)?$/i.test(type)) return;
  throw new Refusal(
    415,
    'BODY_TYPE_UNKNOWN',
    'the gateway takes bodies of the type application/json in UTF-8 only',
  );
}
