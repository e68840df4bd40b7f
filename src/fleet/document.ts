import type { KnownPlan } from '../agent/stored-plan.ts';
import { readPlan, storedPlan } from '../agent/stored-plan.ts';
import { OffsiteError } from '../offsite-error.ts';
import { parseForeignJson } from '../parse-json.ts';
import type { Config } from '../suite/config-file.ts';
import { findModel } from '../suite/planned-variant.ts';
import { buildsOf } from './contexts.ts';

const version = 1;

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
  /** How many trials it has, if not as many as its batch was planned with. */
  trials?: number | undefined;
}

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

/** A document as it travels. */
export function documentContent(document: FleetDocument): Buffer {
  const { known, ...rest } = document;
  const { plan } = known;
  // Each machine has its own addresses and keys for a model of this name.
  const variants = plan.variants.map((variant) => ({ ...variant, modelConfig: undefined }));
  const kept = { version, ...rest, plan: storedPlan({ ...known, plan: { ...plan, variants } }) };
  return Buffer.from(JSON.stringify(kept));
}

/** Reads a document, with the models as this machine's configuration has them. Throws `FLEET_DOCUMENT_UNREADABLE`. */
export function readDocument(
  content: Buffer,
  config: Config,
  /** Where contexts are unpacked; needed to build. */
  folderOf?: (context: string) => string,
): FleetDocument {
  const read = parseForeignJson(content.toString('utf8')) as { version?: unknown; plan: unknown } & Omit<
    FleetDocument,
    'known'
  >;
  if (read.version !== version) {
    throw new OffsiteError(`the plan of the batch has version ${String(read.version)}, not ${version}`, {
      code: 'FLEET_DOCUMENT_UNREADABLE',
      kind: 'input',
      hint: 'All machines of a fleet need the same version of Offsite.',
    });
  }
  const { plan: stored, ...rest } = read;
  const { plan, prompt } = readPlan(stored);
  for (const { context } of folderOf ? buildsOf(plan) : []) context.folder = folderOf?.(context.hash) ?? '';
  const variants = plan.variants.map((one) => ({ ...one, modelConfig: findModel(one.model, config) }));
  return { ...rest, known: { prompt, plan: { ...plan, variants } } };
}
