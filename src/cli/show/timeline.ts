import { commandsOf, type TimelineEntry, timelineOf } from '../../record/timeline.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { table } from '../../text/fit.ts';
import {
  excerpt,
  lines,
  ours,
  type Printable,
  present,
  stack,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { duration, plural, took } from '../../text/quantities.ts';
import type { ReadText } from './changes.ts';
import { dim, inFull, section, tookText } from './layout.ts';

/** How many entries a story shows from the beginning and from the end. */
const shown = { first: 8, last: 12 };

/** A row of a story's timeline. */
type Row = Omit<TimelineEntry, 'kind' | 'index'> & { kind: TimelineEntry['kind'] | 'judge' };

/** Kinds that have a section of their own. */
const elsewhere = ['verify', 'validation'];

/** What happened, without what has a section of its own. Failed requests and connections are shown. */
export function timelineSection(record: TrialRecord): Printable | undefined {
  const recorded = timelineOf(record).filter(
    ({ kind, failed }) =>
      !elsewhere.includes(kind) && (failed || (kind !== 'exchange' && kind !== 'connection')),
  );
  const entries: Row[] = [...recorded, ...judgeRows(record)].toSorted((one, other) => one.at - other.at);
  if (entries.length === 0) return undefined;
  const { first, last } = shown;
  const spare = entries.length - first - last;
  const rows = (some: readonly Row[]) => some.map((entry) => rowOf(entry, record.startedAt));
  const left = [['', dim(`… ${spare} more`)]];
  const body =
    spare <= 1 ? rows(entries) : [...rows(entries.slice(0, first)), ...left, ...rows(entries.slice(-last))];
  const columns = [{ right: 'after' }, 'what', '', { right: 'took' }, ''];
  return section('timeline', '', [table(columns, body)]);
}

/** The longest title in a row, so that most rows fit into a terminal of 80 columns. */
const titleWidth = 44;

function rowOf({ kind, at, until, isAbout, title, failed }: Row, start: number): Value[] {
  const name = title.length > titleWidth ? `${title.slice(0, titleWidth - 1)}…` : title;
  return [
    afterStart(at, start),
    kind === 'phase' ? styled('bold', ours(kind)) : ours(kind),
    name,
    until === undefined ? '' : took(until - at, isAbout),
    failed ? styled('red', ours('✗')) : '',
  ];
}

/** A row for each phase in which judges were asked: grading often takes most of its time there. */
function judgeRows({ models, phases }: TrialRecord): Row[] {
  const asked = (models?.exchanges ?? []).filter(({ role }) => role === 'judge');
  const phaseOf = (at: number) => phases.findLast(({ startedAt }) => startedAt <= at);
  return [...Map.groupBy(asked, ({ startedAt }) => phaseOf(startedAt)).values()].map((some) => ({
    kind: 'judge',
    at: Math.min(...some.map(({ startedAt }) => startedAt)),
    until: Math.max(...some.map(({ finishedAt, startedAt }) => finishedAt ?? startedAt)),
    title: `${plural(some.length, 'request')} to ${[...new Set(some.map(({ model }) => model))].join(', ')}`,
    // Each failed request has a row.
    failed: false,
  }));
}

/** `+1.2 s`. */
export function afterStart(at: number, start: number): Printable {
  return text`+${ours(duration(Math.max(0, at - start)))}`;
}

/** All that the harness, its user and its environment did and said, in full. */
export function transcriptSection(record: TrialRecord, read: ReadText): Printable | undefined {
  // A step that only placed files in an image that was there has neither a time nor an output.
  const steps = (record.environment ?? []).filter(
    ({ durationMs, log, exitCode }) => durationMs !== undefined || log !== undefined || (exitCode ?? 0) !== 0,
  );
  const environment = steps.map(({ description, durationMs, log, exitCode }) =>
    entry(text`${styled('bold', description)}${tookText(durationMs)}`, log && read(log), exitCode),
  );
  const happened = timelineOf(record)
    .filter(({ kind }) => !['exchange', 'connection', 'verify', 'validation'].includes(kind))
    .map((one) => entryOf(one, record));
  const services = (record.services ?? []).map(({ name, log, exitCode }) =>
    entry(text`${styled('bold', text`log of the service ${name}`)}`, log && read(log), exitCode),
  );
  const { harnessOutput } = record;
  const output = harnessOutput !== undefined && entry('output of the harness', harnessOutput);
  const all = present([...environment, ...happened, output, ...services]);
  return all.length === 0 ? undefined : section('transcript', '', all);
}

function entryOf({ kind, index, at, until, title }: TimelineEntry, record: TrialRecord): Printable {
  const took = tookText(until && until - at);
  const head = (what: Value) =>
    text`${afterStart(at, record.startedAt)} ${styled('bold', ours(kind))} ${what}${took}`;
  const event = record.events?.[index];
  if (kind === 'command') {
    const command = commandsOf(record)?.[index];
    return entry(head(lines(command?.command ?? title)), command?.output, command?.exitCode);
  }
  if (kind === 'tool' && event?.kind === 'tool') {
    const input = event.input === undefined ? '' : `${JSON.stringify(event.input, null, 2)}\n`;
    return entry(head(event.name), `${input}${event.output ?? ''}`, event.failed ? 'failed' : undefined);
  }
  if (event && event.kind !== 'tool' && kind !== 'phase') return entry(head(''), event.text);
  return head(title);
}

/** @param ended an exit code, or another word for a failure */
function entry(head: Value, body = '', ended?: number | string): Printable {
  const failed = ended !== undefined && ended !== 0;
  const code = typeof ended === 'number' ? `exit ${ended}` : ended;
  return stack([
    failed ? text`${head}  ${styled('red', ours(String(code)))}` : head,
    body.trim() !== '' && text`  ${excerpt(body, inFull)}`,
  ]);
}
