import type { BatchEvent } from '../agent/run-batch.ts';
import { readReference } from '../comparison/side.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { listTrials } from '../ledger/find.ts';
import { labelOf } from '../ledger/find-target.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { listingsOf } from '../ledger/listings.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import { listingOf, type TrialListing, whyText } from '../record/listing.ts';
import { readRecord } from '../record/read-record.ts';
import { plainText } from '../text/output.ts';
import type { Printable } from '../text/printable.ts';
import { Context, contextParts } from './context.ts';
import { leftOutText } from './plan-suite.ts';
import { planRun, readyRun } from './run.ts';
import type { Batch, PlaceOptions, RunEvent, RunSuiteOptions, Trial, TrialRecord } from './types.ts';

export async function runSuite(file: string, options: RunSuiteOptions): Promise<Batch> {
  const { config, dataFolder, env = process.env, variants, include, exclude, ...choice } = options;
  const failing = new AbortController();
  const signal = AbortSignal.any([failing.signal, ...(options.signal ? [options.signal] : [])]);
  signal.throwIfAborted();
  const tell = (event: RunEvent) => {
    try {
      options.onEvent?.(event);
    } catch (error) {
      failing.abort(error);
    }
  };
  await using context = new Context(
    contextParts({ config, dataFolder }, { env, suite: file, creates: true }),
  );
  context.note = (message) => tell({ kind: 'note', message });
  signal.addEventListener('abort', () => context.end(), { once: true });
  const progress = {
    note: (message: string | Printable) => context.note(plainText(message, context.redact)),
    update: () => undefined,
  };
  const watched = { progress, signal };
  const chosen = {
    ...choice,
    variant: variants && [...variants],
    include: include && [...include],
    exclude: exclude && [...exclude],
  };
  const { plan, leftOut } = await planRun(context, file, chosen, watched);
  const left = leftOutText(leftOut);
  if (left) progress.note(left);
  await using run = await readyRun(context, plan, chosen, watched);
  const { ledger, service } = run.workshop;
  const finished = await run.work((event) => {
    const told = runEvent(event);
    if (told) tell(told);
  });
  const ids = new Set(finished.batches.map(({ id }) => id));
  const batches = [...ids].flatMap((id) => ledger.batches.find(id)).filter((one) => one.service === service);
  return batchOf(ledger, batches, finished.set);
}

export async function readBatch(name: string, options: PlaceOptions): Promise<Batch> {
  const { env = process.env, ...place } = options;
  await using context = new Context(contextParts(place, { env }));
  const ledger = context.ledger({ isChecked: false });
  const { batches } = readReference(ledger, name);
  return batchOf(ledger, batches, ledger.sets.find(name)?.id);
}

/** What a program is told of an event; undefined if nothing. */
function runEvent(event: BatchEvent): RunEvent | undefined {
  switch (event.kind) {
    case 'started':
      return { kind: 'started', batchId: event.batchId, trials: event.trials.length };
    case 'finished': {
      const { run, ordinal } = event.trial;
      const { verdict, startedAt, finishedAt } = event.result;
      const why = whyText(listingOf(event.result));
      const [id, variant] = [run.case.request.id, run.variant.name];
      return {
        kind: event.kind,
        case: id,
        variant,
        ordinal,
        verdict,
        why,
        durationMs: finishedAt - startedAt,
      };
    }
    case 'note':
      return event;
    default:
      return undefined;
  }
}

/** The batches of one suite as one. Reads no records. */
function batchOf(ledger: Ledger, batches: readonly StoredBatch[], set?: string): Batch {
  const [first] = batches;
  if (!first) throw new Error('there is no batch');
  const listed = batches.flatMap((batch) => {
    const listings = listingsOf(ledger, batch.key);
    return listTrials(ledger.records, batch.key).map((trial) => {
      return { batch, trial, listing: listings.get(trial.key) };
    });
  });
  const finished = listed.filter(({ trial }) => trial.verdict !== undefined);
  const trials = finished.map(({ batch, trial, listing }) => trialOf(ledger, batch.id, trial, listing));
  const count = (verdict: Trial['verdict']) => trials.filter((trial) => trial.verdict === verdict).length;
  const [passed, failed] = [count('passed'), count('failed')];
  return {
    id: set ?? first.id,
    batchIds: batches.map(({ id }) => id),
    suite: first.suite,
    service: first.service,
    startedAt: Math.min(...batches.map(({ startedAt }) => startedAt)),
    passed,
    failed,
    void: count('void'),
    passRate: passed + failed === 0 ? undefined : passed / (passed + failed),
    unfinished: listed.length - finished.length,
    tokens: sumOf(trials.map(({ tokens }) => tokens)),
    costUsd: sumOf(trials.map(({ costUsd }) => costUsd)),
    trials,
  };
}

function trialOf(
  { blobs }: Ledger,
  batchId: string,
  { caseId, variant, ordinal, verdict = 'void', result = '' }: StoredTrial,
  listing: TrialListing | undefined,
): Trial {
  const name = `${labelOf({ caseId, variant })}#${ordinal}`;
  // What the ledger has of it is in a file, so it can be read after the ledger is closed.
  const record = () => readRecord(blobs.readClean(result), `the record of ${name}`);
  return {
    name: `${batchId}:${name}`,
    case: caseId,
    variant,
    ordinal,
    verdict,
    why: listing ? whyText(listing) : 'its record cannot be read',
    startedAt: listing?.startedAt,
    durationMs: listing && listing.finishedAt - listing.startedAt,
    tokens: listing?.totalTokens,
    costUsd: listing?.costUsd,
    recordFile: blobs.pathOf(result),
    record: (): TrialRecord => record(),
    artifacts: () =>
      (record().artifacts ?? []).map(({ path, byteSize, sha256 }) => {
        return { path, byteSize, sha256, file: blobs.pathOf(sha256) };
      }),
  };
}

/** The sum; undefined if a part is not known. */
function sumOf(parts: readonly (number | undefined)[]): number | undefined {
  return parts.includes(undefined) ? undefined : parts.reduce((sum = 0, part = 0) => sum + part, 0);
}
