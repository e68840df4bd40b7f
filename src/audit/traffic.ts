import { unionOf } from '../base/intervals.ts';
import { evidenceBundles } from '../bounds/anyone.ts';
import { derivedCommands } from '../bounds/sandbox.ts';
import { costOf } from '../gateway/exchange.ts';
import { meterOf } from '../gateway/metering.ts';
import { isCount } from '../gateway/replay/cassette.ts';
import { DerivedTrajectory } from '../harness/derived-trajectory.ts';
import type { ModelExchange } from '../record/model-account.ts';
import { commandsOf } from '../record/timeline.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { sumOfUsage, usageFields } from '../record/usage.ts';
import { type Wire, wires } from '../suite/model-config.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Checks } from './checks.ts';

type ModelAccount = NonNullable<TrialRecord['models']>;

/** An exchange whose bodies were kept as they passed. */
interface KeptExchange {
  exchange: ModelExchange;
  index: number;
  wire: Wire;
  request: Buffer;
  answer: Buffer;
}

/**
 * Tokens, costs and commands follow from the exchanges with models, where these were recorded.
 *
 * @param read the content of a blob; undefined if it is missing or damaged
 */
export function checkTraffic(
  record: TrialRecord,
  spec: TrialSpec | undefined,
  read: (sha256: string) => Buffer | undefined,
  checks: Checks,
): void {
  const { models } = record;
  if (!models) {
    if (spec?.modelConfig)
      checks.missed('tokens, cost and commands: the record has no exchange with a model');
    return;
  }
  checkSums(models, checks);
  const kept = keptExchanges(models, read);
  const answered = models.exchanges.filter(({ responseBytes }) => responseBytes > 0);
  const known = new Set(kept.map(({ exchange }) => exchange));
  const areKept = answered.every((exchange) => known.has(exchange));
  // Without their number, so that the trials of a batch share the line.
  if (!areKept)
    checks.missed(
      'tokens, cost and commands against the answers of the model: not all were recorded as a whole',
    );
  for (const [index, exchange] of models.exchanges.entries()) checkCost(exchange, index, spec, checks);
  for (const one of kept) checkExchange(one, spec, checks);
  if (areKept && answered.length > 0) checkCommands(record, kept, checks);
}

function keptExchanges(
  { exchanges }: ModelAccount,
  read: (sha256: string) => Buffer | undefined,
): KeptExchange[] {
  let held = 0;
  return exchanges.flatMap((exchange, index): KeptExchange[] => {
    const { requestBody, responseBody } = exchange;
    const wire = wires.find((name) => name === exchange.wire);
    if (!wire || requestBody === undefined || responseBody === undefined) return [];
    // A record of somebody else can name large contents any number of times.
    if (held > evidenceBundles.bytes.document) return [];
    const [request, answer] = [read(requestBody), read(responseBody)];
    held += (request?.length ?? 0) + (answer?.length ?? 0);
    return request && answer && isWhole(answer) && isWhole(request)
      ? [{ exchange, index, wire, request, answer }]
      : [];
  });
}

/** A body that was cut, or that held a key, cannot be counted again. */
function isWhole(body: Buffer): boolean {
  return (
    !/\n\[cut: \d+ of \d+ bytes\]$/.test(body.subarray(-80).toString('latin1')) &&
    !body.includes('[redacted]')
  );
}

function checkExchange(
  { exchange, index, wire, request, answer }: KeptExchange,
  spec: TrialSpec | undefined,
  checks: Checks,
): void {
  const path = `models.exchanges[${index}]`;
  const { role, status = 0, usage } = exchange;
  const { costUsd: _, ...tokens } = usage;
  const told = { ...exchange, usage: tokens };
  const same = (part: keyof typeof told, says: string, expected: unknown) =>
    checks.same(`${path}.${part}`, says, expected, told[part]);
  same('requestBytes', 'the size is that of the request', request.length);
  same('responseBytes', 'the size is that of the answer', answer.length);
  const config = role === 'agent' ? spec?.modelConfig : undefined;
  if (config && !config.aliases.includes(spec?.model ?? ''))
    same('model', 'the model is that of the definition', spec?.model);
  const isFree = status >= 300 || isCount(exchange);
  const hasNoUsage = exchange.failure !== undefined && Object.keys(usage).length === 0;
  const whole = readingOf(wire, 200, answer);
  if ((isFree || hasNoUsage) && whole.complete && !whole.failure && whole.usage.outputTokens)
    checks.contradicted(`${path}.usage`, 'a whole answer of a model is counted', whole.usage, usage);
  // An exchange whose client left early has no usage, or what was read until then.
  if (hasNoUsage) return;
  const reading = readingOf(wire, status, answer);
  same('answeredBy', 'the model that answered is that of the answer', reading.answeredBy);
  same('usage', 'tokens follow from the answer of the model', isFree ? {} : reading.usage);
}

/** The cost follows from the tokens and the price, whether the answer was recorded or not. */
function checkCost(
  { role, usage, replayed }: ModelExchange,
  index: number,
  spec: TrialSpec | undefined,
  checks: Checks,
): void {
  const path = `models.exchanges[${index}]`;
  const config = role === 'agent' ? spec?.modelConfig : undefined;
  if (config && replayed && !spec?.replay && !('replay' in config))
    checks.contradicted(`${path}.replayed`, 'only a replay takes recorded answers', 'none', replayed);
  for (const field of usageFields)
    if ((usage[field] ?? 0) < 0)
      checks.contradicted(`${path}.usage.${field}`, 'nobody uses less than nothing', 0, usage[field]);
  if ((!config && !replayed) || Object.keys(usage).length === 0) return;
  const cost = replayed ? 0 : costOf(usage, config?.prices);
  checks.same(`${path}.usage.costUsd`, 'the cost follows from tokens and price', cost, usage.costUsd);
}

