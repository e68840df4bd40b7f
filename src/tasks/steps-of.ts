import type { CaseStep, CaseSteps } from '../suite/case-steps.ts';
import type { FileIssue } from '../suite/file-issues.ts';
import { healthcheckOf } from './case-environment.ts';
import { agentOf, artifactsOf, type CaseParts, oracleOf, testsOf } from './case-parts.ts';
import { freshTests } from './fresh-tests.ts';
import { placedFiles } from './placed-files.ts';
import type { Task, TaskStep } from './task.ts';
import { TaskFolder } from './task-folder.ts';

/** Folders for what agents and tests say. Each step begins with empty ones. */
const logFolders = ['/logs/agent', '/logs/artifacts'];

/** The steps of a task as those of a case. Throws `BadFile`, and `input` errors of the reader. */
export function stepsOf(task: Task, parts: CaseParts, report: (issue: FileIssue) => void): CaseSteps {
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
  const thresholds = { byName: { ...minReward }, required: true };
  return {
    ...{ name, instruction, setup },
    files: placedFiles(new TaskFolder(place), workdir, parts.files),
    emptied: index === 0 ? [] : [...logFolders],
    healthcheck: healthcheck && healthcheckOf(healthcheck),
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
