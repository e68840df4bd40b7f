import { printFileIssue } from '../../suite/file-issues.ts';
import type { ListedTask, TaskCounts } from '../../tasks/list-tasks.ts';
import { explanation } from '../../tasks/supported.ts';
import { fittedRows } from '../../text/fit.ts';
import { ours, type Printable, stack, text, type Value } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';

const none = ours('–');

/** One line for each task, of at most `width` terminal cells. */
export function taskTable(tasks: readonly ListedTask[], width: number): Printable {
  const titles = ['task', 'format', 'environment', 'graded', 'solution', 'steps', 'notes', 'runs here'];
  const numbers = ['steps', 'notes'];
  const columns = titles.map((title) => ({
    align: numbers.includes(title) ? ('right' as const) : ('left' as const),
    shrinks: title === 'task' || title === 'environment' || title === 'graded',
  }));
  return fittedRows(columns, [titles.map((title) => ours(title)), ...tasks.map(rowOf)], { width, lead: '' });
}

function rowOf(task: ListedTask): Value[] {
  const { id, format, hasSolution, steps, notes } = task;
  return [
    id,
    format,
    environmentOf(task),
    gradingOf(task),
    hasSolution === undefined ? none : hasSolution ? 'yes' : 'no',
    steps ?? none,
    notes.length,
    runsOf(task),
  ];
}

function environmentOf({ environment }: ListedTask): Value {
  if (!environment) return none;
  const { kind, services } = environment;
  return services.length === 0 ? kind : `${kind} + ${plural(services.length, 'service')}`;
}

const readings = {
  'reward-files': 'rewards',
  'printed-tests': 'printed tests',
  'named-tests': 'named tests',
  unknown: 'unknown parser',
} as const;

function gradingOf({ verifier }: ListedTask): Value {
  if (!verifier) return none;
  return `${readings[verifier.reading]}, ${verifier.mode === 'shared' ? 'same sandbox' : 'other sandbox'}`;
}

function runsOf({ state, obstacles: [first, ...others] }: ListedTask): Value {
  if (state === 'unreadable') return text`CANNOT BE READ`;
  if (!first) return 'yes';
  return others.length === 0 ? text`no: ${first.message}` : text`no: ${first.message}; ${others.length} more`;
}

/** All obstacles and notes of a task, with their places in files. */
export function taskDetails({ id, notes, obstacles }: ListedTask): Printable {
  return stack([
    text`\n${id}`,
    ...obstacles.map((each) => text`  does not run: ${printFileIssue(each)}`),
    ...notes.map((each) => text`  note: ${printFileIssue(each)}`),
  ]);
}

export function taskTotals({ tasks, run, doNotRun, unreadable, obstacles, notes }: TaskCounts): Printable {
  const counts = (title: string, by: Readonly<Record<string, number>>) =>
    Object.entries(by).map(([kind, count]) => {
      const why = explanation(kind);
      const suffix = why === undefined ? '' : ` (${why})`;
      return text`  ${ours(title)} ${plural(count, 'task')}: ${kind}${ours(suffix)}`;
    });
  return stack([
    text`\n${plural(tasks, 'task')}: ${run} can run here, ${doNotRun} cannot, ${unreadable} cannot be read`,
    ...counts('cannot run', obstacles),
    ...counts('noted of', notes),
  ]);
}
