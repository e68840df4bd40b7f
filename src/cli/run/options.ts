import { InvalidArgumentError } from '@commander-js/extra-typings';
import { planParts } from '../../agent/plan-parts.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { limits } from '../../contract/definition.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import type { TaskOptions } from '../planned-suite.ts';
import type { OnMiss } from '../replayed-batch.ts';
import { type ResultOptions, refuseBadResults, throwMissingOption } from '../results/options.ts';
import type { CommonOptions } from '../settings.ts';

/** Options of `offsite run`. */
export interface RunOptions extends CommonOptions, TaskOptions, Omit<ResultOptions, keyof CommonOptions> {
  concurrency?: number | undefined;
  /** In place of those of the suite. */
  trials?: number | 'auto' | undefined;
  precision?: number | undefined;
  maxTrials?: number | undefined;
  replay?: string | undefined;
  onMiss?: OnMiss | undefined;
  dryRun?: true | undefined;
  allowOutside?: string[] | undefined;
}

/** `auto`, or how many trials each run has. */
export function trialsWanted(text: string): number | 'auto' {
  if (text === 'auto') return text;
  const wanted = /^[1-9]\d*$/.test(text) ? Number(text) : Number.NaN;
  if (wanted <= limits.trials) return wanted;
  throw new InvalidArgumentError(`expected a whole number from 1 to ${limits.trials}, or auto.`);
}

/** Refuses options that mean something only together with another one. */
export function refuseLoneOptions(options: RunOptions): void {
  const { trials, precision, maxTrials, replay, onMiss, dryRun } = options;
  if (onMiss === 'live' && replay === undefined) throwMissingOption(['--on-miss', '--replay']);
  refuseBadResults(options);
  const beside = replay === undefined ? (dryRun ? '--dry-run' : undefined) : '--replay';
  if (trials === 'auto' && beside !== undefined)
    throw new OffsiteError(`--trials auto cannot be used with ${beside}`, {
      code: 'OPTIONS_CONFLICT',
      kind: 'input',
      hint: 'Leave one of them out, or name how many trials each run has: --trials 3.',
    });
  if (trials !== 'auto' && (precision !== undefined || maxTrials !== undefined))
    throwMissingOption([precision === undefined ? '--max-trials' : '--precision', '--trials auto']);
}

/** `--trials auto` starts further trials as batches of some cases. All cases must fit into one request. */
export function refuseManyAuto(plan: SuitePlan, { trials }: RunOptions): void {
  if (trials !== 'auto' || planParts(plan).length === 1) return;
  throw new OffsiteError(`--trials auto cannot be used with ${plan.cases.length} cases`, {
    code: 'TOO_MANY_CASES',
    kind: 'input',
    hint: 'Choose at most 100 tasks, with --include or --limit.',
  });
}
