import type { z } from 'zod';

/** A problem of a value, at its path in the document. */
export interface SchemaProblem {
  path: (string | number)[];
  message: string;
}

/**
 * Zod's issues as paths and sentences: one for each unknown key, and for a union those of the member that was
 * meant.
 */
export function schemaProblems(error: z.ZodError): SchemaProblem[] {
  return error.issues.flatMap(flatten);
}

function flatten(issue: z.core.$ZodIssue): SchemaProblem[] {
  const path = issue.path as SchemaProblem['path'];
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: 'unknown key; check its spelling' }));
  }
  if (issue.code === 'invalid_union') {
    const meant = issue.errors.find((issues) =>
      issues.every((inner) => inner.path.length > 0 || inner.code === 'unrecognized_keys'),
    );
    if (meant) return meant.flatMap((inner) => flatten({ ...inner, path: [...path, ...inner.path] }));
  }
  if (issue.code === 'invalid_key') {
    return issue.issues.map(({ message }) => ({ path, message: expectation(message) }));
  }
  if (isMissing(issue)) {
    return [
      { path, message: `is required: ${expectation(issue.message).replace(/, received undefined$/, '')}` },
    ];
  }
  return [{ path, message: expectation(issue.message) }];
}

/** Zod states the received value only in its message. */
function isMissing(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_union')
    return issue.errors.length > 0 && issue.errors.every((member) => member.every(isMissing));
  return /received undefined$/.test(issue.message);
}

function expectation(message: string): string {
  return message.replace(/^Invalid input: /, '');
}
