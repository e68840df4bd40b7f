import type { HostConnection, ModelExchange } from '../../record/model-account.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { unscriptedModels, unscriptedText } from '../../record/usage.ts';
import { table } from '../../text/fit.ts';
import { ours, type Printable, present, stack, styled, text, type Value } from '../../text/printable.ts';
import { cost, count, duration, plural, size } from '../../text/quantities.ts';
import { section } from './layout.ts';
import { afterStart } from './timeline.ts';

/** What the models of a trial used, one line for each. */
export function usageSection(record: TrialRecord): Printable | undefined {
  const { models, modelUnmeasured, replay, disagreements = [] } = record;
  const { usage = [], exchanges = [] } = models ?? {};
  const failed = exchanges.filter(({ failure }) => failure !== undefined).length;
  const from =
    replay?.fromHarness === undefined ? '' : text`, recorded with the harness ${replay.fromHarness},`;
  const body = present([
    ...usage.map(({ role, model, requests, replayed, usage: used }) => {
      const { inputTokens, outputTokens, cacheReadTokens: cache, costUsd } = used;
      const cached = cache === undefined ? '' : `, ${count(cache)} from the cache`;
      const facts = present([
        plural(requests, 'request'),
        replayed !== undefined && `${replayed} replayed`,
        `${count(inputTokens)} tokens in${cached}, ${count(outputTokens)} out`,
        Boolean(costUsd) && cost(costUsd),
      ]);
      return text`${model}${ours(role === 'agent' ? '' : ` (${role})`)}: ${ours(facts.join(', '))}`;
    }),
    failed > 0 && styled('red', ours(`${plural(failed, 'request')} failed`)),
    // A judge's script often means its `otherwise`.
    ...unscriptedModels(record).map((lost) =>
      styled(lost.role === 'agent' ? 'red' : 'dim', text`${unscriptedText(lost)}`),
    ),
    replay && text`recorded answers of ${replay.of}${from} took the place of models: not a live result`,
    modelUnmeasured && ours('the sandbox had a network: other requests are not counted'),
    ...disagreements.map((one) => text`the harness counts differently: ${one}`),
  ]);
  return body.length === 0 ? undefined : section('usage', '', body);
}

/** All requests to models and connections to hosts. */
export function modelSection(record: TrialRecord): Printable | undefined {
  const { models, startedAt } = record;
  const { exchanges = [], failure } = models ?? {};
  const connections = connectionSections(record);
  if (exchanges.length === 0 && connections.length === 0) return undefined;
  const rows = exchanges.map((exchange) => exchangeRow(exchange, startedAt));
  const right = (...titles: string[]) => titles.map((title) => ({ right: title }));
  const numbers = right('status', 'in', 'cached', 'out', 'cost', 'first byte', 'took', 'tries');
  const columns = [...right('after'), 'model', ...numbers, ''];
  return stack([
    section('models', plural(exchanges.length, 'request'), [
      rows.length > 0 && table(columns, rows),
      failure !== undefined && text`failed: ${failure}`,
      ...translationLines(exchanges),
      ...refusedLines(exchanges),
      ...replayLines(exchanges),
    ]),
    ...connections.flatMap((one) => [ours(''), one]),
  ]);
}

/** What was translated, and what that left out. */
function translationLines(exchanges: readonly ModelExchange[]): Printable[] {
  const translated = exchanges.flatMap(({ wire, translation, losses: refused = [] }) =>
    translation ? { wire, from: translation.from, losses: [...translation.losses, ...refused] } : [],
  );
  const byWires = Map.groupBy(translated, ({ from, wire }) => `${from} to ${wire}`);
  return [...byWires].map(([wires, all]) => {
    const paths = new Set(all.flatMap(({ losses }) => losses.map(({ path }) => path)));
    return text`translated from ${wires}, without ${paths.size === 0 ? 'a loss' : [...paths].join(', ')}`;
  });
}

