import { BadFile } from '../../suite/file-issues.ts';
import type { Path } from '../../suite/yaml-file.ts';
import type { PlacedFolder, TaskEnvironment, TaskVerifier } from '../task.ts';
import { type HarborSource, readEnvironment, readNetwork, readVariables } from './environment.ts';
import type { TaskToml, VerifierTable } from './task-toml.ts';

interface VerifierRequest {
  toml: TaskToml;
  /** The table of the step, if it is one of a task with several. */
  step: { table: VerifierTable; path: Path; folder: readonly string[] } | undefined;
  /** Patterns of files that are not put into place. */
  ignored: readonly string[];
}

/** The verifier of a task, or of one of its steps, for which the task's own is the fallback. */
export function readVerifier(source: HarborSource, request: VerifierRequest): TaskVerifier {
  const { document, remarks } = source;
  const { toml, step } = request;
  const table = step?.table ?? toml.verifier;
  const path = step?.path ?? ['verifier'];
  const at = (key: string, message = '') => document.issue([...path, key], message);
  const mode = modeOf(source, table, path) ?? modeOf(source, toml.verifier, ['verifier']) ?? 'shared';
  const user = table.user ?? toml.verifier.user;
  const separate = mode === 'separate' ? readSeparate(source, request) : undefined;
  // An image that is made for the verifier contains the tests.
  const tests = separate?.hasTests ? [] : readTests(source, request);
  const variables = step ? { ...toml.verifier.env, ...step.table.env } : toml.verifier.env;
  // A step's hooks run after the task's.
  const collect = [...(toml.verifier.collect ?? []), ...(step?.table.collect ?? [])];
  for (const { service } of collect)
    if (service !== 'main') remarks.uses('service-collect-hook', at('collect', service));
  return {
    mode,
    environment: separate?.environment,
    timeoutMs: table.timeout_sec,
    env: readVariables(source, variables, [...path, 'env']),
    user,
    network: readNetwork(source, table, path) ?? readNetwork(source, toml.verifier, ['verifier']),
    tests,
    command: [...interpreterOf(source, request), `${testsFolder}/${scriptOf(toml)}`],
    reading: {
      kind: 'reward-files',
      json: `${verifierLogs}/reward.json`,
      text: `${verifierLogs}/reward.txt`,
    },
    collect: collect.map(({ timeout_sec: timeoutMs, command, user }) => ({ command, timeoutMs, user })),
  };
}

/** Where a table says that the verifier runs. An environment of its own implies `separate`. */
function modeOf(
  { document }: HarborSource,
  table: VerifierTable,
  path: Path,
): TaskVerifier['mode'] | undefined {
  if (table.environment_mode === 'shared' && table.environment)
    throw new BadFile([document.issue([...path, 'environment'], 'contradicts environment_mode = "shared"')]);
  return table.environment_mode ?? (table.environment && 'separate');
}

interface Separate {
  /** Undefined for a fresh one of the task's. */
  environment: TaskEnvironment | undefined;
  hasTests: boolean;
}

/**
 * The environment of a separate verifier: the image of its own table, a folder of tests that can be built, or
 * else the environment of the task.
 */
function readSeparate(source: HarborSource, { toml, step }: VerifierRequest): Separate {
  const own = step?.table.environment && { table: step.table.environment, path: step.path };
  const shared = toml.verifier.environment && { table: toml.verifier.environment, path: ['verifier'] };
  const { table, path } = own ?? shared ?? { table: toml.environment, path: undefined };
  const at = path ? [...path, 'environment'] : ['environment'];
  const folders = step ? [[...step.folder, 'tests'], ['tests']] : [['tests']];
  const folder = folders.find((names) =>
    ['Dockerfile', 'docker-compose.yaml'].some((name) => source.folder.isFile(...names, name)),
  );
  const hasTests = folder !== undefined || (path !== undefined && table.docker_image !== undefined);
  if (!folder && !path) return { environment: undefined, hasTests };
  const environment = readEnvironment(source, table, { path: at, folder: folder ?? ['environment'] });
  return { environment, hasTests };
}

function scriptOf({ environment }: TaskToml): string {
  return environment.os === 'windows' ? 'test.bat' : 'test.sh';
}

/** Where tests may be, in the order in which they are put into place. The later files replace the earlier. */
function placesOf({ step }: VerifierRequest): string[][] {
  return step ? [['tests'], [...step.folder, 'tests']] : [['tests']];
}

function interpreterOf({ folder }: HarborSource, request: VerifierRequest): string[] {
  const name = scriptOf(request.toml);
  const place = placesOf(request).findLast((names) => folder.isFile(...names, name));
  return folder.interpreter(...(place ?? []), name);
}

/** The folders of tests, one of which must have the script that the verifier runs. */
function readTests({ folder, document, remarks }: HarborSource, request: VerifierRequest): PlacedFolder[] {
  const { toml, ignored } = request;
  const name = scriptOf(toml);
  const places = placesOf(request);
  const tests = places.flatMap((names): PlacedFolder[] => {
    const from = folder.folder(...names);
    return from === undefined ? [] : [{ from, to: testsFolder, ignored }];
  });
  if (!places.some((names) => folder.isFile(...names, name))) {
    const path = folder.at(...(places.at(-1) ?? []), name);
    remarks.uses('no-tests', { ...document.issue([], 'is missing'), file: path });
  }
  return tests;
}

/** Folders in containers, by agreement of the format. */

/** Where tests are put, or are in an image that is made for them. */
export const testsFolder = '/tests';

/** Where tests write rewards. */
export const verifierLogs = '/logs/verifier';

/** Whatever is left there is an artifact. */
export const artifactsFolder = '/logs/artifacts';
