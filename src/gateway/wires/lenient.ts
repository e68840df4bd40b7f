import { z } from 'zod';
import { parseForeignJson } from '../../parse-json.ts';

/**
 * Schemas for JSON from outside, of which nothing is certain. A schema that is made of these alone never
 * fails: what does not fit reads as if it were missing.
 */

export type JsonObject = Record<string, unknown>;

/** Anything, or nothing. */
export const anything = z.unknown().optional();

/** A text that is not empty; its first 500 characters. */
export const text = leaf((value) =>
  typeof value === 'string' && value !== '' ? value.slice(0, 500) : undefined,
);

/** A text of any length. */
export const wholeText = leaf((value) => (typeof value === 'string' ? value : undefined));

/**
 * A number of tokens. A number that cannot be one counts as unknown, so that a confused upstream makes no
 * number wrong.
 */
export const tokens = leaf((value) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined,
);

/** Reads one value. Without a schema before it, it costs a stream's events a quarter less. */
function leaf<Value>(read: (value: unknown) => Value | undefined) {
  return z.transform(read).optional();
}

/** An object with these members; one without members where there is none. */
export function object<Shape extends z.core.$ZodShape>(shape: Shape) {
  return anything.transform((value) => (isObject(value) ? value : {})).pipe(z.object(shape));
}

/** As {@link object}, but undefined where there is none. */
export function objectIfAny<Shape extends z.core.$ZodShape>(shape: Shape) {
  return anything
    .transform((value) => (isObject(value) ? value : undefined))
    .pipe(z.object(shape).optional());
}

/** A list of these; empty where there is none. */
export function listOf<Item extends z.core.SomeType>(item: Item) {
  return anything.transform(list).pipe(z.array(item));
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of a list. */
export function objectsOf(value: unknown): JsonObject[] {
  return list(value).filter(isObject);
}

/** A member of what may be an object. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** A tool's type, for people. */
export function toolType(tool: unknown): string {
  return text.parse(member(tool, 'type')) ?? 'of an unknown type';
}

/** The document in a text; undefined for what is no JSON, or more than this process has memory for. */
export function parsed(data: string): unknown {
  try {
    return parseForeignJson(data);
  } catch {
    // Half an event or garbage says nothing; its client gets it as it is.
    return undefined;
  }
}
