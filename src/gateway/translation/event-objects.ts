import { randomUUID } from 'node:crypto';
import { isObject, type JsonObject, parsed } from '../wires/lenient.ts';
import type { Losses } from './losses.ts';
import type { Piece } from './neutral-answer.ts';
import { eventObjects } from './read-answers.ts';
import type { StreamSteps } from './stream-steps.ts';

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
