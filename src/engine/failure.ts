import { messageOf, OffsiteError } from '../offsite-error.ts';

/** 409 is said of containers: not running any more, or being removed already. */
const CODES: Readonly<Record<number, string>> = { 404: 'ENGINE_NOT_FOUND', 409: 'ENGINE_CONTAINER_STOPPED' };

/** The HTTP status the engine answered with, when what was thrown is such an answer. */
export function engineStatus(thrown: unknown): number | undefined {
  const status = (thrown as { statusCode?: unknown } | undefined)?.statusCode;
  return typeof status === 'number' ? status : undefined;
}

/** The engine's own words, without the HTTP wrapping that dockerode puts around them. */
export function engineMessage(thrown: unknown): string {
  const body = (thrown as { json?: { message?: unknown } } | undefined)?.json;
  return typeof body?.message === 'string' ? body.message : messageOf(thrown);
}

/**
 * Turns anything that an engine request threw into the one kind of error this folder throws.
 * `doing` continues "while": `creating a container`. What is already ours passes through unchanged.
 */
export function engineFailure(doing: string, thrown: unknown): OffsiteError {
  if (thrown instanceof OffsiteError) return thrown;
  const status = engineStatus(thrown);
  if (status === undefined) {
    return new OffsiteError(`The connection to the engine failed while ${doing}: ${messageOf(thrown)}`, {
      code: 'ENGINE_CONNECTION',
      kind: 'infrastructure',
      hint: 'Check that the Docker engine is running and reachable (docker version).',
      cause: thrown,
    });
  }
  return new OffsiteError(`The engine refused (${status}) while ${doing}: ${engineMessage(thrown)}`, {
    code: CODES[status] ?? 'ENGINE_REFUSED',
    kind: 'infrastructure',
    cause: thrown,
  });
}

/** The container itself is past use: what runs in it may have removed its shell, or filled its process table for good. */
export function containerDamaged(message: string, cause?: unknown): OffsiteError {
  return new OffsiteError(message, {
    code: 'ENGINE_CONTAINER_DAMAGED',
    kind: 'infrastructure',
    hint: 'What ran in the container made it unusable.',
    cause,
  });
}

/** An exec whose stream, or whose exit code, was lost: what it did is not known, so it is no result at all. */
export function execLost(message: string, cause?: unknown): OffsiteError {
  return new OffsiteError(message, {
    code: 'ENGINE_EXEC_LOST',
    kind: 'infrastructure',
    hint: 'The engine was restarted or the connection to it was cut. Run it again.',
    cause,
  });
}
