import { Redactor, shortest } from './redactor.ts';
import { Scanner } from './scanner.ts';

/** Where a text holds a key. Line and column count from 1. */
export interface KeyInText {
  /** The key's name, such as the environment variable that holds it. */
  name: string;
  line: number;
  column: number;
}

/** Where a value holds a key. */
export interface KeyInValue extends KeyInText {
  path: (string | number)[];
}

/** The keys of this machine, to find in everything that leaves it. */
export class KnownKeys {
  readonly named: readonly (readonly [name: string, key: string])[];
  readonly #names: readonly string[];
  readonly #scanner: Scanner;
  readonly #redactor: Redactor;
  /** Files without a key, remembered because many trials share them. */
  readonly #clean = new WeakSet<object>();

  /** @param named each key with its name */
  constructor(named: Iterable<readonly [name: string, key: string]>) {
    const all = [...named];
    this.named = all;
    const looked = all.filter(([, key]) => key.length >= shortest.refused);
    this.#names = looked.map(([name]) => name);
    this.#scanner = new Scanner(looked.map(([, key]) => key));
    this.#redactor = new Redactor(all.map(([, key]) => key));
  }

  /** The first key in a text or a file. */
  find(content: string | Uint8Array): KeyInText | undefined {
    if (this.#scanner.isIdle) return undefined;
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    const search = this.#scanner.find(bytes, 0, true);
    if (search.kind !== 'found') return undefined;
    const lines = Buffer.from(bytes.subarray(0, search.found.at)).toString().split('\n');
    return {
      name: this.#names[search.found.secret] ?? '',
      line: lines.length,
      column: (lines.at(-1)?.length ?? 0) + 1,
    };
  }

  /** The first key anywhere in a value: in its texts, its files and its names. */
  findIn(value: unknown): KeyInValue | undefined {
    if (this.#scanner.isIdle) return undefined;
    return this.#below(value, []);
  }

  /** A value as JSON, with all keys removed. */
  json(value: unknown): string {
    return this.#redactor.json(value);
  }

  #below(value: unknown, path: (string | number)[]): KeyInValue | undefined {
    if (typeof value === 'string') return placed(this.find(value), path);
    if (value === null || typeof value !== 'object' || this.#clean.has(value)) return undefined;
    if (value instanceof Uint8Array) {
      const found = placed(this.find(value), path);
      if (!found) this.#clean.add(value);
      return found;
    }
    for (const [name, member] of Object.entries(value)) {
      const below = [...path, Array.isArray(value) ? Number(name) : name];
      const found = placed(this.find(name), path) ?? this.#below(member, below);
      if (found) return found;
    }
    return undefined;
  }
}

function placed(found: KeyInText | undefined, path: (string | number)[]): KeyInValue | undefined {
  return found && { ...found, path };
}
