import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { answersOf, type Hiding } from '../suite/answers.ts';
import { type CaseStep, type CaseSteps, instructionOf } from '../suite/case-steps.ts';
import type { FreshTests } from '../suite/case-tests.ts';
import type { CaseEnvironment } from '../suite/environment.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { noExtras, type PlannedCase } from '../suite/plan.ts';
import { heldKey } from '../suite/read-file.ts';
import { caseEnvironment, placedOf } from './case-environment.ts';
import { agentOf, artifactsOf, type CaseParts, oracleOf, plainPath, testsOf } from './case-parts.ts';
import { placedFiles } from './files-below.ts';
import { artifactsFolder, testsFolder, verifierLogs } from './harbor/verifier.ts';
import type { Task, TaskStep } from './task.ts';
import { issueAt, TaskFolder } from './task-folder.ts';

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
  const hasSteps = task.steps.length > 0;
  const fresh = hasSteps
    ? undefined
    : collected(() => freshTests(task, parts, (issue) => issues.push(issue)));
  const tests = hasSteps ? undefined : collected(() => ({ ...testsOf(task, parts), fresh }));
  const oracle = hasSteps ? undefined : collected(() => oracleOf(task, parts));
  const steps = hasSteps ? collected(() => stepsOf(task, parts, (issue) => issues.push(issue))) : undefined;
  const agent = agentOf(task.agent, task.environment);
  const planned: PlannedCase = {
    request: {
      id: task.id,
      name: task.name,
      ...(task.keywords.length > 0 && { tags: task.keywords }),
      variables: { instruction: hasSteps ? instructionOf(task.steps) : task.instruction },
    },
    local: {
      ...noExtras,
      ...artifactsOf(task.artifacts),
      environment,
      ...(Object.keys(agent).length > 0 && { agent }),
      tests,
      oracle,
      steps,
    },
  };
  // Its files were checked when they were read.
  const graded = [{ tests, oracle }, ...(steps?.list ?? [])];
  const env = graded.map((one) => [one.tests?.env, one.tests?.collect, one.oracle?.env]);
  const given = [planned.request, environment.env, env, task.environment.services];
  const held = parts.keys?.findIn(given);
  if (held) issues.push(issueAt(task.place, heldKey(held.name)));
  if (issues.length > 0) throw new BadFile(issues);
  const answers = answersOf(planned, hidingOf(task, environment));
  return { ...planned, local: { ...planned.local, answers } };
}

/** What no agent of the task may find, and what it is given. */
export function hidingOf(task: Task, environment: CaseEnvironment): Hiding {
  const { files, folders } = placedOf(task.environment);
  const givenFiles = environment.files?.filter(({ path }) => Object.hasOwn(files, path));
  return { own: ownFiles(task), givenFiles, givenFolders: Object.values(folders) };
}

/** The files and folders that grade and solve a task. */
function ownFiles({ verifier, solution, steps }: Task): string[] {
  return [{ verifier, solution }, ...steps].flatMap((one) => [
    ...one.verifier.tests.map(({ from }) => from),
    ...(one.solution?.kind === 'script' && one.solution.files ? [one.solution.files.from] : []),
  ]);
}

/** Folders for what agents and tests say. Each step begins with empty ones. */
const logFolders = ['/logs/agent', '/logs/artifacts'];

/** The steps of a task as those of a case. Throws `BadFile`, and `input` errors of the reader. */
function stepsOf(task: Task, parts: CaseParts, report: (issue: FileIssue) => void): CaseSteps {
  return {
    list: task.steps.map((step, index) => stepOf(task, step, index, { parts, report })),
    strategy: task.rewardStrategy,
    thresholds: parts.thresholds,
  };
}

interface StepParts {
  parts: CaseParts;
  report(issue: FileIssue): void;
}

function stepOf(task: Task, step: TaskStep, index: number, { parts, report }: StepParts): CaseStep {
  const { place } = task;
  const artifacts = [...task.artifacts, ...step.artifacts];
  const fresh = freshTests({ ...task, verifier: step.verifier, artifacts }, parts, report);
  const { name, instruction, verifier, solution, workdirFiles, setup, healthcheck, minReward } = step;
  const workdir = workdirFiles === undefined ? [] : [{ from: workdirFiles, to: '.', ignored: [] }];
  const thresholds = { byName: minReward, required: true };
  return {
    name,
    instruction,
    setup,
    files: placedFiles(new TaskFolder(place), workdir, parts.files),
    emptied: index === 0 ? [] : [...logFolders],
    healthcheck,
    agent: agentOf(step.agent, task.environment),
    timeoutMs: step.agent.timeoutMs,
    tests: {
      ...testsOf({ place, verifier, environment: task.environment }, { ...parts, thresholds }),
      fresh,
    },
    ...artifactsOf(artifacts),
    oracle: oracleOf({ place, solution }, parts),
  };
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
    const brought = { kind: 'workspace' as const, testPatch, base, restored };
    return { environment: undefined, brought };
  }
  const declared = task.artifacts.map(({ source, exclude }) => ({ path: plainPath(source), exclude }));
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
