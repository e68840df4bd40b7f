import { posix } from 'node:path';
import { BadFile } from '../../suite/file-issues.ts';
import type { TestsSource } from '../../suite/tests-source.ts';
import type { Path } from '../../suite/yaml-file.ts';
import { type Keys, placedIn } from '../task.ts';
import {
  type HarborEnvironment,
  type HarborReading,
  hostsOf,
  readEnvironment,
  readNetwork,
  readVariables,
} from './environment.ts';
import type { StepTable, VerifierTable } from './task-toml.ts';

/** Folders in containers, by agreement of the format. */

/** Where tests are put, or are in an image that is made for them. */
const testsFolder = '/tests';

/** Where tests write rewards. */
const verifierLogs = '/logs/verifier';

/** Whatever is left there is an artifact. */
const artifactsFolder = '/logs/artifacts';

/** What is read of the tests of a task, or of one of its steps, for which the task's own are the fallback. */
interface Graded {
  table: VerifierTable;
  /** Where the table is in `task.toml`. */
  path: Path;
  /** Where the tests are in the case. */
  keys: Keys;
  /** Where files of tests may be, in the order in which they are put into place. The later ones win. */
  places: string[][];
  /** The environment of the step's own. */
  environment: VerifierTable['environment'];
}

/** How a task, or one of its steps, is graded, without its threshold. */
export function readTests(
  reading: HarborReading,
  environment: HarborEnvironment,
  of?: { step: StepTable; index: number },
): Omit<TestsSource, 'threshold'> {
  const { document, remarks, toml } = reading;
  const graded = of ? gradedStep(of) : gradedTask(reading);
  const { table, path, keys, places } = graded;
  const mode = modeOf(reading, table, path) ?? modeOf(reading, toml.verifier, ['verifier']) ?? 'shared';
  const separate = mode === 'separate' ? readSeparate(reading, graded) : undefined;
  // An image that is made for the verifier contains the tests.
  const files = separate?.hasTests ? {} : readFiles(reading, graded);
  // A step's hooks run after the task's.
  const collect = [...(toml.verifier.collect ?? []), ...(of?.step.verifier?.collect ?? [])];
  for (const { service } of collect)
    if (service !== 'main')
      remarks.uses('service-collect-hook', document.issue([...path, 'collect'], service));
  const script = scriptOf(reading);
  const place = places.findLast((names) => reading.folder.isFile(...names, script)) ?? [];
  const env = readVariables(reading, of ? { ...toml.verifier.env, ...table.env } : table.env, [
    ...path,
    'env',
  ]);
  const network =
    readNetwork(reading, table, path) ??
    readNetwork(reading, toml.verifier, ['verifier']) ??
    (separate?.own ?? environment).network;
  return {
    ...files,
    command: [...reading.folder.interpreter(...place, script), `${testsFolder}/${script}`],
    env,
    user: table.user ?? toml.verifier.user,
    timeout: table.timeout_sec,
    rewards: { json: `${verifierLogs}/reward.json`, text: `${verifierLogs}/reward.txt` },
    collect: collect.map(({ command, user, timeout_sec: timeout }) => ({ command, user, timeout })),
    ...hostsOf(reading, network, keys),
    ...(separate
      ? {
          in: 'fresh',
          ...(separate.own && { environment: separate.own.environment }),
          brings: broughtOf([...toml.artifacts, ...(of?.step.artifacts ?? [])]),
          sealed: [testsFolder, verifierLogs],
        }
      : { in: 'same' }),
  };
}

function gradedTask({ toml: { verifier } }: HarborReading): Graded {
  return {
    table: verifier,
    path: ['verifier'],
    keys: ['tests'],
    places: [['tests']],
    environment: undefined,
  };
}

function gradedStep({ step: { name, verifier }, index }: { step: StepTable; index: number }): Graded {
  return {
    // A step's verifier never gets the timeout of the task's verifier.
    table: verifier ?? { timeout_sec: 600_000, env: {} },
    path: verifier ? ['steps', index, 'verifier'] : ['verifier'],
    keys: ['steps', index, 'tests'],
    places: [['tests'], ['steps', name, 'tests']],
    environment: verifier?.environment,
  };
}

/**
 * Where a table says that the verifier runs. An environment of its own implies `separate`. Throws
 * {@link BadFile} if the table contradicts itself.
 */
export function modeOf(
  { document }: HarborReading,
  table: VerifierTable,
  path: Path,
): VerifierTable['environment_mode'] {
  if (table.environment_mode === 'shared' && table.environment)
    throw new BadFile([document.issue([...path, 'environment'], 'contradicts environment_mode = "shared"')]);
  return table.environment_mode ?? (table.environment && 'separate');
}

interface Separate {
  /** Undefined for a fresh one of the task's. */
  own: HarborEnvironment | undefined;
  hasTests: boolean;
}

/**
 * The environment of a separate verifier: the image of its own table, a folder of tests that can be built, or
 * else the environment of the task.
 */
function readSeparate(reading: HarborReading, { environment, path, keys, places }: Graded): Separate {
  const { toml, folder } = reading;
  const own = environment && { table: environment, path };
  const shared = toml.verifier.environment && { table: toml.verifier.environment, path: ['verifier'] };
  const named = own ?? shared;
  const built = places.findLast((names) =>
    ['Dockerfile', 'docker-compose.yaml'].some((name) => folder.isFile(...names, name)),
  );
  const hasTests = built !== undefined || named?.table.docker_image !== undefined;
  if (!built && !named) return { own: undefined, hasTests };
  const request = {
    keys: [...keys, 'environment'],
    path: [...(named?.path ?? []), 'environment'],
    folder: built ?? ['environment'],
  };
  return { own: readEnvironment(reading, named?.table ?? toml.environment, request), hasTests };
}

function scriptOf({ toml: { environment } }: HarborReading): string {
  return environment.os === 'windows' ? 'test.bat' : 'test.sh';
}

/** The folders of tests, one of which must have the script that the verifier runs. */
function readFiles(reading: HarborReading, { keys, places }: Graded) {
  const { folder, document, remarks, ignored, own } = reading;
  const name = scriptOf(reading);
  const found = places.flatMap((names) => folder.folder(...names) ?? []);
  if (!places.some((names) => folder.isFile(...names, name))) {
    const path = folder.at(...(places.at(-1) ?? []), name);
    remarks.uses('no-tests', { ...document.issue([], 'is missing'), file: path });
  }
  own.push(...found);
  return placedIn(
    reading,
    keys,
    found.map((from) => ({ from, to: testsFolder, ignored })),
  );
}

function broughtOf(artifacts: readonly { source: string; exclude: string[] }[]) {
  const declared = artifacts.map(({ source, exclude }) => ({ path: plainPath(source), except: exclude }));
  return [{ path: artifactsFolder, except: [] }, ...declared];
}

export function plainPath(path: string): string {
  return posix.normalize(path).replace(/\/$/, '');
}
