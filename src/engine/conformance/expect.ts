import { type EngineFailureKind, isEngineFailure } from '../port/failure.ts';

/** The exit code of a command that was killed with SIGKILL. */
export const killed = 137;

/** The engine does something else. The message says what. */
export class Unmet extends Error {}

/** This cannot be checked on this engine, and Offsite works without it. The message says why. */
export class NotChecked extends Error {}

/** Throws an `Unmet` unless both are the same as JSON. `what` names the value: `the exit code`. */
export function same(what: string, seen: unknown, expected: unknown): void {
  const [is, should] = [JSON.stringify(seen), JSON.stringify(expected)];
  if (is !== should) throw new Unmet(`${what} is ${short(is)}, not ${short(should)}`);
}

/** Throws an `Unmet` with what was seen unless the condition holds. */
export function holds(condition: boolean, seen: string): void {
  if (!condition) throw new Unmet(seen);
}

/** Throws an `Unmet` unless the request fails in this way. */
export async function failsAs(
  what: string,
  kind: EngineFailureKind,
  request: Promise<unknown>,
): Promise<void> {
  let thrown: unknown;
  try {
    await request;
  } catch (error) {
    thrown = error;
  }
  if (thrown === undefined) throw new Unmet(`${what} succeeds`);
  if (!isEngineFailure(thrown, kind)) throw new Unmet(`${what} fails as something else: ${thrown}`);
}

function short(json = 'nothing'): string {
  return json.length > 300 ? `${json.slice(0, 300)}…` : json;
}
