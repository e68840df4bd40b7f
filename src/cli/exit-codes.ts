import { percent } from '../text/quantities.ts';

/** The exit codes of every command. */
export const exitCodes = {
  done: 0,
  belowThreshold: 1,
  badInput: 2,
  infrastructure: 3,
  interrupted: 130,
} as const;

/** Says that the pass rate is below the threshold. Undefined if it is not, or without a threshold. */
export function belowText(
  { passRate }: { passRate: number | undefined },
  failUnder: number | undefined,
): string | undefined {
  if (failUnder === undefined || (passRate ?? 0) >= failUnder) return undefined;
  if (passRate === undefined)
    return `no trial has a verdict, so no pass rate reaches ${percent(failUnder)} (--fail-under)`;
  return `the pass rate of ${percent(passRate)} is below ${percent(failUnder)} (--fail-under)`;
}

/** The exit code for results: something could not be judged or reported, or too little passed. */
export function exitCodeOfRates(
  summary: { void: number; unreported: number; passRate: number | undefined },
  failUnder: number | undefined,
): number {
  if (summary.void > 0 || summary.unreported > 0) return exitCodes.infrastructure;
  return belowText(summary, failUnder) === undefined ? exitCodes.done : exitCodes.belowThreshold;
}
