import { z } from 'zod';
import { serviceAnswers } from '../bounds/service.ts';

/**
 * Returns a tolerant version of a schema, for what another service sends, because that service may have
 * chosen differently where the specification says nothing. What we send is checked against the schema itself.
 * The tolerant version:
 *
 * - keeps unknown fields, and objects whose tag the schema does not know;
 * - accepts any string for an enumeration and any number for a whole number;
 * - accepts null for an optional field and reads it as absent, as the field's type promises;
 * - still requires the required fields.
 *
 * @param objects makes the schema of an object; `z.object` leaves out the fields that are unknown
 */
export function receiving<Schema extends z.core.$ZodType>(
  schema: Schema,
  objects: ObjectMaker = z.looseObject,
): z.ZodType<z.output<Schema>> {
  return loosen(schema, objects) as z.ZodType<z.output<Schema>>;
}

type ObjectMaker = (fields: Record<string, z.ZodType>) => z.ZodType;

function loosen(schema: z.core.$ZodType, objects: ObjectMaker): z.ZodType {
  if (schema instanceof z.ZodObject) return loosenUnion([schema], objects);
  if (schema instanceof z.ZodArray) return listOf(loosen(schema.element, objects));
  if (schema instanceof z.ZodOptional) return loosenOptional(loosen(schema.unwrap(), objects));
  if (schema instanceof z.ZodNullable) return loosen(schema.unwrap(), objects).nullable();
  if (schema instanceof z.ZodEnum) return z.string();
  if (schema instanceof z.ZodString) return z.string();
  if (schema instanceof z.ZodNumber) return z.number();
  if (schema instanceof z.ZodUnion) return loosenUnion(schema.options, objects);
  return schema as z.ZodType;
}

/**
 * A list that is not checked any further after a few issues: an answer may have millions of wrong entries.
 * So the number of issues says nothing of the number of wrong entries.
 */
function listOf(element: z.ZodType): z.ZodType {
  return z.array(z.unknown()).transform((given, { issues }) => {
    const values: unknown[] = [];
    for (const [index, entry] of given.entries()) {
      const read = element.safeParse(entry);
      if (read.success) values.push(read.data);
      else
        for (const issue of read.error.issues)
          issues.push({ ...issue, path: [index, ...issue.path], input: entry } as z.core.$ZodRawIssue);
      if (issues.length > serviceAnswers.count.issues) break;
    }
    return values;
  });
}

function loosenOptional(inner: z.ZodType): z.ZodType {
  return inner
    .nullish()
    .transform((value) => value ?? undefined)
    .optional();
}

function loosenUnion(options: readonly z.core.$ZodType[], objects: ObjectMaker): z.ZodType {
  // Without this, the unknown member of one object would accept the tags of the others.
  const members = options.map((option) => {
    if (!(option instanceof z.ZodObject)) return loosen(option, objects);
    const fields = Object.entries(option.shape).map(([name, field]) => [name, loosen(field, objects)]);
    return objects(Object.fromEntries(fields));
  });
  const [first, ...others] = [
    ...members,
    ...unknownMember(options.filter((one) => one instanceof z.ZodObject)),
  ];
  return first && others.length === 0 ? first : z.union([first, ...others] as [z.ZodType]);
}

/**
 * The schema of an object with a tag (a field with one literal value) that none of these objects has. None if
 * they have no tag in common.
 */
function unknownMember(objects: readonly z.ZodObject[]): z.ZodType[] {
  const tag = Object.keys(objects[0]?.shape ?? {}).find((name) =>
    objects.every(({ shape }) => shape[name] instanceof z.ZodLiteral),
  );
  if (tag === undefined) return [];
  const known = new Set(objects.flatMap(({ shape }) => [...(shape[tag] as z.ZodLiteral).values]));
  // Abort here, so that the error for a known tag says what its shape lacks.
  const other = z.string().refine((value) => !known.has(value), { message: 'has a known tag', abort: true });
  return [z.looseObject({ [tag]: other })];
}
