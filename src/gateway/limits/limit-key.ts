import type { HttpModel } from '../../suite/model-config.ts';

/** What has a limit of its own: an address, a model there, and an account. */
export function limitKey(name: string, { baseUrl, model = name, apiKeyEnv = '' }: HttpModel): string {
  return [baseUrl.replace(/\/+$/, ''), model, apiKeyEnv].join(' ');
}
