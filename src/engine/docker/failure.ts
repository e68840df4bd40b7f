import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { engineAnswers } from '../../bounds/sandbox.ts';
import { cut } from '../../text/printable.ts';
import { connectionFailure, type EngineFailureKind, engineFailure } from '../port/failure.ts';

/** Kinds by HTTP status; every other status is `refused`. */
const kinds: Readonly<Record<number, EngineFailureKind>> = { 404: 'not-found', 409: 'conflict' };

/** The HTTP status of the engine's answer, if `thrown` is an error with one. */
export function engineStatus(thrown: unknown): number | undefined {
  const answer = thrown instanceof OffsiteError ? thrown.cause : thrown;
  const status = (answer as { statusCode?: unknown } | undefined)?.statusCode;
  return typeof status === 'number' ? status : undefined;
}

/** The engine's own message. */
export function engineMessage(thrown: unknown): string {
  return messageOf(thrown instanceof OffsiteError ? thrown.cause : thrown).trim();
}

/** Returns the kind of a refusal from its status and body; undefined if the status alone decides it. */
export type KindOf = (status: number, body: unknown) => EngineFailureKind | undefined;

/** Turns anything that a request threw into an error of the port. `doing` continues "while". */
export function requestFailure(doing: string, thrown: unknown, kindOf?: KindOf): OffsiteError {
  if (thrown instanceof OffsiteError) return thrown;
  const status = engineStatus(thrown);
  if (status === undefined) return connectionFailure(doing, thrown);
  const message = `The engine refused (${status}) while ${doing}: ${cut(engineMessage(thrown), engineAnswers.bytes.message)}`;
  const kind = kindOf?.(status, (thrown as { json?: unknown }).json) ?? kinds[status] ?? 'refused';
  return engineFailure(kind, message, thrown);
}
