import { infrastructureError, inputError, type OffsiteError } from '../base/offsite-error.ts';
import type { StoredBatch, StoredRun } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { noEnvironment } from '../suite/environment.ts';
import { type PlannedCase, type PlannedVariant, promptOf, type SuitePlan } from '../suite/plan.ts';

/** A run of a batch: what the ledger has of it, with its planned case and variant. */
export interface Run extends Omit<StoredRun, 'variant'> {
  case: PlannedCase;
  variant: PlannedVariant;
  variantIndex: number;
}

/** A batch that the service has started and the ledger knows. */
export interface OpenBatch {
  key: number;
  id: string;
  plan: SuitePlan;
  runs: Run[];
}

/** Finds what was planned for a run. Throws `RUN_UNKNOWN` if nothing was. */
export function plannedRun(
  plan: SuitePlan,
  { caseId, variantIndex }: Pick<Run, 'caseId' | 'variantIndex'>,
): Pick<Run, 'case' | 'variant'> {
  const planned = plan.cases.find(({ request }) => request.id === caseId);
  const variant = plan.variants[variantIndex];
  if (!planned || !variant) {
    const what = `a run of case ${caseId} on variant ${variantIndex}`;
    throw infrastructureError('RUN_UNKNOWN', `the service started ${what}, which Offsite did not ask for`);
  }
  return { case: planned, variant };
}

/**
 * A batch as the ledger has it. Hold the batch's lock when you call this, because another process may have
 * changed it. Throws `NOT_RESUMABLE` for a batch without a plan, `PLAN_UNREADABLE` and `BLOB_DAMAGED`.
 *
 * @param known its plan, if this process has it
 */
export function openBatch(
  { key, id, plan: stored }: Pick<StoredBatch, 'key' | 'id' | 'plan'>,
  ledger: Ledger,
  known?: SuitePlan,
): OpenBatch {
  if (stored === undefined) throw notResumable(`batch ${id}`);
  const plan = known ?? readPlan(ledger.blobs.readJson(stored));
  const runs = ledger.batches.runs(key).map((run) => ({ ...run, ...plannedRun(plan, run) }));
  return { key, id, plan, runs };
}

export function notResumable(name: string): OffsiteError {
  return inputError(
    'NOT_RESUMABLE',
    `${name} was started by a version of Offsite that did not store its plan`,
    { hint: 'Run the suite again. The finished trials are still reported.' },
  );
}

/** The version of the stored form. A plan of another version is refused. */
export const planFormat = 1;

/**
 * A plan as JSON, as the ledger keeps it. It suffices to continue the batch without the suite's files. It
 * names the environment variables that hold keys, never their values.
 */
export function storedPlan(plan: SuitePlan): unknown {
  const { cases, variants } = plan;
  const local = cases.map((one) => ({ ...one, local: withFiles(one.local, stored) }));
  return {
    version: planFormat,
    prompt: promptOf(plan) ?? '',
    plan: { ...plan, variants: withFiles(variants, stored), cases: local },
  };
}

/** Reads what {@link storedPlan} returned. Throws `PLAN_UNREADABLE` for a plan of another version. */
export function readPlan(json: unknown): SuitePlan {
  const { version, prompt, plan } = json as { version: number; prompt: string; plan: SuitePlan };
  if (version !== planFormat) {
    throw inputError(
      'PLAN_UNREADABLE',
      `the stored plan has version ${version}; this Offsite reads version ${planFormat}`,
      { hint: 'Resume the batch with the Offsite that started it, or run the suite again.' },
    );
  }
  const cases = plan.cases.map(({ request, local }) => {
    // A plan that an older Offsite stored has no environments.
    return {
      request,
      local: withFiles({ ...local, environment: local.environment ?? noEnvironment }, placed),
    };
  });
  // A plan that an older Offsite stored may still name the prompt at the service.
  const suite =
    prompt === '' ? plan.suite : { ...plan.suite, prompt: { kind: 'text' as const, text: prompt } };
  return { ...plan, suite, variants: withFiles(plan.variants, placed), cases };
}

/** A part of a plan with each entry of its lists `files` in another form, however deep they are. */
function withFiles<Part>(part: Part, change: (file: File) => File): Part {
  if (Array.isArray(part)) return part.map((one) => withFiles(one, change)) as Part;
  if (typeof part !== 'object' || part === null) return part;
  const members = Object.entries(part).map(([name, value]) => {
    const isFiles = name === 'files' && Array.isArray(value);
    return [name, isFiles ? value.map(change) : withFiles(value, change)];
  });
  return Object.fromEntries(members) as Part;
}

/** A file of a plan has its content, a stored one its base64. Links and folders have neither. */
type File = { content?: Buffer; base64?: string };

function stored({ content, ...file }: File): File {
  return content === undefined ? file : { ...file, base64: content.toString('base64') };
}

function placed({ base64, ...file }: File): File {
  return base64 === undefined ? file : { ...file, content: Buffer.from(base64, 'base64') };
}
