import { parsePatch } from 'diff';
import { z } from 'zod';
import { messageOf } from '../../base/offsite-error.ts';
import { parseCheckedJson } from '../../base/parse-json.ts';
import { taskRows } from '../../bounds/tasks.ts';
import { BadFile } from '../../suite/file-issues.ts';
import { CommitName, type OracleSource } from '../../suite/tests-source.ts';
import { checkDocument, jsonDocument } from '../document.ts';
import { environmentIn, type Task, type TaskReading, taskReading, textIn } from '../task.ts';
import { type RowSetup, sourceOf, testRunOf } from './setup.ts';

const Names = z.array(z.string().min(1)).max(taskRows.count.tests);

/** Names of tests: a list, or the JSON of one in a text. */
const TestNames = z
  .union([Names, z.string()], { error: 'expected a list of tests' })
  .transform((given, ctx) => {
    if (typeof given !== 'string') return given;
    try {
      const names = Names.safeParse(parseCheckedJson(given));
      if (names.success) return names.data;
    } catch {
      // It is not JSON.
    }
    ctx.addIssue({ code: 'custom', message: 'expected a list of tests, or the JSON of one in a text' });
    return z.NEVER;
  });

const Row = z.object({
  instance_id: z.string().min(1),
  repo: z.string().min(1),
  base_commit: CommitName,
  problem_statement: z.string().min(1),
  patch: z.string().optional(),
  test_patch: z.string(),
  FAIL_TO_PASS: TestNames,
  PASS_TO_PASS: TestNames,
  version: z.string().nullish(),
  environment_setup_commit: z.string().nullish(),
  hints_text: z.string().nullish(),
  created_at: z.unknown().optional(),
  difficulty: z.unknown().optional(),
});

export interface RowPlace {
  /** Absolute. */
  file: string;
  /** From 1. */
  line: number;
}

/** The id of a row. Throws {@link BadFile} if it has none. */
export function rowId(text: string, place: RowPlace): string {
  const { instance_id: id } = z
    .looseObject({ instance_id: z.unknown() })
    .safeParse(jsonDocument(text, place).value).data ?? { instance_id: undefined };
  if (typeof id === 'string' && id !== '') return id;
  throw new BadFile([{ ...place, column: 1, path: 'instance_id', message: 'is required: expected a text' }]);
}

/** Repositories whose tests are graded by those that the patch should fix, and no others. */
const failToPassOnly: ReadonlySet<string> = new Set([
  'chartjs/Chart.js',
  'markedjs/marked',
  'processing/p5.js',
]);

/** Where tests write a report, if they write one. */
const report = '/logs/verifier/report.xml';

/** Reads a row in the format of SWE-bench. Throws {@link BadFile} with its problems, at its line. */
export function readRow(text: string, place: RowPlace, setup: RowSetup = {}): Task {
  const document = jsonDocument(text, place);
  const reading = taskReading(document);
  const { remarks } = reading;
  const row = checkDocument(document, Row, remarks);
  const { instance_id: id, repo, patch, FAIL_TO_PASS: failToPass, PASS_TO_PASS: passToPass } = row;
  if (failToPass.length + passToPass.length === 0)
    remarks.uses('no-tests', document.issue(['FAIL_TO_PASS'], 'the row names no test'));
  const source = sourceOf(setup, row);
  if (!source.image && !source.build) remarks.uses('unnamed-environment', document.issue([], ''));
  const patched = patchedFiles(row.test_patch);
  if ('problem' in patched) remarks.uses('test-patch', document.issue(['test_patch'], patched.problem));
  const files = 'problem' in patched ? [] : patched.after;
  const { command, timeout, restored, parser } = testRunOf(setup, files, report);
  return {
    ...reading,
    entry: {
      id,
      tags: [repo],
      variables: { instruction: row.problem_statement },
      environment: environmentIn(reading, ['environment'], {
        ...source,
        services: [],
        env: {},
        timeouts: {},
      }),
      tests: {
        command: ['bash', '-c', command],
        env: {},
        timeout,
        named: {
          parser,
          report,
          failToPass,
          passToPass: failToPassOnly.has(repo) ? [] : passToPass,
        },
        collect: [],
        in: 'fresh',
        brings: 'workspace',
        patch: { source: row.test_patch, base: row.base_commit },
        restored,
        threshold: 1,
      },
      solution: patch === undefined ? undefined : solutionOf(patch, reading),
      artifacts: [],
    },
  };
}

function solutionOf(patch: string, reading: TaskReading): OracleSource {
  const path = '/solution/solution.patch';
  const files = { [path]: textIn(reading, ['solution', path], wholePatch(patch)) };
  // The repository of the workspace may belong to another user.
  const command = ['git', '-c', 'safe.directory=*', 'apply', '--whitespace=nowarn', path];
  return { command, files, env: {} };
}

/** The files of a patch, by their paths in the repository. */
interface PatchedFiles {
  /** Files that exist before the patch. */
  before: string[];
  /** Files that exist after the patch. */
  after: string[];
}

/** The files of a patch as git writes it, or what is wrong with it. */
export function patchedFiles(patch: string): PatchedFiles | { problem: string } {
  const before = new Set<string>();
  const after = new Set<string>();
  try {
    for (const { oldFileName, newFileName, isCreate, isDelete } of parsePatch(patch)) {
      if (!isCreate) addTo(before, oldFileName, 'a/');
      if (!isDelete) addTo(after, newFileName, 'b/');
    }
  } catch (error) {
    return { problem: messageOf(error) };
  }
  const outside = [...before, ...after].find((path) => leadsOut(path));
  if (outside !== undefined) return { problem: `${JSON.stringify(outside)} is no file of the repository` };
  return { before: [...before], after: [...after] };
}

/**
 * A patch as git takes it. Data sets often strip patches. They then lack the last newline, and the empty line
 * that ends a binary file, or a hunk whose last line is empty. Git ignores an empty line after a whole hunk.
 */
export function wholePatch(patch: string): string {
  return patch === '' || patch.endsWith('\n') ? patch : `${patch}\n\n`;
}

function addTo(files: Set<string>, name: string | undefined, prefix: string): void {
  if (name === undefined || name === '/dev/null') return;
  files.add(name.startsWith(prefix) ? name.slice(prefix.length) : name);
}

function leadsOut(path: string): boolean {
  const parts = path.split('/');
  return path.startsWith('/') || parts.some((part) => ['', '.', '..', '.git'].includes(part));
}
