import type { BatchEvent } from '../agent/run-batch.ts';
import { listingOf, whyText } from '../record/listing.ts';
import { plainText } from '../text/output.ts';
import type { Printable } from '../text/printable.ts';
import { Context, contextParts } from './context.ts';
import { leftOutText } from './plan-suite.ts';
import { batchNamed, batchOf } from './read-batch.ts';
import { planRun, readyRun } from './run.ts';
import type { Batch, PlaceOptions, RunEvent, RunSuiteOptions } from './types.ts';

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
  await using context = new Context(contextParts({ config, dataFolder }, { env, suite: file }));
  context.note = (message) => tell({ kind: 'note', message });
  signal.addEventListener('abort', () => context.end(), { once: true });
  const progress = {
    note: (message: string | Printable) => context.note(plainText(message, context.redact)),
    update: () => undefined,
  };
  const watched = { progress, signal };
  const chosen = {
    ...choice,
    ...{ variant: variants && [...variants], include: include && [...include] },
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
  return batchNamed(context.ledger({ isChecked: false }), name);
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
        ...{ kind: event.kind, case: id, variant, ordinal },
        ...{ verdict, why, durationMs: finishedAt - startedAt },
      };
    }
    case 'note':
      return event;
    default:
      return undefined;
  }
}
