import { OffsiteError } from '../../src/offsite-error.ts';
import type { EngineCandidate } from './engine-candidates.ts';
import { type EngineAddress, pingEngine } from './ping-engine.ts';

/** How long an engine may take to answer a ping, in milliseconds; Docker Desktop wakes slowly. */
const pingMs = 5_000;

export interface FoundEngine {
  address: EngineAddress;
  namedBy: string;
}

/**
 * The first of the candidates that answers, or undefined when there is none and one may be installed. Throws an
 * `input` error where the user has to act: an engine that was chosen and is silent, or one that may not be opened.
 */
export async function findEngine(
  candidates: readonly EngineCandidate[],
  signal?: AbortSignal,
): Promise<FoundEngine | undefined> {
  for (const { address, namedBy, chosen } of candidates) {
    const ping = await pingEngine(address, pingMs, signal);
    if (ping.state === 'alive') return { address, namedBy };
    if (ping.state === 'forbidden') throw forbidden(namedBy);
    if (chosen) throw silent(namedBy, ping.reason);
  }
  return undefined;
}

function forbidden(namedBy: string): OffsiteError {
  return new OffsiteError(`There is a Docker engine at ${namedBy}, and this user may not open its socket.`, {
    code: 'ENGINE_FORBIDDEN',
    kind: 'input',
    hint: "Add yourself to its group ('sudo usermod -aG docker $USER') and log in again, or run this as root.",
  });
}

function silent(namedBy: string, reason: string): OffsiteError {
  return new OffsiteError(`No Docker engine answers at ${namedBy}: ${reason}.`, {
    code: 'ENGINE_UNREACHABLE',
    kind: 'input',
    hint: 'Start that engine, or unset the setting to look in the usual places.',
  });
}
