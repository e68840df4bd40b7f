import { unionOf } from '../base/intervals.ts';
import { sumOfUsage, usageFields } from '../contract/usage.ts';
import { meterOf } from '../gateway/metering.ts';
import { costOf } from '../gateway/prices.ts';
import { isCount } from '../gateway/replay/recorded-exchange.ts';
import { DerivedTrajectory } from '../harness/derived-trajectory.ts';
import type { ModelExchange } from '../record/model-account.ts';
import { commandsOf } from '../record/timeline.ts';
import type { TrialRecord } from '../record/trial-record.ts';
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
  if (!models) return;
  checkSums(models, checks);
  const kept = keptExchanges(models, read);
  const answered = models.exchanges.filter(({ responseBytes }) => responseBytes > 0);
  const missing = answered.filter((exchange) => !kept.some((one) => one.exchange === exchange)).length;
  if (missing > 0)
    checks.missed(
      `tokens, cost and commands against the answers of the model: ${missing} were not recorded as a whole`,
    );
  for (const one of kept) checkExchange(one, spec, checks);
  if (missing === 0 && answered.length > 0) checkCommands(record, kept, checks);
}

function keptExchanges(
  { exchanges }: ModelAccount,
  read: (sha256: string) => Buffer | undefined,
): KeptExchange[] {
  return exchanges.flatMap((exchange, index): KeptExchange[] => {
    const { requestBody, responseBody } = exchange;
    const wire = wires.find((name) => name === exchange.wire);
    if (!wire || requestBody === undefined || responseBody === undefined) return [];
    const [request, answer] = [read(requestBody), read(responseBody)];
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
  const { role, model, status = 0, usage, replayed } = exchange;
  checks.same(
    `${path}.requestBytes`,
    'the size is that of the request',
    request.length,
    exchange.requestBytes,
  );
  checks.same(
    `${path}.responseBytes`,
    'the size is that of the answer',
    answer.length,
    exchange.responseBytes,
  );
  const config = role === 'agent' ? spec?.modelConfig : undefined;
  if (config && !config.aliases.includes(spec?.model ?? ''))
    checks.same(`${path}.model`, 'the model is that of the definition', spec?.model, model);
  const isFree = status >= 300 || isCount(exchange);
  const meter = meterOf(wire, status, '');
  meter.chunk(answer);
  const reading = meter.end();
  const counted = isFree ? {} : reading.usage;
  const says = 'tokens and cost follow from the answer of the model';
  // An exchange whose client left early has no usage, or what was read until then.
  if (exchange.failure !== undefined && Object.keys(usage).length === 0) return;
  checks.same(
    `${path}.answeredBy`,
    'the model that answered is that of the answer',
    reading.answeredBy,
    exchange.answeredBy,
  );
  const { costUsd: _, ...tokens } = usage;
  checks.same(`${path}.usage`, says, counted, tokens);
  const cost = replayed ? 0 : costOf(counted, config?.prices);
  if ((config || replayed) && !isFree) checks.same(`${path}.usage.costUsd`, says, cost, usage.costUsd);
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
  if (record.harnessTellsCommands !== true || record.commandsCut || derived.isCut) return;
  const told = commandsOf(record) ?? [];
  // Each harness writes a command down in its own way; one that shows nothing of the traffic is not compared.
  const asked = entries.map(({ command }) => bare(command));
  const isAsked = told.map(({ command }) => asked.some((one) => isSame(one, bare(command))));
  if (!isAsked.includes(true)) {
    if (told.length > 0)
      checks.missed('its commands against the exchanges: the harness writes them in another form');
    return;
  }
  for (const [index, known] of isAsked.entries())
    if (!known)
      checks.contradicted(
        `trajectory[${index}].command`,
        'a command is one that the model asked for',
        'a command of the exchanges',
        told[index]?.command,
      );
  for (const { command } of entries)
    if (!told.some((one) => isSame(bare(command), bare(one.command))))
      checks.contradicted(
        'trajectory',
        'each command that the model asked for is in the trajectory',
        command,
        undefined,
      );
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
