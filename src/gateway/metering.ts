import { StringDecoder } from 'node:string_decoder';
import { getHeapStatistics } from 'node:v8';
import { createParser } from 'eventsource-parser';
import { modelAnswers } from '../bounds/model.ts';
import { ByteStore } from '../byte-store.ts';
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

const nothing: Reading = { usage: {}, answeredBy: undefined, complete: true, failure: undefined, events: 0 };

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
  let readable = true;
  /** Characters since the end of the last event. */
  let pending = 0;
  const longest = Math.min(
    modelAnswers.bytes.event,
    getHeapStatistics().heap_size_limit * modelAnswers.bytes.eventOfHeap,
  );
  const parser = createParser({
    maxBufferSize: longest,
    onEvent({ data }) {
      events += 1;
      reader.event(data);
    },
    onError({ type }) {
      // After this error the parser accepts no more input.
      if (type === 'max-buffer-size-exceeded') {
        readable = false;
        pending = 0;
      }
    },
  });
  const feed = (text: string) => {
    if (!readable || text === '') return;
    const end = Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n'));
    pending = Math.min(longest, end === -1 ? pending + text.length : text.length - end);
    parser.feed(text);
  };
  return {
    chunk: (bytes) => feed(decoder.write(bytes)),
    // A character may need two bytes.
    held: () => (readable ? 2 * pending : 0),
    end() {
      feed(decoder.end());
      // Counts an event without its final blank line: some servers send none after the last event.
      feed('\n\n');
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
