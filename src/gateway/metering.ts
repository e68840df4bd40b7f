import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';
import { type Dialect, parsed, type Told } from './wires/dialect.ts';

/** Characters of one event, and bytes of an answer in one piece, that are kept to be read. What is larger stays unread. */
const longestEvent = 32 * 1024 * 1024;
const longestAnswer = 16 * 1024 * 1024;

/** Reads a copy of an answer as it passes. */
export interface Meter {
  chunk(bytes: Buffer): void;
  /** After the last chunk, or where the answer was cut. */
  end(): Reading;
}

export interface Reading extends Told {
  /** Events of a stream: about one token of output each. */
  events: number;
}

const nothing: Reading = { usage: {}, answeredBy: undefined, complete: true, failure: undefined, events: 0 };

/** A meter for an answer of this content type; one that is neither a stream of events nor JSON tells nothing. */
export function meterOf(dialect: Dialect, contentType: string): Meter {
  if (contentType.startsWith('text/event-stream')) return streamMeter(dialect);
  if (/^application\/([\w.-]+\+)?json\b/.test(contentType)) return answerMeter(dialect);
  return { chunk: () => undefined, end: () => nothing };
}

function streamMeter(dialect: Dialect): Meter {
  const reader = dialect.readStream();
  const decoder = new StringDecoder('utf8');
  let events = 0;
  let readable = true;
  const parser = createParser({
    maxBufferSize: longestEvent,
    onEvent({ data }) {
      events += 1;
      reader.event(data);
    },
    onError({ type }) {
      // After this one the parser takes no more.
      if (type === 'max-buffer-size-exceeded') readable = false;
    },
  });
  const feed = (text: string) => {
    if (readable && text !== '') parser.feed(text);
  };
  return {
    chunk: (bytes) => feed(decoder.write(bytes)),
    end() {
      feed(decoder.end());
      // An event that the stream's end cut off before its blank line still counts: some servers send none after the last.
      feed('\n\n');
      return { ...reader.told(), events };
    },
  };
}

function answerMeter(dialect: Dialect): Meter {
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    chunk(bytes) {
      size += bytes.length;
      if (size <= longestAnswer) chunks.push(bytes);
      else chunks.length = 0;
    },
    end() {
      if (size > longestAnswer) return nothing;
      return { ...dialect.readAnswer(parsed(Buffer.concat(chunks).toString('utf8'))), events: 0 };
    },
  };
}
