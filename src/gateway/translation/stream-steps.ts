import { modelAnswers } from '../../bounds/model.ts';
import type { ModelError } from '../wires/model-error.ts';
import type { CallIds } from './call-ids.ts';
import { CallPieces } from './call-pieces.ts';
import {
  type NeutralEvent,
  type NeutralStop,
  type NeutralUsage,
  type Piece,
  UnreadableAnswer,
} from './neutral-answer.ts';

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
