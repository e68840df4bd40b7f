import { BadFile } from '../../suite/file-issues.ts';
import type { TaskSolution, TaskStep } from '../task.ts';
import { issueAt } from '../task-folder.ts';
import { readAgent, readArtifacts } from './agent.ts';
import { healthcheckOf } from './environment.ts';
import { withoutCanary } from './instruction.ts';
import { type HarborSource, readVariables } from './source.ts';
import type { StepTable, TaskToml } from './task-toml.ts';
import { readVerifier } from './verifier.ts';

interface StepsRequest {
  toml: TaskToml;
  ignored: readonly string[];
}

export function readSteps(source: HarborSource, { toml, ignored }: StepsRequest): TaskStep[] {
  const { document, remarks } = source;
  if (toml.steps.length > 0) remarks.uses('steps', document.issue(['steps'], `${toml.steps.length} steps`));
  requireNames(source, toml);
  return toml.steps.map((step, index) => {
    const path = ['steps', index];
    const folder = ['steps', step.name];
    const agent = { ...toml.agent, ...withoutUndefined(step.agent ?? {}) };
    // A step's verifier never gets the timeout of the task's verifier.
    const table = step.verifier ?? { timeout_sec: 600_000, env: {} };
    if (step.healthcheck) remarks.uses('healthcheck', document.issue([...path, 'healthcheck'], ''));
    return {
      name: step.name,
      instruction: withoutCanary(source.folder.text(...folder, 'instruction.md')),
      agent: readAgent(source, agent, step.agent ? [...path, 'agent'] : ['agent']),
      verifier: readVerifier(source, {
        toml,
        step: { table, path: step.verifier ? [...path, 'verifier'] : ['verifier'], folder },
        ignored,
      }),
      solution: readSolution(source, { toml, ignored }, folder) ?? readSolution(source, { toml, ignored }),
      workdirFiles: source.folder.folder(...folder, 'workdir'),
      setup: source.folder.isFile(...folder, 'workdir', 'setup.sh') ? 'setup.sh' : undefined,
      healthcheck: step.healthcheck && healthcheckOf(step.healthcheck),
      artifacts: readArtifacts(source, step.artifacts, [...path, 'artifacts']),
      minReward: minRewardOf(step),
    };
  });
}

function requireNames({ document }: HarborSource, { steps }: TaskToml): void {
  const names = new Set<string>();
  for (const [index, { name }] of steps.entries()) {
    if (names.has(name))
      throw new BadFile([
        document.issue(['steps', index, 'name'], `${name} is already the name of another step`),
      ]);
    names.add(name);
  }
}

/** The solution in a folder of the task, or of one of its steps. */
export function readSolution(
  source: HarborSource,
  { toml, ignored }: StepsRequest,
  names: readonly string[] = [],
): TaskSolution | undefined {
  const { folder, remarks } = source;
  const script = toml.environment.os === 'windows' ? 'solve.bat' : 'solve.sh';
  if (!folder.isFile(...names, 'solution', script)) return undefined;
  remarks.uses('solution', issueAt(folder.at(...names, 'solution', script), ''));
  return {
    kind: 'script',
    files: { from: folder.at(...names, 'solution'), to: '/solution', ignored },
    command: ['bash', `/solution/${script}`],
    env: readVariables(source, toml.solution.env, ['solution', 'env']),
  };
}

function minRewardOf({ min_reward: given }: StepTable): Record<string, number> {
  return typeof given === 'number' ? { reward: given } : { ...given };
}

function withoutUndefined<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as Partial<Given>;
}
