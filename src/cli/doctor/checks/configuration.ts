import type { Check } from '../check.ts';
import { failureOf } from '../examine.ts';

export const configuration: Check = {
  name: 'configuration',
  async run({ config, configFailure }) {
    if (configFailure !== undefined) return failureOf(configFailure);
    const { profiles, sandboxes, models } = config;
    if (config.file === undefined) return { state: 'ok', found: 'no offsite.yaml; the defaults apply' };
    const names = [Object.keys(profiles), Object.keys(sandboxes), Object.keys(models)];
    const [ofProfiles, ofSandboxes, ofModels] = names.map(({ length }) => length);
    return {
      state: 'ok',
      found: `${config.file} (profiles: ${ofProfiles}, sandboxes: ${ofSandboxes}, models: ${ofModels})`,
    };
  },
};
