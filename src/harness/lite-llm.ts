import type { ModelAccess } from './runner.ts';

/** Environment variables with which LiteLLM sends requests only to the model. */
export const liteLlmDefaults = {
  // Otherwise it fetches a list of prices.
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  LITELLM_MODE: 'PRODUCTION',
};

/** The model's name for LiteLLM: what is before the slash chooses the wire. */
export function liteLlmModel({ wire, name }: ModelAccess): string {
  return `${wire === 'anthropic-messages' ? 'anthropic' : 'openai'}/${name}`;
}

/** Environment variables with the address of the model and the trial's token. */
export function accessOfLiteLlm({ wire, origin, token }: ModelAccess): Record<string, string> {
  if (wire === 'anthropic-messages') return { ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_KEY: token };
  return { OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_BASE: `${origin}/v1`, OPENAI_API_KEY: token };
}
