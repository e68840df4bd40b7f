import { resolve } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { reconcileEarlier } from '../../agent/reconcile.ts';
import { planOfAny, type Resumable, resumeAny } from '../../agent/run-set.ts';
import { type NotCompared, type OlderSide, olderSideIfAny } from '../../api/compare-to.ts';
import {
  atWorkText,
  canceledHere,
  chosenToResume,
  lockOf,
  nameOf,
  requirePlanned,
  storedOf,
  suiteToResume,
  takeBackOpen,
} from '../../api/resume.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock } from '../../ledger/queue.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import { commitText } from '../../record/suite-commit.ts';
import type { Config } from '../../suite/config-file.ts';
import { lines, ours, type Printable, text } from '../../text/printable.ts';
import { duration, plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { daemonListens, daemonMode } from '../daemon/ask-daemon.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OptionsOf, wholeNumber, withService } from '../options.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import { type BatchSummary, mergedSummary } from '../output/summary.ts';
import { printIncompleteResults, saveWhenInterrupted } from '../results/incomplete.ts';
import { refuseBadResults, withResults } from '../results/options.ts';
import { type BatchResults, printResults, wantsDetails } from '../results/print-results.ts';

export function resumeCommand() {
  return withResults(withService(new Command('resume')))
    .description(
      'continue batches that were stopped: finished trials do not run again, and results are reported',
    )
    .argument(
      '[batch]',
      'an id of a batch, of a set, or of a run, or its beginning (default: all unfinished)',
    )
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option(
      '--start-again',
      'start batches of a set again whose start got no answer, if the service lists no matching batch',
    )
    .action(async (batch, options) => {
      process.exitCode = await resumeBatches(batch, options);
    });
}

type ResumeOptions = OptionsOf<typeof resumeCommand>;

async function resumeBatches(id: string | undefined, options: ResumeOptions): Promise<number> {
  refuseBadResults(options);
  const suiteOf = (ledger: Ledger) => suiteToResume(ledger, id);
  await using context = await CommandContext.openFor(options, suiteOf, { creates: id === undefined });
  const { dataFolder, clock, redact, out, runners } = context;
  using progress = await context.progress(options);
  const interrupted = context.interruption();
  const { signal } = interrupted;
  const workshop = await progress.step('connecting to engine and service', () => context.workshop(signal));
  const { ledger, service } = workshop;
  interrupted.noteCrashesIn({ dataFolder, redact, crashes: ledger.crashes });
  await progress.step('reading what the service has', () =>
    reconcileEarlier(service, { ...workshop, note: progress.note }, signal),
  );
  const canceled = id === undefined ? undefined : canceledHere(ledger, service, id);
  if (canceled) {
    const { name } = canceled;
    const trials = await takeBackOpen(canceled, workshop, signal);
    const count = plural(trials.length, 'canceled trial');
    progress.note(
      text`${name}: ${count} of the service; they are queued again for the daemon of this data folder`,
    );
    if (options.json) out.json([]);
    return exitCodes.done;
  }
  const named = chosenToResume(ledger, service, id);
  const others = await othersThanDaemons(named, context, progress.note);
  if (others.length === 0 && named.length > 0) {
    if (options.json) out.json([]);
    return exitCodes.done;
  }
  // Batches may use other sandboxes than the configured ones, which are the best guess at the sizes.
  const revision = await context.revision(workshop, { concurrency: options.concurrency });
  await using revisions = new ConfigRevisions(revision);
  // Check all batches before the first one starts: trials without their model are void, even after retries.
  const check = (what: Resumable) =>
    requirePlanned(
      { what, finished: finishedIn(what, ledger).length },
      planOfAny(what, ledger),
      runners,
      revision,
      progress.note,
    );
  const wanted = await passingCheck(others, check, progress.note);
  const older = await olderSidesOf(wanted, options, context, signal);
  const printing = { context, workshop, progress, options, signal };
  if (wanted.length > 0) {
    progress.note(takenFrom(context.config));
    context.noteLimits();
  }
  const results: BatchResults[] = [];
  const open = [...wanted];
  const unfinished = {
    ...printing,
    older: [...older.values()].find((side) => 'compare' in side),
    finished: () => results.map(({ summary }) => summary),
    work: () => open.map((what) => ({ plan: planOfAny(what, ledger), batches: batchesOf(what, ledger) })),
    isList: true,
  };
  using _saving = saveWhenInterrupted(unfinished, signal);
  let busy = 0;
  let left = 0;
  const how = { startsUnknown: options.startAgain === true };
  try {
    for (const what of wanted) {
      const before = finishedIn(what, ledger);
      if (isFree(what, ledger)) progress.note(text`resuming ${nameOf(what)}${originOf(what, clock.now())}`);
      const resumed = await resumeAny(what, how, { ...workshop, revisions }, signal, progress.event);
      open.shift();
      if (resumed.kind === 'finished') {
        const details = wantsDetails(options);
        const [first, ...more] = resumed.batches.map((one) => finishedSummary(one, workshop, details));
        if (first) {
          const summary = what.kind === 'set' ? mergedSummary([first, ...more], what.set.id) : first;
          const title = titleOf(summary, before, finishedIn(what, ledger));
          results.push({ summary, batches: [first, ...more], older: older.get(what), title });
        }
        left += resumed.left.length;
        for (const part of resumed.left) progress.note(leftText(nameOf(what), part));
      } else if (resumed.kind === 'busy') {
        busy++;
        progress.note(text`${atWorkText(nameOf(what), lockOf(what), ledger)}; ${waitOrEnd}`);
      } else {
        progress.note(text`the service has not started ${nameOf(what)}: run the suite again`);
      }
    }
    const own = results.flatMap(({ batches }) => batches.map(({ batchId }) => batchId));
    left += await progress.step('delivering results of earlier runs', () =>
      deliverLeftovers(workshop, signal, progress.note, own),
    );
  } catch (error) {
    progress[Symbol.dispose]();
    await printIncompleteResults(unfinished, error);
    throw error;
  }
  progress[Symbol.dispose]();
  if (results.length === 0 && !options.json) {
    out.print(text`nothing ${ours(busy > 0 ? 'else ' : '')}to resume in ${dataFolder}`);
    if ((await daemonMode(dataFolder)) === 'paused') out.print(`its daemon ${isPausedText}`);
  }
  const code = await printResults(results, printing, { isList: true });
  return busy > 0 || left > 0 ? exitCodes.infrastructure : code;
}

const isPausedText = 'is paused: `offsite daemon resume` lets it continue';

/** What the daemon of the data folder does not have. What it has, it continues by itself, which is said. */
async function othersThanDaemons(
  chosen: readonly Resumable[],
  context: CommandContext,
  note: (message: Printable) => void,
): Promise<Resumable[]> {
  const ledger = context.ledger();
  const isDaemons = (what: Resumable) => lockOf(what) === daemonLock && !isFree(what, ledger);
  if (!chosen.some(isDaemons) || !(await daemonListens(context.dataFolder))) return [...chosen];
  const isPaused = (await daemonMode(context.dataFolder)) === 'paused';
  const continues = isPaused
    ? `the daemon of this data folder has it and ${isPausedText}`
    : 'the daemon of this data folder continues it';
  for (const what of chosen.filter(isDaemons)) {
    const open = batchesOf(what, ledger).flatMap(({ key }) => ledger.queue.ofBatch(key));
    const count = (wanted: string) => open.filter(({ state }) => state === wanted).length;
    const trials = `${plural(count('queued'), 'trial')} queued, ${count('running')} running`;
    note(text`${nameOf(what)}: ${ours(continues)}, ${ours(trials)}`);
  }
  return chosen.filter((what) => !isDaemons(what));
}

/** Whether no process works on it now. */
function isFree(what: Resumable, ledger: Ledger): boolean {
  const name = lockOf(what);
  const lock = name === undefined ? undefined : ledger.takeLock(name);
  lock?.[Symbol.dispose]();
  return name === undefined || lock !== undefined;
}

/**
 * The batches and sets that pass the check. One that needs another configuration does not stop the others: it
 * is reported and left out. Throws the first failure if all fail.
 */
async function passingCheck(
  chosen: readonly Resumable[],
  check: (what: Resumable) => Promise<void>,
  note: (message: Printable) => void,
): Promise<Resumable[]> {
  const can: Resumable[] = [];
  const failures: OffsiteError[] = [];
  for (const what of chosen) {
    try {
      await check(what);
      can.push(what);
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      failures.push(error);
    }
  }
  const [first] = failures;
  if (first && can.length === 0) throw first;
  for (const { message, hint } of failures) note(text`left: ${lines(message)}${hint ? `\n  ${hint}` : ''}`);
  return can;
}

/** What `--compare-to` names, for each batch and set. Throws, before anything runs, if there is none. */
async function olderSidesOf(
  wanted: readonly Resumable[],
  { compareTo }: ResumeOptions,
  context: CommandContext,
  signal: AbortSignal,
): Promise<Map<Resumable, OlderSide | NotCompared>> {
  const sides = new Map<Resumable, OlderSide | NotCompared>();
  if (compareTo === undefined) return sides;
  for (const what of wanted) {
    const plan = planOfAny(what, context.ledger());
    const side = plan && (await olderSideIfAny(context, compareTo, plan, signal));
    sides.set(what, side ?? { whyNot: 'the batch was started without a plan' });
  }
  return sides;
}

/** What a resumed batch takes from its stored plan, and what from which configuration. */
function takenFrom({ file, searched = [] }: Config): Printable {
  const others =
    file === undefined ? `the defaults: no offsite.yaml is in ${searched.join(', ')}` : resolve(file);
  return text`cases, profiles and sandboxes as when the batch began; models, engine and limits from ${others}`;
}

/** `, of evals/suite.yaml at commit 1f2e3d4, begun 3 h ago`: the job may be of another suite or commit. */
function originOf(what: Resumable, now: number): Printable {
  const { suite, file = suite } = storedOf(what);
  const commit = what.kind === 'batch' ? what.batch.commit : undefined;
  const at =
    what.kind === 'set'
      ? what.set.plannedAt
      : what.kind === 'batch'
        ? what.batch.startedAt
        : what.start.askedAt;
  const atCommit = commit === undefined ? '' : text` at commit ${commitText(commit)}`;
  return text` of ${file}${atCommit}, begun ${duration(Math.max(0, now - at))} ago`;
}

/** The batches that were started by now. */
function batchesOf(what: Resumable, ledger: Ledger): StoredBatch[] {
  if (what.kind === 'set') return ledger.sets.parts(what.set.key).flatMap(({ batch }) => batch ?? []);
  const batch = what.kind === 'batch' ? what.batch : ledger.batches.ofStart(what.start.key);
  return batch ? [batch] : [];
}

/** The trials with a result that counts. */
function finishedIn(what: Resumable, ledger: Ledger): StoredTrial[] {
  const trials = batchesOf(what, ledger).flatMap(({ key }) => ledger.queue.ofBatch(key));
  return trials.filter(({ result, report }) => result !== undefined && report !== 'superseded');
}

/**
 * @param before the trials that had a result before the batch was resumed
 * @param after those that have one now
 */
function titleOf(
  summary: BatchSummary,
  before: readonly StoredTrial[],
  after: readonly StoredTrial[],
): Printable {
  const known = new Set(before.map(({ key }) => key));
  const added = after.filter(({ key }) => !known.has(key));
  const taken = added.filter(({ report }) => report === 'taken').length;
  const counts = ours(
    `${plural(added.length - taken, 'trial')} finished now, ${after.length - added.length} before` +
      (taken > 0 ? `, ${taken} from the service` : ''),
  );
  const { set, batchId, batchIds } = summary;
  if (!batchIds) return text`batch ${batchId}: ${counts}`;
  return text`${set ?? batchId}, ${String(batchIds.length)} batches: ${counts}`;
}

const waitOrEnd = ours('wait for it, or end it: a job that was canceled without `exec` leaves its process');

function leftText(name: string, { number, why }: { number: number; why: 'unknown' | 'busy' }): Printable {
  if (why === 'busy') return text`another process works on batch ${number} of ${name}; ${waitOrEnd}`;
  const unknown = text`it is unknown whether the service started batch ${number} of ${name}, and it lists no matching batch`;
  return text`${unknown}: if \`offsite service runs CASE\` does not show it, resume with --start-again`;
}
