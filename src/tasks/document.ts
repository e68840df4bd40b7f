import { z } from 'zod';
import { taskSets } from '../bounds/tasks.ts';
import { BadFile, type FileIssue, hasNul } from '../suite/file-issues.ts';
import { schemaProblems } from '../suite/schema-problems.ts';
import type { Path } from '../suite/yaml-file.ts';
import type { Remarks } from './supported.ts';
import { unknownKeys } from './unknown-keys.ts';

/** What a file of a task says, with a way to find the position of each key. */
export interface TaskDocument {
  /** Its absolute path. */
  file: string;
  value: unknown;
  /** An issue at the position of `path`, or of its nearest parent that is in the file. */
  issue(path: Path, message: string): FileIssue;
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
  const result = schema.safeParse(document.value);
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
