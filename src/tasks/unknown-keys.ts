import { z } from 'zod';
import type { Path } from '../suite/yaml-file.ts';

/** A key of a value that the schema does not know, or marks as deprecated. */
export interface KeyRemark {
  path: Path;
  /** The key that was probably meant. */
  meant?: string;
  /** What to use instead of a deprecated key. */
  deprecated?: string;
}

/** Finds the keys of a value that its schema does not know, and those that are deprecated. */
export function unknownKeys(schema: z.core.$ZodType, value: unknown, path: Path = []): KeyRemark[] {
  const inner = unwrapped(schema);
  if (inner instanceof z.ZodUnion)
    return unknownKeys(inner.options.find((option) => fits(option, value)) ?? z.unknown(), value, path);
  if (inner instanceof z.ZodArray && Array.isArray(value))
    return value.flatMap((each, index) => unknownKeys(inner.element, each, [...path, index]));
  if (!isTable(value)) return [];
  if (inner instanceof z.ZodRecord)
    return Object.entries(value).flatMap(([key, each]) => unknownKeys(inner.valueType, each, [...path, key]));
  if (!(inner instanceof z.ZodObject)) return [];
  const shape: Readonly<Record<string, z.core.$ZodType>> = inner.shape;
  return Object.entries(value).flatMap(([key, each]) => {
    const known = Object.hasOwn(shape, key) ? shape[key] : undefined;
    const below = [...path, key];
    if (known === undefined) {
      const meant = Object.keys(shape).find((other) => isMistyped(key, other, value, shape[other]));
      return [meant === undefined ? { path: below } : { path: below, meant }];
    }
    const use = replacementOf(known);
    const remark = use === undefined ? [] : [{ path: below, deprecated: use }];
    return [...remark, ...unknownKeys(known, each, below)];
  });
}

/** Whether a key resembles another key that is not given, and has a value that the other key could have. */
function isMistyped(
  key: string,
  other: string,
  table: Readonly<Record<string, unknown>>,
  schema: z.core.$ZodType | undefined,
): boolean {
  if (schema === undefined || Object.hasOwn(table, other)) return false;
  if (bare(key) !== bare(other) && !isNear(key, other)) return false;
  return fits(schema, table[key]);
}

/** `timeoutSec` and `timeout-sec` are `timeout_sec`. */
function bare(key: string): string {
  return key.toLowerCase().replaceAll(/[-_.\s]/g, '');
}

/** Whether few letters were added, left out, exchanged or replaced: one of five at most. */
function isNear(key: string, other: string): boolean {
  const most = Math.floor(Math.max(key.length, other.length) / 5) || 1;
  return Math.abs(key.length - other.length) <= most && editDistance(key, other) <= most;
}

/** The Damerau-Levenshtein distance: two adjacent characters that are swapped count as one edit. */
function editDistance(one: string, other: string): number {
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      const edits = [(row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + cost];
      if (one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) edits.push((before[j - 2] ?? 0) + 1);
      next.push(Math.min(...edits));
    }
    [before, row] = [row, next];
  }
  return row.at(-1) ?? 0;
}

function fits(schema: z.core.$ZodType, value: unknown): boolean {
  return z.safeParse(schema, value).success;
}

function replacementOf(schema: z.core.$ZodType): string | undefined {
  const { use } = (z.globalRegistry.get(schema) ?? {}) as { use?: string };
  return use;
}

/** The schema that says something about keys. */
function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return unwrapped(schema.unwrap());
  if (schema instanceof z.ZodPrefault) return unwrapped(schema.unwrap());
  return schema instanceof z.ZodPipe ? unwrapped(schema.in) : schema;
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
