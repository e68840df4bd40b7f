import { basename } from 'node:path';
import type { Case } from '../contract/definition.ts';
import type { CaseAgent } from './case-steps.ts';
import { workdirObstacle } from './environment.ts';
import { plannedOracle, plannedTests } from './load-tests.ts';
import { plannedValidator } from './load-validator.ts';
import {
  type CaseExtras,
  freshVerify,
  type PlannedCase,
  type PromptSource,
  type VerifyPlace,
} from './plan.ts';
import type { CaseSource, Text } from './suite-file.ts';
import type { Path, SuiteReader } from './suite-reader.ts';
import { isReservedName, type Variables } from './variables.ts';

/** A case of a suite file with the files that it names. Its problems are reported. */
export function plannedCase(
  entry: CaseSource,
  index: number,
  prompt: PromptSource,
  reader: SuiteReader,
): PlannedCase {
  const path = ['cases', index];
  const variables = entry.variables ?? {};
  for (const name of Object.keys(variables).filter(isReservedName)) {
    reader.report([...path, 'variables', name], 'this name decides how programs run; choose another one');
  }
  if (prompt.kind === 'text')
    reader.refuseUnknownNames(prompt.text, variables, ['suite', 'prompt'], ` in case ${entry.id}`);
  refuseGrading(entry, path, reader);
  const request: Case = { id: entry.id, name: entry.name ?? entry.id };
  if (entry.tags) request.tags = entry.tags;
  if (entry.source && 'kind' in entry.source) request.source = entry.source;
  if (entry.variables) request.variables = entry.variables;
  if (entry.prepare !== undefined)
    request.prepare = prepareOf(entry.prepare, variables, [...path, 'prepare'], reader);
  if (entry.verify !== undefined)
    request.verify = reader.script(scriptOf(entry.verify), variables, [...path, 'verify']);
  if (entry.validator)
    request.validator = plannedValidator(entry.validator, variables, [...path, 'validator'], reader);
  if (entry.user) {
    const { kind, goal, prompt } = entry.user;
    request.user = {
      kind,
      goal: reader.script(goal, variables, [...path, 'user', 'goal']),
      prompt: reader.script(prompt, variables, [...path, 'user', 'prompt']),
    };
    refuseLoneUser([...path, 'user'], reader);
  }
  return { request, local: extrasOf(entry, variables, path, reader) };
}

function refuseGrading({ tests, verify, validator }: CaseSource, path: Path, reader: SuiteReader): void {
  if (tests && (verify !== undefined || validator))
    reader.report([...path, 'tests'], 'is in place of verify and validator; remove it, or them');
  if (!tests && verify === undefined && !validator)
    reader.report(
      path,
      'has neither verify nor validator nor tests: with nothing to check, every trial would be void',
    );
}

function agentOf(
  { hosts, ...agent }: NonNullable<CaseSource['agent']>,
  path: Path,
  reader: SuiteReader,
): CaseAgent {
  return { ...agent, ...(hosts && { network: { hosts, at: reader.issueAt([...path, 'hosts']) } }) };
}

function extrasOf(entry: CaseSource, variables: Variables, path: Path, reader: SuiteReader): CaseExtras {
  const { solution, validator, user, tests } = entry;
  const oracle = typeof solution === 'object' && 'command' in solution ? solution : undefined;
  return {
    artifacts: [...(reader.source.artifacts ?? []), ...(entry.artifacts ?? [])],
    ...(entry.artifactsExcept && { artifactsExcept: entry.artifactsExcept }),
    ...(entry.agent && { agent: agentOf(entry.agent, [...path, 'agent'], reader) }),
    protected: entry.protected ?? [],
    runsIn: validator?.runsIn ?? 'fresh',
    verifyPlace: verifyPlaceOf(entry.verify, [...path, 'verify'], reader),
    onError: validator?.onError ?? 'void',
    userTurns: user?.maxTurns ?? 0,
    solution:
      solution === undefined || oracle
        ? undefined
        : reader.script(solution as Text, variables, [...path, 'solution']),
    environment: environmentOf(entry, path, reader),
    ...(tests && { tests: plannedTests(tests, [...path, 'tests'], reader) }),
    ...(oracle && { oracle: plannedOracle(oracle, [...path, 'solution'], reader) }),
  };
}

function environmentOf({ environment, source, tests }: CaseSource, path: Path, reader: SuiteReader) {
  const planned = reader.environment(environment, path);
  const { workdir } = planned;
  const obstacle = workdir === undefined || tests ? undefined : workdirObstacle(workdir);
  if (obstacle !== undefined)
    reader.reportOnce([...(environment ? path : []), 'environment', 'workdir'], `${workdir}: ${obstacle}`);
  const repository = reader.repository(source, path);
  return repository ? { ...planned, source: repository } : planned;
}

function verifyPlaceOf(verify: CaseSource['verify'], path: Path, reader: SuiteReader): VerifyPlace {
  if (typeof verify !== 'object') return freshVerify;
  const { in: where = 'fresh', keep = [], ignore = [], unexpected } = verify;
  if (unexpected !== undefined && where === 'fresh') {
    reader.report([...path, 'unexpected'], 'requires in: same; a fresh sandbox shows no such changes');
  }
  return { in: where, keep, ignore, unexpected: unexpected ?? 'show' };
}

/** Every variant needs a model for the simulated user. */
function refuseLoneUser(path: Path, reader: SuiteReader): void {
  reader.source.variants.forEach(({ userModel, name }, index) => {
    if (userModel === undefined) {
      reader.report(path, `variants[${index}]${name ? ` (${name})` : ''} has no userModel to play this user`);
    }
  });
}

function prepareOf(
  prepare: NonNullable<CaseSource['prepare']>,
  variables: Variables,
  path: Path,
  reader: SuiteReader,
): Case['prepare'] {
  const parts = typeof prepare === 'string' ? { source: prepare } : prepare;
  const name = ('name' in parts && parts.name) || ('file' in parts ? basename(parts.file) : 'prepare');
  const text = 'file' in parts ? { file: parts.file } : parts.source;
  return { name, source: reader.script(text, variables, path) };
}

function scriptOf(verify: NonNullable<CaseSource['verify']>): Text {
  return typeof verify === 'object' && 'source' in verify ? verify.source : verify;
}
