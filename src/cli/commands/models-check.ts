import { createHash } from 'node:crypto';
import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { Clock } from '../../clock.ts';
import type { ChatAnswer } from '../../gateway/chat/chat.ts';
import type { ModelAccount, ModelExchange } from '../../gateway/gateway.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { type ModelConfig, type Wire, whereOf, wires } from '../../suite/model-config.ts';
import { type Printable, text } from '../../text/printable.ts';
import { duration } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import { CommandContext } from '../context.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
import type { Terminal } from '../terminal.ts';

export function modelsCheckCommand(clock: Clock, { out, err }: Terminal) {
  return withConfigAndData(new Command('check'))
    .description('make one real, minimal call to a model and print what it answered')
    .argument('<name>', "the model's name, as `offsite models` shows it")
    .option('--wire <wire>', "one of the model's wires (default: its first)", wireName)
    .option('--timeout <seconds>', 'how long to wait for the answer (default: 120)', wholeNumber)
    .option('--json', 'print one JSON document on stdout')
    .action(async (name, options) => {
      const checked = await check(name, options, clock, { out, err });
      if (options.json) out.json(checked);
      else out.print(described(checked));
    });
}

interface CheckOptions {
  config?: string | undefined;
  wire?: Wire | undefined;
  timeout?: number | undefined;
}

interface CheckedModel {
  model: string;
  wire: Wire;
  where: string;
  answer: Pick<ChatAnswer, 'text' | 'stopped'>;
  answeredBy: string | undefined;
  latencyMs: number;
  firstByteMs: number | undefined;
  failedTries: ModelExchange['failedTries'];
  usage: ModelAccount['usage'][number]['usage'];
  pricesOf: string | undefined;
}

/**
 * Calls the model as a trial would: through a gateway, with its proxy, authorities and retries. Throws the
 * model's failure.
 */
async function check(
  name: string,
  options: CheckOptions,
  clock: Clock,
  terminal: Terminal,
): Promise<CheckedModel> {
  await using context = CommandContext.open(options, { clock, terminal });
  const { config, err } = context;
  const model = config.models[name];
  const models = model ? { ...config.models, [name]: asked(name, model, options.wire) } : config.models;
  context.note = () => err.print('stopping');
  const { signal } = context.interruption();
  const seconds = options.timeout ?? 120;
  const deadline = AbortSignal.timeout(seconds * 1000);
  await using gateway = await context.gateway({ models });
  await using session = gateway.open({
    trial: 'models check',
    models: { agent: [name] },
    budget: {},
    hosts: [],
    // Never used, because a check records nothing.
    keep: async (body) => createHash('sha256').update(body).digest('hex'),
  });
  const request = {
    messages: [{ from: 'user', text: 'Answer with the one word: ready' }],
    // Enough for models that reason before they answer.
    maxTokens: 512,
  } as const;
  let answer: ChatAnswer;
  try {
    answer = await session.chat('agent', request, AbortSignal.any([signal, deadline]));
  } catch (error) {
    if (error === deadline.reason) throw tooSlow(name, seconds);
    throw error;
  }
  const { exchanges, usage } = await session.account();
  const exchange = exchanges.at(-1);
  const [used] = usage;
  if (!exchange || !used || !models[name]) throw new Error(`the answer of ${name} is in no account`);
  const { startedAt, firstByteAt, finishedAt, wire, failedTries } = exchange;
  return {
    model: name,
    wire,
    where: whereOf(models[name]),
    answer: { text: answer.text, stopped: answer.stopped },
    answeredBy: answer.model,
    latencyMs: finishedAt - startedAt,
    firstByteMs: firstByteAt === undefined ? undefined : firstByteAt - startedAt,
    failedTries,
    usage: used.usage,
    pricesOf: used.pricesOf,
  };
}

/** The model as the check calls it: over the chosen wire, and without recording bodies. */
function asked(name: string, model: ModelConfig, wire: Wire | undefined): ModelConfig {
  if (wire === undefined) return { ...model, record: 'metadata' };
  if (!('baseUrl' in model) || !model.wire.includes(wire)) {
    const first = !('baseUrl' in model)
      ? 'is scripted and asked over its first wire only'
      : `does not speak ${wire}`;
    throw new OffsiteError(`the model ${name} ${first}`, {
      code: 'WIRE_NOT_SPOKEN',
      kind: 'input',
      hint: `Configured: ${('baseUrl' in model ? model.wire : wires).join(', ')}.`,
    });
  }
  return { ...model, wire: [wire], record: 'metadata' };
}

function tooSlow(name: string, seconds: number): OffsiteError {
  return new OffsiteError(`the model ${name} did not answer within ${seconds} s`, {
    code: 'MODEL_TOO_SLOW',
    kind: 'infrastructure',
    hint: 'A server may be loading it: try again, or give it longer with --timeout.',
  });
}

function described(checked: CheckedModel): Printable {
  const { answer, usage, failedTries } = checked;
  const count = (tokens: number | undefined) => tokens ?? 'unknown';
  const cost =
    usage.costUsd === undefined
      ? []
      : [['cost', `${usage.costUsd.toFixed(6)} USD (prices of ${checked.pricesOf})`]];
  const rows = [
    ['answer', text`"${answer.text}"${answer.stopped === 'done' ? '' : ` (${answer.stopped})`}`],
    ['answered by', checked.answeredBy ?? 'unknown'],
    ['wire', checked.wire],
    ['where', checked.where],
    ['latency', duration(checked.latencyMs)],
    ['tokens', `${count(usage.inputTokens)} in, ${count(usage.outputTokens)} out`],
    ...cost,
    ...failedTries.map(({ reason }) => ['tried again', reason]),
  ];
  return table([{ title: 'model' }, { title: checked.model }], rows);
}

function wireName(text: string): Wire {
  const wire = wires.find((one) => one === text);
  if (!wire) throw new InvalidArgumentError(`expected one of ${wires.join(', ')}.`);
  return wire;
}
