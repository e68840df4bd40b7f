import { StringDecoder } from 'node:string_decoder';
import { ByteStore } from '../base/byte-store.ts';
import { messageOf } from '../base/offsite-error.ts';
import { heapLimit } from '../base/parse-json.ts';
import { modelAnswers } from '../bounds/model.ts';
import type { Usage } from '../contract/report.ts';
import type { Wire } from '../suite/model-config.ts';
import { faultIn } from './session-record.ts';
import {
  type AnswerStream,
  answerStream,
  isBlank,
  isDocument,
  isEvents,
  readDocument,
} from './translation/answer-stream.ts';
import { Losses } from './translation/losses.ts';
import type { NeutralUsage } from './translation/neutral-answer.ts';
import { callIds, StreamSteps } from './translation/stream-steps.ts';
import { fields } from './wires/lenient.ts';
import { readErrorText } from './wires/model-error.ts';
import { wireTable } from './wires/wire-table.ts';

/** Reads a copy of an answer as it passes. */
export interface Meter {
  chunk(bytes: Buffer): void;
  /** Bytes that it holds now. */
  held(): number;
  /** Call it after the last chunk, or if the answer was cut. */
  end(): Reading;
}

/** What an answer says about itself. */
export interface Reading {
  /** Without a cost. Numbers that the answer does not report are left out. */
  usage: Usage;
  answeredBy: string | undefined;
  /** Whether it is complete. */
  complete: boolean;
  /** Why it is not complete, if that is known. */
  problem?: string;
  /** The error that it carried. */
  failure: string | undefined;
  /** Who caused that error. */
  fault: 'model' | 'request';
  /** Events of a stream: about one token of output each. */
  events: number;
}

const nothing: Reading = {
  usage: {},
  answeredBy: undefined,
  complete: true,
  failure: undefined,
  fault: 'model',
  events: 0,
};

/** What an answer is: servers send streams and documents under any type, so its first bytes decide. */
type Kind = 'stream' | 'document' | 'error' | 'foreign';

/** A meter for an answer of this status and content type. */
export function meterOf(
  wire: Wire,
  status: number,
  contentType: string,
  /** The reading of a translation that has read the same bytes. */
  translated: () => AnswerStream | undefined = () => undefined,
): Meter {
  /** The beginning, or what is read at the end. */
  const store = new ByteStore();
  let kind: Kind | undefined = status >= 300 ? 'error' : undefined;
  let stream: AnswerStream | undefined;
  let feed: ((bytes?: Buffer) => void) | undefined;
  let size = 0;
  /** The first piece, if it was read ahead. It is stored only if it is not all. */
  let known: { piece: Buffer; reading: Reading } | undefined;
  const decide = (isEnd: boolean) => {
    const beginning = store.take();
    const text = beginning.toString('utf8');
    const isShort = !isEnd && saysNothing(beginning, text);
    stream = isShort ? undefined : translated();
    if (!isShort) kind = stream ? 'stream' : kindOf(text, contentType);
    if (kind === 'stream' && !stream) {
      stream = streamOf(wire);
      feed = feeding(stream);
      feed(beginning);
    } else if (!stream) store.add(beginning);
  };
  return {
    chunk(bytes) {
      if (kind === 'stream') return feed?.(bytes);
      const reading = size === 0 && kind === undefined && !translated() ? ahead.get(bytes) : undefined;
      size += bytes.length;
      if (reading) {
        kind = 'document';
        known = { piece: bytes, reading };
        return;
      }
      if (known) store.add(known.piece);
      known = undefined;
      if (kind === 'error' || kind === 'foreign')
        store.add(bytes.subarray(0, Math.max(0, modelAnswers.bytes.judgedError - store.size)));
      else if (kind === undefined || size <= modelAnswers.bytes.metered) store.add(bytes);
      else store.clear();
      // A first piece may be larger than what is metered: a recorded stream comes as one.
      if (kind === undefined) decide(false);
    },
    held: () => store.size + (known?.piece.length ?? 0) + (feed ? (stream?.held() ?? 0) : 0),
    end() {
      if (kind === undefined) decide(true);
      feed?.();
      if (stream) return endOf(stream);
      if (kind === 'document') {
        if (size > modelAnswers.bytes.metered) return nothing;
        return known?.reading ?? documentReading(wire, store.take().toString('utf8'));
      }
      const { message } = readErrorText(store.take());
      if (kind === 'error') return { ...nothing, failure: message };
      const problem = `answered with what is no answer of a model: ${message ?? 'nothing'}`;
      return { ...nothing, complete: false, problem };
    },
  };
}