/** What was left out because the servers of the models do not accept it. */
function refusedLines(exchanges: readonly ModelExchange[]): Printable[] {
  const byModel = Map.groupBy(
    exchanges.flatMap(({ model, losses = [] }) => losses.map(({ path }) => ({ model, path }))),
    ({ model }) => model,
  );
  return [...byModel].map(([model, all]) => {
    const paths = new Set(all.map(({ path }) => path));
    return text`asked ${model} without ${[...paths].join(', ')}, which its server does not accept`;
  });
}

/** Which recorded answers took the place of a model, and how well their requests matched. */
function replayLines(exchanges: readonly ModelExchange[]): Printable[] {
  const replayed = exchanges.flatMap((exchange) => exchange.replayed ?? []);
  const byTrial = Map.groupBy(replayed, ({ of, trial }) => JSON.stringify([of, trial]));
  return [...byTrial.values()].flatMap((all) => {
    const [first] = all;
    if (!first) return [];
    const hows = Map.groupBy(all, ({ how }) => how);
    const counts = [...hows].map(([how, some]) => `${some.length} ${matchWords[how]}`).join(', ');
    const differs = new Set(all.flatMap((one) => one.differs ?? []));
    const changed = differs.size === 0 ? '' : `; changed: ${[...differs].join(', ')}`;
    return [text`replayed from ${first.of}, ${first.trial}: ${ours(counts)}${ours(changed)}`];
  });
}

const matchWords = {
  exact: 'exactly as recorded',
  known: 'except dates and similar texts',
  conversation: 'with the same conversation',
  order: 'in their order',
} as const;

function exchangeRow(exchange: ModelExchange, start: number): Value[] {
  const { role, model, status, usage, startedAt, firstByteAt, finishedAt, failedTries, failure } = exchange;
  return [
    afterStart(startedAt, start),
    role === 'agent' ? model : text`${model} (${role})`,
    status === undefined ? '–' : String(status),
    count(usage.inputTokens),
    count(usage.cacheReadTokens),
    count(usage.outputTokens),
    cost(usage.costUsd),
    firstByteAt === undefined ? '–' : duration(firstByteAt - startedAt),
    duration(finishedAt - startedAt),
    String(failedTries.length + 1),
    failure === undefined ? (failedTries.at(-1)?.reason ?? '') : styled('red', failure),
  ];
}

/** The hosts that the agent and the tests could reach by name, and how often they did. Nothing if none. */
export function hostLines({ subject, models, testsConnections }: TrialRecord): Value[] {
  const { hosts = [], testsHosts = [] } = subject ?? {};
  return [
    ...reached('hosts   ', hosts, models?.connections),
    ...reached('tests at', testsHosts, testsConnections),
  ];
}

/** How many hosts a line names. */
const namedHosts = 8;

function reached(
  title: string,
  hosts: readonly string[],
  connections: readonly HostConnection[] = [],
): Value[] {
  if (hosts.length === 0 && connections.length === 0) return [];
  const more = hosts.length - namedHosts;
  const named = present([...hosts.slice(0, namedHosts), more > 0 && `${more} more`]).join(', ');
  const failed = connections.filter(({ failure }) => failure !== undefined).length;
  const counted = present([plural(connections.length, 'connection'), failed > 0 && `${failed} failed`]);
  return [text`${ours(title)} ${named || 'no host'}: ${ours(counted.join(', '))}`];
}

/** Each connection of the agent and of the tests to a host; nothing if there was none. */
function connectionSections({ models, testsConnections = [], startedAt }: TrialRecord): Printable[] {
  const { connections = [] } = models ?? {};
  return [
    ...listed('hosts', connections, startedAt),
    ...listed('hosts of the tests', testsConnections, startedAt),
  ];
}

function listed(title: string, connections: readonly HostConnection[], start: number): Printable[] {
  if (connections.length === 0) return [];
  const lines = connections.map(({ host, port, startedAt, sentBytes, receivedBytes, failure }) => {
    const bytes = `${size(sentBytes)} sent, ${size(receivedBytes)} received`;
    return text`${afterStart(startedAt, start)} ${host}:${port}  ${ours(bytes)}  ${failure ?? ''}`;
  });
  return [section(title, plural(connections.length, 'connection'), lines)];
}
