import { ledgerCassette } from '../agent/ledger-cassette.ts';
import { type GradingParts, gradeAgain, planRegrade } from '../agent/regrade-batch.ts';
import type { LoadedImages } from '../evidence/load-images.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { checksBeside } from '../record/checks-beside.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { LookAgain } from './audit-batch.ts';
import { Checks, notReached } from './checks.ts';
import type { DefinitionParts } from './evidence-of-trial.ts';
import { pinned, trialHere } from './foreign-trial.ts';

export interface RegradedParts extends DefinitionParts, Omit<GradingParts, 'ledger' | 'suite' | 'cassette'> {
  batch: StoredBatch;
  /** Whether the batch comes from somebody else. */
  isForeign: boolean;
  /** Loads the images that came with the evidence, once. The reader does not need them for most trials. */
  brought: () => Promise<LoadedImages>;
  /** Asks judges again, instead of taking their recorded answers. */
  askJudges: boolean;
}

/** Grades what a trial left again, as it was planned, and compares each check. Stores nothing. */
export function regradedLevel(parts: RegradedParts): LookAgain {
  const { ledger, config, batch, askJudges, harnesses } = parts;
  return async ({ trial, record, spec }, signal) => {
    if (typeof spec === 'string') return notReached('regraded', spec);
    const request = { trials: [trial], suite: undefined, onlyMissing: false, newServices: false };
    const { jobs, leftOut } = await planRegrade(request, { ledger, harnesses, revision: { config } });
    const [job] = jobs;
    if (!job) {
      const why = leftOut[0]?.why ?? 'it was left out';
      return notReached('regraded', record.verdict === 'void' ? noVerdict : why);
    }
    const here = await trialHere(job.spec, record, parts);
    if (here.obstacle !== undefined) return notReached('regraded', here.obstacle);
    if (!askJudges && lacksAnswers(record)) return notReached('regraded', unrecorded);
    const judges = askJudges || wereAsked(record) ? job.spec.judges : [];
    const judgesOf = { batch: batch.key, name: batch.id, live: 'never' as const };
    const { now } = await gradeAgain(
      { ...job, spec: { ...here.spec, judges } },
      {
        ...parts,
        suite: undefined,
        ...(!askJudges && { judgesOf, cassette: () => ledgerCassette({ ledger }, batch, trial.key) }),
      },
      signal,
      () => undefined,
    );
    const checks = new Checks();
    for (const note of now.regrade?.notes ?? []) checks.missed(note);
    if (judges.length > 0 && !askJudges)
      checks.missed('judges: their recorded answers were taken; --ask-judges asks them again');
    if (here.isBrought) checks.missed(broughtImage);
    const image = here.isBrought ? undefined : imageObstacle(record, now);
    if (image !== undefined) checks.missed(image);
    // Without a verdict here, nothing is known of the other one.
    if (now.verdict === 'void') {
      checks.missed(`grading gave no verdict here: ${now.cause?.message ?? 'nothing was checked'}`);
      return checks.level('regraded', 'machine');
    }
    // Checks can end otherwise on a slower machine, so that this is no contradiction, but it is said.
    if (record.verdict === 'void') {
      checks.missed(`${noVerdict}; graded here, it ${now.verdict}`);
      return checks.level('regraded', 'evidence');
    }
    checks.same('verdict', 'what the trial left has the same verdict', now.verdict, record.verdict);
    for (const { kind, name, was = 'none', now: found = 'none', changed } of checksBeside(record, now))
      if (changed) checks.contradicted(`${kind} ${name}`, 'each check ends as it did', found, was);
    return checks.level('regraded', image === undefined ? undefined : 'machine');
  };
}

export const noVerdict = 'it has no verdict to compare';

export const broughtImage = 'its environment: it was not made again; its image came with the evidence';

function wereAsked({ models, judgments = [] }: TrialRecord): boolean {
  return (
    (models?.exchanges ?? []).some(({ role }) => role === 'judge') ||
    judgments.some(({ evaluator }) => evaluator === 'rubric')
  );
}

const unrecorded =
  'its judges’ answers were not recorded: --ask-judges asks them again, with your keys and a configuration ' +
  'that has their models; or the suite is run again with `record: full` on these models';

/** Whether judges graded a trial, and what they answered is not in its record. */
export function lacksAnswers(record: TrialRecord): boolean {
  if (!wereAsked(record)) return false;
  const asked = (record.models?.exchanges ?? []).filter(({ role }) => role === 'judge');
  return asked.length === 0 || asked.some(({ responseBody }) => responseBody === undefined);
}

/** An image of a registry must be the same; one that the engine made has no name that two machines share. */
function imageObstacle(record: TrialRecord, now: Pick<TrialRecord, 'images'>): string | undefined {
  for (const { name, digest } of record.images ?? []) {
    const names = [name, pinned(name, record)];
    const here = now.images?.find((one) => names.includes(one.name));
    if (digest !== undefined && here?.digest !== digest)
      return `it was graded in another image ${name}: ${here?.digest ?? 'one without a digest'} in place of ${digest}`;
  }
  return undefined;
}
