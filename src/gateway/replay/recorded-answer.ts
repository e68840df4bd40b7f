import type { Wire } from '../../suite/model-config.ts';
import { isEvents } from '../event-feed.ts';
import { callIds } from '../translation/call-ids.ts';
import type { Losses } from '../translation/losses.ts';
import type { NeutralAnswer } from '../translation/neutral-answer.ts';
import type { NeutralRequest } from '../translation/neutral-request.ts';
import { translateAnswer } from '../translation/translate-answer.ts';
import { wholeAnswer } from '../translation/whole-answer.ts';
import { wireTable } from '../wires/wire-table.ts';
import type { RecordedAnswer } from './cassette.ts';

interface AskedAs {
  wire: Wire;
  request: NeutralRequest;
  losses: Losses;
  /** Epoch milliseconds. */
  at: number;
}

/** An answer for a client, complete. */
export interface WrittenAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

const json = { 'content-type': 'application/json' };
const events = { 'content-type': 'text/event-stream; charset=utf-8' };

/**
 * A recorded answer as a client asks for it: unchanged if it has the client's wire and form, otherwise
 * translated. Throws {@link UnreadableAnswer} if it cannot be read.
 */
export function writeRecorded({ wire, status, body }: RecordedAnswer, asked: AskedAs): WrittenAnswer {
  const { request, losses, at } = asked;
  const isStream = isEvents(body.toString('utf8'));
  const headers = isStream ? events : json;
  const hasForm = status >= 400 || isStream === request.streamed;
  if (wire === asked.wire && hasForm) return { status, headers, body };
  const from = {
    from: asked.wire,
    to: wire,
    sent: undefined,
    request,
    losses,
    estimate: 0,
    estimated: false,
  };
  const { transcoder, ...translated } = translateAnswer({ status, headers }, from, 'answer', at);
  const written = Buffer.concat([...transcoder.push(body), ...transcoder.end()]);
  const problem = transcoder.problem();
  if (problem) throw problem;
  return {
    status: translated.status,
    headers: request.streamed && status < 400 ? events : json,
    body: written,
  };
}

/**
 * A recorded answer in the neutral form. Throws {@link UnreadableAnswer} if it cannot be read.
 *
 * @param losses receives what the neutral form has no place for
 */
export function readRecorded({ wire, body }: RecordedAnswer, losses: Losses): NeutralAnswer {
  return wholeAnswer(wireTable[wire], body.toString('utf8'), callIds(), losses);
}
