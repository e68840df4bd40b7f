import { secretForms } from './secret-forms.ts';

const mark = '[redacted]';

/** Takes known secrets out of what is kept, logged and reported. */
export class Redactor {
  /** Longest first. */
  #forms: readonly Buffer[] = [];
  #texts: readonly string[] = [];

  /** @param secrets their values; ones too short to be secrets are not looked for */
  constructor(secrets: Iterable<string>) {
    this.learn(secrets);
  }

  /** Takes these out as well from now on. */
  learn(secrets: Iterable<string>): void {
    const texts = new Set([...this.#texts, ...[...secrets].flatMap(secretForms)]);
    this.#texts = [...texts].toSorted((a, b) => b.length - a.length);
    this.#forms = this.#texts.map((text) => Buffer.from(text));
  }

  text(text: string): string {
    return this.#texts.reduce((rest, form) => rest.replaceAll(form, mark), text);
  }

  /** The same for bytes, of which only those around a secret need be text. */
  whole(bytes: Uint8Array): Uint8Array {
    return this.#forms.length === 0 ? bytes : this.#clear(Buffer.from(bytes), true).done;
  }

  /** The same for bytes in pieces; a secret is found wherever the pieces are cut. */
  async *bytes(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    if (this.#forms.length === 0) return yield* pieces;
    let held: Uint8Array = Buffer.alloc(0);
    for await (const piece of pieces) {
      const { done, rest } = this.#clear(Buffer.concat([held, piece]), false);
      if (done.length > 0) yield done;
      held = rest;
    }
    const { done } = this.#clear(Buffer.from(held), true);
    if (done.length > 0) yield done;
  }

  /** Redacts what is decided, and holds back a tail that the next piece could make a secret. */
  #clear(bytes: Buffer, last: boolean): { done: Buffer; rest: Buffer } {
    const parts: Buffer[] = [];
    let from = 0;
    for (;;) {
      const found = this.#next(bytes, from);
      const held = last ? bytes.length : this.#openTail(bytes, from);
      // A longer form may have begun before the one that is whole already.
      if (!found || held <= found.at) {
        const until = found ? Math.min(found.at, held) : held;
        parts.push(bytes.subarray(from, until));
        return { done: Buffer.concat(parts), rest: bytes.subarray(until) };
      }
      parts.push(bytes.subarray(from, found.at), Buffer.from(mark));
      from = found.at + found.length;
    }
  }

  /** The first secret from `from` on, the longest where several begin at one place. */
  #next(bytes: Buffer, from: number): { at: number; length: number } | undefined {
    let first: { at: number; length: number } | undefined;
    for (const form of this.#forms) {
      const at = bytes.indexOf(form, from);
      if (at !== -1 && (!first || at < first.at)) first = { at, length: form.length };
    }
    return first;
  }

  /** Where the longest tail begins that is the beginning of a secret; the end where there is none. */
  #openTail(bytes: Buffer, from: number): number {
    const longest = (this.#forms[0]?.length ?? 1) - 1;
    for (let at = Math.max(from, bytes.length - longest); at < bytes.length; at++) {
      const tail = bytes.subarray(at);
      if (
        this.#forms.some((form) => form.length > tail.length && form.subarray(0, tail.length).equals(tail))
      ) {
        return at;
      }
    }
    return bytes.length;
  }
}
