import { OffsiteError } from '../base/offsite-error.ts';

/**
 * A process in the container made it unusable: it removed the shell, or filled the process table permanently.
 */
export function containerDamaged(message: string, cause?: unknown): OffsiteError {
  return new OffsiteError(message, {
    code: 'ENGINE_CONTAINER_DAMAGED',
    kind: 'infrastructure',
    hint: 'A process in the container made it unusable.',
    cause,
  });
}
