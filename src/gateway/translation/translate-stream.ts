import { messageOf } from '../../base/offsite-error.ts';
import { heapLimit } from '../../base/parse-json.ts';
import { modelAnswers } from '../../bounds/model.ts';
import { partsOfEvent } from '../wires/wire-event.ts';
import { answerStream } from './answer-stream.ts';
import type { CallIds } from './call-ids.ts';
import type { NeutralEvent } from './neutral-answer.ts';
import { decoderOf } from './read-answers.ts';
import type { Transcoder } from './transcoder.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';
import type { Asked, WireTranslation } from './wire-translation.ts';

/**
 * Translates a stream event by event: the events in one chunk go to the client before the next chunk is read.
 * If the stream does not end successfully, the client gets an error in its wire, and then a broken answer.
 */
export function streamTranscoder(
  model: WireTranslation,
  client: WireTranslation,
  asked: Asked,
  ids: CallIds,
): Transcoder {
  let out: (string | Buffer)[] = [];
  let failed: UnreadableAnswer | undefined;
  let hasBegun = false;
  let isTold = false;
  const writer = client.writeStream(asked, (event) => out.push(...partsOfEvent(event)));
  const pieces = new JoinedPieces((event) => writer.take(event));
  const stream = answerStream(model, {
    ids,
    losses: asked.losses,
    longest: Math.min(modelAnswers.bytes.translated, heapLimit * modelAnswers.bytes.eventOfHeap),
    emit(event) {
      // After a failure the stream is read for what else it says about itself, but no more is told.
      if ((failed ?? stream.problem()) === undefined) tell(event);
    },
    readsOn: true,
  });
  const attempt = (step: () => void) => {
    try {
      step();
    } catch (error) {
      failed ??= error instanceof UnreadableAnswer ? error : new UnreadableAnswer(messageOf(error));
    }
  };
  const tell = (event: NeutralEvent) => {
    hasBegun ||= event.type === 'start';
    isTold ||= event.type === 'end' || event.type === 'failure';
    attempt(() => pieces.take(event));
  };
  /** What the client gets: first what came before a failure, then its words. */
  const takeWritten = () => {
    attempt(() => pieces.flush());
    failed ??= stream.problem();
    // The steps may have ended since the failure, so what the client was told decides.
    if (failed && !isTold) {
      if (!hasBegun) tell({ type: 'start', id: undefined, model: undefined });
      tell({ type: 'failure', message: failed.message, code: undefined, overloaded: false });
    }
    const written = out;
    out = [];
    return bytesOf(written);
  };
  const decode = decoderOf(asked.losses);
  return {
    push(bytes) {
      stream.feed(decode(bytes));
      return takeWritten();
    },
    end() {
      stream.feed(decode());
      stream.end();
      return takeWritten();
    },
    problem: () => failed,
    isOver: () => stream.steps.over && !failed,
    stream: () => stream,
    held: () => stream.held() + writer.held(),
  };
}

/** Texts that follow each other are joined; bytes stay as they are. */
function bytesOf(written: readonly (string | Buffer)[]): Buffer[] {
  const all: Buffer[] = [];
  let from = 0;
  for (let at = 0; at <= written.length; at += 1) {
    const part = written[at];
    if (typeof part === 'string') continue;
    if (at > from) all.push(Buffer.from(written.slice(from, at).join('')));
    if (part) all.push(part);
    from = at + 1;
  }
  return all;
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
