import { serverFacts } from '../../bounds/model.ts';
import { type JsonObject, object, objectsOf, tokens, wholeText } from '../wires/lenient.ts';

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

const Entry = object({
  id: wholeText,
  type: wholeText,
  // vLLM and SGLang, OpenRouter, Groq, Mistral, Anthropic.
  max_model_len: tokens,
  context_length: tokens,
  context_window: tokens,
  max_context_length: tokens,
  max_input_tokens: tokens,
  // OpenRouter, Groq, Anthropic.
  top_provider: object({ max_completion_tokens: tokens }),
  max_completion_tokens: tokens,
  max_tokens: tokens,
  // llama.cpp
  meta: object({ n_ctx: tokens, n_ctx_train: tokens }),
});

/** The models of a list that has them in `data`. Undefined if the document has none. */
export function modelsInData({ data }: JsonObject): ServerModel[] | undefined {
  return Array.isArray(data) ? objectsOf(data).flatMap(modelOf) : undefined;
}

function modelOf(item: unknown): ServerModel[] {
  const { id, meta, top_provider, ...entry } = Entry.parse(item);
  if (id === undefined) return [];
  const { max_model_len, context_length, context_window, max_context_length, max_input_tokens } = entry;
  return [
    modelWith(id, {
      contextWindow:
        max_model_len ??
        context_length ??
        context_window ??
        max_context_length ??
        max_input_tokens ??
        meta.n_ctx,
      longestContext: meta.n_ctx_train,
      maxOutputTokens: top_provider.max_completion_tokens ?? entry.max_completion_tokens ?? entry.max_tokens,
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
