import { printedText } from '../bounds/anyone.ts';
import { hasPassed } from './failures.ts';
import type { TrialRecord } from './trial-record.ts';

/**
 * One thing that happened in a trial. `at` and `until` are epoch milliseconds; `until` is absent for a
 * moment, and for what never reported its end. `index` is the entry's place in its own list of the record:
 * for commands that of {@link commandsOf}.
 */
export interface TimelineEntry {
  kind: TimelineKind;
  index: number;
  at: number;
  until?: number | undefined;
  /** Set if its times are only those at which others reported it. */
  isAbout?: boolean | undefined;
  /** One line: the command, the first line of the message, the tool's name. */
  title: string;
  /** Whether it failed. False for kinds that cannot fail. */
  failed: boolean;
}

type Phase = Pick<TrialRecord['phases'][number], 'name' | 'step'>;

export type TimelineKind =
  | 'phase'
  | 'user'
  | 'message'
  | 'note'
  | 'command'
  | 'tool'
  | 'exchange'
  | 'connection'
  | 'verify'
  | 'validation';

/**
 * The commands of a trial. If the harness reports its commands, that report counts. Otherwise they come from
 * its model traffic.
 */
export function commandsOf({
  trajectory,
  derivedTrajectory,
  harnessTellsCommands,
}: Pick<TrialRecord, 'trajectory' | 'derivedTrajectory' | 'harnessTellsCommands'>) {
  if (harnessTellsCommands === false && derivedTrajectory && derivedTrajectory.length > 0)
    return derivedTrajectory;
  return trajectory;
}

/**
 * All that happened, in the order it began. An item without a time stands beside the item before it in its
 * own list.
 */
export function timelineOf(record: TrialRecord): TimelineEntry[] {
  const { phases, events = [], models, verifySteps = [], validations = [], judgments = [] } = record;
  const phaseAt = (name: string) =>
    phases.find((phase) => phase.name === name)?.startedAt ?? record.startedAt;
  const entries = [
    ...listed('phase', phases, record.startedAt, (phase) => ({
      at: phase.startedAt,
      until: phase.startedAt + phase.durationMs,
      title: phaseTitle(phase),
      failed: hasFailed(phase, record),
    })),
    ...listed('tool', events, record.startedAt, (event) => {
      const { kind, at } = event;
      if (kind !== 'tool') return { kind, at, title: firstLine(event.text) };
      const isAbout = event.timesBy === 'arrival';
      return { kind, at, until: event.finishedAt, isAbout, title: event.name, failed: event.failed === true };
    }),
    ...listed('command', commandsOf(record) ?? [], phaseAt('harness'), (command) => ({
      at: command.startedAtMillis,
      until: command.finishedAtMillis,
      title: firstLine(command.command),
      isAbout: command.timesBy === 'arrival',
      failed: command.exitCode !== undefined && command.exitCode !== 0,
    })),
    ...listed('exchange', models?.exchanges ?? [], record.startedAt, (exchange) => ({
      at: exchange.startedAt,
      until: exchange.finishedAt,
      title: exchange.role === 'agent' ? exchange.model : `${exchange.model} (${exchange.role})`,
      failed: exchange.failure !== undefined,
    })),
    ...listed('connection', models?.connections ?? [], record.startedAt, (connection) => ({
      at: connection.startedAt,
      until: connection.finishedAt,
      title: `${connection.host}:${connection.port}`,
      failed: connection.failure !== undefined,
    })),
    ...listed('verify', verifySteps, phaseAt('verify'), (step) => ({
      ...measured(step),
      title: firstLine(step.command),
      failed: step.exitCode !== 0,
    })),
    ...listed('validation', validations, phaseAt('validate'), (validation) => ({
      ...measured(validation),
      title: validation.name,
      failed: !hasPassed(validation, judgments),
    })),
  ];
  return entries.sort((one, other) => one.at - other.at);
}

/** The name of a phase, with that of its step if the trial has several. */
export function phaseTitle({ name, step }: Phase): string {
  return step === undefined ? name : `${name} of ${step}`;
}

/** Whether the cause of the trial, or of the step, names this phase. A later grading may have succeeded. */
export function hasFailed({ name, step }: Phase, { cause, steps = [] }: TrialRecord): boolean {
  const own = step === undefined ? undefined : steps.find((one) => one.name === step);
  return (own?.cause ?? cause)?.phase === name && (step === undefined || own?.verdict !== 'passed');
}

/** The entries of a list. An item without a time gets that of the one before it. */
function listed<Item>(
  kind: TimelineKind,
  items: readonly Item[],
  start: number,
  entryOf: (item: Item) => Partial<TimelineEntry> & Pick<TimelineEntry, 'title'>,
): TimelineEntry[] {
  let last = start;
  return items.map((item, index) => {
    const { at = last, ...entry } = entryOf(item);
    last = at;
    return { kind, index, at, failed: false, ...entry };
  });
}

function measured({ startedAt, durationMs = 0 }: { startedAt?: number; durationMs?: number | undefined }) {
  return startedAt === undefined ? {} : { at: startedAt, until: startedAt + durationMs };
}

function firstLine(text: string): string {
  const trimmed = text.trimStart();
  const end = trimmed.indexOf('\n');
  const line = end === -1 ? trimmed : trimmed.slice(0, end);
  return line.length > printedText.bytes.title ? `${line.slice(0, printedText.bytes.title)}…` : line;
}
