import { OffsiteError } from '../../base/offsite-error.ts';
import { modelAnswers } from '../../bounds/model.ts';
import type { ModelPart } from './neutral-request.ts';

/** Counts of tokens; those that an answer does not have are missing. Input includes cached tokens. */
export interface NeutralUsage {
  input?: number;
  /** Includes reasoning. */
  output?: number;
  cacheRead?: number;
  cacheWrite?: number;
  reasoning?: number;
}

/** Why an answer ended. `length`: at its limit of tokens; `context`: the model's context is full. */
export type NeutralStop = 'done' | 'tools' | 'length' | 'context' | 'refused' | 'sequence';

/** A whole answer, independent of its wire. */
export interface NeutralAnswer {
  id?: string | undefined;
  model?: string | undefined;
  parts: ModelPart[];
  stop: NeutralStop;
  /** The stop sequence that ended it. */
  sequence?: string | undefined;
  usage: NeutralUsage;
}

/** A piece of a text. */
export interface Piece {
  type: 'text' | 'refusal' | 'reasoning';
  text: string;
}

/**
 * A step of a streamed answer. Parts follow each other: text, reasoning and refusals as pieces, a call from
 * `call` to `callEnd`. The last event of a successful answer is an `end`. If the model reports an error, the
 * last one is a `failure`.
 */
export type NeutralEvent =
  | { type: 'start'; id: string | undefined; model: string | undefined; usage?: NeutralUsage }
  | Piece
  /** Ends a part of reasoning. */
  | { type: 'signature'; signature: string; redacted?: true }
  | { type: 'call'; id: string; name: string }
  /** A piece of the JSON text of the open call's arguments. */
  | { type: 'arguments'; text: string }
  | { type: 'callEnd' }
  | { type: 'end'; stop: NeutralStop; sequence: string | undefined; usage: NeutralUsage }
  | { type: 'failure'; message: string; code: string | undefined; overloaded: boolean };

/** An answer as the events that would have streamed it. */
export function* eventsOf({
  id,
  model,
  parts,
  stop,
  sequence,
  usage,
}: NeutralAnswer): Generator<NeutralEvent> {
  const { output: _, reasoning: __, ...asked } = usage;
  yield { type: 'start', id, model, usage: asked };
  for (const part of parts) {
    switch (part.type) {
      case 'text':
      case 'refusal':
        yield { type: part.type, text: part.text };
        break;
      case 'reasoning':
        if (part.text !== '') yield { type: 'reasoning', text: part.text };
        if (part.signature !== undefined)
          yield { type: 'signature', signature: part.signature, ...(part.redacted && { redacted: true }) };
        break;
      case 'call':
        yield { type: 'call', id: part.id, name: part.name };
        yield { type: 'arguments', text: part.arguments };
        yield { type: 'callEnd' };
    }
  }
  yield { type: 'end', stop, sequence, usage };
}

/** The events of an answer that cannot be read. */
export function* failedAnswer(message: string): Generator<NeutralEvent> {
  yield { type: 'start', id: undefined, model: undefined };
  yield { type: 'failure', message, code: undefined, overloaded: false };
}

/** The whole answer that events streamed. Throws {@link UnreadableAnswer} for a failure. */
export function answerOf(all: readonly NeutralEvent[]): NeutralAnswer {
  const parts: ModelPart[] = [];
  let named: Pick<NeutralAnswer, 'id' | 'model'> = {};
  for (const event of all) {
    const last = parts.at(-1);
    switch (event.type) {
      case 'start':
        named = { id: event.id, model: event.model };
        break;
      case 'text':
      case 'refusal':
      case 'reasoning':
        if (last?.type === event.type && !(last.type === 'reasoning' && last.signature !== undefined))
          last.text += event.text;
        else parts.push({ type: event.type, text: event.text });
        break;
      case 'signature': {
        const { signature, redacted } = event;
        if (last?.type === 'reasoning' && last.signature === undefined && !redacted)
          last.signature = signature;
        else parts.push({ type: 'reasoning', text: '', signature, ...(redacted && { redacted }) });
        break;
      }
      case 'call':
        parts.push({ type: 'call', id: event.id, name: event.name, arguments: '' });
        break;
      case 'arguments':
        if (last?.type === 'call') last.arguments += event.text;
        break;
      case 'callEnd':
        break;
      case 'end': {
        const { stop, sequence, usage } = event;
        return { ...named, parts, stop, ...(sequence !== undefined && { sequence }), usage };
      }
      case 'failure':
        throw new ModelFailed(event.message);
    }
  }
  throw new UnreadableAnswer('the answer is not complete');
}

/** An answer that is not valid on its wire, or that another wire cannot express. */
export class UnreadableAnswer extends OffsiteError {
  constructor(message: string) {
    super(message, { code: 'MODEL_ANSWER_UNREADABLE', kind: 'infrastructure' });
  }
}

/** An answer that says that the model failed. */
export class ModelFailed extends UnreadableAnswer {}

const mostPieces = 1000;

/** Keeps a part of a streamed answer whole, up to a bound. */
export class WholeText {
  #length = 0;
  /** Long texts. */
  #joined: string[] = [];
  /** The newest pieces: each takes more memory than its characters, so they are joined soon. */
  #pieces: string[] = [];

  /** About how many bytes it keeps. */
  get held(): number {
    return 2 * this.#length;
  }

  /** Throws {@link UnreadableAnswer} if the text becomes too long. */
  add(piece: string): void {
    if (this.#length + piece.length > modelAnswers.bytes.translated) {
      throw new UnreadableAnswer(
        `a part of the answer is longer than ${modelAnswers.bytes.translated} characters, ` +
          "and its client's wire needs it whole",
      );
    }
    this.#length += piece.length;
    if (this.#pieces.push(piece) >= mostPieces) this.#joined.push(this.#pieces.splice(0).join(''));
  }

  take(): string {
    const text = [...this.#joined, ...this.#pieces].join('');
    this.#length = 0;
    this.#joined = [];
    this.#pieces = [];
    return text;
  }
}
