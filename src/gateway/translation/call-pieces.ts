import { modelAnswers } from '../../bounds/model.ts';
import { parsed } from '../wires/lenient.ts';
import type { CallIds } from './call-ids.ts';
import { type NeutralEvent, UnreadableAnswer } from './neutral-answer.ts';

/**
 * One tool call of an answer, from pieces in any order: servers send the name before, after or within the
 * arguments, repeat it, or send an empty object before the arguments.
 */
export class CallPieces {
  readonly #ids: CallIds;
  readonly #emit: (event: NeutralEvent) => void;
  readonly #changed: (characters: number) => void;
  #id: unknown;
  #name = '';
  /** What has arrived and has not been told. */
  #untold: string[] = [];
  #untoldSize = 0;
  /** All arguments, as long as they are short. */
  #all: string | undefined = '';
  #size = 0;
  #json = new JsonEnd();
  #isTold = false;
  #hasEnded = false;
  #isOver = false;

  /** `changed` is called after each change, with the number of new characters that wait. */
  constructor({
    ids,
    emit,
    changed,
  }: {
    ids: CallIds;
    emit: (event: NeutralEvent) => void;
    changed: (characters: number) => void;
  }) {
    this.#ids = ids;
    this.#emit = emit;
    this.#changed = changed;
  }

  get name(): string {
    return this.#name;
  }

  /** Whether arguments have arrived. */
  get hasArguments(): boolean {
    return this.#size > 0;
  }

  /** Whether its arguments are a whole JSON object. An empty object may stand for arguments that follow. */
  get isWhole(): boolean {
    return this.#hasEnded || this.#json.isWhole;
  }

  get isPlaceholder(): boolean {
    return this.#size < 10 && /^\s*\{\s*\}\s*$/.test(this.#all ?? '');
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  isRepeated(text: string): boolean {
    return this.#all !== undefined && this.#all !== '' && this.#all.trim() === text.trim();
  }

  add(piece: { id?: unknown; name?: unknown; arguments?: string }): this {
    const { name, id, arguments: text = '' } = piece;
    if (typeof id === 'string' && id !== '' && !this.#isTold) this.#id ??= id;
    if (typeof name === 'string') this.#addName(name);
    this.#changed(this.#addArguments(text));
    return this;
  }

  /** Adds what pieces have left out of the whole arguments. Returns whether they are the same then. */
  complete(text: string): boolean {
    if (text.trim() === '' || this.isRepeated(text)) return true;
    const all = this.#all ?? '';
    const begun = this.isPlaceholder ? 0 : this.#size;
    if (!this.#isOver && text.length > begun && (begun === 0 || text.startsWith(all))) {
      this.add({ arguments: text.slice(begun) });
      return true;
    }
    return this.#all === undefined || JSON.stringify(parsed(all)) === JSON.stringify(parsed(text));
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#changed(0);
  }

  /** Tells what has arrived; `isEnd`: to the end. Returns how many characters wait no longer. */
  tell(isEnd: boolean): number {
    const ends = isEnd || this.#hasEnded;
    const begins = this.#name !== '' && this.#untoldSize > 0 && !this.isPlaceholder;
    if (!this.#isTold && (begins || ends)) {
      if (this.#name === '') throw new UnreadableAnswer('a tool call has no name');
      this.#isTold = true;
      this.#emit({ type: 'call', id: this.#ids.of(this.#id), name: this.#name });
    }
    let told = 0;
    if (this.#isTold && (this.#untoldSize > 0 || ends)) {
      const text = this.#untold.join('');
      told = this.#untoldSize;
      this.#untold = [];
      this.#untoldSize = 0;
      if (text !== '') this.#emit({ type: 'arguments', text });
      else if (this.#size === 0) this.#emit({ type: 'arguments', text: '{}' });
    }
    if (ends) {
      this.#emit({ type: 'callEnd' });
      this.#isOver = true;
    }
    return told;
  }

  /** A name comes whole, again, in pieces, or longer each time. */
  #addName(name: string): void {
    if (name === '' || name === this.#name) return;
    if (this.#isTold) throw new UnreadableAnswer('the name of a tool call changed after it was known');
    this.#name = name.startsWith(this.#name) ? name : this.#name + name;
  }

  /** Returns the number of characters that wait now, and did not before. */
  #addArguments(text: string): number {
    // Servers send blanks after a whole object, before any piece of it, or an object for none.
    if (text === '' || (text.trim() === '' && (this.#size === 0 || this.isWhole))) return 0;
    if (this.isWhole && this.isRepeated(text)) return 0;
    let waited = 0;
    if (this.isPlaceholder && text.trimStart().startsWith('{') && !this.#isTold) {
      waited = this.#untoldSize;
      this.#untold = [];
      this.#untoldSize = 0;
      this.#all = '';
      this.#size = 0;
      this.#json = new JsonEnd();
    }
    if (this.#isOver) throw new UnreadableAnswer('a piece of a tool call arrived after the call had ended');
    this.#untold.push(text);
    this.#untoldSize += text.length;
    this.#size += text.length;
    this.#all =
      this.#size <= modelAnswers.bytes.compared && this.#all !== undefined ? this.#all + text : undefined;
    this.#json.add(text);
    return text.length - waited;
  }
}

/** Finds where a JSON object ends that comes in pieces. */
class JsonEnd {
  #depth = 0;
  #inText = false;
  #escaped = false;
  #isWhole = false;

  get isWhole(): boolean {
    return this.#isWhole;
  }

  add(piece: string): void {
    if (this.#isWhole) return;
    for (let at = 0; at < piece.length; at += 1) {
      const character = piece[at];
      if (this.#escaped) this.#escaped = false;
      else if (character === '\\') this.#escaped = this.#inText;
      else if (character === '"') this.#inText = !this.#inText;
      else if (!this.#inText && (character === '{' || character === '[')) this.#depth += 1;
      else if (!this.#inText && (character === '}' || character === ']')) {
        this.#depth -= 1;
        if (this.#depth === 0) this.#isWhole = true;
      }
    }
  }
}
