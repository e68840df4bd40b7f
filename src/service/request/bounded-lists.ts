import { z } from 'zod';
import { serviceRequests } from '../../bounds/callers.ts';

/** How many entries of a list are checked before others are served: some milliseconds. */
const entriesAtATime = 1_000;

/**
 * A copy of a schema that stops checking a list after as many issues as an answer may have. Without this, a
 * body with a million wrong entries takes gigabytes of memory and half a minute.
 *
 * @param pause is waited for within long lists; with it, the copy needs `safeParseAsync`
 */
export function boundedLists<Schema extends z.ZodType>(
  schema: Schema,
  pause?: () => Promise<void>,
): z.ZodType<z.output<Schema>> {
  return bounded(schema, pause) as z.ZodType<z.output<Schema>>;
}

type Pause = (() => Promise<void>) | undefined;

/** Returns the schema itself if it has no lists. */
function bounded(schema: z.core.$ZodType, pause: Pause): z.core.$ZodType {
  if (schema instanceof z.ZodArray) return boundedList(schema, pause);
  const inside = (
    parts: readonly z.core.$ZodType[],
    rebuild: (parts: [z.core.$ZodType, ...z.core.$ZodType[]]) => z.core.$ZodType,
  ) => {
    const copies = parts.map((part) => bounded(part, pause));
    const isSame = copies.every((copy, index) => copy === parts[index]);
    return isSame ? schema : rebuild(copies as [z.core.$ZodType]);
  };
  if (schema instanceof z.ZodOptional) return inside([schema.unwrap()], ([inner]) => z.optional(inner));
  if (schema instanceof z.ZodUnion) return inside(schema.options, (options) => z.union(options));
  if (!(schema instanceof z.ZodObject)) return schema;
  const names = Object.keys(schema.shape);
  return inside(Object.values<z.core.$ZodType>(schema.shape), (fields) =>
    schema.safeExtend(Object.fromEntries(names.map((name, index) => [name, fields[index]])) as never),
  );
}

function boundedList(schema: z.ZodArray, pause: Pause): z.core.$ZodType {
  if (schema.element instanceof z.ZodUnknown) return schema;
  const element = bounded(schema.element, pause);
  const isNested = element !== schema.element;
  const checks = schema.def.checks ?? [];
  // The length is checked first: the entries of a list that is too long are not.
  const list = z.array(z.unknown()).check(...(checks as z.core.$ZodCheck<unknown[]>[]));
  const isFull = ({ issues }: Entries) => issues.length >= serviceRequests.count.issues;
  const take = (index: number, entry: unknown, read: z.ZodSafeParseResult<unknown>, entries: Entries) => {
    if (read.success) entries.values.push(read.data);
    else for (const issue of read.error.issues) entries.issues.push(placed(issue, index, entry));
  };
  if (!pause) {
    return list.transform((given, { issues }) => {
      const entries: Entries = { values: [], issues };
      for (const [index, entry] of given.entries()) {
        take(index, entry, z.safeParse(element, entry), entries);
        if (isFull(entries)) break;
      }
      return entries.values;
    });
  }
  return list.transform(async (given, { issues }) => {
    const entries: Entries = { values: [], issues };
    for (const [index, entry] of given.entries()) {
      // Only an entry that has lists itself is checked asynchronously, which takes longer.
      const read = isNested ? await z.safeParseAsync(element, entry) : z.safeParse(element, entry);
      take(index, entry, read, entries);
      if (isFull(entries)) break;
      if (index % entriesAtATime === entriesAtATime - 1) await pause();
    }
    return entries.values;
  });
}

/** The entries of a list that are right, and what is wrong with the others. */
interface Entries {
  values: unknown[];
  issues: z.core.$ZodRawIssue[];
}

function placed(issue: z.core.$ZodIssue, index: number, input: unknown): z.core.$ZodRawIssue {
  return { ...issue, path: [index, ...issue.path], input } as z.core.$ZodRawIssue;
}
