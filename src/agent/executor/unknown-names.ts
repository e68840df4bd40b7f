import type { Variant } from '../../contract/definition.ts';
import type { Config } from '../../suite/config-file.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import { findModel } from '../../suite/planned-variant.ts';
import { ownName } from '../variants.ts';

/**
 * The names in requested variants that the configuration does not have, one sentence for each: what is
 * unknown, what is known, and where to add it.
 */
export function unknownNames(
  variants: readonly Variant[],
  { config, runners }: { config: Config; runners: readonly HarnessOffer[] },
): string[] {
  return variants.flatMap((variant, index) => unknownIn(variant, `variants[${index}]`, config, runners));
}

function unknownIn(
  { model, credentials }: Variant,
  at: string,
  config: Config,
  runners: readonly HarnessOffer[],
): string[] {
  if (!credentials) {
    return [
      `${at} names no connections: credentials.harnessConnectionId and credentials.sandboxConnectionId`,
    ];
  }
  const { connections } = config;
  const harnessId = credentials.harnessConnectionId;
  const sandboxId = credentials.sandboxConnectionId;
  const harness = runners.find(({ name }) => name === ownName(harnessId, connections.harness));
  const sandbox = ownName(sandboxId, connections.sandbox);
  const file = config.file ?? 'offsite.yaml';
  const problems: string[] = [];
  const report = (what: string, id: string, known: readonly string[], where: string) => {
    const names = known.length > 0 ? `known are ${known.join(', ')}` : 'none is known';
    problems.push(`${at}: the ${what} ${JSON.stringify(id)} is unknown here (${names}); ${where}`);
  };
  if (!harness) {
    const known = runners.map(({ name }) => connections.harness[name] ?? name);
    report(
      'harness connection',
      harnessId,
      known,
      `name another, or add it to connections.harness in ${file}`,
    );
  }
  if (sandbox !== 'local' && !config.sandboxes[sandbox]) {
    const names = [...new Set(['local', ...Object.keys(config.sandboxes)])];
    const known = names.map((name) => connections.sandbox[name] ?? name);
    report('sandbox connection', sandboxId, known, `add it to sandboxes or connections.sandbox in ${file}`);
  }
  const asksModel = harness !== undefined && (harness.wires === 'any' || harness.wires.length > 0);
  if (asksModel && !findModel(model, config))
    report('model', model, Object.keys(config.models), `add it to models in ${file}`);
  return problems;
}
