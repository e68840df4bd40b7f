import { hash } from 'node:crypto';
import { modelAnswers } from '../../bounds/model.ts';
import { parsed } from '../wires/lenient.ts';
import type { ModelError } from '../wires/model-error.ts';
import {
  type NeutralEvent,
  type NeutralStop,
  type NeutralUsage,
  type Piece,
  UnreadableAnswer,
} from './neutral-answer.ts';
import type { NeutralMessage } from './neutral-request.ts';

/**
 * The steps of an answer, in the order of the neutral form. The readers of all wires use this class, so that
 * no answer can end successfully twice, continue after its end, or leave a call open. The first part that is
 * not complete is told as it arrives; what arrives meanwhile for later parts waits for it. It also knows what
 * the answer has said about itself so far.
 */
export class StreamSteps {
  readonly #emit: (event: NeutralEvent) => void;
  readonly #ids: CallIds;
  /** The first is a call that is not complete. */
  #waiting: (NeutralEvent | CallPieces)[] = [];
  #waitingSize = 0;
  #begun = false;
  #over = false;
  #isTold = false;
  #model: string | undefined;
  #usage: NeutralUsage = {};
  #failed: ModelError | undefined;
  #refusal: UnreadableAnswer | undefined;
  #called = false;
  #refused = false;
  /** What was said since {@link onlyPiece} began; null if that was more than one piece of text. */
  #said: Piece | null | undefined;

  constructor(ids: CallIds, emit: (event: NeutralEvent) => void) {
    this.#ids = ids;
    this.#emit = emit;
  }

  /** Whether the answer has ended, in whatever way. */
  get over(): boolean {
    return this.#over;
  }

  get model(): string | undefined {
    return this.#model;
  }

  /** The counts so far. */
  get usage(): NeutralUsage {
    return this.#usage;
  }

