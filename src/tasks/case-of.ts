import { posix } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { CaseOracle, CaseTests, Thresholds } from '../suite/case-tests.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { heldKey } from '../suite/file-reader.ts';
import type { EnvironmentParts } from '../suite/load-environment.ts';
import { noExtras, type PlannedCase } from '../suite/plan.ts';
import { caseEnvironment } from './case-environment.ts';
import { folderOf, placedFiles } from './placed-files.ts';
import { plainVariables } from './plain-variables.ts';
import type { Task } from './task.ts';
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
  const tests = collected(() => testsOf(task, parts));
  const oracle = collected(() => oracleOf(task, parts));
  const planned: PlannedCase = {
    request: {
      ...{ id: task.id, name: task.name },
      ...(task.keywords.length > 0 && { tags: [...task.keywords] }),
      variables: { instruction: task.instruction },
    },
    local: { ...noExtras, artifacts: artifactsOf(task), environment, tests, oracle },
  };
  // Its files were checked when they were read.
  const held = parts.keys?.findIn([
    ...[planned.request, environment.env, tests?.env, oracle?.env],
    task.environment.services,
  ]);
  if (held) issues.push(issueAt(task.place, heldKey(held.name)));
  if (issues.length > 0) throw new BadFile(issues);
  return planned;
}

function testsOf({ place, verifier }: Task, { files, thresholds }: CaseParts): CaseTests {
  const { tests, command, env, user, timeoutMs, reading } = verifier;
  if ((reading.kind !== 'reward-files' && reading.kind !== 'printed-tests') || !command)
    throw new BadFile([issueAt(place, 'is graded in a way that Offsite does not have yet')]);
  // What the agent left there would be found in place of the tests, or of what they write.
  const written = reading.kind === 'reward-files' ? [posix.dirname(reading.json)] : [];
  return {
    files: placedFiles(new TaskFolder(place), tests, files),
    emptied: [...new Set([...tests.map(folderOf), ...written])],
    ...{ command: [...command], env: plainVariables(env), user, timeoutMs, reading, thresholds },
  };
}

function oracleOf({ place, solution }: Task, { files }: CaseParts): CaseOracle | undefined {
  if (solution?.kind !== 'script') return undefined;
  const folders = solution.files ? [solution.files] : [];
  return {
    files: placedFiles(new TaskFolder(place), folders, files),
    command: [...solution.command],
    env: plainVariables(solution.env),
  };
}

/** Globs of files and of folders; those outside the working folder match nothing. */
function artifactsOf({ artifacts }: Task): string[] {
  return artifacts.flatMap(({ source }) => {
    const path = source.replace(/\/+$/, '');
    return [path, `${path}/**`];
  });
}
