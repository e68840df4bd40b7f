import { z } from 'zod';
import type { Kept } from './json-filter.ts';

/** What has to be kept of a document so that a schema can read it: the fields that the schema names. */
export function keptFor(schema: z.core.$ZodType): Kept {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return keptFor(schema.unwrap());
  if (schema instanceof z.ZodArray) return { entries: keptFor(schema.element) };
  if (schema instanceof z.ZodUnknown) return 'whole';
  if (!(schema instanceof z.ZodObject)) return 'scalar';
  const fields = Object.entries<z.core.$ZodType>(schema.shape);
  return { fields: new Map(fields.map(([name, field]) => [name, keptFor(field)])) };
}
