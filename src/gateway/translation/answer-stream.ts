import { createParser } from 'eventsource-parser';
import { messageOf } from '../../base/offsite-error.ts';
import { modelAnswers } from '../../bounds/model.ts';
import { parsed } from '../wires/lenient.ts';
import { readErrorText } from '../wires/model-error.ts';
import type { WireDescriptor, WireTranslation } from '../wires/wire-descriptor.ts';
import type { Losses } from './losses.ts';
import { answerOf, type NeutralAnswer, type NeutralEvent, UnreadableAnswer } from './neutral-answer.ts';
import { incomplete, NoAnswer } from './read-answers.ts';
import { type CallIds, StreamSteps } from './stream-steps.ts';

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

/** Reads the server-sent events of a text that comes in pieces. */
export interface EventFeed {
  feed(text: string): void;
  /** About how many bytes it keeps. */
  held(): number;
}

/**
 * Reads events of up to `longest` characters. The number of lines is limited too, because each line takes
 * more memory than its characters. `onTooLong` is called once, with the bound; then nothing more is read.
 */
export function eventFeed({
  longest,
  onEvent,
  onStray,
  onTooLong,
}: {
  longest: number;
  /** `name`: that of its `event` line, if it has one. */
  onEvent: (data: string, name: string | undefined) => void;
  /** Receives lines that belong to no event. */
  onStray: (line: string) => void;
  onTooLong: (bound: string) => void;
}): EventFeed {
  const mostLines = modelAnswers.count.eventLines;
  let isOver = false;
  let isInLine = false;
  let hadEvent = false;
  /** Characters and lines since about the end of the last event. */
  let pending = 0;
  let lines = 0;
  const giveUp = (bound: string) => {
    if (isOver) return;
    isOver = true;
    onTooLong(bound);
  };
  const parser = createParser({
    maxBufferSize: longest,
    onEvent({ data, event }) {
      hadEvent = true;
      onEvent(data, event);
    },
    onError({ type, line = '' }) {
      if (type === 'unknown-field') onStray(line);
      // After this error the parser accepts no more input.
      if (type === 'max-buffer-size-exceeded') giveUp(`${longest} characters`);
    },
  });
  return {
    feed(text) {
      if (isOver || text === '') return;
      hadEvent = false;
      const last = text.lastIndexOf('\n') + 1;
      const tail = last > 0 || !isInLine ? text.slice(last) : '';
      isInLine = last < text.length;
      // The parser drops the beginning of a line that is no field.
      if (!isEvents(tail) && !isBlank(tail)) onStray(tail);
      parser.feed(text);
      const end = Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n'));
      const from = Math.max(0, end);
      const isNew = hadEvent || end !== -1;
      pending = Math.min(longest, (isNew ? 0 : pending) + text.length - from);
      lines = (isNew ? 0 : lines) + linesIn(text, from);
      if (lines > mostLines) giveUp(`${mostLines} lines`);
    },
    // A character may need two bytes.
    held: () => (isOver ? 0 : 2 * pending),
  };
}

function linesIn(text: string, from: number): number {
  return text.slice(from).split(/\r\n|\r|\n/).length - 1;
}

/** Whether a body begins as a stream of events does. Servers send streams under any content type. */
export function isEvents(body: string): boolean {
  return /^[\s\uFEFF]*(data|event|id|retry|:)/.test(body.slice(0, modelAnswers.bytes.blanks));
}

/** Whether a body begins as a JSON document does. */
export function isDocument(body: string): boolean {
  return /^[\s\uFEFF]*[{[]/.test(body);
}

/** Whether the beginning of a body is too short to say what it is. */
export function isBlank(beginning: string): boolean {
  return /^[\s\uFEFF]*(d|da|dat|e|ev|eve|even|i|r|re|ret|retr)?$/.test(beginning);
}
