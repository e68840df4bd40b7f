import type { Check } from '../check.ts';
import { failureOf } from '../examine.ts';

/** Whether the engine can be reached and is new enough: connecting refuses an old engine. */
export const engineReachable: Check = {
  name: 'engine',
  ofEngine: true,
  async run({ engine }) {
    if (!engine.got) return failureOf(engine.error);
    const { address, capabilities } = engine.value;
    const { serverVersion, apiVersion, os } = capabilities;
    const found = `${address}, version ${serverVersion}, API ${apiVersion}`;
    if (os === 'linux') return { state: 'ok', found };
    const fix = 'Switch it to Linux containers, or name another engine by DOCKER_HOST.';
    return { state: 'fail', kind: 'infrastructure', found: `${found}: it runs ${os} containers`, fix };
  },
};
