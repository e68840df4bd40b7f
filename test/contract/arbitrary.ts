import fc from 'fast-check';
import { z } from 'zod';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Values that a schema accepts. Covers the kinds of schema that answers and records are made of. */
export function valuesOf(schema: z.core.$ZodType): fc.Arbitrary<Json> {
  if (schema instanceof z.ZodObject) {
    const fields = Object.entries<z.core.$ZodType>(schema.shape);
    const values = fields.map(([name, field]) => [
      name,
      valuesOf(field instanceof z.ZodOptional ? field.unwrap() : field),
    ]);
    const required = fields.filter(([, field]) => !(field instanceof z.ZodOptional)).map(([name]) => name);
    const shape: Record<string, fc.Arbitrary<Json>> = Object.fromEntries(values);
    return fc.record<Record<string, Json>, string>(shape, { requiredKeys: required, noNullPrototype: true });
  }
  if (schema instanceof z.ZodArray) return fc.array(valuesOf(schema.element), { maxLength: 3 });
  if (schema instanceof z.ZodNullable) return fc.option(valuesOf(schema.unwrap()));
  if (schema instanceof z.ZodUnion) return fc.oneof(...schema.options.map(valuesOf));
  if (schema instanceof z.ZodEnum) return fc.constantFrom(...(schema.options as string[]));
  if (schema instanceof z.ZodLiteral) return fc.constantFrom(...([...schema.values] as string[]));
  if (schema instanceof z.ZodNumber) return schema.isInt ? fc.nat() : fc.double(plainNumbers);
  if (schema instanceof z.ZodBoolean) return fc.boolean();
  if (schema instanceof z.ZodUnknown) return anyJson;
  if (schema instanceof z.ZodRecord) return fc.dictionary(plainName, valuesOf(schema.valueType));
  if (schema instanceof z.ZodString) return acceptedString(schema);
  throw new Error(`no values known for a ${schema._zod.def.type}`);
}

/** As it arrives: JSON writes -0 as 0, and has neither NaN nor infinities. */
export const anyJson: fc.Arbitrary<Json> = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)));
const plainNumbers = { noNaN: true, noDefaultInfinity: true, min: 0 };
const plainName = fc.stringMatching(/^[a-z]{1,8}$/);

function acceptedString(schema: z.ZodString): fc.Arbitrary<string> {
  if (schema.safeParse('').success) return fc.string();
  const digest = fc.stringMatching(/^[0-9a-f]{64}$/);
  return fc.oneof(fc.string({ minLength: 1 }), digest).filter((text) => schema.safeParse(text).success);
}

/** Gives every object one field more. */
export function addExtraFields(value: Json, extra: Json): Json {
  if (Array.isArray(value)) return value.map((item) => addExtraFields(item, extra));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, field]) => [name, addExtraFields(field, extra)]);
  return { ...Object.fromEntries(entries), anExtraField: extra };
}

/** Puts null where an optional field is absent. */
export function nullifyOptional(schema: z.core.$ZodType, value: Json): Json {
  return walk(schema, value, (field, inner) =>
    field instanceof z.ZodOptional && inner === undefined ? null : inner,
  );
}

/** Puts another string wherever the contract lists the values it knows. */
export function replaceOpenValues(schema: z.core.$ZodType, value: Json, unseen: string): Json {
  return walk(schema, value, (field, inner) =>
    field instanceof z.ZodEnum && inner !== undefined ? unseen : inner,
  );
}

type Change = (field: z.core.$ZodType, value: Json | undefined) => Json | undefined;

function walk(schema: z.core.$ZodType, value: Json, change: Change): Json {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return walk(schema.unwrap(), value, change);
  if (schema instanceof z.ZodUnion) {
    const fitting = schema.options.find((option) => z.safeParse(option, value).success);
    return fitting ? walk(fitting, value, change) : value;
  }
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((item) => walk(schema.element, item, change));
  }
  if (schema instanceof z.ZodObject && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const changed: { [name: string]: Json } = {};
    for (const [name, field] of Object.entries<z.core.$ZodType>(schema.shape)) {
      const inner = value[name];
      const result = change(field, inner === undefined ? undefined : walk(field, inner, change));
      if (result !== undefined) changed[name] = result;
    }
    return changed;
  }
  return change(schema, value) ?? value;
}
