import fc from 'fast-check';
import type { Issue } from '../../src/contract/errors.ts';
import { type JsonSchema, resolved } from './requests.ts';

type Path = (string | number)[];

/** One thing made wrong in a request, and the issue that must be told for it. */
export interface Mutation {
  body: unknown;
  tag: Issue['_tag'];
  path: Path;
}

/**
 * Every way to make one thing wrong in `body`, which fits `schema`. Unions and free-form parts are left
 * alone: there, much may be meant.
 */
export function mutationsOf(schema: JsonSchema, body: unknown): fc.Arbitrary<Mutation> {
  const found: Mutation[] = [];
  visit(schema, body, [], (path, tag, value) => found.push({ body: replaced(body, path, value), tag, path }));
  return found.length === 0 ? fc.constant({ body: 7, tag: 'Type', path: [] }) : fc.constantFrom(...found);
}

const removed = Symbol('removed');
type Found = (path: Path, tag: Issue['_tag'], value: unknown) => void;

function visit(reference: JsonSchema, value: unknown, path: Path, found: Found): void {
  const schema = resolved(reference);
  if (schema.anyOf) return;
  if (schema.type) found(path, 'Type', schema.type === 'object' ? [] : { wrong: true });
  if (schema.minimum !== undefined) found(path, 'Refinement', schema.minimum - 1);
  if (schema.maximum !== undefined && schema.maximum < 1e6) found(path, 'Refinement', schema.maximum + 1);
  if (schema.type === 'integer') found(path, 'Refinement', 1.5);
  if (schema.minLength) found(path, 'Refinement', '');
  if (schema.pattern) found(path, 'Refinement', 'does not match');
  if (schema.minItems) found(path, 'Refinement', []);
  if (Array.isArray(value)) {
    if (schema.maxItems) found(path, 'Refinement', Array(schema.maxItems + 1).fill(value[0]));
    for (const [index, item] of value.entries()) visit(schema.items ?? {}, item, [...path, index], found);
    return;
  }
  if (!schema.properties || typeof value !== 'object' || value === null) return;
  found([...path, 'aFieldMore'], 'Unexpected', 1);
  for (const [name, field] of Object.entries(schema.properties)) {
    if (!Object.hasOwn(value, name)) continue;
    if (schema.required?.includes(name)) found([...path, name], 'Missing', removed);
    visit(field, (value as Record<string, unknown>)[name], [...path, name], found);
  }
}

/** A copy of `body` with another value at `path`. */
function replaced(body: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const copy = Array.isArray(body) ? [...body] : { ...(body as object) };
  const fields = copy as Record<string | number, unknown>;
  if (rest.length === 0 && value === removed) delete fields[key];
  else fields[key] = replaced(fields[key], rest, value);
  return copy;
}
