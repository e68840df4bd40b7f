import { type KeyPlace, Scanner } from './scanner.ts';

export interface RedactorOptions {
  /** In characters. Shorter values are ignored. */
  shortest?: number;
  /** The text that replaces a secret. */
  mark?: string;
}

/** Redacts one stream of bytes. Finds a secret wherever the stream is split. */
export interface StreamRedaction {
  /**
   * The bytes that are safe to pass on. Bytes that could be the beginning of a secret wait for the next call;
   * all others pass at once.
   */
  push(chunk: Uint8Array): Buffer;
  /** The bytes that were waiting. */
  end(): Buffer;
}

/** Looks for secrets in one stream of bytes, wherever it is split. */
export interface StreamSearch {
  /** Whether a secret ends in these bytes. */
  push(chunk: Uint8Array): boolean;
  /** Whether the bytes that could be the beginning of a secret are one. */
  end(): boolean;
}

const nothing = Buffer.alloc(0);

/**
 * Removes known secrets from what Offsite keeps, logs, reports and answers, in each way that `scanner.ts`
 * lists. Content without a secret stays the same, byte for byte.
 */
export class Redactor {
  readonly #shortest: number;
  readonly #mark: Buffer;
  #values: readonly string[] = [];
  #scanner = new Scanner([]);

  constructor(secrets: Iterable<string>, options: RedactorOptions = {}) {
    this.#shortest = options.shortest ?? shortest.kept;
    this.#mark = Buffer.from(options.mark ?? '[redacted]');
    this.learn(secrets);
  }

  /** Removes these secrets too from now on. */
  learn(secrets: Iterable<string>): void {
    const values = [...secrets].filter(({ length }) => length >= this.#shortest);
    this.#values = [...new Set([...this.#values, ...values])];
    this.#scanner = new Scanner(this.#values);
  }

  /** Where the first secret is, in bytes; undefined if there is none. */
  find(content: string | Uint8Array): Pick<KeyPlace, 'at' | 'end'> | undefined {
    if (this.#scanner.isIdle) return undefined;
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    const search = this.#scanner.find(bytes, 0, true);
    return search.kind === 'found' ? search.found : undefined;
  }

  text(text: string): string {
    if (this.#scanner.isIdle) return text;
    const bytes = Buffer.from(text);
    const { done } = this.#clear(bytes, true);
    return done === bytes ? text : done.toString();
  }

  /**
   * A value as JSON. Secrets are removed from its texts, so that it stays JSON whatever the secrets look
   * like.
   */
  json(value: unknown, space?: number): string {
    const written = JSON.stringify(value, null, space);
    // The search also finds secrets in escaped texts. There is rarely one.
    if (written === undefined || this.find(written) === undefined) return written;
    return JSON.stringify(this.#value(JSON.parse(written)), null, space);
  }

  /** The same value if its texts hold no secret, else a copy without them. It must be JSON. */
  value<Value>(value: Value): Value {
    if (this.#scanner.isIdle) return value;
    return this.find(JSON.stringify(value)) === undefined ? value : (this.#value(value) as Value);
  }

  /** Removes secrets from bytes. Only the bytes around a secret need to be text. */
  whole(bytes: Uint8Array): Uint8Array {
    return this.#clear(bufferOf(bytes), true).done;
  }

  /** Removes secrets from bytes in pieces. */
  async *bytes(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const stream = this.stream();
    for await (const piece of pieces) {
      const done = stream.push(piece);
      if (done.length > 0) yield done;
    }
    const rest = stream.end();
    if (rest.length > 0) yield rest;
  }

  search(): StreamSearch {
    let held = nothing;
    const look = (bytes: Buffer, last: boolean): boolean => {
      const search = this.#scanner.find(bytes, 0, last);
      // The caller may reuse the memory of the chunk.
      held = search.kind === 'open' ? Buffer.from(bytes.subarray(search.at)) : nothing;
      return search.kind === 'found';
    };
    return {
      push: (chunk) => look(held.length > 0 ? Buffer.concat([held, chunk]) : bufferOf(chunk), false),
      end: () => look(held, true),
    };
  }

  stream(): StreamRedaction {
    let held = nothing;
    return {
      push: (chunk) => {
        const fresh = bufferOf(chunk);
        if (this.#scanner.isIdle && held.length === 0) return fresh;
        const { done, rest } = this.#clear(held.length > 0 ? Buffer.concat([held, fresh]) : fresh, false);
        // The caller may reuse the memory of the chunk.
        held = rest.length > 0 ? Buffer.from(rest) : nothing;
        return done;
      },
      end: () => {
        const { done } = this.#clear(held, true);
        held = nothing;
        return done;
      },
    };
  }

  /** Redacts what is certain, and holds back a tail that the next piece could turn into a secret. */
  #clear(bytes: Buffer, last: boolean): { done: Buffer; rest: Buffer } {
    const parts: Buffer[] = [];
    for (let from = 0; ; ) {
      const search = this.#scanner.find(bytes, from, last);
      if (search.kind !== 'found') {
        const until = search.kind === 'open' ? search.at : bytes.length;
        const rest = bytes.subarray(until);
        if (from === 0 && until === bytes.length) return { done: bytes, rest };
        const tail = bytes.subarray(from, until);
        return { done: parts.length === 0 ? tail : Buffer.concat([...parts, tail]), rest };
      }
      parts.push(bytes.subarray(from, search.found.at), this.#mark);
      from = search.found.end;
    }
  }

  #value(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((member) => this.#value(member));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [this.text(name), this.#value(member)]),
    );
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  if (bytes instanceof Buffer) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * The shortest value that Offsite looks for, in characters. A shorter one would match everywhere, and is not
 * a secret (`ollama`, `EMPTY`, `lm-studio`). The limit is higher if a false match costs more.
 */
export const shortest = {
  /** For what is kept, printed and reported: a false match removes a word. */
  kept: 6,
  /** For requests: a false match refuses the request. */
  refused: 8,
  /** For a model's answers: a false match changes words that an agent reads. */
  answered: 12,
};

/** Where a text holds a key. Line and column count from 1. */
interface KeyInText {
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
