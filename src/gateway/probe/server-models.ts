import { serverFacts } from '../../bounds/model.ts';
import { type JsonObject, objectsOf, stringIn, tokensIn } from '../wires/lenient.ts';

/** What a server reports about one of its models. Lengths are in tokens. */
export interface ServerModel {
  /** Its name in requests. */
  id: string;
  /** The context that the server holds for a request. */
  contextWindow?: number;
  /** The context that the model could hold if the server were configured for it. */
  longestContext?: number;
  maxOutputTokens?: number;
  /** Whether its chat template has tools. */
  tools?: boolean;
}

/** Names of the context: of vLLM and SGLang, OpenRouter, Groq, Mistral, Anthropic. */
const contexts = [
  'max_model_len',
  'context_length',
  'context_window',
  'max_context_length',
  'max_input_tokens',
];

/** The models of a list that has them in `data`. Undefined if the document has none. */
export function modelsInData({ data }: JsonObject): ServerModel[] | undefined {
  return Array.isArray(data) ? objectsOf(data).flatMap(modelOf) : undefined;
}

function modelOf(item: JsonObject): ServerModel[] {
  const id = stringIn(item, 'id');
  if (id === undefined) return [];
  // That of llama.cpp.
  const { meta } = item;
  const [contextWindow] = contexts.flatMap((name) => tokensIn(item, name) ?? []);
  return [
    modelWith(id, {
      contextWindow: contextWindow ?? tokensIn(meta, 'n_ctx'),
      longestContext: tokensIn(meta, 'n_ctx_train'),
      // OpenRouter, Groq, Anthropic.
      maxOutputTokens:
        tokensIn(item.top_provider, 'max_completion_tokens') ??
        tokensIn(item, 'max_completion_tokens') ??
        tokensIn(item, 'max_tokens'),
    }),
  ];
}

/** Leaves out what is unknown, or 0, which some servers use for unknown. */
export function modelWith(
  id: string,
  facts: { [Name in Exclude<keyof ServerModel, 'id'>]?: ServerModel[Name] | undefined },
): ServerModel {
  return { id, ...Object.fromEntries(Object.entries(facts).filter(([, value]) => Boolean(value))) };
}

/** The models whose names can be shown and written into a file. */
export function bounded(models: readonly ServerModel[]): ServerModel[] {
  const isUsable = (id: string) =>
    id.trim() !== '' && id.length <= serverFacts.bytes.name && !/\p{C}/u.test(id);
  return models.filter(({ id }) => isUsable(id)).slice(0, serverFacts.count.models);
}
