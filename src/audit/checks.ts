import { printedText } from '../bounds/anyone.ts';
import type { AuditedLevel, AuditLevel, Contradiction } from '../record/audit.ts';
import { cut } from '../text/printable.ts';

/** Collects what one level of an audit finds. */
export class Checks {
  readonly #contradictions: Contradiction[] = [];
  readonly #unchecked = new Set<string>();

  /** Two values must be equal, member by member. Adds each innermost place where they are not. */
  same(path: string, says: string, expected: unknown, found: unknown): void {
    for (const difference of differences(path, expected, found))
      this.contradicted(difference.path, says, difference.expected, difference.found);
  }

  /** Adds a contradiction. Of very many, only the first ones are kept. */
  contradicted(path: string, says: string, expected: unknown, found: unknown): void {
    if (this.#contradictions.length >= printedText.count.lines) return;
    this.#contradictions.push({ path, says, expected: printed(expected), found: printed(found) });
  }

  /** Notes what could not be checked, and why. */
  missed(why: string): void {
    this.#unchecked.add(why);
  }

  get isContradicted(): boolean {
    return this.#contradictions.length > 0;
  }

  /** @param lacks what kept the level from being reached; not given if it was reached */
  level(level: AuditLevel, lacks?: AuditedLevel['lacks']): AuditedLevel {
    const found = { contradictions: this.#contradictions, unchecked: [...this.#unchecked] };
    if (this.isContradicted) return { level, state: 'contradicted', ...found };
    return lacks ? { level, state: 'not reached', ...found, lacks } : { level, state: 'held', ...found };
  }
}

/** A level that was not reached for one reason, which lies in the evidence. */
export function notReached(level: AuditLevel, why: string): AuditedLevel {
  return { level, state: 'not reached', contradictions: [], unchecked: [why], lacks: 'evidence' };
}

interface Difference {
  path: string;
  expected: unknown;
  found: unknown;
}

function* differences(path: string, expected: unknown, found: unknown): Generator<Difference> {
  if (Array.isArray(expected) && Array.isArray(found) && expected.length === found.length) {
    for (const [index, one] of expected.entries()) yield* differences(`${path}[${index}]`, one, found[index]);
  } else if (isRecord(expected) && isRecord(found)) {
    for (const name of new Set([...Object.keys(expected), ...Object.keys(found)]))
      yield* differences(`${path}.${name}`, expected[name], found[name]);
  } else if (Array.isArray(expected) && Array.isArray(found)) {
    yield { path, expected: `${expected.length} entries`, found: `${found.length} entries` };
  } else if (expected !== found) yield { path, expected, found };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value on one line. */
function printed(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none');
  return cut(text.replaceAll(/\s+/g, ' '), printedText.bytes.title);
}
