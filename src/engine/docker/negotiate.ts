import { OffsiteError } from '../../base/offsite-error.ts';
import { engineFailure } from '../port/failure.ts';
import type { DockerClient } from './client.ts';

/** The newest version that this code supports; engine 29 refuses versions below 1.44. */
const newestVersion = '1.56';
/** Engine 20.10. Older ones do not say which control groups they use. */
const oldestVersion = '1.41';
const pingTimeoutMs = 10_000;

export interface Introduction {
  /** The API version to speak. */
  apiVersion: string;
  isPodman: boolean;
}

/**
 * Whose engine it is, and the API version to speak: the newest that both sides know. dockerode does not
 * negotiate, and engines refuse versions that are too old or too new for them. `/version` works without one.
 */
export async function introduce(client: DockerClient, signal?: AbortSignal): Promise<Introduction> {
  const answer = await client.ask<{ ApiVersion?: string; Components?: { Name?: string }[] | null }>(
    'asking the engine for its version',
    { method: 'GET', path: '/version' },
    { signal, timeoutMs: pingTimeoutMs },
  );
  const { ApiVersion: offered } = answer;
  if (typeof offered !== 'string') {
    throw engineFailure(
      'refused',
      'The server at this address is not a Docker engine: it reports no API version.',
      answer,
    );
  }
  if (olderThan(offered, oldestVersion)) {
    throw new OffsiteError(
      `The engine is too old: it speaks API ${offered}, and ${oldestVersion} is needed.`,
      {
        code: 'ENGINE_TOO_OLD',
        kind: 'infrastructure',
        hint: 'Update to Docker Engine 20.10 or newer.',
      },
    );
  }
  return {
    apiVersion: olderThan(offered, newestVersion) ? offered : newestVersion,
    isPodman: (answer.Components ?? []).some(({ Name }) => Name === 'Podman Engine'),
  };
}

/** Compares versions such as 1.9 and 1.41 number by number. */
function olderThan(version: string, other: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [otherMajor = 0, otherMinor = 0] = other.split('.').map(Number);
  return major < otherMajor || (major === otherMajor && minor < otherMinor);
}
