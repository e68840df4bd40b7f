import { sumOfUsage } from '../contract/usage.ts';
import { unionOf } from '../intervals.ts';
import type { ModelAccount, RoleUsage } from './gateway.ts';
import { type ExchangeEntry, type SessionRecord, stillInFlight } from './session-record.ts';

/** Sums up a record. A request that is still in flight counts as a request without usage. */
export function accountOf(record: SessionRecord, now: number): ModelAccount {
  const { entries, connections, failures, standings } = record;
  const asked = entries.filter(({ use }) => use !== 'refused');
  const byModel = Map.groupBy(asked, ({ exchange }) => `${exchange.role} ${exchange.model}`);
  const shown = ({ exchange }: ExchangeEntry) => ({
    ...structuredClone(exchange),
    ...(exchange.failure === stillInFlight && { finishedAt: now }),
  });
  return {
    exchanges: entries.map(shown),
    connections: structuredClone([...connections]),
    usage: [...byModel.values()].flatMap(roleUsage),
    modelMs: unionOf(asked.map(shown).filter(({ role }) => role === 'agent')),
    failure: [...failures.values()].toSorted((a, b) => a.at - b.at).at(-1)?.message,
    agent: { ...standings.of('agent') },
  };
}

function roleUsage(entries: readonly ExchangeEntry[]): RoleUsage[] {
  const [first] = entries;
  if (!first) return [];
  const { role, model } = first.exchange;
  const replayed = entries.filter(({ exchange }) => exchange.replayed).length;
  const metered = entries.filter(({ use }) => use === 'metered');
  // Without an answer the usage is unknown.
  const usage = metered.length === 0 ? {} : sumOfUsage(metered.map(({ exchange }) => exchange.usage));
  return [
    {
      role,
      model,
      answeredBy: entries.findLast(({ exchange }) => exchange.answeredBy)?.exchange.answeredBy,
      requests: entries.length,
      ...(replayed > 0 && { replayed }),
      usage,
      pricesOf: usage.costUsd === undefined ? undefined : metered.at(-1)?.pricesOf,
    },
  ];
}
