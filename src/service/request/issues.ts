import type { z } from 'zod';
import { serviceRequests } from '../../bounds/callers.ts';
import { type Issue, meantMember } from '../../contract/errors.ts';
import { cut } from '../../text/printable.ts';

type ZodIssue = z.core.$ZodIssue;
type Path = PropertyKey[];

/**
 * What is wrong with `body`, in the terms of the wire. Zod says what it expected; the actual value is looked
 * up in the body.
 */
export function issuesOf(failure: z.ZodError, body: unknown): Issue[] {
  const issues: Issue[] = [];
  for (const issue of failure.issues) {
    if (issues.length >= serviceRequests.count.issues) break;
    issues.push(...translate(issue, body, []));
  }
  return issues.slice(0, serviceRequests.count.issues);
}

function translate(issue: ZodIssue, body: unknown, parent: Path): Issue[] {
  const path = [...parent, ...issue.path];
  const one = (_tag: Issue['_tag'], message = issue.message): Issue[] => [
    { _tag, path: path.map(pathStep), message },
  ];
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.slice(0, serviceRequests.count.issues).map((key) => ({
        _tag: 'Unexpected' as const,
        path: [...path, key].map(pathStep),
        message: 'is not a field here',
      }));
    case 'invalid_type':
    case 'invalid_value': {
      const value = valueAt(body, path);
      if (value === undefined) return one('Missing', 'is missing');
      const isNumber = issue.code === 'invalid_type' && issue.expected === 'int' && typeof value === 'number';
      return one(isNumber ? 'Refinement' : 'Type');
    }
    case 'invalid_union': {
      if (valueAt(body, path) === undefined) return one('Missing', 'is missing');
      const meant = meantMember(issue.errors) ?? [];
      // If the value has no member's type, naming the type of one member would mislead.
      const [first] = meant;
      const isOfNone = first?.code === 'invalid_type' && first.path.length === 0 && issue.errors.length > 1;
      return isOfNone || !first ? one('Type') : meant.flatMap((error) => translate(error, body, path));
    }
    case 'invalid_key':
    case 'invalid_element':
      return one('Composite');
    default:
      return one('Refinement');
  }
}

function valueAt(body: unknown, path: Path): unknown {
  let value = body;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

function pathStep(key: PropertyKey): Issue['path'][number] {
  if (typeof key === 'string') return cut(key, serviceRequests.bytes.name);
  return typeof key === 'symbol' ? { _tag: 'symbol', key: key.description ?? '' } : key;
}
