import { modelAnswers } from '../../bounds/model.ts';
import type { ModelError } from '../wires/model-error.ts';
import type { CallIds } from './call-ids.ts';
import { CallPieces } from './call-pieces.ts';
import type { NeutralEvent, NeutralStop, NeutralUsage } from './neutral-answer.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';

/**
 * The steps of an answer, in the order of the neutral form. The readers of all wires use this class, so that
 * no answer can end successfully twice, continue after its end, or leave a call open. The first part that is
 * not complete is told as it arrives; what arrives meanwhile for later parts waits for it.
 */
export class StreamSteps {
  readonly #emit: (event: NeutralEvent) => void;
  readonly #ids: CallIds;
  /** The first is a call that is not complete. */
  #waiting: (NeutralEvent | CallPieces)[] = [];
  #waitingSize = 0;
  #begun = false;
  #over = false;
  #called = false;
  #refused = false;

  constructor(ids: CallIds, emit: (event: NeutralEvent) => void) {
    this.#ids = ids;
    this.#emit = emit;
  }

  get over(): boolean {
    return this.#over;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** About how many bytes it keeps. */
  get held(): number {
    return 2 * this.#waitingSize;
  }

  start(id: string | undefined, model: string | undefined, usage?: NeutralUsage): void {
    if (this.#begun) return;
    this.#begun = true;
    // Some wires repeat both in each event, so their length is limited.
    const short = (text: string | undefined) => text?.slice(0, modelAnswers.bytes.callId);
    this.#emit({ type: 'start', id: short(id), model: short(model), ...(usage && { usage }) });
  }

  text(type: 'text' | 'refusal' | 'reasoning', text: string): void {
    if (text === '') return;
    this.#refused ||= type === 'refusal';
    this.#add({ type, text }, text.length);
  }

  signature(signature: string, redacted: boolean): void {
    this.#add({ type: 'signature', signature, ...(redacted && { redacted: true }) }, signature.length);
  }

  /** Begins a call. Its id, its name and its arguments may arrive in any order, and in pieces. */
  call(): CallPieces {
    const call = new CallPieces({
      ids: this.#ids,
      emit: (event) => this.#emit(event),
      changed: (characters) => {
        this.#keep(characters);
        this.#tell(false);
      },
    });
    this.#called = true;
    this.#add(call, 0);
    return call;
  }

  end(stop: NeutralStop, usage: NeutralUsage, sequence?: string): void {
    this.#mustGoOn();
    this.#tell(true);
    this.#over = true;
    const own = stop !== 'done' ? stop : this.#refused ? 'refused' : this.#called ? 'tools' : 'done';
    this.#emit({ type: 'end', stop: own, sequence, usage });
  }

  /** The model reported that it failed. */
  failure({ message = 'it failed', codes: [code], isOverload: overloaded }: ModelError): void {
    if (this.#over) return;
    this.#over = true;
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
    if (this.#waitingSize <= modelAnswers.bytes.translated) return;
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
