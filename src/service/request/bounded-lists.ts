import { z } from 'zod';
import { serviceRequests } from '../../bounds/callers.ts';

/**
 * A copy of a schema that stops checking a list after as many issues as an answer may have. Without this, a
 * body with a million wrong entries takes gigabytes of memory and half a minute.
 */
export function boundedLists<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
  return bounded(schema) as z.ZodType<z.output<Schema>>;
}

/** Returns the schema itself if it has no lists. */
function bounded(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodArray) return boundedList(schema);
  if (schema instanceof z.ZodOptional)
    return inside(schema, [schema.unwrap()], ([inner]) => z.optional(inner));
  if (schema instanceof z.ZodUnion) return inside(schema, schema.options, (options) => z.union(options));
  if (!(schema instanceof z.ZodObject)) return schema;
  const names = Object.keys(schema.shape);
  return inside(schema, Object.values<z.core.$ZodType>(schema.shape), (fields) =>
    schema.safeExtend(Object.fromEntries(names.map((name, index) => [name, fields[index]])) as never),
  );
}

function inside(
  schema: z.core.$ZodType,
  parts: readonly z.core.$ZodType[],
  rebuild: (parts: [z.core.$ZodType, ...z.core.$ZodType[]]) => z.core.$ZodType,
): z.core.$ZodType {
  const copies = parts.map(bounded);
  const isSame = copies.every((copy, index) => copy === parts[index]);
  return isSame ? schema : rebuild(copies as [z.core.$ZodType]);
}

function boundedList(schema: z.ZodArray): z.core.$ZodType {
  if (schema.element instanceof z.ZodUnknown) return schema;
  const element = bounded(schema.element);
  const checks = schema.def.checks ?? [];
  // The length is checked first: the entries of a list that is too long are not.
  return z
    .array(z.unknown())
    .check(...(checks as z.core.$ZodCheck<unknown[]>[]))
    .transform((list, context) => {
      const values: unknown[] = [];
      for (const [index, entry] of list.entries()) {
        const read = z.safeParse(element, entry);
        if (read.success) values.push(read.data);
        else context.issues.push(...read.error.issues.map((issue) => placed(issue, index, entry)));
        if (context.issues.length >= serviceRequests.count.issues) break;
      }
      return values;
    });
}

function placed(issue: z.core.$ZodIssue, index: number, input: unknown): z.core.$ZodRawIssue {
  return { ...issue, path: [index, ...issue.path], input } as z.core.$ZodRawIssue;
}
