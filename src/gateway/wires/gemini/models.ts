import { modelWith, type ServerModel } from '../../probe/server-models.ts';
import { anything, listOf, object, objectsOf, tokens, wholeText } from '../lenient.ts';
import type { WireModels } from '../wire-descriptor.ts';

/** https://ai.google.dev/api/models */
export const models: WireModels = {
  query: 'pageSize=1000',
  read({ models, data }) {
    // Other servers have members of both names.
    if (!Array.isArray(models) || Array.isArray(data)) return undefined;
    const entries = objectsOf(models).map((entry) => Entry.parse(entry));
    const isOwn = entries.every(({ name }) => name?.startsWith('models/'));
    return isOwn ? entries.flatMap(modelOf) : undefined;
  },
  list: (names) => ({ models: names.map(entry) }),
  entry,
};

const Entry = object({
  name: wholeText,
  inputTokenLimit: tokens,
  outputTokenLimit: tokens,
  supportedGenerationMethods: listOf(anything),
});

function modelOf(entry: ReturnType<typeof Entry.parse>): ServerModel[] {
  const { name, inputTokenLimit, outputTokenLimit, supportedGenerationMethods: methods } = entry;
  if (name === undefined || !methods.includes('generateContent')) return [];
  const id = name.replace(/^models\//, '');
  return [modelWith(id, { contextWindow: inputTokenLimit, maxOutputTokens: outputTokenLimit })];
}

function entry(name: string): object {
  const supportedGenerationMethods = ['generateContent', 'streamGenerateContent', 'countTokens'];
  return { name: `models/${name}`, displayName: name, supportedGenerationMethods };
}
