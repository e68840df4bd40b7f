import { type BackoffLimits, backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';

const tries = 7;
const waits: BackoffLimits = { first: 100, longest: 3_000 };

interface TriedAgain {
  /** Which failures pass by themselves. */
  isPassing: (error: OffsiteError) => boolean;
  clock: Clock;
  signal: AbortSignal | undefined;
}

/** Sends a request again, for some seconds, while it fails in a way that passes by itself. */
export async function triedAgain<Result>(
  request: () => Promise<Result>,
  { isPassing, clock, signal }: TriedAgain,
): Promise<Result> {
  for (let failures = 1; ; failures++) {
    try {
      return await request();
    } catch (thrown) {
      if (!(thrown instanceof OffsiteError) || !isPassing(thrown) || failures === tries) throw thrown;
      await clock.sleep(backoff(failures, waits, Math.random), signal);
    }
  }
}

/**
 * For lists: Podman reads the objects of a list one by one, and refuses the whole list if one of them has
 * disappeared meanwhile. If it keeps refusing, an object was removed only in part.
 */
export async function listedAgain<Result>(
  list: () => Promise<Result>,
  given: Omit<TriedAgain, 'isPassing'>,
): Promise<Result> {
  try {
    return await triedAgain(list, { ...given, isPassing: hasVanished });
  } catch (thrown) {
    const [, id] =
      thrown instanceof OffsiteError && hasVanished(thrown) ? (found.exec(thrown.message) ?? []) : [];
    if (!(thrown instanceof OffsiteError) || id === undefined) throw thrown;
    const { message, code, kind } = thrown;
    const hint = `Podman has removed it only in part, and lists nothing until all of it is gone: podman rm --force ${id}`;
    throw new OffsiteError(message, { code, kind, hint, cause: thrown });
  }
}

/** The container that a list could not read. */
const found = /container[^"]*"([0-9a-f]{64})": container not known/;

function hasVanished({ message }: OffsiteError): boolean {
  return /(?:container|image|layer|volume|network)s? not known|: no such (?:container|image|volume|network)/.test(
    message,
  );
}

/**
 * For removals: something still has a mount of the container open, such as another container that is
 * starting.
 */
export function isBusy({ message }: OffsiteError): boolean {
  return message.includes('device or resource busy');
}
