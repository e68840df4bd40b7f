import { z } from 'zod';
import { readPlan, storedPlan } from '../agent/batch-run.ts';
import { inputError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { fleetStorage } from '../bounds/fleet.ts';
import { RunVariant } from '../contract/record.ts';
import type { Config } from '../suite/config-file.ts';
import { buildsOf, environmentsOf, type SuitePlan } from '../suite/plan.ts';
import { findModel } from '../suite/planned-variant.ts';
import { fleetFormat, otherFormat } from './format.ts';
import { Needs } from './placement.ts';
import { Sha256 } from './storage/storage.ts';

const Name = z.string().max(fleetStorage.bytes.name);

/** A run of a batch, with what the service says about it. */
const FleetRun = z.object({
  id: Name,
  caseId: Name,
  caseName: z.string(),
  variant: z.string(),
  taskIndex: z.int().nonnegative(),
  variantIndex: z.int().nonnegative(),
  variantId: Name.optional(),
  /** Undefined if the service has none. */
  setup: z.unknown().optional(),
  /** What its trials need of a worker. */
  needs: Needs,
  /** How many trials it has, if not as many as its batch was planned with. */
  trials: z.int().positive().optional(),
});
export type FleetRun = z.infer<typeof FleetRun>;

/** The document of a batch as the storage keeps it. */
const KeptBatch = z.object({
  kind: z.literal('planned'),
  batch: Name,
  /** The service's name in ledgers: its address. */
  service: z.string(),
  suite: z.string(),
  file: z.string(),
  plan: z.unknown(),
  runs: z.array(FleetRun),
  /** Trials of each run that has no `trials` of its own. */
  trials: z.int().positive(),
  /** The list of each build context, by the hash of what the context holds. */
  contexts: z.record(Sha256, Sha256).optional(),
});

/** What a worker needs to run trials of a run that somebody else queued, besides its own configuration. */
const FoundDocument = z.object({
  kind: z.literal('found'),
  batch: Name,
  service: z.string(),
  run: z.object({
    id: Name,
    batchId: Name,
    caseId: Name,
    suite: z.string(),
    caseName: z.string(),
    variant: z.string(),
    taskIndex: z.int().nonnegative().optional(),
    details: z.object({ variant: z.object(RunVariant.shape).optional() }),
  }),
  /** Undefined if the service has none. */
  setup: z.unknown().optional(),
  /** The hash of the document of the run's batch, if a fleet was given the batch. */
  planned: Sha256.optional(),
});
export type FoundDocument = z.infer<typeof FoundDocument>;

const Kept = z.discriminatedUnion('kind', [KeptBatch, FoundDocument]);

/** Everything that a worker needs to run trials of a batch, besides models and keys. */
export type FleetDocument = z.infer<typeof KeptBatch> & { plan: SuitePlan };

/** What an order of a trial names. */
export type TrialDocument = FleetDocument | FoundDocument;

/** The bytes of a document, as machines exchange it. */
export function documentContent(document: TrialDocument): Buffer {
  return Buffer.from(JSON.stringify({ version: fleetFormat, ...keptForm(document) }));
}

function keptForm(document: TrialDocument): object {
  if (document.kind === 'found') return document;
  const { plan, ...rest } = document;
  // Each machine has its own addresses and keys for a model of this name.
  const variants = plan.variants.map((variant) => ({ ...variant, modelConfig: undefined }));
  return { ...rest, plan: storedPlan({ ...plan, variants }) };
}

/**
 * Reads a document, with the models as this machine's configuration has them. Throws
 * `FLEET_DOCUMENT_UNREADABLE`, and refuses what may not run here.
 */
export function readDocument(
  content: Buffer,
  config: Config,
  /** Where contexts are unpacked; needed to build. */
  folderOf?: (context: string) => string,
): TrialDocument {
  const read = parseForeignJson(content.toString('utf8')) as { version?: unknown } | null;
  // Another worker may be able to read it.
  if (read?.version !== fleetFormat)
    throw unreadable(`cannot be read: ${otherFormat(String(read?.version))}`, 'infrastructure');
  const { success, data, error } = Kept.safeParse(read);
  if (!success) {
    const [first] = error.issues;
    // Without the error itself, which names all problems: Temporal refuses long failures.
    throw unreadable(`cannot be read: ${first?.path.join('.')}: ${first?.message}`, 'input');
  }
  if (data.kind === 'found') return data;
  const { plan: stored, ...rest } = data;
  const plan = planIn(stored, folderOf);
  refuseMachineParts(plan);
  refuseOtherVariables(plan, config);
  const variants = plan.variants.map((one) => ({ ...one, modelConfig: findModel(one.model, config) }));
  return { ...rest, plan: { ...plan, variants } };
}

/** Throws `FLEET_DOCUMENT_UNREADABLE` for the document of a run that was found. */
export function requirePlanned(document: TrialDocument): FleetDocument {
  if (document.kind === 'planned') return document;
  throw unreadable(`is the document of run ${document.run.id}, which somebody else queued`, 'input');
}

function planIn(stored: unknown, folderOf: ((context: string) => string) | undefined): SuitePlan {
  try {
    const plan = readPlan(stored);
    // Whatever folder the plan names, a worker builds from its own copy.
    for (const { context } of buildsOf(plan)) context.folder = folderOf?.(context.hash) ?? '';
    return plan;
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    throw unreadable(`has a part that is none: ${messageOf(error)}`, 'input', error);
  }
}

function unreadable(why: string, kind: 'input' | 'infrastructure', cause?: unknown): OffsiteError {
  return new OffsiteError(`the plan of the batch ${why}`, {
    code: 'FLEET_DOCUMENT_UNREADABLE',
    kind,
    hint: 'All machines of a fleet need the same version of Offsite.',
    cause,
  });
}

/**
 * Throws `FLEET_MACHINE_PARTS` for a plan that names a repository on the machine that read its suite. Other
 * machines do not have it, and must not read a path that somebody else chose.
 */
export function refuseMachineParts({ cases }: SuitePlan): void {
  for (const planned of cases) {
    if (environmentsOf(planned).every(({ source }) => source === undefined)) continue;
    throw inputError(
      'FLEET_MACHINE_PARTS',
      `the case ${planned.request.id} needs a repository that only one machine has`,
      { hint: 'Put its files into an image, or let prepare fetch them.' },
    );
  }
}

/**
 * Throws `FLEET_PASS_ENV` for a plan whose sandboxes get variables that no sandbox of this machine's own
 * configuration gets: whoever starts a batch must not decide which variables leave this machine.
 */
function refuseOtherVariables({ variants }: SuitePlan, { sandboxes }: Pick<Config, 'sandboxes'>): void {
  const own = new Set(Object.values(sandboxes).flatMap(({ passEnv }) => passEnv));
  const other = variants.flatMap(({ sandbox }) => sandbox.passEnv).find((name) => !own.has(name));
  if (other === undefined) return;
  throw inputError(
    'FLEET_PASS_ENV',
    `the batch asks for the variable ${other} of this worker, which gives it to no sandbox`,
    {
      hint: "Name it in passEnv of a sandbox in the worker's own offsite.yaml, or remove it from the batch's.",
    },
  );
}
