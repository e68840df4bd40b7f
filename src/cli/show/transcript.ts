import { commandsOf, type TimelineEntry, timelineOf } from '../../record/timeline.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import {
  excerpt,
  lines,
  ours,
  type Printable,
  stack,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { duration } from '../../text/quantities.ts';
import type { ReadText } from './changes.ts';
import { inFull, section } from './layout.ts';
import { afterStart } from './timeline.ts';

/** All that the harness, its user and its environment did and said, in full. */
export function transcriptSection(record: TrialRecord, read: ReadText): Printable | undefined {
  const environment = (record.environment ?? []).map((step) => {
    const took = step.durationMs === undefined ? '' : `  ${duration(step.durationMs)}`;
    const log = step.log === undefined ? undefined : read(step.log);
    return entry(text`${styled('bold', step.description)}${styled('dim', ours(took))}`, log, step.exitCode);
  });
  const happened = timelineOf(record)
    .filter(({ kind }) => !['exchange', 'connection', 'verify', 'validation'].includes(kind))
    .map((one) => entryOf(one, record));
  const services = (record.services ?? []).map(({ name, log, exitCode }) =>
    entry(text`${styled('bold', text`log of the service ${name}`)}`, log && read(log), exitCode),
  );
  const output =
    record.harnessOutput === undefined ? [] : [entry('output of the harness', record.harnessOutput)];
  const all = [...environment, ...happened, ...output, ...services];
  return all.length === 0 ? undefined : section('transcript', '', all);
}

function entryOf({ kind, index, at, until, title }: TimelineEntry, record: TrialRecord): Printable {
  const took = until === undefined ? '' : `  ${duration(until - at)}`;
  const head = (what: Value) =>
    text`${afterStart(at, record.startedAt)} ${styled('bold', ours(kind))} ${what}${styled('dim', ours(took))}`;
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
    ...(body.trim() === '' ? [] : [text`  ${excerpt(body, inFull)}`]),
  ]);
}
