import { shortBatchIds } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { SetPart, StoredSet } from '../../ledger/sets.ts';
import { ours, type Printable, stack, styled, text, type Value } from '../../text/printable.ts';
import { minute, plural } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import { type MergedSummary, mergedSummary } from '../output/merged-summary.ts';
import type { TrialNumbers } from '../output/summary.ts';
import { summaryTable } from '../output/summary-table.ts';
import { notPassedLine, readBatch, type ShownBatch } from './batch-view.ts';
import { page } from './layout.ts';
import { wordsFor } from './words.ts';

/** A set of batches, as it is shown. */
export interface ShownSet {
  set: StoredSet;
  parts: ShownPart[];
  /** Of the batches that were started; undefined if none was. */
  summary: MergedSummary<TrialNumbers> | undefined;
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
  const facts = [
    text`${set.suite}`,
    ours(minute(set.plannedAt)),
    ...(unstarted > 0 ? [text`${unstarted} of ${set.parts} batches not started`] : []),
    ...(left > 0 ? [text`${plural(left, 'trial')} left`] : []),
  ];
  const head = facts.reduce((all, fact) => text`${all}, ${fact}`, styled('bold', text`${set.id}`));
  const lines = parts.flatMap(({ shown }) =>
    (shown?.notPassed ?? []).map((one) => {
      const words = wordsFor(one.trial, shown && short(shown.batch.id));
      return { words, line: notPassedLine(one, words, width) };
    }),
  );
  const [first] = lines;
  const isLeft = unstarted + left > 0;
  return page([
    head,
    table(
      [
        { title: '' },
        { title: 'batch' },
        { title: 'state' },
        ...['passed', 'failed', 'void', 'left'].map((title) => ({ title, align: 'right' as const })),
      ],
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
