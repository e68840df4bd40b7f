import { isAscii } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { Wire } from '../../suite/model-config.ts';
import { isNothing, isObject, type JsonObject, parsed, words } from '../wires/lenient.ts';
import { readErrorText } from '../wires/model-error.ts';
import type { Losses } from './losses.ts';
import { type NeutralStop, type Piece, UnreadableAnswer } from './neutral-answer.ts';
import type { StreamSteps } from './stream-steps.ts';

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

/** A text that no server can guess, so no event contains it. */
const place = randomUUID();

/** Longer events are parsed each time: there the parsing is the smaller part of the work. */
const small = 2 ** 12;

/** What is around the one text in which events differ, and an event in which that text can be changed. */
interface Frame {
  before: string;
  after: string;
  event: JsonObject;
  put(text: string): void;
}

/**
 * Reads the data of a stream's events. Most of them differ in one text alone, such as the next word of the
 * answer. Once two events have shown what is around that text, later ones are not parsed: their text is put
 * into the same object. And if reading two such events in turn said their texts to `steps` and nothing else,
 * then the next ones are not read either: their text is said. The result is the same as with parsing.
 *
 * @param take reads an event, which is valid only until the next one
 * @returns a function that reads the data of the next event, and the name of its `event` line; throws
 * `UnreadableAnswer`
 */
export function eventReader(
  steps: StreamSteps,
  losses: Losses,
  take: (event: JsonObject, name: string | undefined) => void,
): (data: string, name?: string) => void {
  let last = '';
  let frame: Frame | undefined;
  /** What the last event said, if it was like the one before and said its text alone. */
  let said: (Piece & { name: string | undefined; isSure: boolean }) | undefined;
  return (data, name) => {
    const text = frame && textIn(frame, data);
    if (frame && text !== undefined) {
      const before = said?.name === name ? said : undefined;
      if (before?.isSure) return steps.text(before.type, text);
      said = undefined;
      const { event } = frame;
      frame.put(text);
      const lost = losses.times;
      const piece = steps.onlyPiece(() => take(event, name));
      const isAlone = piece?.text === text && losses.times === lost;
      // One text alone could be that of another place, which happens to be the same.
      const isSure = before !== undefined && before.text !== text;
      if (isAlone) said = { ...piece, name, isSure };
      return;
    }
    said = undefined;
    const all = eventObjects(data);
    frame = data.length <= small ? (frameOf(last, data) ?? frame) : frame;
    last = data;
    for (const event of all) take(event, name);
  };
}

function textIn({ before, after }: Frame, data: string): string | undefined {
  const end = data.length - after.length;
  if (data.length > small || end < before.length) return undefined;
  // This compares whole words of memory; startsWith compares each character.
  if (data.slice(0, before.length) !== before || data.slice(end) !== after) return undefined;
  const text = data.slice(before.length, end);
  if (plain.test(text)) return text;
  // A text with escapes is parsed alone. With a quote that ends it, it is more than one text.
  const decoded = parsed(`"${text}"`);
  return typeof decoded === 'string' ? decoded : undefined;
}

/** Text that JSON writes as it is. */
const plain = /^[^"\\\p{Cc}]*$/u;

/** Finds the one text in which two events differ. Undefined if there is no such text. */
function frameOf(one: string, other: string): Frame | undefined {
  // Without backslashes, every quote begins or ends a text.
  if (one === other || one.includes('\\') || other.includes('\\')) return undefined;
  const most = Math.min(one.length, other.length);
  let same = 0;
  while (same < most && one[same] === other[same]) same += 1;
  const from = other.lastIndexOf('"', same - 1) + 1;
  const before = other.slice(0, from);
  if (!one.startsWith(before) || quotesIn(before) % 2 === 0) return undefined;
  const after = other.slice(other.indexOf('"', from));
  if (!one.endsWith(after) || one.slice(from, one.length - after.length).includes('"')) return undefined;
  const [event, ...others] = eventObjects(`${before}${place}${after}`);
  const put = event && others.length === 0 ? setterIn(event) : undefined;
  return event && put && { before, after, event, put };
}

function quotesIn(text: string): number {
  return text.split('"').length - 1;
}

/**
 * Returns a function that replaces the value {@link place}. Undefined if that text is the name of a member,
 * or another member of the same name hides it.
 */
function setterIn(value: object): ((text: string) => void) | undefined {
  for (const [name, member] of Object.entries(value)) {
    if (member === place) {
      const holder = value as Record<string, unknown>;
      return (text) => {
        holder[name] = text;
      };
    }
    const put = isObject(member) || Array.isArray(member) ? setterIn(member) : undefined;
    if (put) return put;
  }
  return undefined;
}
