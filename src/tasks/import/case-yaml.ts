import { posix } from 'node:path';
import type { CaseOracle, CaseTests, Thresholds } from '../../suite/case-tests.ts';
import type { CaseEnvironment, PlacedFile } from '../../suite/environment.ts';
import type { PlannedCase } from '../../suite/plan.ts';
import { servicesYaml } from './services-yaml.ts';
import { buildYaml, duration, given, NotCarried, nonEmpty, nonEmptyList, type Writing } from './words.ts';

/** A case as a suite file says it, and the files beside the suite that it needs. */
export interface ImportedCase {
  /** Keys of a case of a suite file. */
  yaml: Record<string, unknown>;
  /** What is put into the case's folder, under these names. */
  files: { folder: string; entries: PlacedFile[] }[];
  /** Folders of the host that are copied whole, as contexts of builds. */
  contexts: { from: string; to: string }[];
}

/**
 * A planned case as a part of a suite file. Throws {@link NotCarried} for a case with something that is not
 * written: nothing is left out silently.
 *
 * @param folder the case's folder, relative to the suite
 */
export function caseYaml({ request, local }: PlannedCase, folder: string): ImportedCase {
  refuseOthers(request, ['id', 'name', 'tags', 'variables'], '');
  const { artifacts, artifactsExcept = [], environment, agent: whole = {}, tests, oracle } = local;
  const { network, ...agent } = whole;
  const known = ['artifacts', 'artifactsExcept', 'environment', 'agent', 'tests', 'oracle', ...usual];
  refuseOthers(local, known, '');
  refuseOthers(agent, ['user', 'mcpServers', 'skills'], 'agent.');
  const files: ImportedCase['files'] = [];
  const contexts: ImportedCase['contexts'] = [];
  const writing: Writing = {
    put(name, entries) {
      files.push({ folder: name, entries });
      return posix.join(folder, name);
    },
    copy(from, to) {
      contexts.push({ from, to });
      return posix.join(folder, to);
    },
  };
  const { id, name, tags, variables } = request;
  return {
    yaml: given({
      id,
      name: name === id ? undefined : name,
      tags,
      variables,
      environment: given(environmentYaml(environment, writing)),
      tests: tests && given(testsYaml(tests, writing.put)),
      solution: oracle && given(oracleYaml(oracle, writing.put)),
      agent: nonEmpty(given({ ...agent, hosts: network?.hosts })),
      artifacts: nonEmptyList(artifacts),
      artifactsExcept: nonEmptyList(artifactsExcept),
    }),
    files,
    contexts,
  };
}

/** Settings of a case that tasks do not have. They have their usual values. */
const usual = ['protected', 'runsIn', 'verifyPlace', 'onError', 'userTurns', 'solution'];

type Put = Writing['put'];

function environmentYaml(environment: CaseEnvironment, writing: Writing) {
  const { image, build, workdir, user, env, resources, healthcheck, files = [], timeouts = {} } = environment;
  const { services = [], nameForServices, startUp, hosts = {} } = environment;
  const known = ['image', 'build', 'workdir', 'user', 'env', 'resources', 'healthcheck', 'files', 'timeouts'];
  refuseOthers(environment, [...known, 'services', 'nameForServices', 'startUp', 'hosts'], 'environment.');
  const isWritable = (file: PlacedFile) =>
    'folder' in file && file.mode === 0o777 && posix.isAbsolute(file.path);
  const inWorkspace = files.filter((file) => !isWritable(file));
  const outside = inWorkspace.find(({ path }) => posix.isAbsolute(path));
  if (outside) throw new NotCarried(`its environment puts a file at ${outside.path}`);
  return {
    image: image?.name,
    build: build && buildYaml(build, 'environment', writing),
    services: nonEmpty(servicesYaml(services, writing)),
    ...(services.length > 0 && { nameForServices }),
    hosts: nonEmpty(hosts),
    startUp: startUp && given({ ...startUp }),
    workdir,
    user,
    env: nonEmpty(env),
    folders: inWorkspace.length > 0 ? { '.': writing.put('files', inWorkspace) } : undefined,
    writable: nonEmptyList(files.filter(isWritable).map(({ path }) => path)),
    healthcheck: healthcheck && {
      ...healthcheck,
      interval: duration(healthcheck.interval),
      timeout: duration(healthcheck.timeout),
      startPeriod: duration(healthcheck.startPeriod),
    },
    resources: nonEmpty(given({ ...resources })),
    timeouts: nonEmpty(
      given({
        build: timeouts.build === undefined ? undefined : duration(timeouts.build),
        harness: timeouts.harness === undefined ? undefined : duration(timeouts.harness),
      }),
    ),
  };
}

