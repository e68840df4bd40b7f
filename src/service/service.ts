import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { inputError } from '../base/offsite-error.ts';
import { serviceRequests } from '../bounds/callers.ts';
import { openDatabase } from '../ledger/database.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { reportOf } from '../trial/report.ts';
import { type ApplicationOptions, createApplication } from './application.ts';
import { trialIdentifier } from './identifiers.ts';
import type { Listener, ListenOptions } from './listen.ts';
import type { PlatformTrials } from './platform.ts';
import { modelCosts } from './record/costs.ts';
import { type StoredTrial, storedTrial, withJudgments } from './record/stored-trial.ts';
import type { ServiceAnswer, ServiceRequest } from './request/read-body.ts';
import type { KeyEntry, KeyPurpose } from './store/keys.ts';
import { migrations } from './store/migrations.ts';
import { createStores, createWriter, type Stores, type Writer } from './store/stores.ts';
import type { CompletedFacts } from './store/trials.ts';

export interface ServiceOptions extends ApplicationOptions {
  /** The folder of service.db, which is created if it is missing. Several processes may open it at once. */
  dataFolder: string;
  /** Whether reported trials whose evidence was graded again here count for baselines. Default: no. */
  countsAudited?: boolean;
}

/** The embedded Eval Service. */
export interface Service extends AsyncDisposable {
  /** Answers requests over HTTP, by default on any free port of the loopback address. */
  listen(options?: ListenOptions): Promise<{ url: string; port: number }>;
  /** Answers a request of this process. Never rejects. */
  answer(request: ServiceRequest): Promise<ServiceAnswer>;
  fetch(request: Request): Promise<Response>;
  /** Adds a key with a given secret; changes nothing if it exists. */
  seedKey(secret: string, purpose: KeyPurpose): KeyEntry;
  /** Creates a key. Its secret cannot be read again. */
  createKey(purpose: KeyPurpose): KeyEntry & { secret: string };
  listKeys(): KeyEntry[];
  /** By the key's id. */
  revokeKey(id: string): KeyEntry;
  /** The trials that the platform is to run. */
  readonly platform: PlatformTrials;
  /** Gives requests in flight up to 5 s to end, then closes the database. A second call does nothing. */
  close(): Promise<void>;
}

/** The name of the service's database in its data folder. */
export const serviceDatabase = 'service.db';

/** Throws an `infrastructure` error if service.db cannot be used: see `openDatabase`. */
export function openService(options: ServiceOptions): Service {
  const { dataFolder, clock, countsAudited, log } = options;
  const database = openDatabase(join(dataFolder, serviceDatabase), migrations);
  // In KiB. With SQLite's default of 2 MiB, a large database reads its indexes from the file again and again.
  database.exec('PRAGMA cache_size = -65536');
  const stores = createStores(database, () => clock.now(), countsAudited);
  stores.runs.removeUnlisted(clock.now() - serviceRequests.time.start);
  const writer = createWriter(database);
  const inProgress = new Set<string>();
  const answer = createApplication({ ...options, stores, writer, inProgress });
  const fetch = async (request: Request) => {
    const { body, ...head } = await answer(request);
    return new Response(request.method === 'HEAD' ? null : body, head);
  };
  const listeners: Listener[] = [];
  let closing: Promise<void> | undefined;

  async function closeAll(): Promise<void> {
    await Promise.all(listeners.map((listener) => listener.close(serviceRequests.time.close)));
    writer.flush();
    database.close();
  }

  const close = () => {
    closing ??= closeAll();
    return closing;
  };

  return {
    async listen(options = {}) {
      const { listen } = await import('./listen.ts');
      const listener = await listen(fetch, options, clock);
      listeners.push(listener);
      const minutes = serviceRequests.time.restored / 60_000;
      if (stores.copies.serve())
        log?.warn(
          `restored from a backup: for ${minutes} minutes, nobody can claim trials of its batches, so that results which came after the backup are reported again first`,
        );
      return { url: listener.url, port: listener.port };
    },
    answer,
    fetch,
    seedKey: stores.keys.seed,
    createKey: stores.keys.create,
    listKeys: stores.keys.list,
    revokeKey: stores.keys.revoke,
    platform: createPlatformTrials(stores, writer, clock, inProgress),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** @param inProgress gets the identifiers of the trials that run */
function createPlatformTrials(
  { runs, openRuns, trials }: Stores,
  writer: Writer,
  clock: Clock,
  inProgress: Set<string>,
): PlatformTrials {
  return {
    openRuns: (known = new Set()) => openRuns.all(known),
    complete: (runId, ordinal, result) =>
      writer.write(() => {
        const run = runs.findPlatformRun(runId);
        if (!run || !Number.isInteger(ordinal) || ordinal < 0 || ordinal >= run.trials) {
          throw inputError('RUN_UNKNOWN', `there is no trial ${ordinal} of a platform run ${runId}`);
        }
        if (trials.read(run.key, ordinal)) return 'already';
        const id = trialIdentifier(runId, ordinal);
        const { taskIndex, variant } = run;
        const subject = { caseName: run.case.name, taskIndex, ordinal, model: variant.model };
        const { facts, summary, ...kept } = completedTrial(id, result, subject, clock.now());
        const [record, leftovers] = [JSON.stringify(kept.record), JSON.stringify(kept.leftovers)];
        trials.add(run.key, ordinal, summary, { record, leftovers });
        trials.complete(run.key, ordinal, facts);
        inProgress.delete(id);
        if (trials.summaries(run.key).size === run.trials) openRuns.close(run.key);
        return 'recorded';
      }),
    show(runId, ordinal, status) {
      const id = trialIdentifier(runId, ordinal);
      if (status === 'running') inProgress.add(id);
      else inProgress.delete(id);
    },
  };
}

/**
 * A trial that the platform ran, as it is kept: what a report of it says, and everything for which a report
 * has no field. `now` in epoch milliseconds.
 */
function completedTrial(
  id: string,
  result: TrialRecord,
  subject: { caseName: string; taskIndex: number; ordinal: number; model: string },
  now: number,
): StoredTrial & { facts: CompletedFacts } {
  const report = reportOf(result, { ...subject, sessionId: id });
  const { record, summary, leftovers } = storedTrial(id, report, now);
  const { harnessVersion } = result;
  const costs = modelCosts(result);
  return {
    summary,
    leftovers,
    facts: { harnessVersion, profileVersion: result.subject?.profileVersion, costs },
    record: {
      ...record,
      status: summary.verdict === 'void' ? 'voided' : 'completed',
      filesChanged: result.filesChanged,
      costs,
      validations: withJudgments(result.validations ?? [], result.judgments ?? []),
    },
  };
}
