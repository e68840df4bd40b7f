import { anything, listOf, member, object, text, tokens, wholeText } from '../wires/lenient.ts';
import type { AskServer } from './ask-server.ts';
import { modelWith, type ServerModel } from './server-models.ts';

const Show = object({ model_info: anything, parameters: wholeText, capabilities: listOf(anything) });
const Architecture = object({ 'general.architecture': text });
const Running = object({ models: listOf(object({ model: wholeText, context_length: tokens })) });

/**
 * What Ollama reports about one model: the context that it is loaded with, or set to, and the one that it
 * could have. https://github.com/ollama/ollama/blob/main/docs/api.md
 */
export async function ollamaModel(ask: AskServer, id: string): Promise<ServerModel> {
  const [show, running] = await Promise.all([
    ask({ path: '/api/show', body: { model: id } }),
    ask({ path: '/api/ps' }),
  ]);
  const { model_info: info, parameters = '', capabilities } = Show.parse(show.document);
  const { 'general.architecture': architecture = '' } = Architecture.parse(info);
  const longestContext = tokens.parse(member(info, `${architecture}.context_length`));
  const loaded = Running.parse(running.document).models.find(({ model }) => model === id);
  const set = /^num_ctx\s+(\d{1,9})\s*$/m.exec(parameters)?.[1];
  return {
    ...modelWith(id, {
      contextWindow: loaded?.context_length ?? (set === undefined ? undefined : Number(set)),
      longestContext,
    }),
    ...(capabilities.length > 0 && { tools: capabilities.includes('tools') }),
  };
}
