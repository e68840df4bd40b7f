import { getHeapStatistics } from 'node:v8';
import { modelAnswers } from '../../bounds/model.ts';
import { messageOf } from '../../offsite-error.ts';
import { eventFeed } from '../event-feed.ts';
import type { WireEvent } from '../wires/wire-event.ts';
import type { CallIds } from './call-ids.ts';
import type { NeutralEvent } from './neutral-answer.ts';
import { StreamSteps } from './stream-steps.ts';
import type { Transcoder } from './transcoder.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';
import type { Asked, WireTranslation } from './wire-translation.ts';

/**
 * Translates a stream event by event: the events in one chunk go to the client before the next chunk is read.
 * Throws if the stream does not end successfully, so that the client sees a broken answer.
 */
export function streamTranscoder(
  model: WireTranslation,
  client: WireTranslation,
  asked: Asked,
  ids: CallIds,
): Transcoder {
  let out: string[] = [];
  let failed: UnreadableAnswer | undefined;
  const writer = client.writeStream(asked, (event) => out.push(bytesOfEvent(event)));
  const pieces = new JoinedPieces((event) => writer.take(event));
  const steps = new StreamSteps(ids, (event) => pieces.take(event));
  const reader = model.readStream(steps, asked.losses);
  const attempt = (step: () => void) => {
    try {
      step();
    } catch (error) {
      failed ??= error instanceof UnreadableAnswer ? error : new UnreadableAnswer(messageOf(error));
    }
  };
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const feed = eventFeed({
    longest: Math.min(
      modelAnswers.bytes.translated,
      getHeapStatistics().heap_size_limit * modelAnswers.bytes.eventOfHeap,
    ),
    onEvent(data) {
      // The events before one that fails are sent first.
      if (!failed) attempt(() => reader.event(data));
    },
    onTooLong(bound) {
      failed ??= new UnreadableAnswer(`an event is longer than ${bound}`);
    },
  });
  const takeWritten = () => {
    attempt(() => pieces.flush());
    const bytes = Buffer.from(out.join(''));
    out = [];
    return bytes;
  };
  const decode = (bytes?: Buffer) => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch {
      throw new UnreadableAnswer('the answer is not UTF-8');
    }
  };
  return {
    push(bytes) {
      if (failed) throw failed;
      feed.feed(decode(bytes));
      const ready = takeWritten();
      // What came before the failure is sent first.
      if (failed && ready.length === 0) throw failed;
      return ready;
    },
    end() {
      if (failed) throw failed;
      // Some servers send no blank line after the last event.
      feed.feed(`${decode()}\n\n`);
      if (failed) throw failed;
      if (!steps.over) reader.end();
      const last = takeWritten();
      if (failed) throw failed;
      return last;
    },
    held: () => feed.held() + steps.held + writer.held(),
  };
}

/**
 * Joins pieces of one text that arrive together. A client that waits for each piece gets each; one that has
 * fallen behind gets the same text in fewer events.
 */
class JoinedPieces {
  readonly #give: (event: NeutralEvent) => void;
  #type: PieceType | undefined;
  #texts: string[] = [];

  constructor(give: (event: NeutralEvent) => void) {
    this.#give = give;
  }

  take(event: NeutralEvent): void {
    const isPiece = 'text' in event;
    if (!isPiece || event.type !== this.#type) this.flush();
    if (isPiece) {
      this.#type = event.type;
      this.#texts.push(event.text);
    } else this.#give(event);
  }

  /** Call it at the end of what has arrived. */
  flush(): void {
    if (this.#type === undefined) return;
    const text = this.#texts.join('');
    const type = this.#type;
    this.#type = undefined;
    this.#texts = [];
    this.#give({ type, text });
  }
}

type PieceType = Extract<NeutralEvent, { text: string }>['type'];

export function bytesOfEvent({ event, data }: WireEvent): string {
  const line = `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
  return event === undefined ? line : `event: ${event}\n${line}`;
}
