import { DocumentTooDeep, DocumentTooHeavy, parseForeignJson, TooManyValues } from '../../base/parse-json.ts';
import { serviceRequests } from '../../bounds/callers.ts';
import type { Issue } from '../../contract/errors.ts';
import { cut } from '../../text/cut.ts';
import { refuse, refuseBody } from '../api-error.ts';
import type { Steps } from '../operations/call.ts';

/**
 * Parses a body, with places at which others may be served. Refuses (413) a body that would take too much
 * memory, and (400) one that is not UTF-8, is nested too deep for the code that reads it, or has so many
 * values that others would wait for it. Also refuses (400) what JSON text can express but Offsite cannot keep
 * unchanged: `__proto__` as a name, and numbers beyond a double's range.
 */
export function* parseJson(bytes: Uint8Array): Steps<unknown> {
  const text = textOf(bytes);
  yield;
  let value: unknown;
  try {
    value = parseForeignJson(text, {
      values: serviceRequests.count.values,
      names: serviceRequests.count.names,
      number: serviceRequests.bytes.number,
    });
  } catch (error) {
    if (error instanceof TooManyValues) {
      const path = error.member === undefined ? [] : [cut(error.member, serviceRequests.bytes.name)];
      throw refuseBody([{ _tag: 'Refinement', path, message: error.message }]);
    }
    if (error instanceof DocumentTooDeep) {
      throw refuseBody([{ _tag: 'Refinement', path: [], message: error.message }]);
    }
    if (error instanceof DocumentTooHeavy) throw refuse(413, error.message);
    if (!(error instanceof SyntaxError)) throw error;
    throw refuseBody([{ _tag: 'Type', path: [], message: 'the body is not JSON' }]);
  }
  yield;
  inspect(value, []);
  return value;
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw refuseBody([{ _tag: 'Type', path: [], message: 'the body is not UTF-8' }]);
  }
}

type Path = (string | number)[];

function inspect(value: unknown, path: Path): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw refusal(path, 'Refinement', 'the number is too large');
  }
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) step(index, value[index], path);
    return;
  }
  for (const name of Object.keys(value)) {
    if (name === '__proto__')
      throw refusal([...path, name], 'Unexpected', 'a field must not be named __proto__');
    step(name, (value as Record<string, unknown>)[name], path);
  }
}

function step(key: string | number, value: unknown, path: Path): void {
  path.push(key);
  inspect(value, path);
  path.pop();
}

function refusal(path: Path, _tag: Issue['_tag'], message: string) {
  return refuseBody([{ _tag, path, message }]);
}
