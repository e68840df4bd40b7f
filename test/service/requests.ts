import fc from 'fast-check';
import { openApiDocument } from '../../src/contract/openapi.ts';
import type { OperationName } from '../../src/contract/operations.ts';

/** The part of JSON Schema that the contract's document uses. */
export interface JsonSchema {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: false | JsonSchema;
  items?: JsonSchema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
}

const schemas = openApiDocument().components.schemas as Record<string, JsonSchema>;

/**
 * Values that take the place of a field, by its name: so that a request may be about something that exists.
 */
export type Known = Record<string, unknown[]>;

/** Requests that the published document allows. */
export function requestsOf(name: OperationName, known: Known): fc.Arbitrary<unknown> {
  return valuesOf({ $ref: `#/components/schemas/${name}.request` }, known);
}

export function requestSchema(name: OperationName): JsonSchema {
  return resolved({ $ref: `#/components/schemas/${name}.request` });
}

export function resolved(schema: JsonSchema): JsonSchema {
  if (schema.$ref === undefined) return schema;
  const found = schemas[schema.$ref.replace('#/components/schemas/', '')];
  if (!found) throw new Error(`${schema.$ref} leads nowhere`);
  return resolved(found);
}

function valuesOf(reference: JsonSchema, known: Known): fc.Arbitrary<unknown> {
  const schema = resolved(reference);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((one) => valuesOf(one, known)));
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case 'object':
      return objectsOf(schema, known);
    case 'array':
      return listsOf(schema, known);
    case 'string':
      return schema.pattern
        ? fc.stringMatching(new RegExp(schema.pattern))
        : strings.filter(
            ({ length }) => length >= (schema.minLength ?? 0) && length <= (schema.maxLength ?? length),
          );
    case 'integer':
      return integers.map((number) => clamp(number, schema));
    case 'number':
      return fc
        .oneof(integers, fc.double({ noNaN: true, noDefaultInfinity: true }))
        .map((number) => clamp(number, schema));
    case 'boolean':
      return fc.boolean();
    default:
      return anyJson;
  }
}

function objectsOf(schema: JsonSchema, known: Known): fc.Arbitrary<unknown> {
  if (!schema.properties) return fc.dictionary(fieldNames, anyJson, { maxKeys: 3, noNullPrototype: true });
  const fields = Object.entries(schema.properties).map(([name, field]) => {
    const values = valuesOf(field, known);
    const existing = known[name];
    return [
      name,
      existing ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...existing) }, values) : values,
    ];
  });
  return fc.record(Object.fromEntries(fields), {
    requiredKeys: (schema.required ?? []) as never[],
    noNullPrototype: true,
  });
}

function listsOf(
  { items = {}, minItems = 0, maxItems = 1000 }: JsonSchema,
  known: Known,
): fc.Arbitrary<unknown> {
  return fc.array(valuesOf(items, known), {
    minLength: minItems,
    maxLength: Math.min(maxItems, minItems + 3),
  });
}

const nasty = [
  '',
  '\0',
  '\ud800',
  '\udfff\ud83d',
  '😀',
  '{{x}}',
  '\\{{x}}',
  '__proto__',
  'constructor',
  "'; DROP TABLE runs; --",
];
const strings = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom(...nasty));
const fieldNames = fc
  .oneof(fc.string(), fc.constantFrom('x', 'constructor', 'toString', ''))
  // The service refuses it, which has its own test.
  .filter((name) => name !== '__proto__');
const integers = fc.oneof(
  fc.integer({ min: -10, max: 10 }),
  fc.maxSafeInteger(),
  fc.constantFrom(0, 1, 20, Number.MAX_SAFE_INTEGER),
);

function clamp(number: number, { minimum = -Infinity, maximum = Infinity }: JsonSchema): number {
  return Math.min(maximum, Math.max(minimum, number));
}

/** As it arrives: JSON writes -0 as 0, and a field named __proto__ would be no field in a literal. */
export const anyJson = fc
  .jsonValue({ stringUnit: 'binary', maxDepth: 4 })
  .filter((value) => !JSON.stringify(value).includes('"__proto__":'))
  .map((value): unknown => JSON.parse(JSON.stringify(value)));
