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
import { isoTime, versionsOf } from '../record/run-record.ts';
import type { BaselineCell, BaselineRunRow } from '../store/baselines.ts';
import type { Call } from './call.ts';

/**
 * The baselines of a case, one for each suite and variant. A baseline is made of the newest platform runs of
 * the cell's newest definition and profile, because other definitions ask or check something else, and with
 * another profile it is another agent. Reported trials never enter it.
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
  const newestRuns = baselines.runs(organization, { newest, ...cell }, baselineLimits.runs);
  const runs = ofOneProfile(newestRuns.map((run) => ({ ...run, ...versionsOf(platform.facts(run.key)) })));
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
      sameDefinition: counts.sameDefinition - newestRuns.length,
      otherProfiles: newestRuns.length - runs.length,
      otherDefinitions: counts.all - counts.sameDefinition,
    },
  };
}

type VersionedRun = BaselineRunRow & Pick<Baseline['runs'][number], 'harnessVersion' | 'profileVersion'>;

/** The runs with the newest known profile, and those whose trials ended before they named a profile. */
function ofOneProfile(runs: readonly VersionedRun[]): VersionedRun[] {
  const newest = runs.find(({ profileVersion }) => profileVersion !== undefined)?.profileVersion;
  return runs.filter(({ profileVersion }) => profileVersion === undefined || profileVersion === newest);
}

function runOf(run: VersionedRun, summaries: { verdict: string }[]): Baseline['runs'][number] {
  const { id, batchId, harnessVersion, profileVersion } = run;
  const count = (verdict: string) => summaries.filter((one) => one.verdict === verdict).length;
  return {
    ...{ id, batchId, harnessVersion, profileVersion },
    startedAt: isoTime(run.startedAt),
    passed: count('passed'),
    failed: count('failed'),
    voided: count('void'),
  };
}
