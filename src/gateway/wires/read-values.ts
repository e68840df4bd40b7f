import { type JsonObject, list } from './lenient.ts';

/** Values of members that should have one type; undefined if they have another. */

export function stringIn(object: JsonObject, name: string): string | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return typeof value === 'string' ? value : undefined;
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
