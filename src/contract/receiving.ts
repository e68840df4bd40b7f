import { z } from 'zod';

/**
 * Returns a tolerant version of a schema, for what another service sends, because that service may have
 * chosen differently where the specification says nothing. What we send is checked against the schema itself.
 * The tolerant version:
 *
 * - keeps unknown fields, and objects whose tag the schema does not know;
 * - accepts any string for an enumeration and any number for a whole number;
 * - accepts null for an optional field and reads it as absent, as the field's type promises;
 * - still requires the required fields.
 */
export function receiving<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
  return loosen(schema) as z.ZodType<z.output<Schema>>;
}

function loosen(schema: z.core.$ZodType): z.ZodType {
  if (schema instanceof z.ZodObject) {
    const unknown = unknownMember([schema]);
    return unknown ? z.union([loosenFields(schema), unknown]) : loosenFields(schema);
  }
  if (schema instanceof z.ZodArray) return z.array(loosen(schema.element));
  if (schema instanceof z.ZodOptional) return loosenOptional(schema.unwrap());
  if (schema instanceof z.ZodNullable) return loosen(schema.unwrap()).nullable();
  if (schema instanceof z.ZodEnum) return z.string();
  if (schema instanceof z.ZodString) return z.string();
  if (schema instanceof z.ZodNumber) return z.number();
  if (schema instanceof z.ZodUnion) return loosenUnion(schema.options);
  return schema as z.ZodType;
}

function loosenFields(schema: z.ZodObject): z.ZodType {
  const fields = Object.entries(schema.shape).map(([name, field]) => [name, loosen(field)]);
  return z.looseObject(Object.fromEntries(fields));
}

function loosenOptional(inner: z.core.$ZodType): z.ZodType {
  return loosen(inner)
    .nullish()
    .transform((value) => value ?? undefined)
    .optional();
}

function loosenUnion(options: readonly z.core.$ZodType[]): z.ZodType {
  const objects = options.filter((option) => option instanceof z.ZodObject);
  // Without this, the unknown member of one object would accept the tags of the others.
  const members = options.map((option) =>
    option instanceof z.ZodObject ? loosenFields(option) : loosen(option),
  );
  const unknown = unknownMember(objects);
  return z.union(unknown ? [...members, unknown] : members);
}

/**
 * The schema of an object with a tag (a field with one literal value) that none of these objects has.
 * Undefined if they have no tag in common.
 */
function unknownMember(objects: readonly z.ZodObject[]): z.ZodType | undefined {
  const [first, ...others] = objects;
  if (!first) return undefined;
  const tag = Object.keys(first.shape).find((name) =>
    [first, ...others].every(({ shape }) => shape[name] instanceof z.ZodLiteral),
  );
  if (tag === undefined) return undefined;
  const known = new Set(objects.flatMap(({ shape }) => [...(shape[tag] as z.ZodLiteral).values]));
  // Abort here, so that the error for a known tag says what its shape lacks.
  const other = z.string().refine((value) => !known.has(value), { message: 'has a known tag', abort: true });
  return z.looseObject({ [tag]: other });
}
