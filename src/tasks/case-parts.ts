import { posix } from 'node:path';
import type { CaseNetwork } from '../suite/case-network.ts';
import type { CaseAgent } from '../suite/case-steps.ts';
import type { CaseOracle, CaseTests, TestReading, Thresholds } from '../suite/case-tests.ts';
import { BadFile } from '../suite/file-issues.ts';
import type { EnvironmentParts } from '../suite/load-environment.ts';
import { folderOf, placedFiles } from './files-below.ts';
import { wholePatch } from './swe-bench/patched-files.ts';
import type { RewardReading, Task, TaskAgent, TaskEnvironment, TaskNetwork } from './task.ts';
import { issueAt, TaskFolder } from './task-folder.ts';

/** The parts of a case that a task has once, or once for each of its steps. */

/** What tasks become cases with. */
export interface CaseParts extends Omit<EnvironmentParts, 'folder'> {
  thresholds: Thresholds;
}

/** The agent of a task, or of one of its steps. */
export function agentOf({ user, network: own }: TaskAgent, environment: TaskEnvironment): CaseAgent {
  const { mcpServers, skillsFolder } = environment;
  const network = networkOf(own ?? environment.network);
  return {
    ...(network && { network }),
    ...(user !== undefined && { user }),
    ...(Object.keys(mcpServers).length > 0 && { mcpServers }),
    ...(skillsFolder !== undefined && { skills: skillsFolder }),
  };
}

/** Undefined for a network that the task does not limit. */
function networkOf(network: TaskNetwork): CaseNetwork | undefined {
  if (network.mode === 'public') return undefined;
  const { message: _, ...at } = network.at;
  return { hosts: network.mode === 'none' ? [] : network.hosts, at };
}

/** How a task, or one of its steps, is graded. */
export interface Graded extends Pick<Task, 'place' | 'verifier' | 'environment'> {}

export function testsOf(
  { place, verifier, environment }: Graded,
  { files, thresholds }: CaseParts,
): CaseTests {
  const network = networkOf(verifier.network ?? (verifier.environment ?? environment).network);
  const { tests, command, env, user, timeoutMs, reading, collect } = verifier;
  if (reading.kind === 'unknown' || !command)
    throw new BadFile([issueAt(place, 'is graded in a way that Offsite does not have yet')]);
  // A file that the agent left there could be taken for a test, or for what the tests write.
  const written =
    reading.kind === 'reward-files' ? [reading.json] : reading.kind === 'named-tests' ? [reading.report] : [];
  return {
    files: tests.length === 0 ? [] : placedFiles(new TaskFolder(place), tests, files),
    emptied: [...new Set([...tests.map(folderOf), ...written.map((file) => posix.dirname(file))])],
    command,
    env,
    user,
    timeoutMs,
    thresholds,
    reading: readingOf(reading),
    ...(network && { network }),
    ...(collect.length > 0 && { collect }),
  };
}

export function oracleOf(
  { place, solution }: Pick<Task, 'place' | 'solution'>,
  { files }: CaseParts,
): CaseOracle | undefined {
  if (solution?.kind === 'patch') return patchOracle(solution.patch);
  if (solution?.kind !== 'script') return undefined;
  const folders = solution.files ? [solution.files] : [];
  return {
    files: placedFiles(new TaskFolder(place), folders, files),
    command: solution.command,
    env: solution.env,
  };
}

function readingOf(reading: Exclude<RewardReading, { kind: 'unknown' }>): TestReading {
  if (reading.kind !== 'named-tests') return reading;
  const { kind, parser, report, failToPass, passToPass } = reading;
  return { kind, parser, report, failToPass, passToPass };
}

/** A patch of the workspace, whose repository may belong to another user. */
function patchOracle(patch: string): CaseOracle {
  const path = '/solution/solution.patch';
  const command = ['git', '-c', 'safe.directory=*', 'apply', '--whitespace=nowarn', path];
  return { files: [{ path, content: Buffer.from(wholePatch(patch)), mode: 0o644 }], command, env: {} };
}

/** Globs of files and of folders; those outside the working folder match nothing. */
export function artifactsOf(artifacts: Task['artifacts']): {
  artifacts: string[];
  artifactsExcept?: string[];
} {
  const artifactsExcept = artifacts.flatMap(({ source, exclude }) =>
    exclude.flatMap((glob) => withBelow(`${plainPath(source)}/**/${glob}`)),
  );
  return {
    artifacts: artifacts.flatMap(({ source }) => withBelow(plainPath(source))),
    ...(artifactsExcept.length > 0 && { artifactsExcept }),
  };
}

function withBelow(glob: string): string[] {
  return [glob, `${glob}/**`];
}

export function plainPath(path: string): string {
  return posix.normalize(path).replace(/\/$/, '');
}
