import * as util from 'node:util';

/**
 * What a failed check says: its error's message, and where that compares two values and does not show how
 * they differ, the difference.
 */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return util.inspect(error);
  const { message } = error;
  if (!('actual' in error && 'expected' in error) || message.includes(title)) return message;
  const { actual, expected } = error;
  // Node's own short form: it shows both already.
  if ('generatedMessage' in error && error.generatedMessage === true) return message;
  if (actual === undefined && expected === undefined) return message;
  return `${message}\n\n${title}\n${difference(actual, expected)}`;
}

/** As Node's own assertions begin a difference. */
const title = '+ actual - expected';

/** The error with its stack, and what caused it. */
export function describe(error: unknown): string {
  return util.inspect(error, { depth: 4, maxStringLength: 10_000 });
}

function difference(actual: unknown, expected: unknown): string {
  const is = printed(actual).split('\n');
  const should = printed(expected).split('\n');
  // `util.diff` is younger than what a sandbox's own Node may be.
  const changes: readonly (readonly [number, string])[] =
    typeof util.diff === 'function'
      ? util.diff(is, should)
      : [...is.map((line) => [1, line] as const), ...should.map((line) => [-1, line] as const)];
  return changes.map(([kind, line]) => `${kind === 0 ? ' ' : kind > 0 ? '+' : '-'} ${line}`).join('\n');
}

function printed(value: unknown): string {
  return util.inspect(value, { depth: 10, sorted: true, maxArrayLength: 200, maxStringLength: 10_000 });
}
