import { readPlan } from '../agent/batch-run.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import type { Case, Variant } from '../contract/definition.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { definitionHash, runVariants } from '../service/record/setup.ts';
import { mostMustFall } from '../stats/further-trials.ts';
import type { CaseVerdicts } from '../stats/pass-rate.ts';
import { promptOf, type SuitePlan } from '../suite/plan.ts';
import { confidenceOf } from './comparison.ts';
import { type Reference, variantsOf } from './side.ts';

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
function knownPlan({ blobs }: Ledger, { plan: sha256 }: StoredBatch): SuitePlan | undefined {
  const stored = sha256 === undefined ? undefined : blobs.tryRead(sha256);
  if (!stored) return undefined;
  try {
    return readPlan(JSON.parse(stored.toString('utf8')));
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
