import { OffsiteError } from '../offsite-error.ts';

/** What ran in the container made it unusable: it removed the shell, or filled the process table for good. */
export function containerDamaged(message: string, cause?: unknown): OffsiteError {
  return new OffsiteError(message, {
    code: 'ENGINE_CONTAINER_DAMAGED',
    kind: 'infrastructure',
    hint: 'What ran in the container made it unusable.',
    cause,
  });
}
