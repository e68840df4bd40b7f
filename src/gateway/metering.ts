import { StringDecoder } from 'node:string_decoder';
import { getHeapStatistics } from 'node:v8';
import { modelAnswers } from '../bounds/model.ts';
import { ByteStore } from '../byte-store.ts';
import { eventFeed } from './event-feed.ts';
import { isBlank, isEvents } from './translation/whole-answer.ts';
import type { AnswerFacts } from './wires/answer-facts.ts';
import { parsed } from './wires/lenient.ts';
import { readErrorText } from './wires/model-error.ts';
import type { WireAnswers } from './wires/wire-descriptor.ts';

/** Reads a copy of an answer as it passes. */
export interface Meter {
  chunk(bytes: Buffer): void;
  /** Bytes that it holds now. */
  held(): number;
  /** Call it after the last chunk, or if the answer was cut. */
  end(): Reading;
}

export interface Reading extends AnswerFacts {
  /** Events of a stream: about one token of output each. */
  events: number;
  /** What an answer says that is none of a model. */
  words?: string;
}

/** The readers of a wire that metering needs. */
type WireReaders = Pick<WireAnswers, 'readError' | 'readFacts' | 'readStream'>;

const nothing: Reading = {
  usage: {},
  answeredBy: undefined,
  complete: true,
  failure: undefined,
  overloaded: false,
  events: 0,
};

/**
 * A meter for an answer of this status and content type. Servers send streams and documents under any type,
 * so its first bytes decide.
 */
export function meterOf(answers: WireReaders, status: number, contentType: string): Meter {
  if (status >= 300) return errorMeter(answers);
  const isJson = /^application\/([\w.-]+\+)?json\b/.test(contentType);
  return meterByContent(answers, () => {
    if (contentType.startsWith('text/event-stream')) return streamMeter(answers);
    return isJson ? answerMeter(answers) : foreignMeter(answers);
  });
}

/** Reads an error in any form, for the words of the server. */
function errorMeter({ readError }: Pick<WireReaders, 'readError'>): Meter {
  const store = new ByteStore();
  return {
    chunk: (bytes) => store.add(bytes.subarray(0, modelAnswers.bytes.judgedError - store.size)),
    held: () => store.size,
    end() {
      const { message, isOverload } = readErrorText(store.take().toString('utf8'), readError);
      return { ...nothing, failure: message, overloaded: isOverload };
    },
  };
}

/** `otherwise`: for an answer that begins neither as a stream of events nor as JSON. */
function meterByContent(answers: WireReaders, otherwise: () => Meter): Meter {
  let beginning = Buffer.alloc(0);
  let meter: Meter | undefined;
  return {
    chunk(bytes) {
      if (meter) {
        meter.chunk(bytes);
        return;
      }
      beginning = Buffer.concat([beginning, bytes]);
      const first = beginning.toString('utf8');
      if (beginning.length < modelAnswers.bytes.blanks && isBlank(first)) return;
      if (/^[\s\uFEFF]*[{[]/.test(first)) meter = answerMeter(answers);
      else meter = isEvents(first) ? streamMeter(answers) : otherwise();
      meter.chunk(beginning);
      beginning = Buffer.alloc(0);
    },
    held: () => beginning.length + (meter?.held() ?? 0),
    end() {
      meter ??= otherwise();
      if (beginning.length > 0) meter.chunk(beginning);
      return meter.end();
    },
  };
}

/** What is no answer of a model, such as the web page of a proxy. */
function foreignMeter(answers: WireReaders): Meter {
  const { end, ...error } = errorMeter(answers);
  return { ...error, end: () => ({ ...nothing, complete: false, words: end().failure ?? 'nothing' }) };
}

function streamMeter(answers: WireReaders): Meter {
  const reader = answers.readStream();
  const decoder = new StringDecoder('utf8');
  let events = 0;
  const feed = eventFeed({
    longest: Math.min(
      modelAnswers.bytes.event,
      getHeapStatistics().heap_size_limit * modelAnswers.bytes.eventOfHeap,
    ),
    onEvent(data) {
      events += 1;
      reader.event(data);
    },
    // The rest passes unread.
    onTooLong: () => undefined,
  });
  return {
    chunk: (bytes) => feed.feed(decoder.write(bytes)),
    held: () => feed.held(),
    end() {
      feed.feed(decoder.end());
      // Counts an event without its final blank line: some servers send none after the last event.
      feed.feed('\n\n');
      return { ...reader.facts(), events };
    },
  };
}

function answerMeter(answers: WireReaders): Meter {
  const store = new ByteStore();
  let size = 0;
  return {
    chunk(bytes) {
      size += bytes.length;
      if (size <= modelAnswers.bytes.metered) store.add(bytes);
      else store.clear();
    },
    held: () => store.size,
    end() {
      if (size > modelAnswers.bytes.metered) return nothing;
      const body = store.take().toString('utf8');
      const facts = answers.readFacts(parsed(body));
      const words = facts.complete ? undefined : readErrorText(body, answers.readError).message;
      return { ...facts, events: 0, ...(words !== undefined && { words }) };
    },
  };
}
