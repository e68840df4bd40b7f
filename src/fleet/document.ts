import { z } from 'zod';
import type { KnownPlan } from '../agent/stored-plan.ts';
import { readPlan, storedPlan } from '../agent/stored-plan.ts';
import { fleetStorage } from '../bounds/fleet.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import { parseForeignJson } from '../parse-json.ts';
import type { Config } from '../suite/config-file.ts';
import { findModel } from '../suite/planned-variant.ts';
import { buildsOf } from './contexts.ts';
import { refuseMachineParts, refuseOtherVariables } from './machine-parts.ts';
import { hashOf, Sha256 } from './storage/contents.ts';
import type { FleetStorage } from './storage/storage.ts';

const version = 1;

const Name = z.string().max(fleetStorage.bytes.name);

/** A run of a batch, with what the service says about it. */
const FleetRun = z.object({
  ...{ id: Name, caseId: Name, caseName: z.string(), variant: z.string() },
  ...{ taskIndex: z.int().nonnegative(), variantIndex: z.int().nonnegative() },
  details: z.unknown(),
  variantId: Name.optional(),
  setup: z.unknown(),
  /** How many trials it has, if not as many as its batch was planned with. */
  trials: z.int().positive().optional(),
});
export type FleetRun = z.infer<typeof FleetRun>;

/** A document as the storage keeps it. */
const Kept = z.object({
  ...{ batch: Name, service: z.string(), suite: z.string(), file: z.string() },
  plan: z.unknown(),
  runs: z.array(FleetRun),
  trials: z.int().positive(),
  contexts: z.record(Sha256, Sha256).optional(),
});

/** Everything that a worker needs to run trials of a batch, besides models and keys. */
export interface FleetDocument {
  batch: string;
  /** The service's name in ledgers: its address. */
  service: string;
  suite: string;
  file: string;
  known: KnownPlan;
  runs: FleetRun[];
  /** Trials of each run that does not say it itself. */
  trials: number;
  /** The list of each build context, by the hash of what the context holds. */
  contexts?: Record<string, string> | undefined;
}

/** Puts a document into the storage. Resolves with its hash. */
export async function putDocument(document: FleetDocument, storage: FleetStorage): Promise<string> {
  const { known, ...rest } = document;
  const { plan } = known;
  // Each machine has its own addresses and keys for a model of this name.
  const variants = plan.variants.map((variant) => ({ ...variant, modelConfig: undefined }));
  const kept = { version, ...rest, plan: storedPlan({ ...known, plan: { ...plan, variants } }) };
  const content = Buffer.from(JSON.stringify(kept));
  const sha256 = hashOf(content);
  await storage.put(sha256, content);
  return sha256;
}

/** Reads a document, with the models as this machine's configuration has them. Throws `FLEET_DOCUMENT_UNREADABLE`, and refuses what may not run here. */
export async function getDocument(
  sha256: string,
  storage: FleetStorage,
  config: Config,
  /** Where contexts are unpacked; needed to build. */
  folderOf?: (context: string) => string,
): Promise<FleetDocument> {
  const content = await storage.get(sha256, fleetStorage.bytes.document);
  const read = parseForeignJson(content.toString('utf8')) as { version?: unknown };
  if (read.version !== version) throw unreadable(`has version ${String(read.version)}, not ${version}`);
  const { success, data, error } = Kept.safeParse(read);
  if (!success) {
    const [first] = error.issues;
    throw unreadable(`cannot be read: ${first?.path.join('.')}: ${first?.message}`, error);
  }
  const { plan: stored, ...rest } = data;
  const { plan, prompt } = planIn(stored, folderOf);
  refuseMachineParts(plan);
  refuseOtherVariables(plan, config);
  const variants = plan.variants.map((one) => ({ ...one, modelConfig: findModel(one.model, config) }));
  return { ...rest, known: { prompt, plan: { ...plan, variants } } };
}

function planIn(stored: unknown, folderOf: ((context: string) => string) | undefined): KnownPlan {
  try {
    const known = readPlan(stored);
    // Whatever folder the plan names, a worker builds from its own copy.
    for (const { context } of buildsOf(known.plan)) context.folder = folderOf?.(context.hash) ?? '';
    return known;
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    throw unreadable(`has a part that is none: ${messageOf(error)}`, error);
  }
}

function unreadable(why: string, cause?: unknown): OffsiteError {
  return new OffsiteError(`the plan of the batch ${why}`, {
    code: 'FLEET_DOCUMENT_UNREADABLE',
    kind: 'input',
    hint: 'All machines of a fleet need the same version of Offsite.',
    cause,
  });
}
