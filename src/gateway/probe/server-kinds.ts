import {
  isObject,
  list,
  listOf,
  member,
  object,
  objectsOf,
  text,
  tokens,
  wholeText,
} from '../wires/lenient.ts';
import type { AskServer } from './ask-server.ts';
import { bounded, modelWith, type ServerModel } from './server-models.ts';

/** A server that Offsite knows by the routes that only it has. */
export interface KnownServer {
  /** Its name for people: `Ollama`. */
  kind: string;
  version?: string | undefined;
  /** Its models, if its own list says more than `/v1/models`. */
  models?: ServerModel[];
  /** How many requests it serves at a time. */
  parallel?: number | undefined;
}

/**
 * Asks the routes of servers that people run themselves, below the address without `/v1`. Undefined if none
 * of them answers as one of these servers does.
 */
export async function knownServer(ask: AskServer): Promise<KnownServer | undefined> {
  const documentOf = async (path: string): Promise<unknown> => {
    try {
      const { status, document } = await ask({ path });
      return status === 200 ? document : undefined;
    } catch {
      // Not every server closes a request for a route that it does not have. The others answer.
      return undefined;
    }
  };
  const found = await Promise.all(servers.map((server) => server(documentOf)));
  return found.find((server) => server !== undefined);
}

type DocumentOf = (path: string) => Promise<unknown>;

/**
 * The first that fits is used: KoboldCpp also has the routes of Ollama and of llama.cpp, so it comes before
 * them. https://github.com/LostRuins/koboldcpp
 */
const servers: readonly ((documentOf: DocumentOf) => Promise<KnownServer | undefined>)[] = [
  koboldCpp,
  ollama,
  llamaCpp,
  lmStudio,
  textGenerationInference,
  sgLang,
  vllm,
];

async function koboldCpp(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const version = await documentOf('/api/extra/version');
  if (member(version, 'result') !== 'KoboldCpp') return undefined;
  const [loaded, longest] = await Promise.all(
    ['/api/v1/model', '/api/extra/true_max_context_length'].map(documentOf),
  );
  const id = wholeText.parse(member(loaded, 'result'));
  const contextWindow = tokens.parse(member(longest, 'value'));
  return {
    kind: 'KoboldCpp',
    version: text.parse(member(version, 'version')),
    ...(id !== undefined && { models: bounded([modelWith(id, { contextWindow })]) }),
  };
}

const Tags = object({ models: listOf(object({ model: wholeText, name: wholeText })) });

async function ollama(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [version, tags] = await Promise.all(['/api/version', '/api/tags'].map(documentOf));
  if (text.parse(member(version, 'version')) === undefined || !Array.isArray(member(tags, 'models')))
    return undefined;
  const { models } = Tags.parse(tags);
  return {
    kind: 'Ollama',
    version: text.parse(member(version, 'version')),
    models: bounded(
      models.flatMap(({ model, name }) => [model ?? name].flatMap((id) => (id ? [{ id }] : []))),
    ),
  };
}

const Props = object({ default_generation_settings: object({ n_ctx: tokens }), total_slots: tokens });

async function llamaCpp(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const props = await documentOf('/props');
  if (!isObject(member(props, 'default_generation_settings'))) return undefined;
  const { default_generation_settings: settings, total_slots: slots } = Props.parse(props);
  const document = await documentOf('/v1/models');
  const models = objectsOf(member(document, 'data')).flatMap((entry) => {
    const id = wholeText.parse(member(entry, 'id'));
    const longestContext = tokens.parse(member(member(entry, 'meta'), 'n_ctx_train'));
    return id === undefined ? [] : [modelWith(id, { contextWindow: settings.n_ctx, longestContext })];
  });
  const version = text.parse(member(props, 'build_info'));
  return { kind: 'llama.cpp', version, models: bounded(models), parallel: slots || undefined };
}

const LmStudioModels = listOf(
  object({ id: wholeText, type: wholeText, max_context_length: tokens, loaded_context_length: tokens }),
);

/** https://lmstudio.ai/docs/developer/rest/endpoints: it answers unknown routes with 200 and an error. */
async function lmStudio(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const data = member(await documentOf('/api/v0/models'), 'data');
  if (!Array.isArray(data)) return undefined;
  const models = LmStudioModels.parse(data)
    .filter(({ type }) => type !== 'embeddings')
    .flatMap(({ id, max_context_length: longestContext, loaded_context_length: contextWindow }) =>
      id === undefined ? [] : [modelWith(id, { contextWindow, longestContext })],
    );
  return { kind: 'LM Studio', models: bounded(models) };
}

const Info = object({ model_id: wholeText, max_total_tokens: tokens, version: text });

async function textGenerationInference(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const { model_id: id, max_total_tokens: contextWindow, version } = Info.parse(await documentOf('/info'));
  if (id === undefined || contextWindow === undefined) return undefined;
  return { kind: 'Text Generation Inference', version, models: bounded([modelWith(id, { contextWindow })]) };
}

async function sgLang(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [info, server] = await Promise.all(['/get_model_info', '/get_server_info'].map(documentOf));
  if (wholeText.parse(member(info, 'model_path')) === undefined) return undefined;
  return { kind: 'SGLang', version: text.parse(member(server, 'version')) };
}

async function vllm(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [version, models] = await Promise.all(['/version', '/v1/models'].map(documentOf));
  const isVllm = list(member(models, 'data')).some((entry) => member(entry, 'owned_by') === 'vllm');
  if (!isVllm) return undefined;
  return { kind: 'vLLM', version: text.parse(member(version, 'version')) };
}
