import { code } from './markdown.ts';

/** The parts of JSON Schema that Zod writes for the files of Offsite. */
export interface JsonSchema {
  type?: string;
  description?: string;
  default?: unknown;
  deprecated?: boolean;
  const?: unknown;
  enum?: readonly unknown[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema;
  anyOf?: readonly JsonSchema[];
  oneOf?: readonly JsonSchema[];
  allOf?: readonly JsonSchema[];
}

/** A form that a value may take, below lists and names. `suffix` says which: `[]`, `.NAME`. */
export function formsOf(schema: JsonSchema): { inner: JsonSchema; suffix: string }[] {
  const below = (inner: JsonSchema, suffix: string) =>
    formsOf(inner).map((form) => ({ ...form, suffix: suffix + form.suffix }));
  const choices = choicesOf(schema);
  if (choices !== undefined) return choices.flatMap((each) => below(each, ''));
  if (schema.items !== undefined) return below(schema.items, '[]');
  const names = namesOf(schema);
  return names === undefined ? [{ inner: schema, suffix: '' }] : below(names, '.NAME');
}

export function placeOf(place: string, key: string): string {
  return place === '' ? key : `${place}.${key}`;
}

/** What a value may be, in words, with its default. */
export function valueText(schema: JsonSchema): string {
  const { default: standard } = schema;
  const text = kindText(schema);
  const isShown = standard !== undefined && (typeof standard !== 'object' || standard === null);
  return isShown ? `${text}; default ${code(String(standard))}` : text;
}

function kindText(schema: JsonSchema): string {
  const choices = choicesOf(schema);
  if (choices !== undefined) return [...new Set(withoutBytes(choices).map(kindText))].join(' or ');
  if (schema.const !== undefined) return code(String(schema.const));
  if (schema.enum !== undefined) return schema.enum.map((each) => code(String(each))).join(' or ');
  if (schema.items !== undefined) return `list of ${kindText(schema.items)}`;
  if (schema.properties !== undefined) return 'map';
  const names = namesOf(schema);
  if (names !== undefined) return `names, each with ${kindText(names)}`;
  if (schema.type === 'string') return stringText(schema);
  if (schema.type === 'boolean') return '`true` or `false`';
  if (schema.type === 'integer' || schema.type === 'number') return numberText(schema);
  return schema.type === 'null' ? 'nothing' : 'anything';
}

function stringText({ pattern = '' }: JsonSchema): string {
  if (pattern.endsWith('(ms|s|m|h)$')) return 'duration';
  return pattern.includes('[kmg') ? 'size' : 'text';
}

function numberText({ type, minimum, maximum = Number.MAX_SAFE_INTEGER }: JsonSchema): string {
  const kind = type === 'integer' ? 'whole number' : 'number';
  const hasLeast = minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER;
  if (maximum < Number.MAX_SAFE_INTEGER) return `${kind} from ${hasLeast ? minimum : 0} to ${maximum}`;
  return hasLeast && minimum > 0 ? `${kind} from ${minimum}` : kind;
}

/** Leaves out that a size may also be a number of bytes, which each row would repeat. */
function withoutBytes(choices: readonly JsonSchema[]): readonly JsonSchema[] {
  const hasSize = choices.some((each) => each.type === 'string' && stringText(each) === 'size');
  return hasSize ? choices.filter(({ type }) => type !== 'integer') : choices;
}

function choicesOf({ anyOf, oneOf, allOf }: JsonSchema): readonly JsonSchema[] | undefined {
  return anyOf ?? oneOf ?? allOf;
}

function namesOf({ type, additionalProperties, properties }: JsonSchema): JsonSchema | undefined {
  if (type !== 'object' || properties !== undefined) return undefined;
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}
