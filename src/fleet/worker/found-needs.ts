import { z } from 'zod';
import type { FoundRunDetails } from '../../agent/specify.ts';
import type { Clock } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { Config } from '../../suite/config-file.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import type { FleetConnection } from '../connect.ts';
import type { FoundDocument } from '../document.ts';
import { fleetFormat } from '../format.ts';
import type { Needs } from '../placement/needs.ts';
import { foundNeeds } from '../placement/planned-needs.ts';
import { unmet } from '../placement/unmet.ts';
import type { WorkerProfile } from '../placement/worker-profile.ts';
import { isThere, seenWorkers } from '../seen-workers.ts';
import { damaged, Sha256 } from '../storage/contents.ts';
import { type FleetStorage, rerunName } from '../storage/storage.ts';
import type { Documents } from './documents.ts';

export interface FoundNeedsParts {
  connection: FleetConnection;
  storage: FleetStorage;
  documents: Documents;
  clock: Clock;
  config(): Config;
  harnesses: readonly HarnessOffer[];
}

/** Whether a run's trials may be started, with the document of its batch if a fleet was given the batch. */
type RunReadiness =
  | { kind: 'ready'; needs: Needs; planned: string | undefined }
  /** The run is of a batch that has a workflow. */
  | { kind: 'own' }
  | { kind: 'waiting'; reason: string };

const BatchNote = z.object({ document: Sha256 });

/** Finds out what the runs that a look found need, and whether a worker has it. */
export class FoundNeeds {
  readonly #parts: FoundNeedsParts;
  readonly #pool: string;
  /** The documents of the batches that a fleet was given, by batch. */
  readonly #planned = new Map<string, Promise<string | undefined>>();
  #there: Promise<WorkerProfile[]> | undefined;

  constructor(pool: string, parts: FoundNeedsParts) {
    this.#pool = pool;
    this.#parts = parts;
  }

  /** Resolves with whether the trials of a run may be started now, and on which workers. */
  async of(run: FoundDocument['run']): Promise<RunReadiness> {
    const { documents, config, harnesses, storage } = this.#parts;
    const { id, batchId, caseId } = run;
    const details = run.details as FoundRunDetails;
    const most = fleetMessages.bytes.foundId;
    if (id.length > most || batchId.length > most)
      return { kind: 'waiting', reason: `their ids have more than ${most} characters` };
    let planned: string | undefined;
    let needs: ReturnType<typeof foundNeeds> | undefined;
    try {
      planned = await this.#plannedOf(batchId);
      if (planned !== undefined) {
        const { runs } = await documents.planned({ document: planned });
        // The batch's own workflow has it.
        if (runs.some((own) => own.id === id)) return { kind: 'own' };
        if ((await storage.note('reruns', rerunName(batchId, id))) !== undefined) return { kind: 'own' };
        // A run that was added to the batch runs as the batch was planned.
        needs = runs.find((own) => own.caseId === caseId && own.variantId === details.variant?.id)?.needs;
      }
    } catch (error) {
      // Without the batch's plan, it is not known whether a fleet runs the run already.
      if (!isUnreadable(error)) throw error;
      return { kind: 'waiting', reason: `the plan of their batch cannot be read: ${error.message}` };
    }
    needs ??= foundNeeds(details, config(), harnesses);
    if ('reason' in needs) return { kind: 'waiting', reason: needs.reason };
    const reason = unmet(needs, this.#pool, await this.#workers());
    return reason === undefined ? { kind: 'ready', needs, planned } : { kind: 'waiting', reason };
  }

  #workers(): Promise<WorkerProfile[]> {
    const { connection, storage, clock } = this.#parts;
    this.#there ??= seenWorkers(connection, storage, clock).then((seen) =>
      seen.flatMap((one) => (isThere(one) && one.profile?.format === fleetFormat ? one.profile : [])),
    );
    return this.#there;
  }

  #plannedOf(batch: string): Promise<string | undefined> {
    const { storage } = this.#parts;
    const known =
      this.#planned.get(batch) ?? storage.note('batches', batch).then((note) => documentIn(note, batch));
    this.#planned.set(batch, known);
    return known;
  }
}

function documentIn(note: unknown, batch: string): string | undefined {
  if (note === undefined) return undefined;
  const read = BatchNote.safeParse(note);
  if (read.success) return read.data.document;
  throw damaged(`the note of batch ${batch} in the storage`, 'it names no plan');
}

/** Whether the storage answers, but the content is missing or damaged. */
function isUnreadable(error: unknown): error is OffsiteError {
  return error instanceof OffsiteError && error.code !== 'FLEET_STORAGE_UNUSABLE';
}
