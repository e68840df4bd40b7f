import type { Distribution } from '../../contract/record.ts';

/** What the sums over a run's trials need from one ended trial. A missing number was not measured. */
export interface EndedTrial {
  verdict: 'passed' | 'failed' | 'void';
  commands?: number | undefined;
  costUsd?: number | undefined;
  /** Epoch milliseconds. */
  endedAt: number;
}

/**
 * The distribution of `trials` planned trials, of which `ended` have ended. Void trials count separately from
 * failed ones. The pass rate and the numbers of commands cover only the scored trials; each is left out if it
 * has no values. `deterministic` is left out if fewer than two trials are scored.
 */
export function distributionOf(trials: number, ended: EndedTrial[]): Distribution {
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
