import type { IncomingHttpHeaders } from 'node:http';
import { GatewayRefusal } from './refusal.ts';
import { allWires } from './wires/wire-table.ts';

/** The allowed value of a header on the list. */
const shortText = /^[\x20-\x7e]{1,500}$/;
const word = /^[\w.:-]{1,200}$/;

/**
 * The client's headers that reach its model, and the allowed values of each. All others are dropped, not
 * refused: clients send many that mean nothing to a model, and a dropped header does no harm. Credentials,
 * the host, and the body's length and type are set again.
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

/**
 * The same for a request that is translated. The other headers describe the client's wire and its library.
 */
const passedTranslated: ReadonlyMap<string, RegExp> = new Map([
  ['user-agent', shortText],
  ['idempotency-key', word],
]);

/** The headers of a model request that are sent to the upstream. */
export function toUpstream(
  headers: IncomingHttpHeaders,
  { isTranslated }: { isTranslated: boolean },
): Record<string, string> {
  const sent: Record<string, string> = { 'content-type': 'application/json' };
  for (const [name, form] of isTranslated ? passedTranslated : passed) {
    const value = headers[name];
    if (typeof value === 'string' && form.test(value)) sent[name] = value;
  }
  return sent;
}

/**
 * Throws a {@link GatewayRefusal} (415) if the headers declare anything but JSON in UTF-8, because the
 * gateway reads the body as that.
 */
export function requireReadable(headers: IncomingHttpHeaders): void {
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new GatewayRefusal(415, 'BODY_COMPRESSED', 'the gateway accepts no compressed bodies');
  }
  const type = headers['content-type'];
  if (type === undefined || /^application\/json\s*(;\s*charset=("utf-8"|utf-8)\s*)?$/i.test(type)) return;
  throw new GatewayRefusal(
    415,
    'BODY_TYPE_UNKNOWN',
    'the gateway accepts only bodies of the type application/json in UTF-8',
  );
}
