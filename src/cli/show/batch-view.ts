import type { StoredBatch, StoredRun } from '../../ledger/batches.ts';
import { listBatches, listTrials, shortBatchIds } from '../../ledger/find.ts';
import { fingerprintsOf } from '../../ledger/fingerprints.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { listingsOf } from '../../ledger/listings.ts';
import { platformService } from '../../ledger/platform.ts';
import type { PartNumber, SetPart, StoredSet } from '../../ledger/sets.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import { batchMarks } from '../../record/batch-marks.ts';
import { type KnownFingerprint, mixedTexts } from '../../record/fingerprint.ts';
import { whyText } from '../../record/listing.ts';
import { commitText } from '../../record/suite-commit.ts';
import { fittedLine, table } from '../../text/fit.ts';
import {
  joined,
  ours,
  type Printable,
  present,
  stack,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { duration, minute, plural } from '../../text/quantities.ts';
import { readTrial, storedSummary, summarizedRuns } from '../output/stored-batch.ts';
import { type BatchSummary, mergedSummary, summaryOf } from '../output/summary.ts';
import { summaryTable } from '../output/summary-table.ts';
import { mark, page, unreadText, wordsFor } from './layout.ts';

/** A batch or one of its runs, as it is shown. */
interface ShownBatch {
  /** Set if only this run is shown. */
  run: StoredRun | undefined;
  batch: StoredBatch;
  summary: BatchSummary;
  /** The finished trials that did not pass, and those whose record cannot be read. */
  notPassed: { trial: StoredTrial; verdict: 'failed' | 'void'; why: string }[];
  /** Trials that do not count, because the service has other results of them. */
  superseded: StoredTrial[];
  /** Finished trials whose record cannot be read, so that the tables do not count them. */
  unreadable: number;
  /** Trials without a result. */
  left: number;
  /** What to know about the batch before its results are believed. */
  marks: string[];
  /** What differs between trials of one case and variant, and what ids of variants stand for. */
  remarks: string[];
  /** Whether others may have run parts of it. */
  isFound: boolean;
}

/**
 * Reads what lists show of the trials, and no records.
 *
 * @param run set to read only this run
 * @param texts whether the summary has what only records say; then all are read
 */
export function readBatch(
  ledger: Ledger,
  batch: StoredBatch,
  { run, texts = false }: { run?: StoredRun | undefined; texts?: boolean } = {},
): ShownBatch {
  const isWanted = ({ runId }: { runId: string }) => run === undefined || runId === run.id;
  const notPassed: ShownBatch['notPassed'] = [];
  let unreadable = 0;
  const all = listTrials(ledger.records, batch.key, 'all').filter(isWanted);
  const superseded = all.filter(({ report }) => report === 'superseded');
  const trials = all.filter(({ report }) => report !== 'superseded');
  const listings = listingsOf(ledger, batch.key);
  const listed = trials.flatMap((trial) => {
    const { key, runId, ordinal, verdict } = trial;
    if (verdict === undefined) return [];
    const listing = listings.get(key);
    if (!listing) {
      const read = readTrial(ledger, trial);
      unreadable += 1;
      notPassed.push({ trial, verdict: 'void', why: 'unreadable' in read ? read.unreadable : '' });
      return [];
    }
    if (verdict !== 'passed') notPassed.push({ trial, verdict, why: whyText(listing) });
    return [{ runId, ordinal, verdict, listing, texts: {} }];
  });
  const ofFinished = texts
    ? storedSummary(ledger, batch, { run })
    : summaryOf(
        { id: batch.id, commit: batch.commit, runs: summarizedRuns(ledger, batch, run), trials: listed },
        batch.service,
        ledger.outbox.pending(),
      );
  const open = trials.filter(({ state }) => state !== 'finished');
  const openOf = Map.groupBy(open, ({ runId }) => runId);
  const runs = ofFinished.runs.map((run) => {
    return { ...run, unfinished: openOf.get(run.id)?.map(({ ordinal, state }) => ({ ordinal, why: state })) };
  });
  const summary = { ...ofFinished, runs };
  const [facts] = listBatches(ledger.records, { only: batch.key });
  const isRunning = ledger.isWorkedOn(batch);
  const marks = facts ? batchMarks({ ...facts, isRunning }) : [];
  const isFound = facts?.isFound === true;
  const known = fingerprintsOf(ledger.records, batch.key);
  const remarks = [...mixedTexts(known), ...(isFound ? variantTexts(known) : [])];
  const shown = { batch, run, summary, notPassed, superseded, unreadable, left: open.length };
  return { ...shown, marks, remarks, isFound };
}

/** What the service's ids of variants stand for. A run that was found has no other name for its variant. */
function variantTexts(known: readonly KnownFingerprint[]): string[] {
  const texts = known.map(({ variant, parts }) => `${variant}: ${parts.harness}, model ${parts.model}`);
  return [...new Set(texts)];
}

/** Terminals of fewer cells are narrow. */
const narrow = 120;

/**
 * A batch: the table, then a line for each trial that did not pass; of a run, for each trial. The line begins
 * with the name by which `offsite show` finds the trial.
 *
 * @param short the short id
 * @param isLast whether it is the last batch, which need not be named to find a trial
 * @param part set if the batch belongs to a set
 * @param width of the terminal, in cells
 */
export function batchView(
  { batch, run, summary, notPassed, superseded, unreadable, marks, remarks, isFound }: ShownBatch,
  how: { short: string; isLast: boolean; part?: PartNumber | undefined; width: number },
): Printable {
  const { short, isLast, part, width } = how;
  const { commit } = batch;
  const facts = present([
    styled('bold', text`batch ${short}`),
    text`${batch.suite}`,
    part && text`${part.number} of ${part.of} of ${part.id}`,
    ours(minute(batch.startedAt)),
    commit && text`at commit ${commitText(commit)}`,
    batch.service === platformService && ours('run by the platform'),
    ...marks.map(ours),
  ]);
  const words = (trial: Pick<StoredTrial, 'caseId' | 'variant' | 'ordinal'>) =>
    wordsFor(trial, isLast ? undefined : short);
  const passed = run ? passedLines(summary, (ordinal) => words({ ...run, ordinal })) : [];
  const others = superseded.map(
    (trial) =>
      text`${styled('dim', ours('–'))} ${styled('bold', words(trial))}  ${ours(`${trial.verdict}, does not count`)}`,
  );
  const lines = notPassed.map((one) => notPassedLine(one, words(one.trial), width));
  const trials = [...lines, ...passed, ...others];
  const [first] = notPassed;
  return page([
    unreadText(unreadable),
    joined(facts, ', '),
    stack([summaryTable(summary), ...remarks.map((line) => text`${line}`)]),
    trials.length > 0 ? stack(trials) : undefined,
    first && styled('dim', text`see one: offsite show ${words(first.trial)}`),
    isFound ? styled('dim', text`with what others ran of it: offsite service runs ${batch.id}`) : undefined,
  ]);
}

/**
 * @param words by which `offsite show` finds the trial
 * @param width of the terminal, in cells
 */
function notPassedLine(
  { verdict, why }: ShownBatch['notPassed'][number],
  words: string,
  width: number,
): Printable {
  // On a narrow terminal a reason may take two lines.
  const cells = width < narrow ? 2 * width : width;
  return fittedLine(text`${mark(verdict)} ${styled('bold', words)}  ${why}`, cells);
}

function passedLines({ runs }: BatchSummary, nameOf: (ordinal: number) => string): Printable[] {
  const passed = runs.flatMap(({ trials }) => trials).filter(({ verdict }) => verdict === 'passed');
  return passed.map(({ ordinal, durationMs, commands, fromService }) => {
    const facts = fromService
      ? 'from the service'
      : `${duration(durationMs)}, ${plural(commands, 'command')}`;
    return text`${mark('passed')} ${styled('bold', nameOf(ordinal))}  ${styled('dim', ours(facts))}`;
  });
}

/** A set of batches, as it is shown. */
interface ShownSet {
  set: StoredSet;
  parts: ShownPart[];
  /** Of the batches that were started; undefined if none was. */
  summary: BatchSummary | undefined;
}

interface ShownPart {
  /** From 1. */
  number: number;
  /** `unknown`: the service was asked to start it, and lists no batch that fits. */
  state: 'not started' | 'unknown' | 'open' | 'finished';
  shown: ShownBatch | undefined;
}

/** @param texts as of {@link readBatch} */
export function readSet(ledger: Ledger, set: StoredSet, { texts = false } = {}): ShownSet {
  const parts = ledger.sets.parts(set.key).map((part): ShownPart => {
    const shown = part.batch && readBatch(ledger, part.batch, { texts });
    return { number: part.number, state: stateOf(part), shown };
  });
  const [first, ...more] = parts.flatMap(({ shown }) => shown?.summary ?? []);
  return { set, parts, summary: first && mergedSummary([first, ...more], set.id) };
}

function stateOf({ start, batch }: SetPart): ShownPart['state'] {
  if (batch) return batch.state;
  return start && start.state !== 'refused' ? 'unknown' : 'not started';
}

/** A set as a document for programs. */
export function setDocument({ set, parts, summary }: ShownSet) {
  const { id, suite, plannedAt } = set;
  const described = parts.map(({ number, state, shown }) => {
    return { number, state, batchId: shown?.batch.id, left: shown?.left };
  });
  return { ...summary, set: id, suite, plannedAt, parts: described };
}

/**
 * A set: its batches, the table of all, then a line for each trial that did not pass.
 *
 * @param width of the terminal, in cells
 */
export function setView({ set, parts, summary }: ShownSet, ledger: Ledger, width: number): Printable {
  const short = shortBatchIds(ledger.records);
  const unstarted = parts.filter(({ shown }) => !shown).length;
  const left = parts.reduce((sum, { shown }) => sum + (shown?.left ?? 0), 0);
  const facts = present([
    styled('bold', text`${set.id}`),
    text`${set.suite}`,
    ours(minute(set.plannedAt)),
    unstarted > 0 && text`${unstarted} of ${set.parts} batches not started`,
    left > 0 && text`${plural(left, 'trial')} left`,
  ]);
  const lines = parts.flatMap(({ shown }) =>
    (shown?.notPassed ?? []).map((one) => {
      const words = wordsFor(one.trial, shown && short(shown.batch.id));
      return { words, line: notPassedLine(one, words, width) };
    }),
  );
  const [first] = lines;
  const isLeft = unstarted + left > 0;
  return page([
    joined(facts, ', '),
    table(
      ['', 'batch', 'state', ...['passed', 'failed', 'void', 'left'].map((title) => ({ right: title }))],
      parts.map((part) => rowOf(part, short)),
    ),
    summary && summaryTable(summary),
    lines.length > 0 ? stack(lines.map(({ line }) => line)) : undefined,
    first && styled('dim', text`see one: offsite show ${first.words}`),
    isLeft ? styled('dim', text`continue: offsite resume ${set.id}`) : undefined,
  ]);
}

function rowOf({ number, state, shown }: ShownPart, short: (id: string) => string): Value[] {
  if (!shown) return [String(number), '', ours(state)];
  const { passed, failed, void: voided } = shown.summary;
  const counts = [passed, failed, voided, shown.left].map(String);
  return [String(number), text`${short(shown.batch.id)}`, ours(state), ...counts];
}