/** Whether an answer that begins so may still be anything. */
function saysNothing(beginning: Buffer, text: string): boolean {
  return beginning.length < modelAnswers.bytes.blanks && isBlank(text);
}

/** What is no answer of a model is foreign, such as the web page of a proxy. */
function kindOf(beginning: string, contentType: string): Kind {
  if (isDocument(beginning)) return 'document';
  if (isEvents(beginning) || contentType.startsWith('text/event-stream')) return 'stream';
  return /^application\/([\w.-]+\+)?json\b/.test(contentType) ? 'document' : 'foreign';
}

function streamOf(wire: Wire): AnswerStream {
  return answerStream(wireTable[wire].translation, {
    ids: callIds(),
    losses: new Losses('lenient', wire),
    longest: Math.min(modelAnswers.bytes.event, heapLimit * modelAnswers.bytes.eventOfHeap),
    emit: () => undefined,
    readsOn: true,
  });
}

/** Gives bytes to a stream; without any, the rest of the last character. */
function feeding(stream: AnswerStream): (bytes?: Buffer) => void {
  const decoder = new StringDecoder('utf8');
  return (bytes) => stream.feed(bytes ? decoder.write(bytes) : decoder.end());
}

function endOf(stream: AnswerStream): Reading {
  stream.end();
  return { ...readingOf(stream.steps, stream.problem()), events: stream.events() };
}

/** The documents that {@link readAhead} has read, by their pieces: the same piece then passes a meter. */
const ahead = new WeakMap<Uint8Array, Reading>();

/** Reads an answer that may be whole in its first piece. A meter then does not read that document again. */
export function readAhead(wire: Wire, piece: Buffer): Reading {
  const text = piece.toString('utf8');
  const isDecided = piece.length <= modelAnswers.bytes.metered && !saysNothing(piece, text);
  if (isDecided && kindOf(text, 'application/json') === 'document') {
    const reading = documentReading(wire, text);
    ahead.set(piece, reading);
    return reading;
  }
  const meter = meterOf(wire, 200, 'application/json');
  meter.chunk(piece);
  return meter.end();
}

function documentReading(wire: Wire, body: string): Reading {
  const steps = new StreamSteps(callIds(), () => undefined);
  try {
    readDocument(wireTable[wire], body, steps, new Losses('lenient', wire));
    return readingOf(steps, undefined);
  } catch (error) {
    return readingOf(steps, error);
  }
}

/** What a reader found. An answer that ended is complete, whatever else the reader does not know. */
function readingOf({ usage, model, over, failed }: StreamSteps, problem: unknown): Reading {
  return {
    ...nothing,
    usage: usageWithTotal(usage),
    answeredBy: model,
    complete: over,
    ...(!over && problem !== undefined && { problem: messageOf(problem) }),
    failure: failed?.message,
    fault: failed ? faultIn(failed) : 'model',
  };
}

/** Usage with its total, without unknown numbers. Input tokens are all tokens of the prompt. */
export function usageWithTotal({ input, output, cacheRead, cacheWrite }: NeutralUsage): Usage {
  return fields({
    inputTokens: input,
    outputTokens: output,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    totalTokens: input === undefined || output === undefined ? undefined : input + output,
  });
}
