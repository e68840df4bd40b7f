import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { connectionFailure, type EngineFailureKind, engineFailure } from '../port/failure.ts';

/** By HTTP status; every other one is a refusal. */
const kinds: Readonly<Record<number, EngineFailureKind>> = { 404: 'not-found', 409: 'conflict' };

/** The HTTP status the engine answered with, when what was thrown is such an answer. */
export function engineStatus(thrown: unknown): number | undefined {
  const answer = thrown instanceof OffsiteError ? thrown.cause : thrown;
  const status = (answer as { statusCode?: unknown } | undefined)?.statusCode;
  return typeof status === 'number' ? status : undefined;
}

/** dockerode puts this before what the engine said. */
const wrapping = /^\(HTTP code \d+\) [^-]*- /;

/** The engine's own words. */
export function engineMessage(thrown: unknown): string {
  const answer = thrown instanceof OffsiteError ? thrown.cause : thrown;
  const body = (answer as { json?: { message?: unknown } } | undefined)?.json;
  if (typeof body?.message === 'string') return body.message;
  return messageOf(answer).replace(wrapping, '').trim();
}

/** Turns anything that a request threw into an error of the port's. `doing` continues "while". */
export function requestFailure(doing: string, thrown: unknown): OffsiteError {
  if (thrown instanceof OffsiteError) return thrown;
  const status = engineStatus(thrown);
  if (status === undefined) return connectionFailure(doing, thrown);
  const message = `The engine refused (${status}) while ${doing}: ${engineMessage(thrown)}`;
  return engineFailure(kinds[status] ?? 'refused', message, thrown);
}
