import { modelsInData } from '../probe/server-models.ts';
import type { WireModels } from './wire-descriptor.ts';

export const openAiAccountHeaders = ['openai-organization', 'openai-project'];

export function openAiVariables(origin: string, key: string): Record<string, string> {
  return { OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_KEY: key };
}

/** The error body of OpenAI's two wires. */
export function openAiError(status: number, code: string, message: string): object {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: code === 'model_not_found' ? 'model' : null, code } };
}

/** Most servers list their models in this form, each with more members of its own. */
export const openAiModels: WireModels = {
  read: modelsInData,
  list: (names) => ({ object: 'list', data: names.map(entry) }),
  entry,
};

/** The creation date is unknown, so this uses the epoch. */
function entry(name: string): object {
  return { id: name, object: 'model', created: 0, owned_by: 'offsite' };
}
