import { z } from 'zod';
import { DocumentTooHeavy, parseCheckedJson } from '../base/parse-json.ts';
import { taskSets } from '../bounds/tasks.ts';
import { printPath } from '../contract/errors.ts';
import { BadFile, type FileIssue, hasNul } from '../suite/file-issues.ts';
import { schemaProblems } from '../suite/schema-problems.ts';
import type { Path } from '../suite/yaml-file.ts';
import { distanceOf } from '../text/nearest.ts';
import type { Remarks } from './supported.ts';

/** What a file of a task says, with a way to find the position of each key. */
export interface TaskDocument {
  /** Its absolute path. */
  file: string;
  value: unknown;
  /** An issue at the position of `path`, or of its nearest parent that is in the file. */
  issue(path: Path, message: string): FileIssue;
}

/**
 * A text in JSON. It has no positions here: its issues name the path of the value, and the line where the
 * text is. Throws {@link BadFile}.
 */
export function jsonDocument(
  text: string,
  { file, line = 1 }: { file: string; line?: number },
): TaskDocument {
  const issue: TaskDocument['issue'] = (path, message) => {
    return { file, line, column: 1, path: printPath(path), message };
  };
  try {
    return { file, value: parseCheckedJson(text), issue };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof DocumentTooHeavy)) throw error;
    throw new BadFile([issue([], error.message)]);
  }
}

/**
 * Checks a document by a schema. Keys that the schema does not have are notes, as the formats' own programs
 * ignore them, or an obstacle if they look mistyped. Throws {@link BadFile} with every problem.
 */
export function checkDocument<Schema extends z.ZodType>(
  document: TaskDocument,
  schema: Schema,
  remarks: Remarks,
): z.output<Schema> {
  const nul = pathToNul(document.value);
  if (nul) throw new BadFile([document.issue(nul, hasNul)]);
  const result = schema.safeParse(document.value, { reportInput: true });
  if (!result.success) {
    const problems = schemaProblems(result.error);
    const shown = problems.slice(0, taskSets.count.listed);
    throw new BadFile(shown.map(({ path, message }) => document.issue(path, message)));
  }
  for (const { path, meant, deprecated } of unknownKeys(schema, document.value)) {
    const key = path.at(-1);
    if (deprecated !== undefined)
      remarks.note('deprecated-key', document.issue(path, `is deprecated: use ${deprecated}`));
    else if (meant !== undefined)
      remarks.uses('mistyped-key', document.issue(path, `${key} is unknown, did you mean ${meant}?`));
    else remarks.note('unknown-key', document.issue(path, 'is unknown, and ignored'));
  }
  return result.data;
}

/** The path of the first text, or of the first key, that has the character NUL. */
function pathToNul(value: unknown): Path | undefined {
  if (typeof value === 'string') return value.includes('\0') ? [] : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const key = Array.isArray(value) ? Number(name) : name;
    if (name.includes('\0')) return [key];
    const below = pathToNul(inner);
    if (below) return [key, ...below];
  }
  return undefined;
}

/** A key that the format has but no longer wants. `use` names what replaces it. */
export function deprecated<Schema extends z.ZodType>(schema: Schema, use: string) {
  return schema.optional().meta({ deprecated: true, use });
}

/** A number of seconds, read as milliseconds. */
export const Seconds = z
  .number()
  .min(0)
  .max(1e9)
  .transform((seconds) => Math.round(seconds * 1000));

/** The bytes of a size such as `2G` or `512mb`, whose units are powers of 1024. */
export function bytesOf(size: string): number {
  const [, amount, unit = ''] = /^([\d.]+)\s*([kmgt]?)/i.exec(size) ?? [];
  return Math.round(Number(amount) * 1024 ** ['', 'k', 'm', 'g', 't'].indexOf(unit.toLowerCase()));
}

/** A key of a value that the schema does not know, or marks as deprecated. */
interface KeyRemark {
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
  return Math.abs(key.length - other.length) <= most && distanceOf(key, other) <= most;
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
