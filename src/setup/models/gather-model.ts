import { inputError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { serverFacts } from '../../bounds/model.ts';
import { type LookOptions, lookAtServer, type ServerLook } from '../../gateway/probe/look-at-server.ts';
import type { ServerModel } from '../../gateway/probe/server-models.ts';
import { allWires } from '../../gateway/wires/wire-table.ts';
import { type HttpModel, splitAddress, type Wire, wires } from '../../suite/model-config.ts';
import { mayBeKey, variableProblem } from '../../suite/variables.ts';
import { joined, ours, text, type Value } from '../../text/printable.ts';
import { count, plural } from '../../text/quantities.ts';

interface Choice<Chosen> {
  title: Value;
  chosen: Chosen;
}

/** Asks a person. Each method throws when they leave. */
export interface Asking extends Disposable {
  /** @param preset what an empty answer means; without it, an empty answer asks again */
  text(
    question: Value,
    options?: { preset?: string | undefined; problem?(answer: string): string | undefined },
  ): Promise<string>;
  /**
   * An empty answer chooses the first.
   *
   * @param typed what an answer means that is no number; undefined if it means nothing
   */
  choose<Chosen>(
    question: Value,
    choices: readonly Choice<Chosen>[],
    typed?: (answer: string) => Chosen | undefined,
  ): Promise<Chosen>;
  /** An empty answer is yes. */
  confirm(question: Value): Promise<boolean>;
}

/** What was given by options. */
interface GivenModel {
  name?: string | undefined;
  baseUrl?: string | undefined;
  model?: string | undefined;
  wire?: Wire[] | undefined;
  apiKeyEnv?: string | undefined;
  auth?: HttpModel['auth'];
  headers: Record<string, string>;
  query: Record<string, string>;
  local?: true | undefined;
  /** Where to look for servers on this machine. */
  ports: readonly number[];
}

/** An entry of `models` in offsite.yaml. */
export interface NewModel {
  wire: Wire[];
  baseUrl: string;
  model?: string;
  apiKeyEnv?: string;
  auth?: HttpModel['auth'];
  headers?: Record<string, string>;
  query?: Record<string, string>;
  contextWindow?: number;
  maxParallel?: number;
}

interface GatherParts extends Pick<LookOptions, 'env' | 'caBundle' | 'clock' | 'signal'> {
  /** Undefined if nobody can be asked. */
  asking: Asking | undefined;
  note(message: ReturnType<typeof text>): void;
}

/**
 * Finds out what is missing of a model: from the server, and from the person if there is one. If something
 * remains unknown, throws an `input` error that names the option for it.
 */
export async function gatherModel(
  given: GivenModel,
  parts: GatherParts,
): Promise<{ name: string; model: NewModel }> {
  const { asking } = parts;
  const { address: found, look: seen, query: pasted } = await findServer(given, parts);
  const hosted = hostedAt(found);
  const { address = found, wires, model: deployed } = hosted?.own?.read(found) ?? {};
  const auth = given.auth ?? hosted?.auth;
  const query = { ...pasted, ...given.query };
  const settings = { auth, headers: given.headers, query };
  const id = given.model ?? deployed;
  const isGiven = (given.wire ?? wires) !== undefined && id !== undefined;
  const isSet = (variable: string | undefined) => variable !== undefined && Boolean(parts.env[variable]);
  const usable = isSet(given.apiKeyEnv) ? given.apiKeyEnv : undefined;
  const asksNothing = isGiven || (hosted !== undefined && usable === undefined);
  const first =
    seen ?? (asksNothing ? undefined : await looked(address, { ...settings, apiKeyEnv: usable }, parts));
  const apiKeyEnv = given.apiKeyEnv ?? (await keyVariable(first, hosted, asking));
  const isEnough = isGiven || !isSet(apiKeyEnv) || first?.needsKey === false;
  const look = isEnough ? first : await looked(address, { ...settings, apiKeyEnv }, parts);
  if (look?.needsKey && !isGiven && !asking) throw keyNeeded(apiKeyEnv);
  const wire = given.wire ?? wires ?? (await wiresOf(look, hosted, asking));
  const served = id === undefined ? await chooseModel(look, given.name, asking) : named(id, look, parts);
  const name = given.name ?? (await nameFor(served.id, asking));
  const baseUrl = look?.baseUrl ?? address;
  return {
    name,
    model: {
      wire,
      baseUrl,
      ...(served.id !== name && { model: served.id }),
      ...(apiKeyEnv !== undefined && { apiKeyEnv }),
      ...(auth !== undefined && { auth }),
      ...(Object.keys(given.headers).length > 0 && { headers: given.headers }),
      ...(Object.keys(query).length > 0 && { query }),
      ...(served.contextWindow !== undefined && { contextWindow: served.contextWindow }),
      ...(look?.server?.parallel !== undefined && { maxParallel: look.server.parallel }),
    },
  };
}

interface FoundServer {
  address: string;
  look?: ServerLook;
  /** The query of an address that a person gave. */
  query?: Record<string, string>;
}

async function findServer(given: GivenModel, parts: GatherParts): Promise<FoundServer> {
  if (given.baseUrl !== undefined) return { address: given.baseUrl };
  if (given.local) return nearby(given, parts);
  const { asking } = parts;
  if (!asking)
    throw missing('the address of the model', '--base-url URL, or --local for a server on this machine');
  const at = (given: string) => async () => {
    const { baseUrl, query } = readAddress(given);
    return { address: baseUrl, query };
  };
  const elsewhere = async () => at(await asking.text('base URL of the API', { problem: checkAddress }))();
  const choices: Choice<() => Promise<FoundServer>>[] = [
    { title: 'a server on this machine', chosen: () => nearby(given, parts) },
    { title: 'a server at another address', chosen: elsewhere },
    ...hostedServices
      .filter(({ own }) => !own)
      .map(({ title, baseUrl }) => ({ title, chosen: async () => ({ address: baseUrl }) })),
  ];
  const typed = (answer: string) => (checkAddress(answer) === undefined ? at(answer) : undefined);
  return (await asking.choose('Where is the model? A number, or the address of its API', choices, typed))();
}

async function nearby({ ports }: GivenModel, { asking, note, ...parts }: GatherParts): Promise<FoundServer> {
  note(text`looking for servers on this machine: ports ${ports.join(', ')}`);
  const looks = await nearbyServers(ports, parts);
  const choices = looks.map((look) => ({ title: titleOf(look), chosen: { address: look.baseUrl, look } }));
  const [only] = choices;
  if (!only)
    throw refused(
      `no server of models answers on this machine, on port ${ports.join(', ')}`,
      'Start it, or give its address with --base-url, or its port with --ports.',
      'MODEL_SERVER_MISSING',
    );
  if (choices.length === 1) return only.chosen;
  if (asking) return asking.choose('Which server', choices);
  const urls = looks.map(({ baseUrl }) => baseUrl).join(', ');
  throw missing(`which server it is: ${urls} answer`, '--base-url URL');
}

function titleOf({ baseUrl, server, models }: ServerLook) {
  const version = server?.version === undefined ? '' : ` ${server.version}`;
  return text`${server?.kind ?? 'a server'}${version} at ${baseUrl}: ${plural(models.length, 'model')}`;
}

/** What the server says. Undefined if asking it fails, and a person can answer instead. */
async function looked(
  address: string,
  settings: Pick<LookOptions, 'apiKeyEnv' | 'auth' | 'headers' | 'query'>,
  { asking, note, ...parts }: GatherParts,
): Promise<ServerLook | undefined> {
  try {
    return await lookAtServer(address, { ...parts, ...settings });
  } catch (error) {
    parts.signal.throwIfAborted();
    if (!asking || (error instanceof OffsiteError && error.kind === 'input')) throw error;
    note(text`the server could not be asked: ${messageOf(error)}`);
    return undefined;
  }
}

/** The variable that holds the key. Asks the person for it unless the server needs no key. */
async function keyVariable(
  look: ServerLook | undefined,
  hosted: HostedService | undefined,
  asking: Asking | undefined,
): Promise<string | undefined> {
  if (!asking) return hosted?.apiKeyEnv;
  if (look?.needsKey === false) return undefined;
  const none = 'none';
  const answer = await asking.text('environment variable that holds its key, or none', {
    preset: hosted?.apiKeyEnv ?? none,
    problem: variableProblem,
  });
  return answer === none ? undefined : answer;
}

async function wiresOf(
  look: ServerLook | undefined,
  hosted: HostedService | undefined,
  asking: Asking | undefined,
): Promise<Wire[]> {
  if (hosted) return [...hosted.wires];
  if (look && look.wires.length > 0) return look.wires;
  if (!asking) {
    const why = look?.broken ?? 'its server does not say';
    throw missing(`which wire it speaks: ${why}`, `--wire with ${wires.join(', or ')}`);
  }
  const choices = allWires.map(({ title, name }): Choice<Wire[]> => ({ title, chosen: [name] }));
  return asking.choose('Which API does it have', choices);
}

/** How many models are shown to choose from, and named in a message. */
const shownModels = 40;

/** @param name the name for suites, which may be the one at the API too */
async function chooseModel(
  look: ServerLook | undefined,
  name: string | undefined,
  asking: Asking | undefined,
): Promise<ServerModel> {
  const models = look?.models ?? [];
  const [only] = models;
  if (only && models.length === 1) return only;
  const same = models.find(({ id }) => id === name);
  if (same) return same;
  if (!asking) {
    const names = models.slice(0, shownModels).map(({ id }) => id);
    const more = models.length > names.length ? `, and ${models.length - names.length} more` : '';
    const served = names.length > 0 ? `: the server has ${names.join(', ')}${more}` : '';
    throw missing(`which model it is${served}`, '--model ID');
  }
  if (models.length > 0 && models.length <= shownModels)
    return asking.choose(
      'Which model',
      models.map((model) => ({ title: modelTitle(model), chosen: model })),
    );
  const known = new Map(models.map((model) => [model.id, model]));
  const isKnown = (id: string) => known.size === 0 || known.has(id);
  const id = await asking.text("the model's name at the API", {
    preset: known.size === 0 ? name : undefined,
    problem: (answer) => (isKnown(answer) ? undefined : notServed(answer, models)),
  });
  return known.get(id) ?? { id };
}

function notServed(answer: string, models: readonly ServerModel[]): string {
  const like = models.filter(({ id }) => id.toLowerCase().includes(answer.toLowerCase())).slice(0, 10);
  const names = like.length > 0 ? `: it has ${like.map(({ id }) => id).join(', ')}` : '';
  return `the server has ${models.length} models, and not this one${names}`;
}

function modelTitle({ id, contextWindow }: ServerModel) {
  return contextWindow === undefined ? text`${id}` : text`${id} (context ${count(contextWindow)})`;
}

function named(id: string, look: ServerLook | undefined, { note }: GatherParts): ServerModel {
  const known = look?.models.find((model) => model.id === id);
  if (!known && look && look.models.length > 0) {
    const names = look.models.slice(0, shownModels).map((model) => text`${model.id}`);
    note(text`the server does not list ${id}; it has ${joined(names, ', ')}`);
  }
  return known ?? { id };
}

async function nameFor(id: string, asking: Asking | undefined): Promise<string> {
  const short = id.split('/').at(-1)?.toLowerCase() ?? '';
  const name = short.replace(/[^a-z\d._-]+/g, '-').replace(/^[^a-z\d]+|[^a-z\d]+$/g, '') || 'model';
  return asking ? asking.text(ours('name for suites'), { preset: name }) : name;
}

function keyNeeded(apiKeyEnv: string | undefined): OffsiteError {
  return apiKeyEnv === undefined
    ? refused('the server requires a key', 'Name the variable that holds it with --api-key-env.')
    : refused(
        `the server does not accept the key in ${apiKeyEnv}`,
        `Set ${apiKeyEnv}, or add both --wire and --model, so that the server is not asked.`,
      );
}

function missing(what: string, option: string): OffsiteError {
  return refused(
    `it is not known ${what.startsWith('which') ? what : `what ${what} is`}`,
    `Nobody can be asked here, because this is no terminal or --yes was given. Add ${option}.`,
  );
}

function refused(message: string, hint: string, code = 'ANSWER_MISSING'): OffsiteError {
  return inputError(code, message, { hint });
}

/** A service that serves models to anyone with a key. */
interface HostedService {
  title: string;
  baseUrl: string;
  /** Its wires in the order of preference. */
  wires: readonly [Wire, ...Wire[]];
  /** The variable that its own programs read the key from. */
  apiKeyEnv: string;
  /** What a first configuration has of it, and a harness that suits it. */
  usual?: { name: string; model: string; harness: string };
  /** The header that carries the key, if it is not that of the wire. */
  auth?: HttpModel['auth'];
  /** For a service whose customers each have a host of their own. */
  own?: {
    hosts: RegExp;
    /** What an address says that a customer knows. The service lists no models that can be asked. */
    read(address: string): { address: string; wires: Wire[]; model?: string | undefined };
  };
}

/** The services list their models only for callers with a key, so this table has the other facts. */
export const hostedServices: readonly HostedService[] = [
  {
    title: 'Anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    wires: ['anthropic-messages'],
    apiKeyEnv: 'ANTHROPIC_API_KEY',
    usual: { name: 'claude', model: 'claude-sonnet-4-5', harness: 'claude-code' },
  },
  {
    title: 'OpenAI',
    baseUrl: 'https://api.openai.com/v1',
    wires: ['openai-responses', 'openai-chat'],
    apiKeyEnv: 'OPENAI_API_KEY',
    usual: { name: 'gpt', model: 'gpt-5', harness: 'codex' },
  },
  {
    title: 'Google Gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    wires: ['gemini'],
    apiKeyEnv: 'GEMINI_API_KEY',
    usual: { name: 'gemini', model: 'gemini-2.5-pro', harness: 'gemini-cli' },
  },
  {
    title: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    wires: ['openai-chat'],
    apiKeyEnv: 'OPENROUTER_API_KEY',
    usual: { name: 'openrouter', model: 'qwen/qwen3-coder', harness: 'qwen-code' },
  },
  {
    title: 'Azure OpenAI',
    baseUrl: 'https://my-resource.openai.azure.com/openai/v1',
    wires: ['openai-responses', 'openai-chat'],
    own: { hosts: /\.(openai|services\.ai|cognitiveservices)\.azure\.com$/, read: readAzure },
    apiKeyEnv: 'AZURE_OPENAI_API_KEY',
    auth: 'api-key',
  },
];

/** The service at an address, whatever its path. */
function hostedAt(baseUrl: string): HostedService | undefined {
  const { hostname } = new URL(baseUrl);
  return hostedServices.find(
    ({ baseUrl: usual, own }) => own?.hosts.test(hostname) ?? new URL(usual).hostname === hostname,
  );
}

/** Azure's v1 API is below each resource. Before v1, a deployment's address names its model, for one wire. */
function readAzure(given: string): { address: string; wires: Wire[]; model?: string | undefined } {
  const { origin, pathname } = new URL(given);
  const [, deployment] = /\/deployments\/([^/]+)/.exec(pathname) ?? [];
  const isV1 = /^(\/|\/openai(\/v1)?)$/.test(pathname.replace(/(?<=.)\/$/, ''));
  if (isV1) return { address: `${origin}/openai/v1`, wires: ['openai-responses', 'openai-chat'] };
  return { address: given, wires: ['openai-chat'], model: deployment };
}

/** What is wrong with the address of a model's API; undefined if nothing is. */
export function checkAddress(given: string): string | undefined {
  const url = URL.parse(given);
  if (!url || !['http:', 'https:'].includes(url.protocol))
    return 'expected an address such as http://127.0.0.1:8000/v1';
  const secret = [...url.searchParams].some(([name, value]) => isSecret(name, value));
  // The message does not repeat the address, which may contain a key.
  if (url.username || url.password || url.hash || secret)
    return 'expected an address without a user, a fragment and a key: the key goes into a variable';
  return undefined;
}

/** The base URL of an API, and the query for it, in an address as a person copies it. */
export function readAddress(given: string): { baseUrl: string; query: Record<string, string> } {
  const { origin, pathname, searchParams } = new URL(given);
  const query = Object.fromEntries(searchParams);
  // The path stays as it was given, but for what belongs to one request.
  return { baseUrl: splitAddress(`${origin}${pathname}`.replace(/\/+$/, '')).base, query };
}

/** Reads `name: value` or `name=value`. Undefined if it is neither. */
export function readPair(given: string, separator: ':' | '='): [string, string] | undefined {
  const at = given.indexOf(separator);
  const name = given.slice(0, at).trim();
  return at === -1 || !/^[\w.-]+$/.test(name) ? undefined : [name, given.slice(at + 1).trim()];
}

/** Whether a header or a parameter carries a key, which no file may have. */
export function isSecret(name: string, value: string): boolean {
  const named = /(^|[-_.])(key|api-?key|token|secret|sig(nature)?|password|auth(orization)?|cookie)$/i;
  return named.test(name) || mayBeKey(value);
}

/** Where servers of models listen by default. */
export const usualPorts: readonly number[] = [
  11_434, // Ollama
  8_080, // llama.cpp, TGI
  8_000, // vLLM
  1_234, // LM Studio
  5_001, // KoboldCpp
  30_000, // SGLang
  4_000, // LiteLLM
];

/** The servers of models on this machine. Connects to these ports of 127.0.0.1, without a key. */
export async function nearbyServers(
  ports: readonly number[],
  options: Pick<LookOptions, 'clock' | 'signal'>,
): Promise<ServerLook[]> {
  const asked = [...new Set(ports)].slice(0, serverFacts.count.ports);
  const looks = asked.map((port) =>
    lookAtServer(`http://127.0.0.1:${port}`, { ...options, env: {}, within: serverFacts.time.nearby }).catch(
      () => undefined,
    ),
  );
  const found = await Promise.all(looks);
  options.signal.throwIfAborted();
  return found.flatMap((look) => look ?? []);
}
