import { createHash } from 'node:crypto';
import type { Context } from '../../api/context.ts';
import { inputError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { ChatAnswer, ChatRequest } from '../../gateway/chat/chat.ts';
import type { GatewaySession, ModelAccount, ModelExchange } from '../../gateway/gateway.ts';
import { ownName } from '../../gateway/open-gateway.ts';
import { harnessForms, openHarnessDoor } from '../../gateway/probe/ask-as-harness.ts';
import { ollamaModel } from '../../gateway/probe/ask-server.ts';
import { checkTools, earlierCall } from '../../gateway/probe/check-tools.ts';
import { checkSpeed, checkWires } from '../../gateway/probe/check-wires.ts';
import { askWithin, openDirectModel, refuseReplayed, type Used } from '../../gateway/probe/direct-model.ts';
import { askBelow, lookAtServer, rootOf, type ServerLook } from '../../gateway/probe/look-at-server.ts';
import {
  type MeasuredContext,
  measureContext,
  mostMeasuringTokens,
} from '../../gateway/probe/measure-context.ts';
import type { ServerModel } from '../../gateway/probe/server-models.ts';
import type { Config } from '../../suite/config-file.ts';
import {
  type HttpModel,
  type ModelConfig,
  type Wire,
  whereOf,
  wires,
  wiresOf,
} from '../../suite/model-config.ts';
import { ours, type Printable, text } from '../../text/printable.ts';
import { count } from '../../text/quantities.ts';
import { type CheckedHarness, type Finding, type Found, findingsOf } from './findings.ts';

export interface CheckedModel {
  model: string;
  wire: Wire;
  where: string;
  /** The first answer, and what it took. */
  answer: Pick<ChatAnswer, 'text' | 'stopped'>;
  answeredBy: string | undefined;
  latencyMs: number;
  firstByteMs: number | undefined;
  failedTries: ModelExchange['failedTries'];
  usage: ModelAccount['usage'][number]['usage'];
  pricesOf: string | undefined;
  /** Everything else; undefined with `quick`, and for a model that answers from a file. */
  examined: Examined | undefined;
}

/**
 * Calls the model as a trial would: through a gateway, with its proxy, authorities and retries. Then examines
 * what it can do. Throws the failure of the first call.
 */
export async function checkModel(
  context: Context,
  asked: string | undefined,
  options: CheckOptions,
  { note, signal }: Pick<ExamineParts, 'note' | 'signal'>,
): Promise<CheckedModel> {
  const { config } = context;
  const name = asked === undefined ? onlyModel(Object.keys(config.models)) : ownName(asked, config.models);
  const model = Object.hasOwn(config.models, name) ? config.models[name] : undefined;
  if (model) refuseReplayed(name, model);
  const models = model ? { ...config.models, [name]: checked(name, model, options.wire) } : config.models;
  const within = (options.timeout ?? 120) * 1000;
  if (model && !options.quick) await context.models.forgetRefused(name, model);
  await using gateway = await context.models.gateway(models);
  await using session = gateway.open({
    trial: 'models check',
    models: { agent: [name] },
    budget: {},
    hosts: [],
    // Never used, because a check records nothing.
    keep: async (body) => createHash('sha256').update(body).digest('hex'),
  });
  const ask = (request: ChatRequest) =>
    askWithin((asking) => session.chat('agent', request, asking), { name, within, signal });
  const parts = { context, name, models, ask, within, note, signal };
  let answer: ChatAnswer;
  try {
    answer = await ask({
      messages: [{ from: 'user', text: 'Answer with the one word: ready' }],
      // Enough for models that reason before they answer.
      maxTokens: 512,
    });
  } catch (error) {
    if (options.quick || options.wire !== undefined) throw error;
    throw await withOtherWires(error, session, parts);
  }
  const { exchanges, usage } = await session.account();
  const exchange = exchanges.at(-1);
  const [used] = usage;
  const called = models[name];
  if (!exchange || !used || !called) throw new Error(`the answer of ${name} is in no account`);
  const { startedAt, firstByteAt, finishedAt, wire, failedTries } = exchange;
  const server = 'baseUrl' in called ? called : undefined;
  if (!server) note(ours('it answers from a file, which has nothing for the other questions of a check'));
  return {
    model: name,
    wire,
    where: whereOf(called),
    answer: { text: answer.text, stopped: answer.stopped },
    answeredBy: answer.model,
    latencyMs: finishedAt - startedAt,
    firstByteMs: firstByteAt === undefined ? undefined : firstByteAt - startedAt,
    failedTries,
    usage: used.usage,
    pricesOf: used.pricesOf,
    examined:
      options.quick || !server
        ? undefined
        : await examine({ ...parts, config: server, session, wire, options }),
  };
}

function onlyModel(names: readonly string[]): string {
  const [only] = names;
  if (only !== undefined && names.length === 1) return only;
  throw inputError('ANSWER_MISSING', 'name the model to check', {
    hint:
      only === undefined
        ? 'No models are configured: `offsite models add` writes one into offsite.yaml.'
        : `Name one: ${names.join(', ')}.`,
  });
}

/** The error with a better hint if the server speaks another wire than the configured one. */
async function withOtherWires(
  error: unknown,
  session: GatewaySession,
  parts: Pick<ExamineParts, 'context' | 'name' | 'models' | 'within' | 'signal'>,
): Promise<unknown> {
  const { context, name, models, within, signal } = parts;
  if (!(error instanceof OffsiteError)) return error;
  const status = (await session.account()).exchanges.at(-1)?.status;
  const isOther = status === 404 || status === 405 || error.code === 'MODEL_ANSWER_UNREADABLE';
  if (!isOther) return error;
  await using direct = openDirectModel(name, await context.models.gatewayOptions(models));
  const wires = await checkWires(direct, undefined, { within, signal, clock: context.clock });
  const working = wires.filter(({ state }) => state === 'works').map(({ wire }) => wire);
  if (working.length === 0) return error;
  return new OffsiteError(messageOf(error), {
    code: error.code,
    kind: error.kind,
    hint: `It answers over ${working.join(', ')}: set \`wire: [${working.join(', ')}]\`.`,
    cause: error,
  });
}

/** The model as the check calls it: over the chosen wire, and without recording bodies. */
function checked(name: string, model: ModelConfig, wire: Wire | undefined): ModelConfig {
  if (wire === undefined) return { ...model, record: 'metadata' };
  if (!('baseUrl' in model) || !model.wire.includes(wire)) {
    const first =
      'baseUrl' in model ? `does not speak ${wire}` : 'answers from a file, over its first wire only';
    throw inputError('WIRE_NOT_SPOKEN', `the model ${name} ${first}`, {
      hint: `Configured: ${wiresOf(model).join(', ')}.`,
    });
  }
  return { ...model, wire: [wire], record: 'metadata' };
}

/** What a check found out beyond the first answer. */
export interface Examined extends Found {
  findings: Finding[];
  /** All tokens of this check. */
  used: Used;
}

export interface CheckOptions {
  wire?: Wire | undefined;
  timeout?: number | undefined;
  quick?: true | undefined;
  deep?: true | undefined;
  upTo?: number | undefined;
}

export interface ExamineParts {
  context: Context;
  name: string;
  config: HttpModel;
  models: Config['models'];
  session: GatewaySession;
  wire: Wire;
  ask(request: ChatRequest): Promise<ChatAnswer>;
  within: number;
  signal: AbortSignal;
  /** Called before each part, with what it does. */
  note(message: Printable): void;
  options: CheckOptions;
}

/** How many streamed answers are measured. */
const samples = 3;
/** The longest prompt of a deep check, in tokens, if neither the configuration nor the server says. */
const usualLongest = 32_768;

/** Examines a model that has given an answer. If it cannot do something, that is a finding, not an error. */
export async function examine(parts: ExamineParts): Promise<Examined> {
  const { context, name, config, models, session, wire, ask, within, signal, note, options } = parts;
  await using direct = openDirectModel(name, await context.models.gatewayOptions(models));
  note(ours('checking tools, streaming and speed'));
  const tools = await checkTools(ask, signal);
  const harnesses = await checkHarnesses(parts);
  const speed = await checkSpeed(direct, wire, { samples, within, signal, clock: context.clock });
  const spoken =
    options.wire === undefined
      ? await checkWires(direct, wire, { within, signal, clock: context.clock })
      : undefined;
  const { look, model: reported } = await serverOf(direct.upstreamName, parts);
  let measuredContext: MeasuredContext | undefined;
  if (options.deep) {
    const upTo = options.upTo ?? config.contextWindow ?? reported.contextWindow ?? usualLongest;
    note(text`measuring its context: up to ${count(mostMeasuringTokens(upTo))} tokens in total`);
    measuredContext = await measureContext(ask, upTo, signal);
  }
  const found = {
    server: look?.server,
    wires: spoken,
    tools,
    harnesses,
    speed,
    told: reported,
    measuredContext,
  };
  return { ...found, findings: findingsOf(config, found), used: await usedBy(session, direct.used) };
}

/** Lets the model work as it does for a harness of each wire, or of the one that is checked. */
async function checkHarnesses({
  name,
  config,
  session,
  within,
  signal,
  options,
}: ExamineParts): Promise<CheckedHarness[]> {
  await using door = await openHarnessDoor(session, { name, maxOutputTokens: config.maxOutputTokens });
  const checked: CheckedHarness[] = [];
  for (const wire of options.wire === undefined ? wires : [options.wire]) {
    const before = (await session.account()).exchanges.length;
    const ask = (request: ChatRequest) =>
      askWithin((asking) => door.ask(wire, request, asking), { name, within, signal });
    const tools = await checkTools(ask, signal, earlierCall);
    const exchanges = (await session.account()).exchanges.slice(before);
    const leftOut = new Set(exchanges.flatMap(({ losses = [] }) => losses.map(({ path }) => path)));
    const isTranslated = exchanges.some(({ translation }) => translation);
    checked.push({ wire, harness: harnessForms[wire].name, isTranslated, ...tools, leftOut: [...leftOut] });
  }
  return checked;
}

async function serverOf(
  id: string,
  { config, context, signal }: ExamineParts,
): Promise<{ look: ServerLook | undefined; model: Omit<ServerModel, 'id'> }> {
  const { baseUrl, apiKeyEnv, auth, headers, query } = config;
  const { env, clock } = context;
  const caBundle = await context.certificates();
  const options = { env, clock, caBundle, signal, apiKeyEnv, auth, headers, query };
  try {
    const look = await lookAtServer(baseUrl, { ...options, withoutWires: true });
    const listed = look.models.find((model) => model.id === id);
    if (look.server?.kind !== 'Ollama') return { look, model: withoutId(listed) };
    await using below = askBelow(options);
    return { look, model: withoutId(await ollamaModel(below.ask(rootOf(baseUrl)), id)) };
  } catch {
    // The server works, because the model has answered. It only says nothing about its models.
    signal.throwIfAborted();
    return { look: undefined, model: {} };
  }
}

function withoutId({ id: _, ...model }: ServerModel = { id: '' }): Omit<ServerModel, 'id'> {
  return model;
}

/** The tokens of the requests through the gateway, and of those directly to the model. */
async function usedBy(session: GatewaySession, direct: Used): Promise<Used> {
  const { exchanges } = await session.account();
  const sum = (name: 'inputTokens' | 'outputTokens') =>
    exchanges.reduce((total, { usage }) => total + (usage[name] ?? 0), direct[name]);
  const isUnreported = ({ usage }: (typeof exchanges)[number]) =>
    usage.inputTokens === undefined || usage.outputTokens === undefined;
  return {
    requests: direct.requests + exchanges.length,
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    unreported: direct.unreported + exchanges.filter(isUnreported).length,
  };
}
