import * as util from 'node:util';

/**
 * The message of a failed check: its error's message. If the error compares two values and its message does
 * not show the difference, the difference is added.
 */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return util.inspect(error);
  const { message } = error;
  if (!('actual' in error && 'expected' in error) || message.includes(title)) return message;
  const { actual, expected } = error;
  // Node generated the message in its short form, which shows both values already.
  if ('generatedMessage' in error && error.generatedMessage === true) return message;
  if (actual === undefined && expected === undefined) return message;
  // `assert.ok` compares with true, which says nothing.
  if ('operator' in error && error.operator === '==' && expected === true) return message;
  return `${message}\n\n${title}\n${difference(actual, expected)}`;
}

/** The heading of a difference, as in Node's own assertions. */
const title = '+ actual - expected';

/** The error with its stack and its causes. */
export function describe(error: unknown): string {
  return util.inspect(error, { depth: 4, maxStringLength: 10_000 });
}

function difference(actual: unknown, expected: unknown): string {
  const actualLines = printed(actual).split('\n');
  const expectedLines = printed(expected).split('\n');
  // The sandbox's own Node may be too old to have `util.diff`.
  const changes: readonly (readonly [number, string])[] =
    typeof util.diff === 'function'
      ? util.diff(actualLines, expectedLines)
      : [
          ...actualLines.map((line) => [1, line] as const),
          ...expectedLines.map((line) => [-1, line] as const),
        ];
  return changes.map(([kind, line]) => `${kind === 0 ? ' ' : kind > 0 ? '+' : '-'} ${line}`).join('\n');
}

function printed(value: unknown): string {
  return util.inspect(value, { depth: 10, sorted: true, maxArrayLength: 200, maxStringLength: 10_000 });
}
