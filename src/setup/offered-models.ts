import { serverFacts } from '../bounds/model.ts';
import type { ServerLook } from '../gateway/probe/look-at-server.ts';
import { usualWire } from '../gateway/wires/wire-table.ts';
import { hostedServices } from './models/gather-model.ts';

/** A model that the configuration will have, and a harness that suits it. */
export interface OfferedModel {
  /** Its name in `offsite.yaml`. */
  name: string;
  /** Where it was found, for a comment. */
  found: string;
  /** As in `offsite.yaml`. */
  config: Record<string, string>;
  harness: string;
}

/** A name goes into a file and onto the screen, so unusual ones are left out. */
const plainName = /^[\w@][\w.:/@+-]{0,199}$/;

/** The models that this machine can probably use: of the keys in its environment, and of its own servers. */
export function offeredModels(env: NodeJS.ProcessEnv, servers: readonly ServerLook[]): OfferedModel[] {
  // The value of the variable is never read.
  const hosted = hostedServices.flatMap(({ usual, wires: [wire], baseUrl, apiKeyEnv }): OfferedModel[] => {
    if (!usual || !env[apiKeyEnv]) return [];
    const { name, harness, model } = usual;
    return [{ name, harness, found: `${apiKeyEnv} is set`, config: { wire, baseUrl, model, apiKeyEnv } }];
  });
  const local = servers.flatMap(({ baseUrl, models, wires: [wire = usualWire.name] }) =>
    [...new Set(models.map(({ id }) => id))]
      .filter((id) => plainName.test(id))
      .slice(0, serverFacts.count.offered)
      .map((model) => ({
        name: shortName(model),
        found: `served at ${baseUrl}`,
        config: { wire, baseUrl, model },
        harness: 'opencode',
      })),
  );
  const offered = [...hosted, ...local];
  return offered.map((one, index) => {
    const before = offered.slice(0, index).filter(({ name }) => name === one.name).length;
    return before === 0 ? one : { ...one, name: `${one.name}-${before + 1}` };
  });
}

/** `qwen3-coder-30b` for `Qwen/Qwen3-Coder:30b` */
function shortName(model: string): string {
  const last = model.split('/').at(-1) ?? model;
  return (
    last
      .toLowerCase()
      .replaceAll(/[^\w.]+/g, '-')
      .replaceAll(/^[-.]+|[-.]+$/g, '') || 'local'
  );
}
