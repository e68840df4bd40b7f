import { infrastructureError, messageOf, OffsiteError, systemHint } from '../../base/offsite-error.ts';

/**
 * How a request to any engine can fail.
 *
 * - `not-found`: the object that the request names does not exist.
 * - `conflict`: the object's state forbids it: a container that does not run, a name that is taken, an image
 *   in use.
 * - `refused`: the engine answered that it will not, or cannot.
 * - `connection`: no answer, or a broken one. The outcome of the request is unknown.
 *
 * A stream of output that breaks off is an `ENGINE_EXEC_LOST`; an answer beyond the bounds is an
 * `ENGINE_ANSWER_TOO_LARGE`.
 */
export type EngineFailureKind = 'not-found' | 'conflict' | 'refused' | 'connection';

const codes: Readonly<Record<EngineFailureKind, string>> = {
  'not-found': 'ENGINE_NOT_FOUND',
  conflict: 'ENGINE_CONTAINER_STOPPED',
  refused: 'ENGINE_REFUSED',
  connection: 'ENGINE_CONNECTION',
};

/** The error of a request that failed in this way. */
export function engineFailure(kind: EngineFailureKind, message: string, cause: unknown): OffsiteError {
  return new OffsiteError(message, {
    code: codes[kind],
    kind: 'infrastructure',
    ...(kind === 'connection' && {
      hint: systemHint(cause, 'Check that the container engine is running and reachable (docker version).'),
    }),
    cause,
  });
}

/**
 * Turns the error of a broken connection or an unreadable answer into a `connection` failure. `doing`
 * continues "while": `creating a container`. An `OffsiteError` passes through unchanged.
 */
export function connectionFailure(doing: string, thrown: unknown): OffsiteError {
  if (thrown instanceof OffsiteError) return thrown;
  const message = `The connection to the engine failed while ${doing}: ${messageOf(thrown)}`;
  return engineFailure('connection', message, thrown);
}

/** Whether `thrown` is the error of a request that failed in this way. */
export function isEngineFailure(thrown: unknown, kind: EngineFailureKind): thrown is OffsiteError {
  return thrown instanceof OffsiteError && thrown.code === codes[kind];
}

/** An exec whose stream or exit code was lost: its outcome is unknown, so there is no result. */
export function execLost(message: string, cause?: unknown): OffsiteError {
  return infrastructureError('ENGINE_EXEC_LOST', message, {
    hint: "Run it again. The engine's log shows whether the engine was restarted.",
    cause,
  });
}

/**
 * A process in the container made it unusable: it removed the shell, or filled the process table permanently.
 */
export function containerDamaged(message: string, cause?: unknown): OffsiteError {
  return infrastructureError('ENGINE_CONTAINER_DAMAGED', message, {
    hint: 'A process in the container made it unusable.',
    cause,
  });
}
