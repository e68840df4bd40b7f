import { z } from 'zod';

/**
 * The tolerant reading of a schema: fields it does not know are kept, values of its enumerations are any
 * string, whole numbers any number, an optional field may be null (and then reads as absent, which is what
 * its type promises), and an object whose tag the schema does not know is kept as it is. Required fields stay
 * required. For what comes *from* another service, which may have decided otherwise where the specification
 * is silent; what we send is checked against the schema as it stands.
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
  // An object's own unknown member would accept the tags of the others.
  const members = options.map((option) =>
    option instanceof z.ZodObject ? loosenFields(option) : loosen(option),
  );
  const unknown = unknownMember(objects);
  return z.union(unknown ? [...members, unknown] : members);
}

/**
 * An object with a tag (a field with one literal value) that none of these has; undefined where they have no
 * tag in common.
 */
function unknownMember(objects: readonly z.ZodObject[]): z.ZodType | undefined {
  const [first, ...others] = objects;
  if (!first) return undefined;
  const tag = Object.keys(first.shape).find((name) =>
    [first, ...others].every(({ shape }) => shape[name] instanceof z.ZodLiteral),
  );
  if (tag === undefined) return undefined;
  const known = new Set(objects.flatMap(({ shape }) => [...(shape[tag] as z.ZodLiteral).values]));
  // Aborting, so that a known tag without its shape is reported with what that shape lacks.
  const other = z.string().refine((value) => !known.has(value), { message: 'has a known tag', abort: true });
  return z.looseObject({ [tag]: other });
}
