import { isEvents } from '../event-feed.ts';
import { parsed } from '../wires/lenient.ts';
import { readErrorText } from '../wires/model-error.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import { answerStream } from './answer-stream.ts';
import type { CallIds } from './call-ids.ts';
import type { Losses } from './losses.ts';
import { answerOf, type NeutralAnswer, type NeutralEvent } from './neutral-answer.ts';
import { NoAnswer } from './read-answers.ts';
import { StreamSteps } from './stream-steps.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';

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