  /** The error that the model reported. */
  get failed(): ModelError | undefined {
    return this.#failed;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** Whether more waits than a translation may keep. */
  get isFull(): boolean {
    return this.#waitingSize > modelAnswers.bytes.translated;
  }

  /** About how many bytes it keeps. */
  get held(): number {
    return 2 * this.#waitingSize;
  }

  start(id: string | undefined, model: string | undefined, usage?: NeutralUsage): void {
    // Some wires repeat both in each event, so their length is limited.
    const short = (text: string | undefined) => text?.slice(0, modelAnswers.bytes.callId);
    this.#model ??= short(model || undefined);
    if (this.#begun) return;
    this.#begun = true;
    this.#said = null;
    this.#emit({ type: 'start', id: short(id), model: short(model), ...(usage && { usage }) });
  }

  /** Notes counts; those that are missing stay as they were. */
  counts(usage: NeutralUsage): void {
    this.#usage = { ...this.#usage, ...usage };
  }

  /** The answer has something that the neutral form cannot say, so its end becomes this error. */
  refuse(message: string): void {
    this.#said = null;
    this.#refusal ??= new UnreadableAnswer(message);
  }

  text(type: Piece['type'], text: string): void {
    if (text === '') return;
    this.#refused ||= type === 'refusal';
    const piece = { type, text };
    this.#said = this.#said === undefined ? piece : null;
    this.#add(piece, text.length);
  }

  /** What `read` said, if that was one piece of text alone. Counts that are the same again say nothing. */
  onlyPiece(read: () => void): Piece | undefined {
    this.#said = undefined;
    read();
    return this.#said ?? undefined;
  }

  signature(signature: string, redacted: boolean): void {
    this.#said = null;
    this.#add({ type: 'signature', signature, ...(redacted && { redacted: true }) }, signature.length);
  }

  /** Begins a call. Its id, its name and its arguments may arrive in any order, and in pieces. */
  call(): CallPieces {
    const call = new CallPieces({
      ids: this.#ids,
      emit: (event) => this.#emit(event),
      changed: (characters) => {
        this.#said = null;
        this.#keep(characters);
        this.#tell(false);
      },
    });
    this.#called = true;
    this.#said = null;
    this.#add(call, 0);
    return call;
  }

  /** The end of a successful answer. */
  end(stop: NeutralStop, sequence?: string): void {
    this.#mustGoOn();
    this.#over = true;
    if (this.#refusal) throw this.#refusal;
    this.#tell(true);
    this.#isTold = true;
    const own = stop !== 'done' ? stop : this.#refused ? 'refused' : this.#called ? 'tools' : 'done';
    this.#emit({ type: 'end', stop: own, sequence, usage: this.#usage });
  }

  /** The model reported that it failed. */
  failure(error: ModelError): void {
    if (this.#over) return;
    this.#over = true;
    this.#failed = { ...error, message: error.message ?? error.codes[0] ?? 'it failed' };
    this.tellFailure(this.#failed);
  }

  /** Tells that the answer failed, or cannot be read, unless its end was told. */
  tellFailure({
    message = 'it failed',
    codes: [code],
    isOverload: overloaded,
  }: Pick<ModelError, 'message' | 'codes' | 'isOverload'>): void {
    if (this.#isTold) return;
    this.#isTold = true;
    // Clients do not expect an error before the beginning.
    this.start(undefined, undefined);
    this.#emit({ type: 'failure', message, code, overloaded });
  }

  #add(part: NeutralEvent | CallPieces, characters: number): void {
    this.#mustGoOn();
    if (this.#waiting.length === 0 && !(part instanceof CallPieces)) {
      this.#emit(part);
      return;
    }
    this.#waiting.push(part);
    this.#keep(characters);
    this.#tell(false);
  }

  #keep(characters: number): void {
    this.#waitingSize += characters;
    if (!this.isFull) return;
    throw new UnreadableAnswer(
      `the parts of the answer arrived in such an order that more than ${modelAnswers.bytes.translated} ` +
        'characters would have to wait',
    );
  }

  /** Tells what can be told in order; at the end, everything. */
  #tell(isEnd: boolean): void {
    for (let [first] = this.#waiting; first; [first] = this.#waiting) {
      if (first instanceof CallPieces) {
        const isLast = this.#waiting.length === 1;
        this.#waitingSize -= first.tell(isEnd || (!isLast && first.isWhole));
        if (!first.isOver) return;
      } else {
        this.#waitingSize -= first.type === 'signature' ? first.signature.length : lengthOf(first);
        this.#emit(first);
      }
      this.#waiting.shift();
    }
  }

  #mustGoOn(): void {
    if (this.#over) throw new UnreadableAnswer('the answer continues after its end');
    this.start(undefined, undefined);
  }
}

function lengthOf(event: NeutralEvent): number {
  return 'text' in event ? event.text.length : 0;
}

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

/** Gives each tool call of an answer an id that no other call of the conversation has. */
export interface CallIds {
  /** Throws {@link UnreadableAnswer} if the answer has too many calls. */
  of(given: unknown): string;
}

/**
 * Keeps a model's own ids. `used`: those of the conversation. A call that has none, or one that is taken,
 * gets the first free number of the conversation, so that a retry gets the same id. Some servers restart the
 * numbers of calls in each answer, and Gemini's often have no ids.
 */
export function callIds(used: Iterable<string> = []): CallIds {
  const taken = new Set(used);
  let number = 0;
  let calls = 0;
  return {
    of(given) {
      calls += 1;
      if (calls > modelAnswers.count.calls)
        throw new UnreadableAnswer(`the answer has more than ${modelAnswers.count.calls} tool calls`);
      let id = typeof given === 'string' ? given.slice(0, 200) : '';
      while (id === '' || taken.has(id)) {
        id = `call_${number}`;
        number += 1;
      }
      taken.add(id);
      return id;
    },
  };
}

/** The ids of the calls of a conversation. */
export function idsIn(messages: readonly NeutralMessage[]): string[] {
  return messages.flatMap((message) =>
    message.from === 'model' ? message.parts.flatMap((part) => (part.type === 'call' ? part.id : [])) : [],
  );
}

/** An id that every server takes: some refuse other characters, and OpenAI more than 40. */
export function portableId(id: string): string {
  return /^[\w-]{1,40}$/.test(id) ? id : `call_${hash('sha256', id).slice(0, 32)}`;
}