function testsYaml(tests: CaseTests, put: Put) {
  const { files, emptied, command, env, user, timeoutMs, reading, thresholds, collect = [], network } = tests;
  const known = [
    'files',
    'emptied',
    'command',
    'env',
    'user',
    'timeoutMs',
    'reading',
    'thresholds',
    'collect',
    'network',
  ];
  refuseOthers(tests, known, 'tests.');
  if (reading.kind !== 'reward-files' && reading.kind !== 'printed-tests')
    throw new NotCarried('its tests are read in a way that a suite file does not have');
  return {
    folders: foldersYaml(files, emptied, 'tests', put),
    command,
    env: nonEmpty(env),
    user,
    timeout: duration(timeoutMs),
    collect: nonEmptyList(
      collect.map(({ timeoutMs, ...each }) => given({ ...each, timeout: duration(timeoutMs) })),
    ),
    ...(reading.kind === 'reward-files'
      ? { rewards: { json: reading.json, text: reading.text } }
      : { prints: reading.parser }),
    hosts: network?.hosts,
    threshold: thresholdYaml(thresholds),
  };
}

function oracleYaml(oracle: CaseOracle, put: Put) {
  const { files, command, env } = oracle;
  refuseOthers(oracle, ['files', 'command', 'env'], 'solution.');
  const tops = files.map(({ path }) => `/${path.split('/')[1]}`);
  return { command, folders: foldersYaml(files, tops, 'solution', put), env: nonEmpty(env) };
}

/** Each folder of the sandbox with the folder of the case that has its files. */
function foldersYaml(
  files: readonly PlacedFile[],
  roots: readonly string[],
  name: string,
  put: Put,
): Record<string, string> | undefined {
  const distinct = [...new Set(roots)];
  const folders: Record<string, string> = {};
  const left = new Set(files);
  for (const root of distinct) {
    const below = files.filter((file) => left.has(file) && file.path.startsWith(`${root}/`));
    if (below.length === 0) continue;
    for (const file of below) left.delete(file);
    const entries = below.map((file) => ({ ...file, path: file.path.slice(root.length + 1) }));
    const isOnly = Object.keys(folders).length === 0;
    folders[root] = put(isOnly ? name : `${name}${root.replaceAll('/', '-')}`, entries);
  }
  const [other] = left;
  if (other) throw new NotCarried(`it puts a file at ${other.path}`);
  return nonEmpty(folders);
}

function thresholdYaml({ default: usualThreshold, byName, required }: Thresholds): unknown {
  if (required || usualThreshold === undefined)
    throw new NotCarried('its thresholds are those of a step, which a suite file does not have');
  const names = nonEmpty(byName);
  if (names && usualThreshold !== 1) throw new NotCarried('its thresholds are both by name and not 1');
  return names ?? (usualThreshold === 1 ? undefined : usualThreshold);
}

/** What people know parts of a case by that are not written. */
const notWritten: Record<string, string> = {
  steps: 'a case of a suite has no steps',
  'tests.fresh': 'a case of a suite has no separate verifier',
};

/** Throws for a key that has a value and that is not written. */
function refuseOthers(value: object, known: readonly string[], where: string): void {
  const other = Object.entries(value).find(([key, each]) => saysSomething(each) && !known.includes(key));
  if (!other) return;
  const name = `${where}${other[0]}`;
  throw new NotCarried(`${notWritten[name] ?? `import does not write ${name}`}; run it with --tasks`);
}

/** Whether a value has any content, at some depth. */
function saysSomething(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined && value !== null;
  return Object.values(value).some(saysSomething);
}
