import { z } from 'zod';
import { parseForeignJson } from '../../base/parse-json.ts';
import { modelAnswers } from '../../bounds/model.ts';

/**
 * Schemas for JSON from outside that may have any shape. A schema made only of these never fails: a value
 * that does not fit reads as missing.
 */

export type JsonObject = Record<string, unknown>;

/** Any value, or none. */
export const anything = z.unknown().optional();

/** A string that is not empty; its first 500 characters. */
export const text = leaf((value) =>
  typeof value === 'string' && value !== '' ? value.slice(0, 500) : undefined,
);

/** A string of any length. */
export const wholeText = leaf((value) => (typeof value === 'string' ? value : undefined));

/**
 * A number of tokens. An impossible number counts as unknown, so that a faulty upstream does not falsify
 * totals.
 */
export const tokens = leaf((value) => {
  const count = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  const isPossible = Number.isSafeInteger(count) && Number(count) >= 0;
  return isPossible && Number(count) <= modelAnswers.count.tokens ? Number(count) : undefined;
});

/** Reads one value. Without an inner schema, reading a stream's events is a quarter faster. */
function leaf<Value>(read: (value: unknown) => Value | undefined) {
  return z.transform(read).optional();
}

/** An object with these members; an empty one if the value is not an object. */
export function object<Shape extends z.core.$ZodShape>(shape: Shape) {
  return anything.transform((value) => (isObject(value) ? value : {})).pipe(z.object(shape));
}

/** As {@link object}, but undefined if the value is not an object. */
export function objectIfAny<Shape extends z.core.$ZodShape>(shape: Shape) {
  return anything
    .transform((value) => (isObject(value) ? value : undefined))
    .pipe(z.object(shape).optional());
}

/** A list of these; empty if the value is not a list. */
export function listOf<Item extends z.core.SomeType>(item: Item) {
  return anything.transform(list).pipe(z.array(item));
}

/** As {@link listOf}, but undefined if the value is not a list. */
export function listIfAny<Item extends z.core.SomeType>(item: Item) {
  return anything
    .transform((value) => (Array.isArray(value) ? value : undefined))
    .pipe(z.array(item).optional());
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
  return text.parse(member(tool, 'type')) ?? 'of an unknown type';
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