function readingOf(wire: Wire, status: number, answer: Buffer) {
  const meter = meterOf(wire, status, '');
  meter.chunk(answer);
  return meter.end();
}

/** The sums of the account are those of its exchanges. */
function checkSums({ exchanges, usage, modelMs }: ModelAccount, checks: Checks): void {
  const says = 'the sums are those of the exchanges';
  const byModel = Map.groupBy(exchanges, ({ role, model }) => `${role} ${model}`);
  for (const [index, account] of usage.entries()) {
    const path = `models.usage[${index}]`;
    const own = byModel.get(`${account.role} ${account.model}`) ?? [];
    byModel.delete(`${account.role} ${account.model}`);
    const certain = own.filter(isMetered);
    // Whether one without a status used tokens is not in the record: its usage is not known then.
    const open = own.some(({ status, usage }) => status === undefined && Object.keys(usage).length === 0);
    if (account.requests > own.length || account.requests < own.filter((one) => !mayBeRefused(one)).length)
      checks.contradicted(`${path}.requests`, says, own.length, account.requests);
    const sum = certain.length === 0 ? {} : sumOfUsage(certain.map((one) => one.usage));
    for (const field of usageFields) {
      if (open && account.usage[field] === undefined) continue;
      checks.same(`${path}.usage.${field}`, says, sum[field], account.usage[field]);
    }
  }
  for (const [name, own] of byModel)
    if (own.some((one) => !mayBeRefused(one)))
      checks.contradicted('models.usage', says, `an entry for ${name}`, undefined);
  const agents = exchanges.filter(({ role }) => role === 'agent');
  const [least, most] = [unionOf(agents.filter((one) => !mayBeRefused(one))), unionOf(agents)];
  if (modelMs < least || modelMs > most)
    checks.contradicted('models.modelMs', 'it is the time of the exchanges of the agent', most, modelMs);
}

/** Whether a request used tokens, reported or not, as far as its record shows it. */
function isMetered(exchange: ModelExchange): boolean {
  const { status, usage } = exchange;
  if (isCount(exchange)) return false;
  return status === undefined ? Object.keys(usage).length > 0 : status < 300;
}

/** Whether a request may have reached no model: such requests are in no sum. */
function mayBeRefused({ status, responseBytes }: ModelExchange): boolean {
  return responseBytes === 0 && (status === undefined || status >= 400);
}

/** The commands are those that the model asked for, with the results that it was told. */
function checkCommands(record: TrialRecord, kept: readonly KeptExchange[], checks: Checks): void {
  const agents = kept.filter(({ exchange }) => exchange.role === 'agent');
  const inOrder = agents.toSorted((one, other) => one.exchange.finishedAt - other.exchange.finishedAt);
  const derived = derivedFrom(inOrder);
  const entries = derived.entries();
  const { derivedTrajectory = [] } = record;
  // The harness may have ended before the last exchange was read to its end.
  const withoutLast = derivedFrom(inOrder.slice(0, -1)).entries();
  const fitting = [entries, withoutLast].find(({ length }) => length === derivedTrajectory.length) ?? entries;
  if (record.derivedTrajectory)
    checks.same('derivedTrajectory', 'the commands are those of the exchanges', fitting, derivedTrajectory);
  else if (entries.length > 0 && record.harnessTellsCommands !== true)
    checks.missed('its commands against the exchanges: the record has none');
  if (record.harnessTellsCommands !== true) return;
  if (record.commandsCut || derived.isCut) {
    checks.missed('its commands against the exchanges: there were more than a record keeps');
    return;
  }
  const told = commandsOf(record) ?? [];
  // Each is compared with each.
  if (told.length > derivedCommands.count.commands) {
    checks.missed('its commands against the exchanges: there are too many');
    return;
  }
  // Each harness writes a command down in its own way; one that shows nothing of the traffic is not compared.
  const asked = entries.map(({ command }) => bare(command));
  const bareTold = told.map(({ command }) => bare(command));
  const isAsked = bareTold.map((one) => asked.some((other) => isSame(other, one)));
  if (!isAsked.includes(true)) {
    if (told.length > 0)
      checks.missed('its commands against the exchanges: the harness writes them in another form');
    return;
  }
  for (const [index, { command }] of told.entries())
    if (!isAsked[index])
      checks.contradicted(
        `trajectory[${index}].command`,
        'a command is one that the model asked for',
        'a command of the exchanges',
        command,
      );
  const isTold = 'each command that the model asked for is in the trajectory';
  for (const [index, { command }] of entries.entries())
    if (!bareTold.some((one) => isSame(asked[index] ?? '', one)))
      checks.contradicted('trajectory', isTold, command, undefined);
}

function derivedFrom(exchanges: readonly KeptExchange[]): DerivedTrajectory {
  const derived = new DerivedTrajectory();
  for (const { exchange, wire, request } of exchanges) derived.add({ ...exchange, wire }, request);
  return derived;
}

/** A command without quotes, escapes and spaces, which harnesses add around it. */
function bare(command: string): string {
  return command.replaceAll(/[\s'"\\]+/g, '');
}

function isSame(asked: string, told: string): boolean {
  return told === asked || (asked !== '' && told.endsWith(asked)) || (told !== '' && asked.endsWith(told));
}
