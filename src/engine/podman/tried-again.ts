import { type BackoffLimits, backoff, type Clock } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';

const tries = 7;
const waits: BackoffLimits = { first: 100, longest: 3_000 };

/**
 * Lists again for some seconds: Podman reads the objects of a list one by one, and refuses the whole list if
 * one of them has disappeared meanwhile. If it keeps refusing, an object was removed only in part.
 */
export async function listedAgain<Result>(
  list: () => Promise<Result>,
  { clock, signal }: { clock: Clock; signal: AbortSignal | undefined },
): Promise<Result> {
  for (let failures = 1; ; failures++) {
    try {
      return await list();
    } catch (thrown) {
      if (!(thrown instanceof OffsiteError) || !hasVanished(thrown)) throw thrown;
      if (failures === tries) throw withHint(thrown);
      await clock.sleep(backoff(failures, waits, Math.random), signal);
    }
  }
}

function withHint(thrown: OffsiteError): OffsiteError {
  const { message, code, kind } = thrown;
  const [, id] = found.exec(message) ?? [];
  if (id === undefined) return thrown;
  const hint = `Podman has removed it only in part, and lists nothing until all of it is gone: podman rm --force ${id}`;
  return new OffsiteError(message, { code, kind, hint, cause: thrown });
}

/** The container that a list could not read. */
const found = /container[^"]*"([0-9a-f]{64})": container not known/;

function hasVanished({ message }: OffsiteError): boolean {
  return /(?:container|image|layer|volume|network)s? not known|: no such (?:container|image|volume|network)/.test(
    message,
  );
}
