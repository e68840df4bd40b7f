import { Command } from '@commander-js/extra-typings';
import { shortBatchIds } from '../../ledger/find.ts';
import { findTarget } from '../../ledger/find-target.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { failuresOf } from '../../record/failures.ts';
import { readRecord } from '../../record/read-record.ts';
import { commandsOf, timelineOf } from '../../record/timeline.ts';
import type { Printable } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { withConfigAndData } from '../options.ts';
import { printPaged } from '../output/pager.ts';
import type { CommonOptions } from '../settings.ts';
import { batchView, readBatch, readSet, setDocument, setView } from '../show/batch-view.ts';
import { comparisonTime, diffOf } from '../show/changes.ts';
import { announceOlder, isLast, shownTrial, trialNeeded } from '../show/open-trial.ts';
import { type Part, parts, partsOf, type ShownTrial, storyOf } from '../show/story.ts';

export function showCommand() {
  return withConfigAndData(new Command('show'))
    .description(
      'show a batch, a set, a run, or what happened in a trial: why it failed, its output, its diff',
    )
    .argument(
      '[what...]',
      'an id of a batch, a set or a run, or its beginning; `last`; case/variant, or BATCH:case/variant; ' +
        'with #ordinal a trial (default: the last batch)',
    )
    .option('--verify', 'only the checks of a trial: verify, validations, judgments, in full')
    .option('--diff', 'only what changed in its files, in full')
    .option('--transcript', 'only what its harness, tools and commands did and said, in full')
    .option('--model', 'only its requests to models, and its connections')
    .option('--json', 'print one JSON document on stdout')
    .option('--no-pager', 'print everything at once, even on a terminal')
    .action(async (what, options) => {
      await using context = CommandContext.open(options);
      await show(context, what.join(' '), options);
    });
}

type ShowOptions = CommonOptions & { pager: boolean } & { [option in Part]?: true };

async function show(context: CommandContext, reference: string, options: ShowOptions): Promise<void> {
  const { out, env } = context;
  const ledger = context.ledger({ isChecked: false });
  const print = (content: Printable) => printPaged(out, content, { env, wanted: options.pager });
  const width = out.columns ?? 160;
  const set = ledger.sets.find(reference);
  if (set) {
    const shown = readSet(ledger, set, { texts: options.json === true });
    return options.json ? out.json(setDocument(shown)) : print(setView(shown, ledger, width));
  }
  const target = findTarget(ledger.records, reference);
  announceOlder(context, ledger, target);
  const wanted = parts.filter((part) => options[part]);
  if (wanted.length > 0 && target.kind !== 'trial')
    throw trialNeeded(target, `${wanted.map((part) => `--${part}`).join(' and ')} shows a part of a trial`);
  if (target.kind === 'trial') {
    const shown = shownTrial(ledger, target);
    if (options.json) out.json(trialDocument(shown, wanted, ledger));
    else await print(wanted.length > 0 ? partsOf(shown, wanted) : storyOf(shown));
    return;
  }
  const { batch } = target;
  const part = ledger.sets.partNumbers().get(batch.key);
  const shown = readBatch(ledger, batch, {
    run: target.kind === 'run' ? target.run : undefined,
    texts: options.json === true,
  });
  if (shown.unreadable > 0) process.exitCode = exitCodes.infrastructure;
  if (options.json) {
    const { suite, startedAt, state } = batch;
    const { notPassed: _, summary, superseded, unreadable, left, marks } = shown;
    out.json({
      suite,
      startedAt,
      state,
      set: part,
      left,
      ...(marks.length > 0 && { marks }),
      ...(superseded.length > 0 && { superseded: superseded.length }),
      ...(unreadable > 0 && { unreadable }),
      ...summary,
    });
    return;
  }
  const short = shortBatchIds(ledger.records)(batch.id);
  await print(batchView(shown, { short, isLast: isLast(ledger, batch), part, width }));
}

/**
 * A trial as one JSON document, with the names that `offsite export` uses: either everything or the wanted
 * parts. Contents that the record keeps in blobs come with the paths of the blobs.
 */
export function trialDocument(shown: ShownTrial, wanted: readonly Part[], ledger: Ledger): unknown {
  const { batch, run, trial, record, details, read } = shown;
  const { verifySteps = [], validations = [], judgments = [], changes = [] } = record;
  const blob = (sha256: string | undefined) =>
    sha256 === undefined ? undefined : ledger.blobs.pathOf(sha256);
  const time = comparisonTime();
  const whole: Record<Part, () => object> = {
    verify: () => ({ verifySteps, validations, judgments }),
    diff: () => ({
      diff: changes.map((change) => ({
        ...diffOf(change, read, time),
        before: change.before && { ...change.before, blob: blob(change.before.content) },
        after: change.after && { ...change.after, blob: blob(change.after.content) },
      })),
    }),
    transcript: () => ({
      timeline: timelineOf(record),
      commands: commandsOf(record) ?? [],
      events: record.events ?? [],
      harnessOutput: record.harnessOutput,
      environment: record.environment?.map((step) => ({ ...step, blob: blob(step.log) })),
      services: record.services?.map((service) => ({ ...service, blob: blob(service.log) })),
    }),
    model: () => ({ models: record.models }),
  };
  const named = {
    batch: { id: batch.id, service: batch.service, suite: batch.suite, startedAt: batch.startedAt },
    run: { id: run.id, caseId: run.caseId, caseName: run.caseName, variant: run.variant },
    ordinal: trial.ordinal,
    verdict: record.verdict,
    ...(trial.report === 'superseded' && { superseded: true }),
    failures: failuresOf(record),
    recordBlob: details.record,
  };
  if (wanted.length > 0) return Object.assign({}, named, ...wanted.map((part) => whole[part]()));
  const attempts = details.attempts.map(({ record: kept, ...attempt }) => ({
    ...attempt,
    ...(kept && { record: attemptRecord(ledger, kept.sha256), recordBlob: kept }),
  }));
  const { artifacts } = details;
  const gradings = shown.gradings.map(({ record: sha256, ...grading }) => ({
    ...grading,
    recordBlob: { sha256, path: ledger.blobs.pathOf(sha256) },
  }));
  return {
    ...named,
    attempts,
    gradings,
    audit: shown.audit,
    record,
    timeline: timelineOf(record),
    ...whole.diff(),
    artifacts,
  };
}

/** What an attempt that does not count had found; undefined if it cannot be read. */
function attemptRecord({ blobs }: Ledger, sha256: string): unknown {
  const kept = blobs.tryReadClean(sha256);
  return kept && readRecord(JSON.parse(kept.toString('utf8')), 'the record of an attempt');
}
