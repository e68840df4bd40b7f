import { randomUUID } from 'node:crypto';
import { parseForeignJson } from '../../base/parse-json.ts';
import { modelAnswers } from '../../bounds/model.ts';

/** Reads JSON from outside that may have any shape: a value that does not fit reads as missing. */

export type JsonObject = Record<string, unknown>;

/** The first 500 characters of a string that is not empty. */
export function shortText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, 500) : undefined;
}

/**
 * A number of tokens. An impossible number counts as unknown, so that a faulty upstream does not falsify
 * totals.
 */
export function tokenCount(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  const isPossible = Number.isSafeInteger(count) && Number(count) >= 0;
  return isPossible && Number(count) <= modelAnswers.count.tokens ? Number(count) : undefined;
}

/** The words of a text, as a set. */
export function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Whether a member is missing or empty. */
export function isNothing(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** The objects of a list. */
export function objectsOf(value: unknown): JsonObject[] {
  return list(value).filter(isObject);
}

/** A member of a value that may be an object. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** A tool's type, for messages. */
export function toolType(tool: unknown): string {
  return shortText(member(tool, 'type')) ?? 'of an unknown type';
}

/** Parses a string; undefined if it is not JSON, or needs more memory than this process has. */
export function parsed(data: string): unknown {
  try {
    // The byte order mark of UTF-8, which clients skip.
    return parseForeignJson(data.startsWith('\uFEFF') ? data.slice(1) : data);
  } catch {
    // A partial event or garbage has no facts; the client gets it unchanged.
    return undefined;
  }
}

/** Values of members that should have one type; undefined if they have another. */

export function stringIn(object: unknown, name: string): string | undefined {
  const value = member(object, name);
  return typeof value === 'string' ? value : undefined;
}

export function tokensIn(object: unknown, name: string): number | undefined {
  return tokenCount(member(object, name));
}

export function numberIn(object: JsonObject, name: string): number | undefined {
  const value = object[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A list of strings, or one string. */
export function stringsIn(object: JsonObject, name: string): string[] {
  const value = object[name];
  return (typeof value === 'string' ? [value] : list(value)).filter((one) => typeof one === 'string');
}

/** The parts of `data:TYPE;base64,DATA`; undefined for any other address. */
export function inlineData(url: string): { mediaType: string; data: string } | undefined {
  const comma = url.indexOf(',');
  const head = /^data:([\w.+-]+\/[\w.+-]+)(?:;[\w-]+=[\w-]+)*;base64$/i.exec(
    url.slice(0, Math.max(0, comma)),
  );
  return head?.[1] === undefined ? undefined : { mediaType: head[1], data: url.slice(comma + 1) };
}

/** The type of a part, for messages. */
export function typeName(object: JsonObject): string {
  return stringIn(object, 'type')?.slice(0, 60) ?? 'unknown';
}

/** One server-sent event. */
export interface WireEvent {
  /** The `event:` line; openai-chat has none. */
  event: string | undefined;
  /** A string is sent as it is: `[DONE]`, or JSON. An object may contain a {@link JsonText}. */
  data: JsonObject | string;
  /** Whether it carries a piece of the answer's text. */
  isText?: boolean;
}

export function textOfEvent(event: WireEvent): string {
  return partsOfEvent(event).join('');
}

/** The same as parts, of which each {@link JsonText} is its own. */
export function partsOfEvent({ event, data }: WireEvent): (string | Buffer)[] {
  const name = event === undefined ? '' : `event: ${event}\n`;
  if (typeof data === 'string') return [`${name}data: ${data}\n\n`];
  const [first, ...more] = partsOf(data);
  return more.length === 0 ? [`${name}data: ${first}\n\n`] : [`${name}data: `, first ?? '', ...more, '\n\n'];
}

/** Stands for a text. No event contains it by chance. */
const placeholder = randomUUID();
let found: Buffer[] | undefined;

/** A text as its JSON, in bytes. Events that contain it share them: it is written once, and never copied. */
export class JsonText {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  static of(text: string): JsonText {
    return new JsonText(Buffer.from(JSON.stringify(text)));
  }

  get text(): string {
    return String(parseForeignJson(this.bytes.toString()));
  }

  toJSON(): unknown {
    if (!found) return this.text;
    found.push(this.bytes);
    return placeholder;
  }
}

/** A value as JSON. */
export function partsOf(value: JsonObject): (string | Buffer)[] {
  const texts: Buffer[] = [];
  found = texts;
  try {
    const json = JSON.stringify(value);
    if (texts.length === 0) return [json];
    const [first = '', ...rest] = json.split(`"${placeholder}"`);
    return [first, ...rest.flatMap((after, index) => [texts[index] ?? '', after])];
  } finally {
    found = undefined;
  }
}

/** Pieces with the given number of characters; no character is cut. */
export function piecesOf(text: string, characters: number): string[] {
  const all = Array.from(text);
  const pieces: string[] = [];
  for (let start = 0; start < all.length; start += characters)
    pieces.push(all.slice(start, start + characters).join(''));
  return pieces;
}

/** The members that have a value. */
export function fields<All extends object>(
  all: All,
): { [Name in keyof All]?: Exclude<All[Name], undefined> } {
  const set = Object.entries(all).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as ReturnType<typeof fields<All>>;
}
