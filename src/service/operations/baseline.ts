import type { z } from 'zod';
import {
  type Baseline,
  type BaselineRequest,
  type BaselineResponse,
  baselineLimits,
} from '../../contract/catalog.ts';
import { usualConfidence } from '../../stats/interval.ts';
import { wilsonInterval } from '../../stats/pass-rate.ts';
import { distributionOf } from '../record/distribution.ts';
import { isoTime } from '../record/iso-time.ts';
import { versionsOf } from '../record/run-record.ts';
import type { BaselineCell, BaselineRunRow } from '../store/baselines.ts';
import type { Call } from './call.ts';

/**
 * The baselines of a case, one for each suite and variant. A baseline is made of the newest platform runs of
 * the cell's newest definition, because other definitions ask or check something else. Reported trials never
 * enter it.
 */
export function readBaselines(
  call: Call,
  { caseId, suite, variant }: z.output<typeof BaselineRequest>,
): z.output<typeof BaselineResponse> {
  const cells = call.stores.baselines.cells(call.principal.organizationKey, { caseId, suiteId: suite });
  const ofId = cells.filter((cell) => variant === undefined || cell.variant.id === variant);
  const named = ofId.length > 0 ? ofId : cells.filter((cell) => cell.variant.model === variant);
  const answered = named.slice(0, baselineLimits.cells);
  return {
    baselines: answered.map((cell) => baselineOf(call, cell)),
    more: named.length - answered.length,
  };
}

function baselineOf({ stores, principal }: Call, { newest, ...cell }: BaselineCell): Baseline {
  const { baselines, trials, platform } = stores;
  const organization = principal.organizationKey;
  const runs = baselines.runs(organization, { newest, ...cell }, baselineLimits.runs);
  const counts = baselines.counts(organization, { newest, ...cell });
  const ended = runs.map((run) => [...trials.summaries(run.key).values()]);
  const planned = runs.reduce((sum, run) => sum + run.trials, 0);
  const distribution = distributionOf(planned, ended.flat());
  const { passed, scored } = distribution;
  return {
    ...cell,
    distribution,
    ...(scored > 0 && {
      passRateInterval: { ...wilsonInterval(passed, scored), confidence: usualConfidence },
    }),
    runs: runs.map((run, index) => runOf(run, ended[index] ?? [])),
    notCounted: {
      sameDefinition: counts.sameDefinition - runs.length,
      otherDefinitions: counts.all - counts.sameDefinition,
    },
  };

  function runOf(run: BaselineRunRow, summaries: { verdict: string }[]): Baseline['runs'][number] {
    const count = (verdict: string) => summaries.filter((one) => one.verdict === verdict).length;
    const facts = platform.facts(run.key);
    return {
      id: run.id,
      batchId: run.batchId,
      startedAt: isoTime(run.startedAt),
      ...versionsOf(facts),
      passed: count('passed'),
      failed: count('failed'),
      voided: count('void'),
    };
  }
}
