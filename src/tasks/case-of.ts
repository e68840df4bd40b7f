import { posix } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { CaseOracle, CaseTests, FreshTests, TestReading, Thresholds } from '../suite/case-tests.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { heldKey } from '../suite/file-reader.ts';
import type { EnvironmentParts } from '../suite/load-environment.ts';
import { noExtras, type PlannedCase } from '../suite/plan.ts';
import { caseEnvironment, plainVariables } from './case-environment.ts';
import { artifactsFolder, testsFolder, verifierLogs } from './harbor/folders.ts';
import { folderOf, placedFiles } from './placed-files.ts';
import type { RewardReading, Task } from './task.ts';
import { issueAt, TaskFolder } from './task-folder.ts';

/** What tasks become cases with. */
export interface CaseParts extends Omit<EnvironmentParts, 'folder'> {
  thresholds: Thresholds;
}

/**
 * A task as a case: its instruction is the variable `instruction`, and its own tests grade it. Throws
 * {@link BadFile} with all that is wrong with its files.
 */
export function caseOf(task: Task, parts: CaseParts): PlannedCase {
  const issues: FileIssue[] = [];
  const environment = caseEnvironment(task, parts, (issue) => issues.push(issue));
  const collected = <Result>(read: () => Result): Result | undefined => {
    try {
      return read();
    } catch (error) {
      if (error instanceof BadFile) issues.push(...error.issues);
      else if (error instanceof OffsiteError) issues.push(issueAt(task.place, messageOf(error)));
      else throw error;
      return undefined;
    }
  };
  const fresh = collected(() => freshTests(task, parts, (issue) => issues.push(issue)));
  const tests = collected(() => ({ ...testsOf(task, parts), fresh }));
  const oracle = collected(() => oracleOf(task, parts));
  const planned: PlannedCase = {
    request: {
      ...{ id: task.id, name: task.name },
      ...(task.keywords.length > 0 && { tags: [...task.keywords] }),
      variables: { instruction: task.instruction },
    },
    local: { ...noExtras, ...artifactsOf(task), environment, tests, oracle },
  };
  // Its files were checked when they were read.
  const held = parts.keys?.findIn([planned.request, environment.env, tests?.env, oracle?.env]);
  if (held) issues.push(issueAt(task.place, heldKey(held.name)));
  if (issues.length > 0) throw new BadFile(issues);
  return planned;
}

function testsOf({ place, verifier }: Task, { files, thresholds }: CaseParts): CaseTests {
  const { tests, command, env, user, timeoutMs, reading } = verifier;
  if (reading.kind === 'unknown' || !command)
    throw new BadFile([issueAt(place, 'is graded in a way that Offsite does not have yet')]);
  // What the agent left there would be found in place of the tests, or of what they write.
  const written =
    reading.kind === 'reward-files' ? [reading.json] : reading.kind === 'named-tests' ? [reading.report] : [];
  return {
    files: tests.length === 0 ? [] : placedFiles(new TaskFolder(place), tests, files),
    emptied: [...new Set([...tests.map(folderOf), ...written.map((file) => posix.dirname(file))])],
    ...{ command: [...command], env: plainVariables(env), user, timeoutMs, thresholds },
    reading: readingOf(reading),
  };
}

function readingOf(reading: Exclude<RewardReading, { kind: 'unknown' }>): TestReading {
  if (reading.kind !== 'named-tests') return reading;
  const { kind, parser, report, failToPass, passToPass, repo } = reading;
  return { kind, parser, report, failToPass: [...failToPass], passToPass: [...passToPass], repo };
}

/** Where the tests run, if not in the agent's own sandbox. */
function freshTests(
  task: Task,
  parts: CaseParts,
  report: (issue: FileIssue) => void,
): FreshTests | undefined {
  const { mode, environment: own, reading } = task.verifier;
  if (mode === 'shared') return undefined;
  if (reading.kind === 'named-tests') {
    const { testPatch, base, restored } = reading;
    const brought = { kind: 'workspace' as const, testPatch, base, restored: [...restored] };
    return { environment: undefined, brought };
  }
  const declared = task.artifacts.map(({ source, exclude }) => ({
    path: plainPath(source),
    exclude: [...exclude],
  }));
  return {
    environment:
      own && caseEnvironment(task, parts, report, { environment: own, key: 'verifier.environment' }),
    brought: {
      kind: 'artifacts',
      artifacts: [{ path: artifactsFolder, exclude: [] }, ...declared],
      sealed: [testsFolder, verifierLogs],
    },
  };
}

function oracleOf({ place, solution }: Task, { files }: CaseParts): CaseOracle | undefined {
  if (solution?.kind === 'patch') return patchOracle(solution.patch);
  if (solution?.kind !== 'script') return undefined;
  const folders = solution.files ? [solution.files] : [];
  return {
    files: placedFiles(new TaskFolder(place), folders, files),
    command: [...solution.command],
    env: plainVariables(solution.env),
  };
}

/** A patch of the workspace, whose repository may belong to another user. */
function patchOracle(patch: string): CaseOracle {
  const path = '/solution/solution.patch';
  const command = ['git', '-c', 'safe.directory=*', 'apply', '--whitespace=nowarn', path];
  return { files: [{ path, content: Buffer.from(patch), mode: 0o644 }], command, env: {} };
}

/** Globs of files and of folders; those outside the working folder match nothing. */
function artifactsOf({ artifacts }: Task): { artifacts: string[]; artifactsExcept: string[] } {
  return {
    artifacts: artifacts.flatMap(({ source }) => withBelow(plainPath(source))),
    artifactsExcept: artifacts.flatMap(({ source, exclude }) =>
      exclude.flatMap((glob) => withBelow(`${plainPath(source)}/**/${glob}`)),
    ),
  };
}

function withBelow(glob: string): string[] {
  return [glob, `${glob}/**`];
}

function plainPath(path: string): string {
  return posix.normalize(path).replace(/\/$/, '');
}
