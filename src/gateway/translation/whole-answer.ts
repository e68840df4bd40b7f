import { createParser } from 'eventsource-parser';
import { modelAnswers } from '../../bounds/model.ts';
import { parsed } from '../wires/lenient.ts';
import type { CallIds } from './call-ids.ts';
import type { Losses } from './losses.ts';
import { answerOf, type NeutralAnswer, type NeutralEvent } from './neutral-answer.ts';
import { StreamSteps } from './stream-steps.ts';
import type { WireTranslation } from './wire-translation.ts';

/**
 * Reads an answer whose bytes are all there, whether it is a stream or a document. Throws
 * {@link UnreadableAnswer}.
 *
 * @param losses receives what the neutral form has no place for
 */
export function wholeAnswer(
  model: WireTranslation,
  body: string,
  ids: CallIds,
  losses: Losses,
): NeutralAnswer {
  if (!isEvents(body)) return model.readAnswer(parsed(body), ids, losses);
  const all: NeutralEvent[] = [];
  const steps = new StreamSteps(ids, (event) => all.push(event));
  const reader = model.readStream(steps, losses);
  const parser = createParser({ onEvent: ({ data }) => reader.event(data) });
  parser.feed(`${body}\n\n`);
  if (!steps.over) reader.end();
  return answerOf(all);
}

/** Whether a body begins as a stream of events does. Servers send streams under any content type. */
export function isEvents(body: string): boolean {
  return /^[\s\uFEFF]*(data|event|id|retry|:)/.test(body.slice(0, modelAnswers.bytes.blanks));
}

/** Whether the beginning of a body is too short to say what it is. */
export function isBlank(beginning: string): boolean {
  return /^[\s\uFEFF]*(d|da|dat|e|ev|eve|even|i|r|re|ret|retr)?$/.test(beginning);
}
