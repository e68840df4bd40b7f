import { z } from 'zod';
import { serviceRequests } from '../../bounds/callers.ts';

/** How many entries of a list are checked before others are served: some milliseconds. */
const entriesAtATime = 1_000;

/**
 * A copy of a schema that stops checking a list after as many issues as an answer may have. Without this, a
 * body with a million wrong entries takes gigabytes of memory and half a minute. The copy needs
 * `safeParseAsync`.
 *
 * @param pause is waited for within long lists
 */
export function boundedLists<Schema extends z.ZodType>(
  schema: Schema,
  pause: () => Promise<void>,
): z.ZodType<z.output<Schema>> {
  return bounded(schema, pause) as z.ZodType<z.output<Schema>>;
}

/** Returns the schema itself if it has no lists. */
function bounded(schema: z.core.$ZodType, pause: () => Promise<void>): z.core.$ZodType {
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

function boundedList(schema: z.ZodArray, pause: () => Promise<void>): z.core.$ZodType {
  if (schema.element instanceof z.ZodUnknown) return schema;
  const element = bounded(schema.element, pause);
  const isNested = element !== schema.element;
  const checks = schema.def.checks ?? [];
  // The length is checked first: the entries of a list that is too long are not.
  const list = z.array(z.unknown()).check(...(checks as z.core.$ZodCheck<unknown[]>[]));
  return list.transform(async (given, { issues }) => {
    const values: unknown[] = [];
    for (const [index, entry] of given.entries()) {
      // Only an entry that has lists itself is checked asynchronously, which takes longer.
      const read = isNested ? await z.safeParseAsync(element, entry) : z.safeParse(element, entry);
      if (read.success) values.push(read.data);
      else for (const issue of read.error.issues) issues.push(placed(issue, index, entry));
      if (issues.length >= serviceRequests.count.issues) break;
      if (index % entriesAtATime === entriesAtATime - 1) await pause();
    }
    return values;
  });
}

function placed(issue: z.core.$ZodIssue, index: number, input: unknown): z.core.$ZodRawIssue {
  return { ...issue, path: [index, ...issue.path], input } as z.core.$ZodRawIssue;
}
