import type { HttpModel, Wire } from '../../suite/model-config.ts';

/** A service that serves models to anyone with a key. */
export interface HostedService {
  title: string;
  baseUrl: string;
  /** Its wires in the order of preference. */
  wires: readonly [Wire, ...Wire[]];
  /** The variable that its own programs read the key from. */
  apiKeyEnv: string;
  /** The header that carries the key, if it is not that of the wire. */
  auth?: HttpModel['auth'];
  /** For a service whose customers each have a host of their own. */
  own?: {
    hosts: RegExp;
    /** What an address says that a customer knows. The service lists no models that can be asked. */
    read(address: string): { address: string; wires: Wire[]; model?: string | undefined };
  };
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
  {
    title: 'Azure OpenAI',
    baseUrl: 'https://my-resource.openai.azure.com/openai/v1',
    wires: ['openai-responses', 'openai-chat'],
    own: { hosts: /\.(openai|services\.ai|cognitiveservices)\.azure\.com$/, read: readAzure },
    apiKeyEnv: 'AZURE_OPENAI_API_KEY',
    auth: 'api-key',
  },
];

/** The service at an address, whatever its path. */
export function hostedAt(baseUrl: string): HostedService | undefined {
  const { hostname } = new URL(baseUrl);
  return hostedServices.find(
    ({ baseUrl: usual, own }) => own?.hosts.test(hostname) ?? new URL(usual).hostname === hostname,
  );
}

/** Azure's v1 API is below each resource. Before v1, a deployment's address names its model, for one wire. */
function readAzure(given: string): { address: string; wires: Wire[]; model?: string | undefined } {
  const { origin, pathname } = new URL(given);
  const [, deployment] = /\/deployments\/([^/]+)/.exec(pathname) ?? [];
  const isV1 = /^(\/|\/openai(\/v1)?)$/.test(pathname.replace(/(?<=.)\/$/, ''));
  if (isV1) return { address: `${origin}/openai/v1`, wires: ['openai-responses', 'openai-chat'] };
  return { address: given, wires: ['openai-chat'], model: deployment };
}
