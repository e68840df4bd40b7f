import type { Costs, Distribution } from '../../contract/record.ts';

/** What the sums over a run's trials need from one ended trial. A missing number was not measured. */
export interface TrialSummary {
  verdict: 'passed' | 'failed' | 'void';
  commands: number | undefined;
  costUsd: number | undefined;
  /** Epoch milliseconds. */
  endedAt: number;
}

/**
 * The distribution of `trials` planned trials, of which `ended` have ended. Void trials count separately from
 * failed ones. The pass rate and the numbers of commands cover only the scored trials; each is left out if there
 * is none. `deterministic` is left out below two.
 */
export function distributionOf(trials: number, ended: TrialSummary[]): Distribution {
  const passed = ended.filter(({ verdict }) => verdict === 'passed').length;
  const failed = ended.filter(({ verdict }) => verdict === 'failed').length;
  const scored = passed + failed;
  const commands = ended
    .flatMap(({ verdict, commands }) => (verdict === 'void' ? [] : (commands ?? [])))
    .sort((one, other) => one - other);
  return {
    trials,
    scored,
    passed,
    failed,
    voided: ended.length - scored,
    ...(scored > 0 && { passRate: passed / scored }),
    ...(commands.length > 0 && {
      commandMin: commands.at(0),
      commandMedian: median(commands),
      commandMax: commands.at(-1),
    }),
    ...(scored > 1 && { deterministic: passed === scored || failed === scored }),
  };
}

function median(sorted: number[]): number {
  const upper = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[upper] ?? 0;
  // Halved before they are added: the sum of two doubles can overflow.
  return (sorted[upper - 1] ?? 0) / 2 + (sorted[upper] ?? 0) / 2;
}

/**
 * The cost of trials, if they reported it; undefined if none did. It is an estimate (the reporter's prices
 * times its tokens), not a bill. `incomplete` if an ended trial did not report its cost.
 */
export function costsOf(ended: Pick<TrialSummary, 'costUsd'>[]): Costs | undefined {
  const known = ended.flatMap(({ costUsd }) => costUsd ?? []);
  if (known.length === 0) return undefined;
  const usd = known.reduce((sum, one) => sum + one, 0);
  // The sum of doubles may leave the range that JSON can express.
  if (!Number.isFinite(usd)) return undefined;
  return {
    estimatedEquivalentUsd: usd,
    incomplete: known.length < ended.length,
    components: [
      {
        classification: 'estimated',
        component: 'agent',
        source: 'reported',
        explanation: 'usage.costUsd of the reported trials',
        usd,
      },
    ],
  };
}
