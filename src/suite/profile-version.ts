import { createHash } from 'node:crypto';
import type { Profile } from './plan.ts';

/** Versions that are known, because the files of a profile may be large. */
const known = new WeakMap<Profile, string>();

/**
 * A version of a profile: 12 hexadecimal digits of a hash of all that it holds. It does not depend on the
 * profile's name. Undefined if the variant names no profile.
 */
export function profileVersion(profile: Profile): string | undefined {
  if (profile.name === undefined) return undefined;
  const version = known.get(profile) ?? hashOf(profile);
  known.set(profile, version);
  return version;
}

function hashOf(profile: Profile): string {
  const { install, run, version, args, env, files, mcpServers, maxTurns, stream, trajectory } = profile;
  const hash = createHash('sha256');
  const paths = files.map(({ path, mode, content }) => [path, mode, content.byteLength]);
  hash.update(JSON.stringify([install, run, version, args, env, mcpServers, maxTurns, paths]));
  // Not in the list, so that profiles without these keep the versions that they had.
  if (stream !== undefined || trajectory !== undefined) hash.update(JSON.stringify({ stream, trajectory }));
  if (profile.tellDeadline) hash.update('tellDeadline');
  for (const { content } of files) hash.update(content);
  return hash.digest('hex').slice(0, 12);
}
