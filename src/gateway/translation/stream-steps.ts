import { modelAnswers } from '../../bounds/model.ts';
import type { ModelError } from '../wires/model-error.ts';
import type { CallIds } from './call-ids.ts';
import type { NeutralEvent, NeutralStop, NeutralUsage } from './neutral-answer.ts';
import { nameOfCall } from './read-answers.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';

/**
 * The steps of a streamed answer, in the order of the neutral form. The readers of all wires use this class,
 * so that no stream can end successfully twice, continue after its end, or leave a call open.
 */
export class StreamSteps {
  readonly #emit: (event: NeutralEvent) => void;
  readonly #ids: CallIds;
  #begun = false;
  #over = false;
  #called = false;
  /** Whether the open call has arguments; undefined if no call is open. */
  #callHasArguments: boolean | undefined;

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

  start(id: string | undefined, model: string | undefined, usage?: NeutralUsage): void {
    if (this.#begun) return;
    this.#begun = true;
    // Some wires repeat both in each event, so their length is limited.
    const short = (text: string | undefined) => text?.slice(0, modelAnswers.bytes.callId);
    this.#emit({ type: 'start', id: short(id), model: short(model), ...(usage && { usage }) });
  }

  text(type: 'text' | 'refusal' | 'reasoning', text: string): void {
    if (text === '') return;
    this.#next();
    this.#emit({ type, text });
  }

  signature(signature: string, redacted: boolean): void {
    this.#next();
    this.#emit({ type: 'signature', signature, ...(redacted && { redacted: true }) });
  }

  call(id: unknown, name: unknown): void {
    this.#next();
    const called = nameOfCall(name);
    this.#called = true;
    this.#callHasArguments = false;
    this.#emit({ type: 'call', id: this.#ids.of(id), name: called });
  }

  arguments(text: string): void {
    if (this.#callHasArguments === undefined)
      throw new UnreadableAnswer('arguments arrived outside a tool call');
    if (text === '') return;
    this.#callHasArguments = true;
    this.#emit({ type: 'arguments', text });
  }

  /** Ends the open call, if there is one. Arguments that are missing are an empty object. */
  closeCall(): void {
    if (this.#callHasArguments === undefined) return;
    if (!this.#callHasArguments) this.#emit({ type: 'arguments', text: '{}' });
    this.#callHasArguments = undefined;
    this.#emit({ type: 'callEnd' });
  }

  end(stop: NeutralStop, usage: NeutralUsage, sequence?: string): void {
    this.#next();
    this.#over = true;
    this.#emit({ type: 'end', stop: stop === 'done' && this.#called ? 'tools' : stop, sequence, usage });
  }

  /** The model reported that it failed. */
  failure({ message = 'it failed', codes: [code], isOverload: overloaded }: ModelError): void {
    if (this.#over) return;
    this.#over = true;
    this.#emit({ type: 'failure', message, code, overloaded });
  }

  #next(): void {
    if (this.#over) throw new UnreadableAnswer('the answer continues after its end');
    this.start(undefined, undefined);
    this.closeCall();
  }
}
