import { serviceRequests } from '../../bounds/callers.ts';
import type { Issue } from '../../contract/errors.ts';
import { DocumentTooDeep, DocumentTooHeavy, parseForeignJson } from '../../parse-json.ts';
import { refuse, refuseBody } from '../api-error.ts';

/**
 * Parses JSON. Refuses (413) a body that would take too much memory. Refuses (400) what JSON text can express
 * but Offsite cannot keep unchanged: `__proto__` as a name, numbers beyond a double's range; and everything
 * deeper, longer or more than {@link serviceRequests} allows.
 */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = parseForeignJson(text);
  } catch (error) {
    if (error instanceof DocumentTooDeep) {
      throw refuseBody([{ _tag: 'Refinement', path: [], message: error.message }]);
    }
    if (error instanceof DocumentTooHeavy) throw refuse(413, error.message);
    if (!(error instanceof SyntaxError)) throw error;
    throw refuseBody([{ _tag: 'Type', path: [], message: 'the body is not JSON' }]);
  }
  inspect(value, { path: [], values: 0 });
  return value;
}

interface Walk {
  path: (string | number)[];
  values: number;
}

function inspect(value: unknown, walk: Walk): void {
  walk.values += 1;
  if (walk.values > serviceRequests.count.values) {
    walk.path = [];
    throw refusal(walk, 'Refinement', `the body holds more than ${serviceRequests.count.values} values`);
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw refusal(walk, 'Refinement', 'the number is too large');
  }
  if (typeof value !== 'object' || value === null) return;
  if (walk.path.length === serviceRequests.count.depth) {
    throw refusal(walk, 'Refinement', `nested deeper than ${serviceRequests.count.depth}`);
  }
  if (Array.isArray(value)) {
    if (value.length > serviceRequests.count.listEntries) {
      throw refusal(walk, 'Refinement', `has more than ${serviceRequests.count.listEntries} items`);
    }
    for (let index = 0; index < value.length; index++) step(index, value[index], walk);
    return;
  }
  for (const name of Object.keys(value)) {
    if (name === '__proto__') {
      walk.path.push(name);
      throw refusal(walk, 'Unexpected', 'a field must not be named __proto__');
    }
    step(name, (value as Record<string, unknown>)[name], walk);
  }
}

function step(key: string | number, value: unknown, walk: Walk): void {
  walk.path.push(key);
  inspect(value, walk);
  walk.path.pop();
}

function refusal(walk: Walk, _tag: Issue['_tag'], message: string) {
  return refuseBody([{ _tag, path: walk.path, message }]);
}
