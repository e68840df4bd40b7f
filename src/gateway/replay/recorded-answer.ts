import { createParser } from 'eventsource-parser';
import type { Wire } from '../../suite/model-config.ts';
import { callIds } from '../translation/call-ids.ts';
import type { Losses } from '../translation/losses.ts';
import type { NeutralAnswer, NeutralEvent } from '../translation/neutral-answer.ts';
import type { ModelPart, NeutralMessage, NeutralRequest } from '../translation/neutral-request.ts';
import { StreamSteps } from '../translation/stream-steps.ts';
import { translateAnswer } from '../translation/translate-answer.ts';
import { UnreadableAnswer } from '../translation/unreadable-answer.ts';
import { parsed } from '../wires/lenient.ts';
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
  const isStream = isEvents(body);
  const headers = isStream ? events : json;
  const hasForm = status >= 400 || isStream === request.streamed;
  if (wire === asked.wire && hasForm) return { status, headers, body };
  if (isStream && !request.streamed) {
    const { translation } = wireTable[asked.wire];
    const answer = wholeAnswer({ wire, body }, asked.request.messages, losses);
    return {
      status,
      headers: json,
      body: Buffer.from(JSON.stringify(translation.writeAnswer(answer, asked))),
    };
  }
  const from = {
    from: asked.wire,
    to: wire,
    sent: undefined,
    request,
    losses,
    estimate: 0,
    estimated: false,
  };
  const translated = translateAnswer({ status, headers }, from, 'answer', at);
  const written = Buffer.concat([translated.transcoder.push(body), translated.transcoder.end()]);
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
  if (isEvents(body)) return wholeAnswer({ wire, body }, [], losses);
  return wireTable[wire].translation.readAnswer(parsed(body.toString('utf8')), callIds([]), losses);
}

function isEvents(body: Buffer): boolean {
  return !/^\s*[{[]/.test(body.subarray(0, 200).toString('latin1'));
}

/** A streamed answer in one piece. */
function wholeAnswer(
  { wire, body }: Pick<RecordedAnswer, 'wire' | 'body'>,
  messages: readonly NeutralMessage[],
  losses: Losses,
): NeutralAnswer {
  const all: NeutralEvent[] = [];
  const steps = new StreamSteps(callIds(messages), (event) => all.push(event));
  const reader = wireTable[wire].translation.readStream(steps, losses);
  const parser = createParser({ onEvent: ({ data }) => reader.event(data) });
  parser.feed(`${body.toString('utf8')}\n\n`);
  if (!steps.over) reader.end();
  return answerOf(all);
}

function answerOf(all: readonly NeutralEvent[]): NeutralAnswer {
  const parts: ModelPart[] = [];
  let named: Pick<NeutralAnswer, 'id' | 'model'> = {};
  for (const event of all) {
    const last = parts.at(-1);
    switch (event.type) {
      case 'start':
        named = { id: event.id, model: event.model };
        break;
      case 'text':
      case 'refusal':
      case 'reasoning':
        if (last?.type === event.type && !(last.type === 'reasoning' && last.signature !== undefined))
          last.text += event.text;
        else parts.push({ type: event.type, text: event.text });
        break;
      case 'signature': {
        const { signature, redacted } = event;
        if (last?.type === 'reasoning' && last.signature === undefined && !redacted)
          last.signature = signature;
        else parts.push({ type: 'reasoning', text: '', signature, ...(redacted && { redacted }) });
        break;
      }
      case 'call':
        parts.push({ type: 'call', id: event.id, name: event.name, arguments: '' });
        break;
      case 'arguments':
        if (last?.type === 'call') last.arguments += event.text;
        break;
      case 'callEnd':
        break;
      case 'end': {
        const { stop, sequence, usage } = event;
        return { ...named, parts, stop, ...(sequence !== undefined && { sequence }), usage };
      }
      case 'failure':
        throw new UnreadableAnswer(event.message);
    }
  }
  throw new UnreadableAnswer('the recorded answer is not complete');
}
