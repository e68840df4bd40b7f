import type { Context } from '../../api/context.ts';
import type { ChatAnswer, ChatRequest } from '../../gateway/chat/chat.ts';
import type { GatewaySession } from '../../gateway/gateway.ts';
import { harnessForms, openHarnessDoor } from '../../gateway/probe/ask-as-harness.ts';
import { ollamaModel } from '../../gateway/probe/ask-server.ts';
import { checkTools, earlierCall } from '../../gateway/probe/check-tools.ts';
import { checkSpeed, checkWires } from '../../gateway/probe/check-wires.ts';
import { openDirectModel, type Used } from '../../gateway/probe/direct-model.ts';
import { askBelow, lookAtServer, rootOf, type ServerLook } from '../../gateway/probe/look-at-server.ts';
import {
  type MeasuredContext,
  measureContext,
  mostMeasuringTokens,
} from '../../gateway/probe/measure-context.ts';
import type { ServerModel } from '../../gateway/probe/server-models.ts';
import { askWithin } from '../../gateway/probe/streamed-answer.ts';
import type { Config } from '../../suite/config-file.ts';
import { type HttpModel, type Wire, wires } from '../../suite/model-config.ts';
import { ours, type Printable, text } from '../../text/printable.ts';
import { count } from '../../text/quantities.ts';
import { type CheckedHarness, type Finding, type Found, findingsOf } from './findings.ts';

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
