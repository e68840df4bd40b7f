import type { RunVariant } from '../contract/record.ts';
import type { Config } from '../suite/config-file.ts';
import type { PlannedVariant } from '../suite/plan.ts';
import { type HarnessOffer, plannedVariant } from '../suite/planned-variant.ts';

export type KnownVariant =
  | { kind: 'known'; variant: PlannedVariant }
  /** `reason` names what the configuration lacks. */
  | { kind: 'unknown'; reason: string };

/**
 * Finds the variant that a run record names in the configuration. Connection ids are looked up by their
 * configured names. If the record names no profile, the harness's configured profile is used.
 */
export function knownVariant(
  names: RunVariant | undefined,
  config: Config,
  harnesses: readonly HarnessOffer[],
): KnownVariant {
  if (!names?.harness) return { kind: 'unknown', reason: 'its variant names no harness' };
  const { model, userModel } = names;
  const harness = ownName(names.harness, config.connections.harness);
  const sandbox = names.sandbox ? ownName(names.sandbox, config.connections.sandbox) : 'local';
  const profile = names.profile || config.daemon.profiles[harness];
  const issues: string[] = [];
  const source = {
    model,
    harness,
    sandbox,
    ...(profile && { profile }),
    ...(userModel && { userModel }),
  };
  // Found runs have no simulated user, because a run record has no field for one.
  const surroundings = { config, harnesses, meetsUser: false };
  const offered = harnesses.some(({ name }) => name === harness);
  const variant = plannedVariant(source, surroundings, (key, message) => {
    // A run's record seldom names a profile.
    const remedy =
      key === 'harness' && offered ? `: name one as daemon.profiles.${harness} in offsite.yaml` : '';
    issues.push(`${key}: ${message}${remedy}`);
  });
  if (variant && issues.length === 0) return { kind: 'known', variant };
  return { kind: 'unknown', reason: issues.join('; ') };
}

/** The name that is configured for a connection id; the id itself if there is none. */
export function ownName(id: string, connections: Readonly<Record<string, string>>): string {
  return Object.keys(connections).find((name) => connections[name] === id) ?? id;
}
