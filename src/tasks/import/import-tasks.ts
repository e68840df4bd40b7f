import { realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Document, isMap, isSeq, Scalar, visit, type YAMLMap } from 'yaml';
import { OffsiteError } from '../../base/offsite-error.ts';
import { yamlFiles } from '../../bounds/suite.ts';
import { limits } from '../../contract/definition.ts';
import { BadFile, type FileIssue, printFileIssue } from '../../suite/file-issues.ts';
import { SuiteFile } from '../../suite/suite-file.ts';
import type { TasksSource } from '../../suite/tasks-source.ts';
import { boundsProblem, exactYaml, yamlFileOf } from '../../suite/yaml-file.ts';
import { type LeftOut, plannedTasks, type TaskPlanParts } from '../plan-tasks.ts';
import type { Note } from '../supported.ts';
import type { Task } from '../task.ts';
import { issueAt } from '../task-folder.ts';
import { caseYaml } from './case-yaml.ts';
import { ImportFolder } from './import-folder.ts';
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
  const shared = sharedContexts(source, target);
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
    try {
      const written = caseYaml(planned, `cases/${name}`, shared);
      const one = { yaml: written.yaml, notes: task.notes };
      requireReadable({ id: target.name, variants, cases: [one] }, task);
      target.writeCase(name, written, task.place);
      cases.push(one);
      imported.push(id);
    } catch (error) {
      if (!(error instanceof NotCarried || error instanceof BadFile)) throw error;
      const reasons = error instanceof BadFile ? [...error.issues] : [issueAt(task.place, error.message)];
      leftOut.push({ id, state: 'does not run', reasons });
    }
  }
  if (cases.length === 0) throw noneImported(leftOut);
  const groups = groupsOf(cases, variants);
  const suites = groups.map((group, index) => {
    const name = suiteName(index, groups.length);
    const id = target.name + (groups.length > 1 ? `-${index + 1}` : '');
    target.writeSuite(name, suiteYaml({ id, variants, cases: group }));
    return join(target.path, name);
  });
  return { suites, imported, leftOut };
}

/** The build context that the user named for rows. All rows share it, and it may be large. */
function sharedContexts({ build }: TasksSource, target: ImportFolder): ReadonlyMap<string, string> {
  if (!build) return new Map();
  const context = realpathSync(build.context);
  return new Map([[context, target.writeShared(context)]]);
}

/** Throws {@link BadFile} if a suite of this case alone could not be read again. */
function requireReadable(suite: WrittenSuite, { place }: Task): void {
  const text = suiteYaml(suite);
  const tooLarge = sizeProblem(text);
  if (tooLarge !== undefined) throw new NotCarried(`as a suite, it ${tooLarge}`);
  try {
    yamlFileOf(text, { file: place, schema: SuiteFile });
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    // There is no file with these lines yet.
    throw new BadFile(
      error.issues.map(({ path, message }): FileIssue => issueAt(place, `as a suite, ${path}: ${message}`)),
    );
  }
}

/** The cases of each suite, so that no suite has too many cases and no file is too large. */
function groupsOf(
  cases: readonly WrittenCase[],
  variants: WrittenSuite['variants'],
): (readonly WrittenCase[])[] {
  const halves = (group: readonly WrittenCase[]): (readonly WrittenCase[])[] => {
    const text = suiteYaml({ id: '', variants, cases: group });
    if (group.length <= 1 || sizeProblem(text) === undefined) return [group];
    const middle = Math.ceil(group.length / 2);
    return [group.slice(0, middle), group.slice(middle)].flatMap(halves);
  };
  return Array.from({ length: Math.ceil(cases.length / limits.cases) }, (_, index) =>
    cases.slice(index * limits.cases, (index + 1) * limits.cases),
  ).flatMap(halves);
}

/** Why the text of a suite would not be read. Some room is left for its name, and for what a person adds. */
function sizeProblem(text: string): string | undefined {
  if (Buffer.byteLength(text) <= yamlFiles.bytes.file - 64 * 1024) return boundsProblem(text)?.message;
  return `has more than ${yamlFiles.bytes.file / 1024 ** 2} MiB`;
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

/** A case of the suite to write. */
interface WrittenCase {
  yaml: Record<string, unknown>;
  notes: readonly Note[];
}

interface WrittenSuite {
  id: string;
  variants: readonly Record<string, unknown>[];
  cases: readonly WrittenCase[];
}

/**
 * The text of a suite file. Texts of several lines are blocks. Comments say what Offsite does differently.
 */
function suiteYaml({ id, variants, cases }: WrittenSuite): string {
  const contents = {
    suite: { id, prompt: '{{instruction}}' },
    trials: 1,
    variants,
    cases: cases.map(({ yaml }) => yaml),
  };
  const document = new Document(contents, { aliasDuplicateObjects: false });
  document.commentBefore = ' Written by `offsite tasks import`. Change it as you like: docs/suites.md.';
  const list = document.get('cases');
  if (isSeq(list))
    for (const [index, item] of list.items.entries())
      if (isMap(item)) describe(item, cases[index]?.notes ?? []);
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && deceiving.test(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  const text = document.toString(exactYaml);
  return text.replaceAll(new RegExp(deceiving, 'gu'), (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** Says above the case what Offsite ignores or does in another way. */
function describe(item: YAMLMap, notes: readonly Note[]): void {
  item.spaceBefore = true;
  const remarks = notes.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  if (remarks.length > 0) item.commentBefore = [...new Set(remarks)].map(asComment).join('\n');
}

/** Characters that change the order in which a text is shown, and characters that no editor shows. */
const deceiving = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;

/** A comment ends with its line. */
function asComment(text: string): string {
  const plain = text.replaceAll(new RegExp(`\\p{Cc}|${deceiving.source}`, 'gu'), ' ');
  return ` note: ${plain}`;
}
