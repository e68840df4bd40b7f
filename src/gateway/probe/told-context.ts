import { list, member, object, objectsOf, text, tokens, wholeText } from '../wires/lenient.ts';
import type { AskServer } from './ask-server.ts';
import { modelWith, type ServerModel } from './server-models.ts';

const Show = object({ model_info: object({ 'general.architecture': text }), parameters: wholeText });

/**
 * What Ollama reports about one model: the context that it is loaded with, or set to, and the one that it
 * could have. https://github.com/ollama/ollama/blob/main/docs/api.md
 */
export async function toldByOllama(ask: AskServer, id: string): Promise<ServerModel> {
  const [show, running] = await Promise.all([
    ask({ path: '/api/show', body: { model: id } }),
    ask({ path: '/api/ps' }),
  ]);
  const { model_info: info, parameters = '' } = Show.parse(show.document);
  const architecture = info['general.architecture'] ?? '';
  const longestContext = tokens.parse(
    member(member(show.document, 'model_info'), `${architecture}.context_length`),
  );
  const loaded = objectsOf(member(running.document, 'models')).find((entry) => member(entry, 'model') === id);
  const set = /^num_ctx\s+(\d{1,9})\s*$/m.exec(parameters)?.[1];
  const capabilities = list(member(show.document, 'capabilities'));
  return {
    ...modelWith(id, {
      contextWindow:
        tokens.parse(member(loaded, 'context_length')) ?? (set === undefined ? undefined : Number(set)),
      longestContext,
    }),
    ...(capabilities.length > 0 && { tools: capabilities.includes('tools') }),
  };
}
