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

/**
 * A meter for an answer of this status and content type. Servers send streams and documents under any type,
 * so its first bytes decide.
 */
export function meterOf(
  wire: Wire,
  status: number,
  contentType: string,
  /** The reading of a translation that has read the same bytes. */
  translated: () => AnswerStream | undefined = () => undefined,
): Meter {
  if (status >= 300) return errorMeter();
  const isJson = /^application\/([\w.-]+\+)?json\b/.test(contentType);
  return meterByContent((beginning) => {
    const stream = translated();
    if (stream) return { chunk: () => undefined, held: () => 0, end: () => endOf(stream) };
    if (isDocument(beginning)) return documentMeter(wire);
    if (isEvents(beginning) || contentType.startsWith('text/event-stream')) return streamMeter(wire);
    return isJson ? documentMeter(wire) : foreignMeter();
  });
}

/** Reads an error in any form, for the words of the server. */
function errorMeter(): Meter {
  const store = new ByteStore();
  return {
    chunk: (bytes) => store.add(bytes.subarray(0, modelAnswers.bytes.judgedError - store.size)),
    held: () => store.size,
    end() {
      return { ...nothing, failure: readErrorText(store.take()).message };
    },
  };
}

function meterByContent(choose: (beginning: string) => Meter): Meter {
  let beginning: Buffer = Buffer.alloc(0);
  let meter: Meter | undefined;
  return {
    chunk(bytes) {
      if (meter) {
        meter.chunk(bytes);
        return;
      }
      beginning = beginning.length === 0 ? bytes : Buffer.concat([beginning, bytes]);
      const first = beginning.toString('utf8');
      if (beginning.length < modelAnswers.bytes.blanks && isBlank(first)) return;
      meter = choose(first);
      meter.chunk(beginning);
      beginning = Buffer.alloc(0);
    },
    held: () => beginning.length + (meter?.held() ?? 0),
    end() {
      meter ??= choose('');
      if (beginning.length > 0) meter.chunk(beginning);
      return meter.end();
    },
  };
}

/** What is no answer of a model, such as the web page of a proxy. */
function foreignMeter(): Meter {
  const { end, ...error } = errorMeter();
  return {
    ...error,
    end: () => ({
      ...nothing,
      complete: false,
      problem: `answered with what is no answer of a model: ${end().failure ?? 'nothing'}`,
    }),
  };
}

function streamMeter(wire: Wire): Meter {
  const decoder = new StringDecoder('utf8');
  const stream = answerStream(wireTable[wire].translation, {
    ids: callIds(),
    losses: new Losses('lenient', wire),
    longest: Math.min(modelAnswers.bytes.event, heapLimit * modelAnswers.bytes.eventOfHeap),
    emit: () => undefined,
    readsOn: true,
  });
  return {
    chunk: (bytes) => stream.feed(decoder.write(bytes)),
    held: () => stream.held(),
    end() {
      stream.feed(decoder.end());
      return endOf(stream);
    },
  };
}

function endOf(stream: AnswerStream): Reading {
  stream.end();
  return { ...readingOf(stream.steps, stream.problem()), events: stream.events() };
}

/** What {@link readAhead} has read, until the same piece passes a meter. */
const ahead = new WeakMap<Uint8Array, Reading>();

/** Reads an answer that may be whole in its first piece. A meter then does not read that document again. */
export function readAhead(wire: Wire, piece: Buffer): Reading {
  const meter = meterOf(wire, 200, 'application/json');
  meter.chunk(piece);
  const reading = meter.end();
  ahead.set(piece, reading);
  return reading;
}

function documentMeter(wire: Wire): Meter {
  const store = new ByteStore();
  let size = 0;
  let known: Reading | undefined;
  return {
    chunk(bytes) {
      known = size === 0 ? ahead.get(bytes) : undefined;
      ahead.delete(bytes);
      size += bytes.length;
      if (size <= modelAnswers.bytes.metered) store.add(bytes);
      else store.clear();
    },
    held: () => store.size,
    end() {
      if (size > modelAnswers.bytes.metered) return nothing;
      if (known) return known;
      const steps = new StreamSteps(callIds(), () => undefined);
      const body = store.take().toString('utf8');
      try {
        readDocument(wireTable[wire], body, steps, new Losses('lenient', wire));
        return readingOf(steps, undefined);
      } catch (error) {
        return readingOf(steps, error);
      }
    },
  };
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
