import { messageOf } from '../../base/offsite-error.ts';
import { modelAnswers } from '../../bounds/model.ts';
import { type EventFeed, eventFeed, isEvents } from '../event-feed.ts';
import { parsed } from '../wires/lenient.ts';
import { readErrorText } from '../wires/model-error.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import type { CallIds } from './call-ids.ts';
import type { Losses } from './losses.ts';
import { answerOf, type NeutralAnswer, type NeutralEvent, UnreadableAnswer } from './neutral-answer.ts';
import { incomplete, NoAnswer } from './read-answers.ts';
import { StreamSteps } from './stream-steps.ts';
import type { WireTranslation } from './wire-translation.ts';

/** A streamed answer as it arrives. Translation, metering, checks and replays read streams in this way. */
export interface AnswerStream extends EventFeed {
  steps: StreamSteps;
  /** The stream ended. Call it after the last text. */
  end(): void;
  /** Why the answer cannot be read; undefined as long as it can. */
  problem(): UnreadableAnswer | undefined;
  /** How many events it has had. */
  events(): number;
}

interface Reading {
  ids: CallIds;
  losses: Losses;
  /** Characters of an event. */
  longest: number;
  emit(event: NeutralEvent): void;
  /** Whether it reads on after what cannot be read, for what else the answer says about itself. */
  readsOn?: boolean;
}

export function answerStream(
  wire: Pick<WireTranslation, 'read'>,
  { ids, losses, longest, emit, readsOn = false }: Reading,
): AnswerStream {
  const steps = new StreamSteps(ids, emit);
  const reader = wire.read(steps, losses);
  let problem: UnreadableAnswer | undefined;
  let events = 0;
  let isEnding = false;
  let stray = '';
  const attempt = (step: () => void) => {
    try {
      step();
    } catch (error) {
      problem ??= error instanceof UnreadableAnswer ? error : new UnreadableAnswer(messageOf(error));
    }
  };
  const feed = eventFeed({
    longest,
    onEvent(data, name) {
      events += 1;
      if (problem && !(readsOn && !steps.isFull)) return;
      // The last event may be cut.
      if (isEnding && /^\s*\{/.test(data) && parsed(data) === undefined) problem ??= incomplete();
      else attempt(() => reader.event(data, name));
    },
    onStray(line) {
      if (stray.length < modelAnswers.bytes.judgedError) stray += `${line}\n`;
    },
    onTooLong(bound) {
      problem ??= new UnreadableAnswer(`an event is longer than ${bound}`);
    },
  });
  return {
    steps,
    feed: feed.feed,
    end() {
      isEnding = true;
      // Some servers send no blank line after the last event.
      feed.feed('\n\n');
      if (steps.over || problem) return;
      attempt(() => reader.end());
      // Some servers end a stream with the text of an error.
      const words = stray === '' ? undefined : readErrorText(stray.replace(/^error:/, '')).message;
      if (problem && words) problem = new UnreadableAnswer(`${messageOf(problem)}: ${words}`);
      else if (words) losses.record('answer.line', 'answer detail');
    },
    problem: () => problem,
    events: () => events,
    held: () => feed.held() + steps.held,
  };
}

type Wire = Pick<WireDescriptor, 'translation'>;

/**
 * Reads an answer whose bytes are all there, whether it is a stream or a document. Throws
 * {@link UnreadableAnswer}.
 *
 * @param losses receives what the neutral form has no place for
 */
export function wholeAnswer(wire: Wire, body: string, ids: CallIds, losses: Losses): NeutralAnswer {
  const all: NeutralEvent[] = [];
  const emit = (event: NeutralEvent) => all.push(event);
  if (isEvents(body)) {
    const stream = answerStream(wire.translation, { ids, losses, longest: body.length + 1, emit });
    stream.feed(body);
    stream.end();
    const problem = stream.problem();
    if (problem) throw problem;
  } else readDocument(wire, body, new StreamSteps(ids, emit), losses);
  return answerOf(all);
}

/** Reads a document into steps. Throws {@link UnreadableAnswer}, with the words of what is no answer. */
export function readDocument({ translation }: Wire, body: string, steps: StreamSteps, losses: Losses): void {
  try {
    translation.read(steps, losses).document(parsed(body));
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    throw new UnreadableAnswer(`${error.message}: ${readErrorText(body).message ?? 'nothing'}`);
  }
}

/** Turns the bytes of a model's answer into those for its client. */
export interface Transcoder {
  /** Throws {@link UnreadableAnswer} if there is nothing for the client. */
  push(bytes: Buffer): Buffer[];
  /** The model's answer is complete. Throws as `push` does. */
  end(): Buffer[];
  /** Why the answer breaks off after the bytes so far; look after each push and at the end. */
  problem(): UnreadableAnswer | undefined;
  /** Whether the model has said the end of its answer, and its client has it. */
  isOver?(): boolean;
  /** Its reading of a stream, once the beginning has shown that it is one. */
  stream?(): AnswerStream | undefined;
  /** Bytes that it keeps. */
  held(): number;
}
