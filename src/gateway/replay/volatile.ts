/**
 * Shapes of text that differ between two runs of the same thing: two texts that differ only in these count as
 * equal. docs/reference/replay.md lists them. They are looked for in what harnesses and tools say, never in
 * what a person or a model said.
 */

const months =
  'Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|' +
  'Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?';
const days = '(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?';

/** In this order: a date with its time before a time, an id of several groups before its groups. */
const shapes: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<uuid>'],
  [
    /\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2})\b)?/g,
    '<date>',
  ],
  // As `ls -l` and `date` write them, too.
  [
    new RegExp(
      `\\b(?:${days},? )?(?:${months}) {1,2}\\d{1,2}(?:,? {1,2}\\d{4}| {1,2}\\d{2}:\\d{2})?\\b`,
      'g',
    ),
    '<date>',
  ],
  [new RegExp(`\\b(?:${days},? )?\\d{1,2} (?:${months})(?:,? \\d{4})?\\b`, 'g'), '<date>'],
  [new RegExp(`\\b(?:${months}) \\d{4}\\b`, 'g'), '<date>'],
  [/\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?\b/g, '<time>'],
  [/<date>(?:,? <time>)?(?: (?:UTC|GMT|[A-Z]{3,4}))?(?: \d{4})?/g, '<date>'],
  [/\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?)\b/g, '<duration>'],
  // `duration_ms 507.37`, `"duration": 0.5`, `time="0.001"`, as reports of tests have them.
  [
    /\b(?:\w{0,40}(?:duration|elapsed|latency|took)\w{0,40}["']?(?: ?[:=] ?| )|\w{0,40}time["']?(?: ?[:=] ?))["']?\d{1,15}(?:\.\d{1,15})?\b["']?/gi,
    '<duration>',
  ],
  // Seconds, milliseconds or nanoseconds since 1970, in this decade or the next.
  [/\b[12]\d{9}(?:\d{3}|\d{9})?(?:\.\d{1,9})?\b/g, '<epoch>'],
  [/\b0x[0-9a-f]{6,16}\b/gi, '<address>'],
  [/\b(?:chunk|session|thread|request|process|shell|trace)[ _-]?id["']?[:=] ?["']?[\w-]{1,64}/gi, '<id>'],
  [/\bp[gp]?ids?["']?(?: ?[:=] ?| )\d{1,8}\b/gi, '<pid>'],
  [/\b(?:toolu|call|msg|resp|chatcmpl|ses|req|item|fc|rs)[_-][\w-]{6,80}/g, '<id>'],
  [/(?:\/private)?(?:\/var)?\/tmp\/[^\s"'`<>()[\]{},;:]+/g, '<temporary path>'],
  [/\b(localhost|127\.0\.0\.1|\[::1\]):\d{2,5}\b/g, '$1:<port>'],
  // Hashes of commits and names of containers: hexadecimal words with at least one digit and one letter.
  [/\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b/g, '<hash>'],
];

/** The text with each volatile shape replaced by its name. */
export function withoutVolatile(text: string): string {
  return shapes.reduce((result, [shape, name]) => result.replace(shape, name), text);
}
