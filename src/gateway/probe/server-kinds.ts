import {
  isObject,
  type JsonObject,
  member,
  objectsOf,
  shortText,
  stringIn,
  tokensIn,
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

function versionIn(document: unknown, name = 'version'): string | undefined {
  return shortText(member(document, name));
}

async function koboldCpp(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const about = await documentOf('/api/extra/version');
  if (member(about, 'result') !== 'KoboldCpp') return undefined;
  const paths = ['/api/v1/model', '/api/extra/true_max_context_length'];
  const [loaded, longest] = await Promise.all(paths.map(documentOf));
  const id = stringIn(loaded, 'result');
  const known = { kind: 'KoboldCpp', version: versionIn(about) };
  if (id === undefined) return known;
  return { ...known, models: bounded([modelWith(id, { contextWindow: tokensIn(longest, 'value') })]) };
}

async function ollama(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [about, tags] = await Promise.all(['/api/version', '/api/tags'].map(documentOf));
  const version = versionIn(about);
  const models = member(tags, 'models');
  if (version === undefined || !Array.isArray(models)) return undefined;
  const ids = models.flatMap((model) => stringIn(model, 'model') ?? stringIn(model, 'name') ?? []);
  return { kind: 'Ollama', version, models: bounded(ids.map((id) => ({ id }))) };
}

async function llamaCpp(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const props = await documentOf('/props');
  const settings = member(props, 'default_generation_settings');
  if (!isObject(settings)) return undefined;
  const models = modelsIn(await documentOf('/v1/models'), ({ meta }) => ({
    contextWindow: tokensIn(settings, 'n_ctx'),
    longestContext: tokensIn(meta, 'n_ctx_train'),
  }));
  const parallel = tokensIn(props, 'total_slots') || undefined;
  return { kind: 'llama.cpp', version: versionIn(props, 'build_info'), models, parallel };
}

function modelsIn(document: unknown, factsOf: (model: JsonObject) => Parameters<typeof modelWith>[1]) {
  const models = objectsOf(member(document, 'data'));
  return bounded(
    models.flatMap((model) => {
      const id = stringIn(model, 'id');
      return id === undefined ? [] : modelWith(id, factsOf(model));
    }),
  );
}

/** https://lmstudio.ai/docs/developer/rest/endpoints: it answers unknown routes with 200 and an error. */
async function lmStudio(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const data = member(await documentOf('/api/v0/models'), 'data');
  if (!Array.isArray(data)) return undefined;
  const models = modelsIn({ data: objectsOf(data).filter(({ type }) => type !== 'embeddings') }, (model) => ({
    contextWindow: tokensIn(model, 'loaded_context_length'),
    longestContext: tokensIn(model, 'max_context_length'),
  }));
  return { kind: 'LM Studio', models };
}

async function textGenerationInference(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const info = await documentOf('/info');
  const id = stringIn(info, 'model_id');
  const contextWindow = tokensIn(info, 'max_total_tokens');
  if (id === undefined || contextWindow === undefined) return undefined;
  const models = bounded([modelWith(id, { contextWindow })]);
  return { kind: 'Text Generation Inference', version: versionIn(info), models };
}

async function sgLang(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [info, server] = await Promise.all(['/get_model_info', '/get_server_info'].map(documentOf));
  if (stringIn(info, 'model_path') === undefined) return undefined;
  return { kind: 'SGLang', version: versionIn(server) };
}

async function vllm(documentOf: DocumentOf): Promise<KnownServer | undefined> {
  const [about, models] = await Promise.all(['/version', '/v1/models'].map(documentOf));
  const isVllm = objectsOf(member(models, 'data')).some(({ owned_by: owner }) => owner === 'vllm');
  return isVllm ? { kind: 'vLLM', version: versionIn(about) } : undefined;
}
