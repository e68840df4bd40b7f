import { isAscii } from 'node:buffer';
import type { Wire } from '../../suite/model-config.ts';
import { isNothing, isObject, type JsonObject, parsed, words } from '../wires/lenient.ts';
import { readErrorText } from '../wires/model-error.ts';
import type { Losses } from './losses.ts';
import { type NeutralStop, UnreadableAnswer } from './neutral-answer.ts';

/** What the readers of all wires share. These functions throw {@link UnreadableAnswer}. */

/** Reasons for the end that a wire has no name for: lower case, letters only. */
const otherNames: readonly (readonly [NeutralStop | 'failed', ReadonlySet<string>])[] = [
  ['done', words('stop eos eostoken endturn end done completed complete finish finished success')],
  ['tools', words('toolcalls toolcall tooluse functioncall tools')],
  ['length', words('length maxtokens maxoutputtokens maxnewtokens maxlength')],
  ['context', words('modelcontextwindowexceeded modellength')],
  ['sequence', words('stopsequence')],
  ['refused', words('contentfilter contentfiltered refusal safety sensitive guardrailintervened')],
  [
    'failed',
    words(`
      error failed failure timeout abort aborted cancelled canceled cancel networkerror
      insufficientsystemresource overloaded servererror internalerror inprogress incomplete queued`),
  ],
];

/**
 * Why an answer ended, by the wire's own names, or by those that servers use instead. A reason that is
 * unknown or missing is recorded as a loss, at `path`: then the answer's parts say what it means. Throws for
 * an answer that failed.
 */
export function stopOf(stops: Stops, reason: unknown, losses: Losses, path: string): NeutralStop {
  const stop = stopNamed(stops, reason);
  if (stop) return stop;
  const meant = otherStopNamed(reason);
  if (meant === 'failed')
    throw new UnreadableAnswer(`the answer ended as ${JSON.stringify(reason).slice(0, 100)}`);
  losses.record(path, 'answer detail');
  return meant ?? 'done';
}

/** What a reason means that the wire has no name for; undefined if that is not known. */
export function otherStopNamed(reason: unknown): NeutralStop | 'failed' | undefined {
  const name = typeof reason === 'string' ? reason.toLowerCase().replace(/[^a-z]/g, '') : '';
  return otherNames.find(([, all]) => all.has(name))?.[0];
}

/**
 * Decodes as the official clients do: what is not UTF-8 becomes U+FFFD, and is recorded as a loss.
 *
 * @returns a function that decodes the next bytes, or the last ones without any
 */
export function decoderOf(losses: Losses): (bytes?: Buffer) => string {
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  return (bytes) => {
    // Most bytes are ASCII, and then the decoder is the most expensive part of a stream's beginning.
    if (!decoder && (bytes === undefined || isAscii(bytes))) return bytes?.toString('latin1') ?? '';
    decoder ??= new TextDecoder();
    const text = decoder.decode(bytes, { stream: bytes !== undefined });
    if (text.includes('\uFFFD')) losses.record('answer.text', 'answer detail');
    return text;
  };
}

/** Whether the data of an event says the end of a stream, as openai-chat does, and servers of all wires. */
export function isDone(data: string): boolean {
  return data.length < 20 && /^\s*"?\[?done\]?"?\s*$/i.test(data);
}

/** The data of an event of a stream. Some servers put several events into a list, or nothing. */
export function eventObjects(data: string): JsonObject[] {
  const event = parsed(data);
  const all = Array.isArray(event) ? event : event === null ? [] : [event];
  if (all.every(isObject)) return all;
  throw new UnreadableAnswer(`an event is not a JSON object: ${data.slice(0, 200)}`);
}

export function disorder(type: unknown): UnreadableAnswer {
  return new UnreadableAnswer(`the event ${JSON.stringify(type ?? null).slice(0, 60)} is out of order`);
}

/** A document that is no answer of this wire. Whoever reads its text adds the words in it. */
export class NoAnswer extends UnreadableAnswer {
  constructor(wire: Wire) {
    super(`the answer is not one of ${wire}`);
  }
}

/** The words of an event that the wire does not have; undefined without any. */
export function wordsOfOther(event: JsonObject, known: ReadonlySet<string>): string | undefined {
  const rest = Object.entries(event).filter(([name, value]) => !known.has(name) && !isNothing(value));
  const text = JSON.stringify(Object.fromEntries(rest));
  return /:\[?"/.test(text) ? readErrorText(text).message : undefined;
}

/** @param words what the server said meanwhile */
export function incomplete(words?: string): UnreadableAnswer {
  const what = 'the answer ended before it was complete';
  return new UnreadableAnswer(words === undefined ? what : `${what}: ${words}`);
}

/** A wire's names for why an answer ended. */
export type Stops = Readonly<Record<string, NeutralStop>>;

/** Undefined if the wire has no such name. */
export function stopNamed(stops: Stops, reason: unknown): NeutralStop | undefined {
  return typeof reason === 'string' && Object.hasOwn(stops, reason) ? stops[reason] : undefined;
}
