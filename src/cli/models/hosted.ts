import type { Wire } from '../../suite/model-config.ts';

/** A service that serves models to anyone with a key. */
export interface HostedService {
  title: string;
  baseUrl: string;
  /** Its wires in the order of preference. */
  wires: readonly [Wire, ...Wire[]];
  /** The variable that its own programs read the key from. */
  apiKeyEnv: string;
}

/** The services list their models only for callers with a key, so this table has the other facts. */
export const hostedServices: readonly HostedService[] = [
  {
    title: 'OpenAI',
    baseUrl: 'https://api.openai.com/v1',
    wires: ['openai-responses', 'openai-chat'],
    apiKeyEnv: 'OPENAI_API_KEY',
  },
  {
    title: 'Anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    wires: ['anthropic-messages'],
    apiKeyEnv: 'ANTHROPIC_API_KEY',
  },
  {
    title: 'Google Gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    wires: ['gemini'],
    apiKeyEnv: 'GEMINI_API_KEY',
  },
  {
    title: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    wires: ['openai-chat'],
    apiKeyEnv: 'OPENROUTER_API_KEY',
  },
];

/** The service at an address, whatever its path. */
export function hostedAt(baseUrl: string): HostedService | undefined {
  const { hostname } = new URL(baseUrl);
  return hostedServices.find((service) => new URL(service.baseUrl).hostname === hostname);
}
