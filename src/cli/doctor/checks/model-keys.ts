import type { Check } from '../check.ts';

/** Whether the variables for the models' keys are set. Never prints their values. */
export const modelKeys: Check = {
  name: "models' keys",
  ofConfiguration: true,
  async run({ config, env }) {
    const named = Object.entries(config.models).flatMap(([model, settings]) =>
      'apiKeyEnv' in settings && settings.apiKeyEnv ? [{ model, variable: settings.apiKeyEnv }] : [],
    );
    if (named.length === 0) return { state: 'ok', found: 'no model needs one' };
    const unset = named.filter(({ variable }) => !env[variable]);
    if (unset.length === 0) return { state: 'ok', found: `set: ${list(named)}` };
    return {
      state: 'warn',
      found: `not set: ${list(unset)}`,
      fix: 'Set them before running variants of these models.',
    };
  },
};

function list(named: readonly { model: string; variable: string }[]): string {
  return named.map(({ model, variable }) => `${variable} (${model})`).join(', ');
}
