import { createHash } from 'node:crypto';
import type { Context } from '../../api/context.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { ChatAnswer, ChatRequest } from '../../gateway/chat/chat.ts';
import type { GatewaySession, ModelAccount, ModelExchange } from '../../gateway/gateway.ts';
import { ownName } from '../../gateway/open-gateway.ts';
import { checkWires } from '../../gateway/probe/check-wires.ts';
import { openDirectModel, refuseReplayed } from '../../gateway/probe/direct-model.ts';
import { askWithin } from '../../gateway/probe/streamed-answer.ts';
import { type ModelConfig, type Wire, whereOf, wiresOf } from '../../suite/model-config.ts';
import { ours } from '../../text/printable.ts';
import { type CheckOptions, type Examined, type ExamineParts, examine } from './examine.ts';

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
  throw new OffsiteError('name the model to check', {
    code: 'ANSWER_MISSING',
    kind: 'input',
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
    throw new OffsiteError(`the model ${name} ${first}`, {
      code: 'WIRE_NOT_SPOKEN',
      kind: 'input',
      hint: `Configured: ${wiresOf(model).join(', ')}.`,
    });
  }
  return { ...model, wire: [wire], record: 'metadata' };
}
