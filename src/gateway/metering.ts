import { StringDecoder } from 'node:string_decoder';
import { getHeapStatistics } from 'node:v8';
import { modelAnswers } from '../bounds/model.ts';
import { ByteStore } from '../byte-store.ts';
import { eventFeed } from './event-feed.ts';
import type { AnswerFacts } from './wires/answer-facts.ts';
import { parsed } from './wires/lenient.ts';
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
}

/** The readers of a wire that metering needs. */
type WireReaders = Pick<WireAnswers, 'readFacts' | 'readStream'>;

const nothing: Reading = {
  usage: {},
  answeredBy: undefined,
  complete: true,
  failure: undefined,
  overloaded: false,
  events: 0,
};

/**
 * A meter for an answer of this content type. Answers that are neither a stream of events nor JSON give no
 * facts.
 */
export function meterOf(answers: WireReaders, contentType: string): Meter {
  if (contentType.startsWith('text/event-stream')) return streamMeter(answers);
  if (/^application\/([\w.-]+\+)?json\b/.test(contentType)) return answerMeter(answers);
  return { chunk: () => undefined, held: () => 0, end: () => nothing };
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
      return { ...answers.readFacts(parsed(store.take().toString('utf8'))), events: 0 };
    },
  };
}
