import { listIfAny, listOf, object, objectIfAny, text, tokens, wholeText } from '../wires/lenient.ts';
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
      // Some servers never answer a request for a route that they do not have. Other routes still count.
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

const Version = object({ version: text });
const Result = object({ result: wholeText, version: text, value: tokens });

async function koboldCpp(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const { result, version } = Result.parse(await documentOf('/api/extra/version'));
  if (result !== 'KoboldCpp') return undefined;
  const answers = await Promise.all(['/api/v1/model', '/api/extra/true_max_context_length'].map(documentOf));
  const [loaded, longest] = answers.map((answer) => Result.parse(answer));
  const id = loaded?.result;
  return {
    kind: 'KoboldCpp',
    version,
    ...(id !== undefined && { models: bounded([modelWith(id, { contextWindow: longest?.value })]) }),
  };
}

const Tags = object({ models: listIfAny(object({ model: wholeText, name: wholeText })) });

async function ollama(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [about, tags] = await Promise.all(['/api/version', '/api/tags'].map(documentOf));
  const { version } = Version.parse(about);
  const { models } = Tags.parse(tags);
  if (version === undefined || models === undefined) return undefined;
  return {
    kind: 'Ollama',
    version,
    models: bounded(
      models.flatMap(({ model, name }) => [model ?? name].flatMap((id) => (id ? [{ id }] : []))),
    ),
  };
}

const Props = object({
  default_generation_settings: objectIfAny({ n_ctx: tokens }),
  total_slots: tokens,
  build_info: text,
});
const UsualList = object({
  data: listOf(object({ id: wholeText, owned_by: wholeText, meta: object({ n_ctx_train: tokens }) })),
});

async function llamaCpp(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const props = Props.parse(await documentOf('/props'));
  const { default_generation_settings: settings, total_slots: slots, build_info: version } = props;
  if (!settings) return undefined;
  const { data } = UsualList.parse(await documentOf('/v1/models'));
  const models = data.flatMap(({ id, meta: { n_ctx_train: longestContext } }) =>
    id === undefined ? [] : [modelWith(id, { contextWindow: settings.n_ctx, longestContext })],
  );
  return { kind: 'llama.cpp', version, models: bounded(models), parallel: slots || undefined };
}

const LmStudioModels = object({
  data: listIfAny(
    object({ id: wholeText, type: wholeText, max_context_length: tokens, loaded_context_length: tokens }),
  ),
});

/** https://lmstudio.ai/docs/developer/rest/endpoints: it answers unknown routes with 200 and an error. */
async function lmStudio(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const { data } = LmStudioModels.parse(await documentOf('/api/v0/models'));
  const models = data
    ?.filter(({ type }) => type !== 'embeddings')
    .flatMap(({ id, max_context_length: longestContext, loaded_context_length: contextWindow }) =>
      id === undefined ? [] : [modelWith(id, { contextWindow, longestContext })],
    );
  return models && { kind: 'LM Studio', models: bounded(models) };
}

const Info = object({ model_id: wholeText, max_total_tokens: tokens, version: text });

async function textGenerationInference(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const { model_id: id, max_total_tokens: contextWindow, version } = Info.parse(await documentOf('/info'));
  if (id === undefined || contextWindow === undefined) return undefined;
  return { kind: 'Text Generation Inference', version, models: bounded([modelWith(id, { contextWindow })]) };
}

const ModelInfo = object({ model_path: wholeText });

async function sgLang(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [info, server] = await Promise.all(['/get_model_info', '/get_server_info'].map(documentOf));
  if (ModelInfo.parse(info).model_path === undefined) return undefined;
  return { kind: 'SGLang', version: Version.parse(server).version };
}

async function vllm(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [about, models] = await Promise.all(['/version', '/v1/models'].map(documentOf));
  const isVllm = UsualList.parse(models).data.some(({ owned_by: owner }) => owner === 'vllm');
  return isVllm ? { kind: 'vLLM', version: Version.parse(about).version } : undefined;
}
