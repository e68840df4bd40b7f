import type { LeftOut } from '../agent/ledger-cassette.ts';
import type { RecordedExchange } from '../gateway/replay/cassette.ts';
import { turnsInOrder } from '../gateway/replay/turns-in-order.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { KnownKeys } from '../redaction/known-keys.ts';
import type { Config } from '../suite/config-file.ts';
import type { PlannedVariant } from '../suite/plan.ts';
import { type HarnessOffer, plannedVariant } from '../suite/planned-variant.ts';

interface Changed {
  /** The recorded one. Its sandbox is kept as it was. */
  variant: PlannedVariant;
  harness: string;
  profile: string | undefined;
  model: string;
}

interface VariantParts {
  config: Config;
  harnesses: readonly HarnessOffer[];
  keys: KnownKeys;
  meetsUser: boolean;
}

/** A variant with another harness. Throws `FORK_HARNESS` with all reasons why the harness cannot be used. */
export function variantWith(
  { variant, harness, profile, model }: Changed,
  { config, ...parts }: VariantParts,
): PlannedVariant {
  const { name: sandbox, ...settings } = variant.sandbox;
  const obstacles: string[] = [];
  const source = {
    ...{ name: `${variant.name}, then ${model} with ${harness}`, harness, model, sandbox },
    ...(profile !== undefined && { profile }),
    ...(variant.userModel !== undefined && { userModel: variant.userModel }),
  };
  const within = { ...config, sandboxes: { ...config.sandboxes, [sandbox]: settings } };
  const planned = plannedVariant(source, { ...parts, config: within }, (_, message) =>
    obstacles.push(message),
  );
  if (planned && obstacles.length === 0) return planned;
  throw new OffsiteError(obstacles.join('; '), {
    code: 'FORK_HARNESS',
    kind: 'input',
    hint: 'Choose another --harness, or give it a --profile of offsite.yaml that it can use.',
  });
}

/** Throws `FORK_UNMAPPED` if another harness cannot be given all recorded answers to an agent. */
export function requireMapped(
  exchanges: readonly RecordedExchange[],
  leftOut: readonly LeftOut[],
  { at, shown }: { at: number; shown: string },
): void {
  // A failed request is no gap, because the harness repeated it.
  const missing = leftOut
    .filter(({ role, failure, number }) => role === 'agent' && failure === undefined && number <= at)
    .map(({ number, reason }) => ({ number, what: reason }));
  const { obstacle } = turnsInOrder(exchanges);
  const [first] = [...missing, ...(obstacle ? [obstacle] : [])].toSorted((a, b) => a.number - b.number);
  if (!first) return;
  const most = first.number - 1;
  throw new OffsiteError(
    `another harness cannot be given the answer to request ${first.number} of ${shown}: ${first.what}`,
    {
      code: 'FORK_UNMAPPED',
      kind: 'input',
      hint:
        `The largest --at for another harness is ${most}; ` +
        `\`offsite show ${shown} --model\` lists the requests.`,
    },
  );
}
