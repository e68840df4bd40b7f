import { Command, Option } from '@commander-js/extra-typings';
import { printFileIssue } from '../../suite/file-issues.ts';
import { taskFormats } from '../../suite/tasks-source.ts';
import { countTasks, type ListedTask, listTasks } from '../../tasks/list-tasks.ts';
import { exitCodes } from '../failure.ts';
import { seed, wholeNumber } from '../options.ts';
import { taskDetails, taskTable, taskTotals } from '../output/task-list.ts';
import { openTerminal } from '../terminal.ts';

export function tasksCommand() {
  return new Command('tasks')
    .description('list the tasks of a folder in a format of others, and say which of them can run here')
    .argument('<path>', 'a folder of tasks, one task, a dataset.toml, a registry.json, or rows in *.jsonl')
    .addOption(
      new Option('--format <format>', 'list only tasks of this format (default: all)').choices(taskFormats),
    )
    .option('--include <glob...>', 'only tasks whose ids match one of these')
    .option('--exclude <glob...>', 'leave out tasks whose ids match one of these')
    .option('--limit <n>', 'at most this many tasks', wholeNumber)
    .option('--seed <n>', 'in an order that depends on this number, for a sample', seed)
    .option('--details', 'print every note and every reason with its place')
    .option('--json', 'print one JSON document on stdout')
    .action((path, options) => {
      process.exitCode = listTasksOf(path, options);
    });
}

type TasksOptions = Parameters<typeof listTasks>[1] & { details?: true; json?: true };

function listTasksOf(path: string, { details, json, ...options }: TasksOptions): number {
  const { out, err } = openTerminal();
  const { tasks, notes } = listTasks(path, options);
  const totals = countTasks(tasks);
  const exitCode = totals.unreadable > 0 ? exitCodes.badInput : exitCodes.done;
  if (json) {
    out.json({ tasks, notes, totals });
    return exitCode;
  }
  out.print(taskTable(tasks));
  if (details) for (const task of tasks) printDetails(task, out);
  out.print(taskTotals(totals));
  for (const issue of [...notes, ...tasks.flatMap(({ issues }) => issues)]) err.print(printFileIssue(issue));
  return exitCode;
}

function printDetails(task: ListedTask, out: ReturnType<typeof openTerminal>['out']): void {
  if (task.notes.length + task.obstacles.length > 0) out.print(taskDetails(task));
}
