import pLimit from 'p-limit';
import { readPlan } from '../agent/batch-run.ts';
import { inputError, OffsiteError } from '../base/offsite-error.ts';
import type { Client } from '../client/client.ts';
import { ServiceRefusal, UndecodableAnswer } from '../client/refusal.ts';
import type { Baseline } from '../contract/catalog.ts';
import type { Case, Variant } from '../contract/definition.ts';
import type { RequestOf } from '../contract/operations.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { definitionHash, runVariants } from '../service/record/setup.ts';
import { mostMustFall } from '../stats/further-trials.ts';
import type { CaseVerdicts } from '../stats/pass-rate.ts';
import { promptOf, type SuitePlan } from '../suite/plan.ts';
import { compareSides, confidenceOf, type Side } from './compare-sides.ts';
import type { ComparedBatches } from './comparison.ts';
import { type Reference, sideOf, variantsOf } from './side.ts';

/** Requests in flight at a time. */
const atATime = 4;

/**
 * Asks the service for the baselines of cells. Throws `BASELINES_UNKNOWN` if the service does not have that
 * operation, which is an addition of Offsite's own, and `BASELINES_EMPTY` if it has none with a verdict for
 * any of the cells.
 */
export async function readBaselines(client: Client, cells: Cells, signal: AbortSignal): Promise<Baseline[]> {
  const limit = pLimit(atATime);
  const ask = (request: { caseId: string; variant?: string }) =>
    limit(() => baselinesOf(client, { suite: cells.suiteId, ...request }, signal));
  const ids = [...cells.variants.values()];
  const ofCase = async (caseId: string) => {
    const { baselines, more } = await ask({ caseId });
    // A case may have been run on more variants than an answer has.
    if (more === 0) return baselines;
    const each = await Promise.all(ids.map((variant) => ask({ caseId, variant })));
    return each.flatMap((answer) => answer.baselines);
  };
  const found = (await Promise.all(cells.cases.map(ofCase))).flat();
  const known = found.filter(
    ({ suite, variant, distribution }) =>
      isSuiteOf(cells, suite) && ids.includes(variant.id) && distribution.scored > 0,
  );
  if (known.length === 0) throw noBaseline(`${client.origin} has no baseline for these cases and variants`);
  // If the suite is not known, several suites may have the case: the newest counts.
  const cellOf = (baseline: Baseline) => JSON.stringify([baseline.case.id, baseline.variant.id]);
  return [...Map.groupBy(known, cellOf).values()].flatMap(([newest]) => newest ?? []);
}

/** If the ledger does not have the plan of a batch, it knows the suite only by name. */
function isSuiteOf({ suiteId, suiteName }: Cells, { id, name }: Baseline['suite']): boolean {
  if (suiteId !== undefined) return id === suiteId;
  return suiteName === '' || [id, name].includes(suiteName);
}

function noBaseline(message: string): OffsiteError {
  return inputError('BASELINES_EMPTY', message, {
    hint:
      'Baselines are made of batches that the service runs itself. Results that were reported never count. ' +
      'Compare with a batch on this machine instead: by its id, or by `last`.',
  });
}

async function baselinesOf(client: Client, request: RequestOf<'evals.baseline'>, signal: AbortSignal) {
  try {
    return await client.call('evals.baseline', request, { signal });
  } catch (error) {
    const isRefusal = error instanceof ServiceRefusal || error instanceof UndecodableAnswer;
    if (!isRefusal || ![404, 405, 501].includes(error.status)) throw error;
    throw inputError('BASELINES_UNKNOWN', `${client.origin} has no baselines`, {
      hint: "`evals.baseline` is an operation of Offsite's embedded service. Compare with a batch instead.",
      cause: error,
    });
  }
}

/**
 * Compares a reference with the service's baselines of its cells. The baselines are the older side. They
 * leave out runs of the reference's own batches. A variant without a baseline is named in `variantsOnlyB`.
 * Throws `VARIANT_UNKNOWN` and `BASELINES_EMPTY`.
 */
export function compareWithBaselines(
  ledger: Ledger,
  baselines: readonly Baseline[],
  reference: Reference,
): ComparedBatches {
  const cells = cellsOf(ledger, reference);
  const own = new Set(reference.batches.map(({ id }) => id));
  const others = baselines.map(({ runs, ...baseline }) => ({
    ...baseline,
    runs: runs.filter(({ batchId }) => !own.has(batchId)),
  }));
  const before = new Map(baselineSides(cells, others).map((side) => [side.variant, side]));
  if (before.size === 0)
    throw noBaseline(`the service has no baseline for ${reference.name}, besides itself`);
  const confidence = confidenceOf(before.size);
  const redefined = redefinedCases([...before.keys()], cells, baselines);
  return {
    comparisons: [...before].map(([name, side]) =>
      compareSides(side, sideOf(ledger, reference.batches, name), confidence, redefined),
    ),
    variantsOnlyA: [],
    variantsOnlyB: [...cells.variants.keys()].filter((name) => !before.has(name)),
  };
}

/** The baselines as sides of comparisons, one for each variant of the cells that has any. */
export function baselineSides(cells: Cells, baselines: readonly Baseline[]): Side[] {
  return [...cells.variants.keys()].flatMap((name) => baselineSide(name, cells, baselines) ?? []);
}

