import { getHeapStatistics } from 'node:v8';
import { modelAnswers } from '../../bounds/model.ts';
import { messageOf } from '../../offsite-error.ts';
import { eventFeed } from '../event-feed.ts';
import type { WireEvent } from '../wires/wire-event.ts';
import type { CallIds } from './call-ids.ts';
import { StreamSteps } from './stream-steps.ts';
import type { Transcoder } from './transcoder.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';
import type { Asked, WireTranslation } from './wire-translation.ts';

/**
 * Translates a stream event by event: what a chunk of the model's bytes tells goes to the client before the
 * next chunk is read. A stream that does not end well throws, so that its client sees a broken answer.
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
  const steps = new StreamSteps(ids, (event) => writer.take(event));
  const reader = model.readStream(steps, asked.losses);
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const feed = eventFeed({
    longest: Math.min(
      modelAnswers.bytes.translated,
      getHeapStatistics().heap_size_limit * modelAnswers.bytes.eventOfHeap,
    ),
    onEvent(data) {
      if (failed) return;
      try {
        reader.event(data);
      } catch (error) {
        // The events before this one are told first.
        failed = error instanceof UnreadableAnswer ? error : new UnreadableAnswer(messageOf(error));
      }
    },
    onTooLong(bound) {
      failed ??= new UnreadableAnswer(`an event is longer than ${bound}`);
    },
  });
  const told = () => {
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
      const ready = told();
      // What came before the failure is told first.
      if (failed && ready.length === 0) throw failed;
      return ready;
    },
    end() {
      if (failed) throw failed;
      // Some servers send no blank line after the last event.
      feed.feed(`${decode()}\n\n`);
      if (failed) throw failed;
      if (!steps.over) reader.end();
      return told();
    },
    held: () => feed.held() + writer.held(),
  };
}

export function bytesOfEvent({ event, data }: WireEvent): string {
  const line = `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
  return event === undefined ? line : `event: ${event}\n${line}`;
}
