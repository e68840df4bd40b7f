import type { KnownPlan } from '../agent/stored-plan.ts';
import { readPlan, storedPlan } from '../agent/stored-plan.ts';
import type { FoundRun } from '../ledger/batches.ts';
import { OffsiteError } from '../offsite-error.ts';
import { parseForeignJson } from '../parse-json.ts';
import type { Config } from '../suite/config-file.ts';
import { findModel } from '../suite/planned-variant.ts';
import { fleetFormat, otherFormat } from './format.ts';
import type { Needs } from './placement/needs.ts';
import { hashOf } from './storage/contents.ts';
import type { FleetStorage } from './storage/storage.ts';

/** A run of a batch, with what the service says about it. */
export interface FleetRun {
  id: string;
  taskIndex: number;
  caseId: string;
  caseName: string;
  variant: string;
  variantIndex: number;
  details: unknown;
  variantId: string | undefined;
  setup: unknown;
  /** What its trials need of a worker. */
  needs: Needs;
}

/** Everything that a worker needs to run trials of a batch, besides models and keys. */
export interface FleetDocument {
  kind: 'planned';
  batch: string;
  /** The service's name in ledgers: its address. */
  service: string;
  suite: string;
  file: string;
  known: KnownPlan;
  runs: FleetRun[];
  /** Trials of each run. */
  trials: number;
}

/** What a worker needs to run trials of a run that somebody else queued, besides its own configuration. */
export interface FoundDocument {
  kind: 'found';
  batch: string;
  service: string;
  run: Omit<FoundRun, 'service' | 'setup' | 'ordinals' | 'lock'>;
  setup: unknown;
  /** The hash of the document of its batch, if a fleet was given that. */
  planned: string | undefined;
}

/** What an order of a trial names. */
export type TrialDocument = FleetDocument | FoundDocument;

/** Puts the document of a run that was found into the storage. Resolves with its hash. */
export async function putFoundDocument(document: FoundDocument, storage: FleetStorage): Promise<string> {
  const content = Buffer.from(JSON.stringify({ version: fleetFormat, ...document }));
  const sha256 = hashOf(content);
  await storage.put(sha256, content);
  return sha256;
}

/** Puts the document of a batch into the storage. Resolves with its hash. */
export async function putDocument(document: FleetDocument, storage: FleetStorage): Promise<string> {
  const { known, ...rest } = document;
  const { plan } = known;
  // Each machine has its own addresses and keys for a model of this name.
  const variants = plan.variants.map((variant) => ({ ...variant, modelConfig: undefined }));
  const kept = { version: fleetFormat, ...rest, plan: storedPlan({ ...known, plan: { ...plan, variants } }) };
  const content = Buffer.from(JSON.stringify(kept));
  const sha256 = hashOf(content);
  await storage.put(sha256, content);
  return sha256;
}

/** Reads the document of a batch, as {@link getDocument} does. */
export async function getPlanned(
  sha256: string,
  storage: FleetStorage,
  config: Config,
): Promise<FleetDocument> {
  return requirePlanned(await getDocument(sha256, storage, config));
}

/** Throws `FLEET_DOCUMENT_UNREADABLE` for the document of a run that was found. */
export function requirePlanned(document: TrialDocument): FleetDocument {
  if (document.kind === 'planned') return document;
  throw new OffsiteError(`the document of run ${document.run.id} is none of a batch`, {
    code: 'FLEET_DOCUMENT_UNREADABLE',
    kind: 'infrastructure',
  });
}

type Stored =
  | FoundDocument
  /** Documents of older versions have no kind. */
  | ({ plan: unknown; kind?: 'planned' } & Omit<FleetDocument, 'known' | 'kind'>);

/** Reads a document, with the models as this machine's configuration has them. Throws `FLEET_DOCUMENT_UNREADABLE`. */
export async function getDocument(
  sha256: string,
  storage: FleetStorage,
  config: Config,
): Promise<TrialDocument> {
  const content = await storage.get(sha256);
  const read = parseForeignJson(content.toString('utf8')) as { version?: unknown } & Stored;
  if (read.version !== fleetFormat) {
    throw new OffsiteError(`cannot read the plan of the batch: ${otherFormat(String(read.version))}`, {
      code: 'FLEET_DOCUMENT_UNREADABLE',
      // Another worker may be able to read it.
      kind: 'infrastructure',
      hint: 'All machines of a fleet need the same version of Offsite.',
    });
  }
  if (read.kind === 'found') return read;
  const { plan: stored, ...rest } = read;
  const { plan, prompt } = readPlan(stored);
  const variants = plan.variants.map((one) => ({ ...one, modelConfig: findModel(one.model, config) }));
  return { ...rest, kind: 'planned', known: { prompt, plan: { ...plan, variants } } };
}
