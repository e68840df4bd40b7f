import { createInterface } from 'node:readline/promises';
import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { runners } from '../../../runners/index.ts';
import { systemClock } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { connect } from '../../engine/connection/connect.ts';
import { firstFiles } from '../../setup/first-files.ts';
import { nearbyServers, usualPorts } from '../../setup/models/gather-model.ts';
import { writeNewFiles } from '../../setup/new-files.ts';
import { type OfferedModel, offeredModels } from '../../setup/offered-models.ts';
import { lookAtProject, type Project } from '../../setup/project.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { Interrupted } from '../interruption.ts';
import { port } from '../options.ts';
import { openTerminal, type PersonsTerminal, personsTerminal } from '../terminal.ts';

export function initCommand() {
  return new Command('init')
    .description('write a first suite and configuration into this folder, which run as they are')
    .option('-y, --yes', 'ask nothing, as without a terminal')
    .option('--force', 'replace files that exist')
    .option(
      '--model-ports <port...>',
      `ports of this machine where model servers are looked for (default: ${usualPorts.join(', ')})`,
      ports,
    )
    .action(init);
}

interface InitOptions {
  yes?: true | undefined;
  force?: boolean | undefined;
  modelPorts?: number[] | undefined;
}

async function init({ yes, force = false, modelPorts = [...usualPorts] }: InitOptions): Promise<void> {
  const { out, err } = openTerminal();
  const { env } = process;
  const project = lookAtProject('.');
  const { signal } = new AbortController();
  const [servers, engine] = await Promise.all([
    nearbyServers(modelPorts, { clock: systemClock, signal }),
    lookAtEngine(env),
  ]);
  const models = offeredModels(env, servers);
  err.print(foundText(project, engine, models));
  const person = yes ? undefined : personsTerminal();
  const harnesses = runners.map(({ name }) => name).filter((name) => name !== 'command');
  const variant = person && models.length > 0 ? await chooseVariant(person, models, harnesses) : undefined;
  const files = firstFiles({ project, models, variant });
  writeNewFiles('.', files, { force, otherwise: 'choose another folder' });
  const shown = files.map(({ path }) => path).filter((path) => !path.includes('.schemas/'));
  out.print(
    stack([
      text`wrote ${shown.join(', ')}, and schemas for editors in evals/.schemas`,
      ours(`next:
  offsite check evals/suite.yaml    proves that the case can fail and can be solved
  offsite run evals/suite.yaml      runs it with a model that answers from a file
  ${project.repository === undefined ? leadsOn.viewer : leadsOn.cases}`),
      ...(engine === 'ready' ? [] : [ours(engineHelp[engine])]),
    ]),
  );
}

const leadsOn = {
  cases: 'offsite case add                  makes a case of the last commit',
  viewer: 'offsite view                      shows the results in the browser',
};

type EngineState = 'ready' | 'without an image' | 'missing';

const engineHelp = {
  'without an image': 'before that: offsite engine base-image    makes the image that sandboxes use',
  missing: 'before that: offsite doctor    says what is missing on this machine: trials need Docker',
};

async function lookAtEngine(env: NodeJS.ProcessEnv): Promise<EngineState> {
  const signal = AbortSignal.timeout(engineTime);
  try {
    const connection = await connect({ host: undefined, env, clock: systemClock, signal });
    try {
      return (await connection.port.images.find('offsite/base', signal)) ? 'ready' : 'without an image';
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (error instanceof OffsiteError || signal.aborted) return 'missing';
    throw error;
  }
}

/** Milliseconds for a quick look at the engine. `offsite doctor` checks it properly. */
const engineTime = 10_000;

function foundText(
  project: Project,
  engine: EngineState,
  models: ReturnType<typeof offeredModels>,
): Printable {
  const parts = [
    project.repository === undefined ? 'no git repository' : 'a git repository',
    { ready: 'Docker', 'without an image': 'Docker', missing: 'no Docker' }[engine],
    ...new Set(models.map(({ found }) => found)),
    ...(models.length === 0 ? ['no key and no local server of a model'] : []),
  ];
  return text`found: ${parts.join('; ')}`;
}

function ports(given: string, before: number[] | undefined): number[] {
  const one = port(given);
  if (one === 0) throw new InvalidArgumentError('expected a port from 1 to 65535.');
  return [...(before ?? []), one];
}

/**
 * Asks a person which model and which harness they want to evaluate. Undefined if they want none yet. Throws
 * {@link Interrupted} if they leave with Ctrl-C or Ctrl-D.
 *
 * @param harnesses that can use any model
 */
export async function chooseVariant(
  { keys, screen }: PersonsTerminal,
  models: readonly OfferedModel[],
  harnesses: readonly string[],
): Promise<{ model: string; harness: string } | undefined> {
  const person = createInterface({ input: keys, output: screen });
  const left = new AbortController();
  person.on('close', () => left.abort(new Interrupted()));
  /** Asks until the answer is an expected one, or empty. */
  const ask = async (question: string, expected: readonly string[]): Promise<string> => {
    for (;;) {
      const given = (await person.question(question, { signal: left.signal })).trim();
      if (given === '' || expected.includes(given)) return given;
    }
  };
  try {
    const names = models.map(({ name }) => name);
    const model = await ask(`Model to evaluate (${names.join(', ')}; Enter for none yet): `, names);
    if (model === '') return undefined;
    const usual = models.find(({ name }) => name === model)?.harness ?? 'codex';
    const harness = await ask(`Harness (${harnesses.join(', ')}; Enter for ${usual}): `, harnesses);
    return { model, harness: harness || usual };
  } catch (error) {
    throw left.signal.aborted ? left.signal.reason : error;
  } finally {
    person.close();
  }
}
