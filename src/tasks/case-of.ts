import { messageOf, OffsiteError } from '../offsite-error.ts';
import { instructionOf } from '../suite/case-steps.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { heldKey } from '../suite/file-reader.ts';
import { noExtras, type PlannedCase } from '../suite/plan.ts';
import { caseEnvironment } from './case-environment.ts';
import { agentOf, artifactsOf, type CaseParts, oracleOf, testsOf } from './case-parts.ts';
import { freshTests } from './fresh-tests.ts';
import { stepsOf } from './steps-of.ts';
import type { Task } from './task.ts';
import { issueAt } from './task-folder.ts';

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
      ...{ id: task.id, name: task.name },
      ...(task.keywords.length > 0 && { tags: [...task.keywords] }),
      variables: { instruction: hasSteps ? instructionOf(task.steps) : task.instruction },
    },
    local: {
      ...noExtras,
      ...artifactsOf(task.artifacts),
      environment,
      ...(Object.keys(agent).length > 0 && { agent }),
      ...{ tests, oracle, steps },
    },
  };
  // Its files were checked when they were read.
  const graded = [{ tests, oracle }, ...(steps?.list ?? [])];
  const env = graded.map((one) => [one.tests?.env, one.tests?.collect, one.oracle?.env]);
  const given = [planned.request, environment.env, env, task.environment.services];
  const held = parts.keys?.findIn(given);
  if (held) issues.push(issueAt(task.place, heldKey(held.name)));
  if (issues.length > 0) throw new BadFile(issues);
  return planned;
}
