import { hash } from 'node:crypto';

/**
 * JSON with sorted members, without those that are undefined: equal values give equal text. Takes only values
 * that JSON can express.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`);
    return `{${fields.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

/** Entries whose canonical JSON is made in some milliseconds. */
const entriesAtATime = 1_000;

/** The pieces of {@link canonicalJson}: a long list is not made in one step. */
export function* canonicalPieces(value: unknown): Generator<string> {
  if (Array.isArray(value) && value.length > entriesAtATime) {
    for (let at = 0; at < value.length; at += entriesAtATime) {
      const entries = value.slice(at, at + entriesAtATime).map(canonicalJson);
      yield `${at === 0 ? '[' : ','}${entries.join(',')}`;
    }
    yield ']';
  } else if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const fields = Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .sort(([one], [other]) => (one < other ? -1 : 1));
    for (const [index, [name, field]] of fields.entries()) {
      yield `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`;
      yield* canonicalPieces(field);
    }
    yield fields.length === 0 ? '{}' : '}';
  } else yield canonicalJson(value);
}

export function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
