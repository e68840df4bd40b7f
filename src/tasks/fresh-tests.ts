import type { FreshTests } from '../suite/case-tests.ts';
import type { FileIssue } from '../suite/file-issues.ts';
import { caseEnvironment } from './case-environment.ts';
import { type CaseParts, plainPath } from './case-parts.ts';
import { artifactsFolder, testsFolder, verifierLogs } from './harbor/folders.ts';
import type { Task } from './task.ts';

/** Where the tests run, if not in the agent's own sandbox. */
export function freshTests(
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