/** The baselines of a variant as a side of a comparison; undefined if there is none. */
function baselineSide(name: string, { variants }: Cells, baselines: readonly Baseline[]): Side | undefined {
  const own = baselines.filter(({ variant, runs }) => variant.id === variants.get(name) && runs.length > 0);
  if (own.length === 0) return undefined;
  const runs = own.flatMap((baseline) => baseline.runs);
  const known = (versions: (string | undefined)[]) => [
    ...new Set(versions.filter((version) => version !== undefined)),
  ];
  return {
    batches: [...new Set(runs.map(({ batchId }) => batchId))],
    marks: [],
    variant: name,
    cases: own.map((baseline) => {
      const sum = (count: 'passed' | 'failed' | 'voided') =>
        baseline.runs.reduce((total, run) => total + run[count], 0);
      return {
        id: baseline.case.id,
        passed: sum('passed'),
        failed: sum('failed'),
        void: sum('voided'),
        values: { durationMs: [], tokens: [], costUsd: [] },
      };
    }),
    fingerprints: [],
    unfinished: 0,
    unreadable: 0,
    baseline: {
      runs: runs.length,
      harnessVersions: known(runs.map(({ harnessVersion }) => harnessVersion)),
      profileVersions: known(runs.map(({ profileVersion }) => profileVersion)),
    },
  };
}

/** The cases whose baselines come from another definition. Undefined if that is not known. */
function redefinedCases(
  names: readonly string[],
  cells: Cells,
  baselines: readonly Baseline[],
): string[] | undefined {
  const compared = names.flatMap((name) =>
    baselines
      .filter(({ variant }) => variant.id === cells.variants.get(name))
      .map(({ case: { id }, definitionHash: was }) => ({ id, was, is: cells.definition(id, name) })),
  );
  if (compared.some(({ is }) => is === undefined)) return undefined;
  return [...new Set(compared.filter(({ was, is }) => was !== is).map(({ id }) => id))];
}

/** The cells that a service is asked about. */
export interface Cells {
  /** Undefined for a batch whose plan the ledger does not have. */
  suiteId: string | undefined;
  /** The suite's name, or its id if it has no name; empty if that is not known. */
  suiteName: string;
  cases: string[];
  /** The service's ids of the variants, by the names that the ledger gives them. */
  variants: Map<string, string>;
  /** The hash of what a cell asks and checks; undefined if that is not known. */
  definition(caseId: string, variant: string): string | undefined;
}

/** The cells of a planned suite. */
export function plannedCells(plan: SuitePlan): Cells {
  const { suite, cases, variants } = plan;
  const prompt = promptOf(plan);
  const requested: Variant[] = variants.map(({ model, credentials }) => ({ model, credentials }));
  const ids = runVariants(requested).map(({ id }) => id);
  const byId = new Map<string, Case>(cases.map(({ request }) => [request.id, request]));
  const byName = new Map(variants.map(({ name }, index) => [name, requested[index]]));
  return {
    suiteId: suite.id,
    suiteName: suite.name,
    cases: [...byId.keys()],
    variants: new Map(variants.map(({ name }, index) => [name, ids[index] ?? name])),
    definition(caseId, name) {
      const [planned, variant] = [byId.get(caseId), byName.get(name)];
      if (prompt === undefined || !planned || !variant) return undefined;
      return definitionHash(prompt, planned)(variant);
    },
  };
}

/**
 * The cells of a reference. If the ledger does not have its plan, its variants have the service's ids as
 * their names. Throws `VARIANT_UNKNOWN`.
 */
export function cellsOf(ledger: Ledger, reference: Reference): Cells {
  const { batches } = reference;
  const trials = batches.flatMap(({ key }) => listTrials(ledger.records, key));
  const names = variantsOf(ledger, reference);
  const known = batches[0] && knownPlan(ledger, batches[0]);
  const cells = known && plannedCells(known);
  return {
    suiteId: cells?.suiteId,
    suiteName: batches[0]?.suite ?? '',
    cases: [...new Set(trials.map(({ caseId }) => caseId))],
    variants: new Map(names.map((name) => [name, cells?.variants.get(name) ?? name])),
    definition: (caseId, variant) => cells?.definition(caseId, variant),
  };
}

/** The plan of a batch; undefined if the ledger has none, or an Offsite of another version wrote it. */
function knownPlan({ blobs }: Ledger, { plan }: StoredBatch): SuitePlan | undefined {
  if (plan === undefined) return undefined;
  try {
    return readPlan(blobs.readJson(plan));
  } catch (error) {
    if (error instanceof OffsiteError) return undefined;
    throw error;
  }
}

/** What a planned variant will be compared with. */
interface SideBefore {
  /** The variant of the plan. */
  variant: string;
  cases: readonly CaseVerdicts[];
}

/** A variant of which only the fall of most of its cases, or no fall, would be more than noise. */
export interface BlindVariant {
  variant: string;
  /** How many of its cases must fall to 0 %; Infinity if not even all of them are enough. */
  mustFall: number;
  cases: number;
}

/** The variants that a run of the plan could hardly show to be worse: few cases and trials passed before. */
export function blindVariants(
  { cases, trials }: Pick<SuitePlan, 'cases' | 'trials'>,
  before: readonly SideBefore[],
): BlindVariant[] {
  const planned = new Set(cases.map(({ request }) => request.id));
  const confidence = confidenceOf(before.length);
  return before.flatMap((side) => {
    const common = side.cases.filter(({ id }) => planned.has(id));
    const mustFall = mostMustFall(common, trials, confidence);
    return mustFall === undefined ? [] : [{ variant: side.variant, mustFall, cases: common.length }];
  });
}
