import { availableParallelism } from 'node:os';
import { Command, Option } from '@commander-js/extra-typings';
import { rowSetupOf, suiteOptions } from '../../api/plan-suite.ts';
import { inputError } from '../../base/offsite-error.ts';
import { Semaphore } from '../../base/semaphore.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import { printFileIssue } from '../../suite/file-issues.ts';
import { sandboxOf } from '../../suite/planned-variant.ts';
import { taskFormats } from '../../suite/tasks-source.ts';
import {
  countTasks,
  type ListedTask,
  listedFor,
  listTasks,
  type Machine,
  type TaskCounts,
} from '../../tasks/list-tasks.ts';
import { explanation } from '../../tasks/supported.ts';
import { ours, type Printable, stack, text, type Value } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { laterIn, searchVisible } from '../../trial/prepare/visible-answers.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OptionsOf, seed, wholeNumber } from '../options.ts';
import { type Column, listText } from '../output/columns.ts';
import { withRowSetup } from '../task-options.ts';

export function listTasksCommand() {
  return withRowSetup(new Command('list'))
    .description(
      'list the tasks of a folder in another format (Harbor, Terminal-Bench, SWE-bench), and say which of them can run here',
    )
    .argument('<path>', 'a folder of tasks, one task, a dataset.toml, a registry.json, or rows in *.jsonl')
    .addOption(
      new Option('--format <format>', 'list only tasks of this format (default: all)').choices(taskFormats),
    )
    .option('--include <glob...>', 'only tasks whose ids match one of these')
    .option('--exclude <glob...>', 'leave out tasks whose ids match one of these')
    .option('--limit <n>', 'at most this many tasks', wholeNumber)
    .option('--seed <n>', 'in an order that depends on this number, for a sample', seed)
    .option('--engine', 'also ask the engine whether it has the images, and enough processors and memory')
    .option(
      '--config <file>',
      'the configuration (default: offsite.yaml here, or in ~/.config/offsite), whose `advanced.images` hold',
    )
    .option('--sandbox <name>', 'the sandbox of offsite.yaml whose `hosts` tasks may reach', 'local')
    .option('--details', 'print every note and every reason with its place')
    .option('--json', 'print one JSON document on stdout')
    .action(async (path, options) => {
      process.exitCode = await listTasksOf(path, options);
    });
}

type TasksOptions = OptionsOf<typeof listTasksCommand>;

async function listTasksOf(path: string, options: TasksOptions): Promise<number> {
  const { engine: asksEngine, config: file, sandbox: name, details, json } = options;
  const { format, include, exclude, limit, seed } = options;
  const chosen = { format, include, exclude, limit, seed, ...rowSetupOf(options) };
  await using context = CommandContext.open({ config: file });
  const { config, out, err } = context;
  const { except = [], keys } = suiteOptions({}, context);
  const sandbox = sandboxOf(config, name);
  if (!sandbox)
    throw inputError('TASKS_REFUSED', `there is no sandbox ${name}`, {
      hint: 'Name one of `sandboxes` in offsite.yaml.',
    });
  const list = listTasks(path, chosen, { except, keys, images: config.images, sandbox });
  const { notes } = list;
  const tasks = asksEngine ? await listedFor(list.tasks, await machineOf(context)) : list.tasks;
  const totals = countTasks(tasks);
  const exitCode = totals.unreadable > 0 ? exitCodes.badInput : exitCodes.done;
  if (json) {
    out.json({ tasks, notes, totals });
    return exitCode;
  }
  out.print(listText(tasks, columns, out.columns));
  if (details)
    for (const task of tasks) if (task.notes.length + task.obstacles.length > 0) out.print(taskDetails(task));
  out.print(taskTotals(totals));
  for (const issue of [...notes, ...tasks.flatMap(({ issues }) => issues)]) err.print(printFileIssue(issue));
  return exitCode;
}

/** What the engine has; each image is looked up once. Those of rows are also looked into. */
async function machineOf(context: CommandContext): Promise<Machine> {
  const { signal } = context.interruption();
  const engine = await context.engines.first(signal);
  const images = new Map<string, Promise<boolean>>();
  const looks = new Semaphore(availableParallelism());
  const { cpus, memoryBytes } = engine.capabilities;
  return {
    cpus,
    memoryBytes,
    hasImage(name) {
      const known = images.get(name) ?? engine.findImage(name, signal).then((image) => image !== undefined);
      images.set(name, known);
      return known;
    },
    async laterCommits(name, folder, base) {
      const image = await engine.findImage(name, signal);
      if (!image) return undefined;
      using _permit = await looks.acquire(signal);
      const spec: ContainerSpec = {
        imageId: image.id,
        workingDir: folder ?? (image.workingDir || '/'),
        network: 'none',
        security: 'compatible',
        filter: 'if-available',
        memoryBytes: 2 ** 30,
        pids: 128,
        cpus: 1,
      };
      await using sandbox = await engine.createContainer(spec, signal);
      await sandbox.start(signal);
      const search = { answers: [], laterCommits: true, base };
      const later = laterIn(await searchVisible(sandbox, search, signal));
      return later.length === 0 ? undefined : later.join('; ');
    },
    builder: () => engine.builder(signal),
  };
}

const none = ours('–');

const columns: readonly Column<ListedTask>[] = [
  { title: 'task', shrinks: true, cell: ({ id }) => id },
  { title: 'format', cell: ({ format }) => format },
  { title: 'environment', shrinks: true, cell: environmentOf },
  { title: 'graded', shrinks: true, cell: gradingOf },
  {
    title: 'solution',
    cell: ({ hasSolution }) => (hasSolution === undefined ? none : hasSolution ? 'yes' : 'no'),
  },
  { title: 'steps', right: true, cell: ({ steps }) => steps ?? none },
  { title: 'notes', right: true, cell: ({ notes }) => notes.length },
  { title: 'runs here', cell: runsOf },
];

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
function taskDetails({ id, notes, obstacles }: ListedTask): Printable {
  return stack([
    text`\n${id}`,
    ...obstacles.map((each) => text`  does not run: ${printFileIssue(each)}`),
    ...notes.map((each) => text`  note: ${printFileIssue(each)}`),
  ]);
}

function taskTotals({ tasks, run, doNotRun, unreadable, obstacles, notes }: TaskCounts): Printable {
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
