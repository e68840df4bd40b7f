import { isObject, type JsonObject } from '../../lenient.ts';

/** Members of this wire's own schemas whose values are schemas by name. */
const byName: ReadonlySet<string> = new Set(['properties', 'defs', '$defs']);

/**
 * The wire's own kind of schema as JSON Schema: types are in lower case, and `nullable` becomes the type
 * null.
 */
export function jsonSchemaOf(schema: JsonObject): JsonObject {
  const { type, nullable, ...rest } = schema;
  const small = typeof type === 'string' ? type.toLowerCase() : type;
  const members = Object.entries(rest).map(([name, value]) => [
    name,
    byName.has(name) && isObject(value) ? mapped(value) : inner(value, name),
  ]);
  return {
    ...(small !== undefined && { type: nullable === true ? [small, 'null'] : small }),
    ...Object.fromEntries(members),
  };
}

function mapped(schemas: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, inner(schema, 'items')]));
}

/** Schemas are in `items` and `anyOf`; all else is data. */
function inner(value: unknown, name: string): unknown {
  if (name !== 'items' && name !== 'anyOf') return value;
  if (Array.isArray(value)) return value.map((one) => (isObject(one) ? jsonSchemaOf(one) : one));
  return isObject(value) ? jsonSchemaOf(value) : value;
}
