import type { Clock } from '../../base/clock.ts';
import { infrastructureError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { serverFacts } from '../../bounds/model.ts';
import { type HttpModel, ModelConfig, type Wire } from '../../suite/model-config.ts';
import type { GatewayParts } from '../gateway-parts.ts';
import { serveModel } from '../served-model.ts';
import { isObject } from '../wires/lenient.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import { allWires, usualWire, versions } from '../wires/wire-table.ts';
import { type AskServer, askServer, type Question, type ServerAnswer } from './ask-server.ts';
import { type KnownServer, knownServer } from './server-kinds.ts';
import { bounded, type ServerModel } from './server-models.ts';

/** What a server reports about itself without running a model. */
export interface ServerLook {
  /** The base URL of its API, as a configuration needs it. */
  baseUrl: string;
  /** Undefined if it is none that Offsite knows. */
  server: Pick<KnownServer, 'kind' | 'version' | 'parallel'> | undefined;
  models: ServerModel[];
  /** The wires it has routes for, in the order in which a configuration lists them. */
  wires: Wire[];
  /** Why no wire was found: the connection broke when a route was asked for. */
  broken?: string | undefined;
  /** Whether it answers only with a key. */
  needsKey: boolean;
}

export interface LookOptions extends Pick<GatewayParts, 'env' | 'caBundle' | 'clock'> {
  /** The variable of the key. The key is sent to this server alone. */
  apiKeyEnv?: string | undefined;
  auth?: HttpModel['auth'];
  headers?: Record<string, string> | undefined;
  query?: Record<string, string> | undefined;
  signal: AbortSignal;
  /** Milliseconds for each answer. */
  within?: number;
  /** Does not ask for its wires. */
  withoutWires?: true;
}

/**
 * Asks a server which models it serves and which wires it has.
 *
 * @param given its address, with or without the `/v1` of its API
 *
 * Throws `MODEL_UNREACHABLE`, `MODEL_SERVER_UNKNOWN` if it is no server of models, and an `input` error for
 * an address that a configuration must not have.
 */
export async function lookAtServer(given: string, options: LookOptions): Promise<ServerLook> {
  await using below = askBelow(options);
  const { baseUrl: listed, answer, list } = await findList(given, below.ask);
  const needsKey = answer.status === 401 || answer.status === 403;
  // Routes that name a model cannot be asked for.
  if (list?.wire.targetOf)
    return { baseUrl: listed, server: undefined, models: list.models, wires: [list.wire.name], needsKey };
  const [{ baseUrl, routes, broken }, server] = await Promise.all([
    options.withoutWires
      ? { baseUrl: listed, routes: new Map<Wire, HasRoute>(), broken: undefined }
      : findRoutes(list ? [listed] : [listed, trimmed(given)], below.ask),
    knownServer(below.ask(rootOf(listed))),
  ]);
  const wires = wiresIn(routes, list);
  if (!list && !server && wires.length === 0 && !needsKey) throw noServer(given, answer);
  const models = server?.models?.length ? server.models : (list?.models ?? []);
  return { baseUrl, server, models, wires, needsKey, ...(wires.length === 0 && broken && { broken }) };
}

/** Asks a server at one address after another over the same settings. */
export function askBelow({ env, caBundle, clock, signal, within, withoutWires: _, ...model }: LookOptions): {
  ask(baseUrl: string): AskServer;
  [Symbol.asyncDispose](): Promise<void>;
} {
  const opened = new AsyncDisposableStack();
  const ask = (baseUrl: string) => {
    const config = ModelConfig.parse({ wire: usualWire.name, baseUrl, ...defined(model) });
    const served = opened.use(serveModel(baseUrl, config, { ...unused(clock), env, caBundle }));
    return askServer(served.upstream, { clock, signal, ...(within !== undefined && { within }) });
  };
  return { ask, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Parts that a question to a server does not use. */
function unused(clock: Clock): Pick<GatewayParts, 'clock' | 'random' | 'scripted'> {
  const scripted = () => {
    throw new Error('a scripted model has no server');
  };
  return { clock, random: Math.random, scripted };
}

function defined<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as Partial<Given>;
}

interface FoundList {
  baseUrl: string;
  answer: ServerAnswer;
  list: ModelList | undefined;
}

/** Finds the base URL below which the server lists its models. */
async function findList(given: string, below: (baseUrl: string) => AskServer): Promise<FoundList> {
  const found: FoundList[] = [];
  for (const baseUrl of possibleBases(given)) {
    const ask = below(baseUrl);
    for (const question of listQuestions(baseUrl)) {
      const answer = await ask(question);
      const list = answer.status === 200 ? readModelList(answer.document) : undefined;
      if (list) return { baseUrl, answer, list };
      found.push({ baseUrl, answer, list });
      if (answer.status !== 401 && answer.status !== 403) break;
    }
  }
  const wantsKey = found.find(({ answer }) => answer.status === 401 || answer.status === 403);
  const [first] = found;
  const best = wantsKey ?? first;
  if (!best) throw new Error('no address was asked');
  return best;
}

/** The first base URL that has any route, or the first. */
async function findRoutes(bases: readonly string[], below: (baseUrl: string) => AskServer) {
  const all = await Promise.all(
    [...new Set(bases)].map(async (baseUrl) => ({ baseUrl, ...(await routesOf(below(baseUrl))) })),
  );
  const best = all.find(({ routes }) => [...routes.values()].includes('yes')) ?? all[0];
  if (!best) throw new Error('no address was asked');
  return best;
}

const version = /\/v\d+[a-z\d]*$/;

function possibleBases(given: string): string[] {
  const base = trimmed(given);
  if (version.test(new URL(base).pathname)) return [base];
  const others = versions.filter((each) => each !== usualWire.version);
  return [`${base}/${usualWire.version}`, base, ...others.map((each) => `${base}/${each}`)];
}

/** The address below which a server has the routes of its own. */
export function rootOf(baseUrl: string): string {
  return trimmed(baseUrl).replace(version, '');
}

function trimmed(address: string): string {
  return address.replace(/\/+$/, '');
}

/**
 * A list in a provider's own form comes from that provider's API, or from a proxy that has at least its wire.
 */
function wiresIn(routes: ReadonlyMap<Wire, HasRoute>, list: ModelList | undefined): Wire[] {
  const found = [...routes].flatMap(([wire, has]) => (has === 'yes' ? [wire] : []));
  if (!list || list.wire === usualWire) return found;
  return [...new Set([list.wire.name, ...found])];
}

function noServer(given: string, { status, text }: ServerAnswer): OffsiteError {
  const excerpt = JSON.stringify(text.replace(/\s+/g, ' ').trim().slice(0, serverFacts.bytes.quoted));
  const redirects = status >= 300 && status < 400;
  const isPage = /^\s*<(!doctype|html)/i.test(text);
  const answered = isPage ? 'it answers with a web page' : `it answered ${status}: ${excerpt}`;
  const what = redirects ? `it redirects to another address (${status})` : answered;
  return infrastructureError('MODEL_SERVER_UNKNOWN', `no model API was found at ${given}: ${what}`, {
    hint: redirects
      ? 'Redirects are not followed. Give the address of the API itself.'
      : 'Give the base URL of its API as in its documentation, such as http://127.0.0.1:8000/v1. ' +
        `It must speak one of these wires: ${allWires.map(({ name }) => name).join(', ')}.`,
  });
}

/** `unknown`: the server answers each route in the same way, as one that wants a key first does. */
type HasRoute = 'yes' | 'no' | 'unknown';

/** A route that names a model cannot be asked for without one. */
const wiresToAsk = allWires.filter(({ targetOf }) => !targetOf);

/** No server has this route, so the answer shows how a server answers for routes that it does not have. */
const noRoute = '/offsite-asks-for-no-route';

/**
 * Which wires have a route at a base URL. The request is no valid one of any wire, so no model runs: a server
 * that has the route complains about the request.
 */
async function routesOf(
  ask: AskServer,
): Promise<{ routes: Map<Wire, HasRoute>; broken: string | undefined }> {
  let broken: string | undefined;
  const answerOf = (path: string, wire: Wire) =>
    ask({ path, wire, body: { max_tokens: 1 } }).catch((error: unknown) => {
      if (path !== noRoute) broken ??= `POST ${path}: ${messageOf(error)}`;
      return undefined;
    });
  const none = await answerOf(noRoute, usualWire.name);
  const found = wiresToAsk.map(
    async ({ name, endpoints: [{ path }] }) =>
      [name, hasRoute(await answerOf(path, name), none, path)] as const,
  );
  return { routes: new Map(await Promise.all(found)), broken };
}

function hasRoute(answer: ServerAnswer | undefined, none: ServerAnswer | undefined, path: string): HasRoute {
  if (!answer) return 'unknown';
  const { status } = answer;
  const refusesAll = status === none?.status && withoutPath(answer, path) === withoutPath(none, noRoute);
  if (status === 401 || status === 403) return none && none.status !== status ? 'yes' : 'unknown';
  if (refusesAll || [404, 405, 501].includes(status) || (status >= 300 && status < 400)) return 'no';
  // A web page is no API.
  return isObject(answer.document) ? 'yes' : 'no';
}

/** LM Studio answers 200 and repeats the path. */
function withoutPath({ text }: ServerAnswer, path: string): string {
  return text.replaceAll(path, '');
}

/** A server's list of models, and the first wire whose lists have its form. */
interface ModelList {
  wire: WireDescriptor;
  models: ServerModel[];
}

/** The first wire of each form. */
const listed = allWires.filter(
  ({ models }, index) => index === allWires.findIndex((other) => other.models === models),
);

/** Reads a list of models in any wire's form. Undefined if the document is none. */
export function readModelList(document: unknown): ModelList | undefined {
  if (!isObject(document)) return undefined;
  // The usual form is the least particular one.
  for (const wire of [...listed.filter((each) => each !== usualWire), usualWire]) {
    const models = wire.models.read(document);
    if (models) return { wire, models: bounded(models) };
  }
  return undefined;
}

/** The questions for the models below a base URL. Each form has its own, with the key in another header. */
function listQuestions(baseUrl: string): Question[] {
  const version = versions.find((each) => baseUrl.endsWith(`/${each}`)) ?? usualWire.version;
  const own = listed.filter((wire) => wire.version === version);
  return [...new Set([...own, usualWire])].map(({ name: wire, models: { query } }) => ({
    path: query === undefined ? '/models' : `/models?${query}`,
    wire,
  }));
}
