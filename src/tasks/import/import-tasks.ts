import { join, resolve } from 'node:path';
import { limits } from '../../contract/definition.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { printFileIssue } from '../../suite/file-issues.ts';
import type { TasksSource } from '../../suite/tasks-source.ts';
import { type LeftOut, plannedTasks, type TaskPlanParts } from '../plan-tasks.ts';
import { issueAt } from '../task-folder.ts';
import { caseYaml, type ImportedCase } from './case-yaml.ts';
import { ImportFolder } from './import-folder.ts';
import { suiteYaml, type WrittenCase } from './suite-yaml.ts';
import { NotCarried } from './words.ts';

export interface ImportOptions extends TaskPlanParts {
  /** Where the suite is written. */
  folder: string;
  /** Whether what is there is replaced. */
  force: boolean;
  /** The variants of the suite, as its file says them. */
  variants: readonly Record<string, unknown>[];
}

export interface ImportedTasks {
  /** Absolute paths. More than one if there are more cases than a suite may have. */
  suites: string[];
  imported: string[];
  /** Tasks that are not in the suite, with the reasons. */
  leftOut: LeftOut[];
}

/**
 * Writes the chosen tasks of a set as a suite, whose cases are those of the tasks. Throws an `input` error if
 * something would be overwritten, and as `planTasks` does.
 */
export function importTasks(
  source: TasksSource,
  { folder, force, variants, ...parts }: ImportOptions,
): ImportedTasks {
  const target = new ImportFolder(resolve(folder), force);
  const cases: WrittenCase[] = [];
  const imported: string[] = [];
  const leftOut: LeftOut[] = [];
  for (const each of plannedTasks(source, parts)) {
    if (each.kind === 'left out') {
      const { kind, ...rest } = each;
      leftOut.push(rest);
      continue;
    }
    const { task, planned } = each;
    const { id } = planned.request;
    const name = target.nameFor(id);
    let written: ImportedCase;
    try {
      written = caseYaml(planned, `cases/${name}`);
    } catch (error) {
      if (!(error instanceof NotCarried)) throw error;
      leftOut.push({ id, state: 'does not run', reasons: [issueAt(task.place, error.message)] });
      continue;
    }
    target.writeCase(name, written);
    cases.push({ yaml: written.yaml, notes: task.notes });
    imported.push(id);
  }
  if (cases.length === 0) throw noneImported(leftOut);
  const groups = Array.from({ length: Math.ceil(cases.length / limits.cases) }, (_, index) =>
    cases.slice(index * limits.cases, (index + 1) * limits.cases),
  );
  const suites = groups.map((group, index) => {
    const name = suiteName(index, groups.length);
    const id = target.name + (groups.length > 1 ? `-${index + 1}` : '');
    target.writeSuite(name, suiteYaml({ id, variants, cases: group }));
    return join(target.path, name);
  });
  return { suites, imported, leftOut };
}

/** How many tasks an error names. */
const shown = 20;

function noneImported(leftOut: readonly LeftOut[]): OffsiteError {
  const reasons = leftOut.slice(0, shown).map(({ id, reasons: [first] }) => {
    return `${id}: ${first ? printFileIssue(first) : 'unknown'}`;
  });
  return new OffsiteError(['none of these tasks can be imported:', ...reasons].join('\n'), {
    code: 'NO_TASKS',
    kind: 'input',
    hint: 'Run tasks without a suite: offsite run --tasks PATH',
  });
}

function suiteName(index: number, count: number): string {
  return count === 1 ? 'suite.yaml' : `suite-${String(index + 1).padStart(String(count).length, '0')}.yaml`;
}
