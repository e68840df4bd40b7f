import { planParts } from '../../agent/plan-parts.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import type { TaskOptions } from '../planned-suite.ts';
import type { OnMiss } from '../replayed-batch.ts';
import { type ResultOptions, refuseBadResults, refuseLone } from '../results/options.ts';
import type { CommonOptions } from '../settings.ts';

/** Options of `offsite run`. */
export interface RunOptions extends CommonOptions, TaskOptions, Omit<ResultOptions, keyof CommonOptions> {
  concurrency?: number | undefined;
  trials?: 'auto' | undefined;
  precision?: number | undefined;
  maxTrials?: number | undefined;
  replay?: string | undefined;
  onMiss?: OnMiss | undefined;
  dryRun?: true | undefined;
  allowOutside?: string[] | undefined;
}

/** Refuses options that mean something only together with another one. */
export function refuseLoneOptions(options: RunOptions): void {
  const { trials, precision, maxTrials, replay, onMiss } = options;
  if (onMiss === 'live' && replay === undefined) refuseLone(['--on-miss', '--replay']);
  refuseBadResults(options);
  if (trials === undefined && (precision !== undefined || maxTrials !== undefined))
    refuseLone([precision === undefined ? '--max-trials' : '--precision', '--trials auto']);
}

/** Further trials are batches of chosen cases, which one start request must be able to hold. */
export function refuseManyAuto(plan: SuitePlan, { trials }: RunOptions): void {
  if (trials !== 'auto' || planParts(plan).length === 1) return;
  throw new OffsiteError(`--trials auto cannot be used with ${plan.cases.length} cases`, {
    code: 'TOO_MANY_CASES',
    kind: 'input',
    hint: 'Choose at most 100 tasks, with --include or --limit.',
  });
}
