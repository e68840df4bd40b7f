import { z } from 'zod';

/** Schemas of error bodies. */

export const Issue = z.strictObject({
  _tag: z.enum([
    'Pointer',
    'Unexpected',
    'Missing',
    'Composite',
    'Refinement',
    'Transformation',
    'Type',
    'Forbidden',
  ]),
  path: z.array(
    z.union([z.string(), z.number(), z.strictObject({ _tag: z.literal('symbol'), key: z.string() })]),
  ),
  message: z.string(),
});
export type Issue = z.infer<typeof Issue>;

export const DecodeErrorBody = z.strictObject({
  _tag: z.literal('HttpApiDecodeError'),
  message: z.string(),
  issues: z.array(Issue),
});
export type DecodeErrorBody = z.infer<typeof DecodeErrorBody>;

/** The `_tag` of a 409 of `evals.claimTrial` for some time after a backup took the service's place. */
export const restoredTag = 'Restored';

/**
 * The `_tag` of the error body for each status. 400 has {@link DecodeErrorBody}; the others have `{_tag,
 * message}`.
 */
export const errorTags = {
  400: 'HttpApiDecodeError',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  500: 'InternalError',
} as const;
export type ErrorStatus = keyof typeof errorTags;

export const ErrorBody = z.strictObject({
  _tag: z.enum(['Unauthorized', 'Forbidden', 'NotFound', 'Conflict', restoredTag, 'InternalError']),
  message: z.string(),
});
export type ErrorBody = z.infer<typeof ErrorBody>;

/**
 * Of the members of a union that all failed, the issues of the one that was probably meant: one whose tag (a
 * field with a fixed value) fits, and among those the one with the fewest issues.
 */
export function meantMember(members: readonly z.core.$ZodIssue[][]): z.core.$ZodIssue[] | undefined {
  const isTag = ({ code, path }: z.core.$ZodIssue) =>
    path.length === 1 && (code === 'invalid_value' || code === 'custom');
  const misfit = (member: z.core.$ZodIssue[]) => member.length + (member.some(isTag) ? 1000 : 0);
  const [nearest] = members
    .filter((member) => member.length > 0)
    .sort((one, other) => misfit(one) - misfit(other));
  return nearest;
}

/**
 * An issue's path in the form that people read: `cases[2].validator.source`. Keys that are not names are
 * quoted: `variables["my key"]`. A step of an unknown kind, which another service may send, is written as
 * JSON.
 */
export function printPath(path: readonly unknown[]): string {
  return path
    .map((step, position) => {
      const key = isSymbolStep(step) ? step.key : step;
      if (typeof key !== 'string') return `[${JSON.stringify(key)}]`;
      if (!/^[\p{ID_Start}$_][\p{ID_Continue}$-]*$/u.test(key)) return `[${JSON.stringify(key)}]`;
      return position === 0 ? key : `.${key}`;
    })
    .join('');
}

function isSymbolStep(step: unknown): step is { key: string } {
  return typeof step === 'object' && step !== null && 'key' in step && typeof step.key === 'string';
}
