import { createInterface } from 'node:readline/promises';
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import type { Clock } from '../../base/clock.ts';
import { inputError } from '../../base/offsite-error.ts';
import {
  type Asking,
  checkAddress,
  isSecret,
  type NewModel,
  readAddress,
  readPair,
  usualPorts,
} from '../../setup/models/gather-model.ts';
import { modelText } from '../../suite/add-model.ts';
import { keyHeaders, type Wire, wires } from '../../suite/model-config.ts';
import { variableProblem } from '../../suite/variables.ts';
import type { Output } from '../../text/output.ts';
import { type Printable, quoted, stack, text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { Interrupted } from '../interruption.ts';
import { port, withConfigAndData } from '../options.ts';
import { personsTerminal, type Terminal } from '../terminal.ts';

export function modelsAddCommand(clock: Clock, terminal: Terminal) {
  return withConfigAndData(new Command('add'))
    .description('ask a server what it is, and write a model into offsite.yaml')
    .argument('[name]', 'the name for suites (default: from the name at the API), or the address of the API')
    .option('--base-url <url>', 'the address of its API')
    .option('--model <id>', "the model's name at the API")
    .option(
      '--wire <wires>',
      'the wires it speaks, separated by commas (default: those that its server has)',
      wireList,
    )
    .option('--api-key-env <variable>', 'the variable that holds its key, never the key')
    .addOption(
      new Option('--auth <header>', 'the header that carries its key (default: from the wire)').choices(
        keyHeaders,
      ),
    )
    .option('--header <name: value>', 'a header to add to every request, which is no key; repeatable', all)
    .option('--query <name=value>', 'a parameter to add to every request; repeatable', all)
    .option('--local', 'look for servers on this machine')
    .option('--ports <ports>', `where --local looks (default: ${usualPorts.join(',')})`, portList)
    .option('--force', 'replace a model of this name')
    .option('--yes', 'ask nothing')
    .option('--json', 'print one JSON document on stdout')
    .action(async (name, options) => {
      const { apiKeyEnv } = options;
      const isAddress = options.baseUrl === undefined && /^https?:\/\//.test(name ?? '');
      const [baseUrl, given] = isAddress ? [name, undefined] : [options.baseUrl, name];
      if (baseUrl !== undefined) refuse('--base-url', checkAddress(baseUrl));
      if (apiKeyEnv !== undefined) refuse('--api-key-env', variableProblem(apiKeyEnv));
      const address = baseUrl === undefined ? undefined : readAddress(baseUrl);
      const added = {
        headers: pairs('--header', ':', options.header),
        query: { ...address?.query, ...pairs('--query', '=', options.query) },
      };
      await using context = CommandContext.open(options, { clock, terminal });
      const { config, env, err } = context;
      const { signal } = context.interruption({ doing: () => 'stopping; nothing was written' });
      // Fails before any question.
      if (given !== undefined && !options.force) refuseKnown(given, config.models);
      using asking = options.yes || options.json ? undefined : openAsking(terminal.out);
      const { gatherModel } = await import('../../setup/models/gather-model.ts');
      const ports = options.ports ?? usualPorts;
      const caBundle = await context.certificates();
      const { name: chosen, model } = await gatherModel(
        { ...options, ...added, baseUrl: address?.baseUrl, name: given, ports },
        { env, clock, signal, asking, caBundle, note: (message) => err.print(message) },
      );
      if (!options.force) refuseKnown(chosen, config.models);
      const file = config.file ?? 'offsite.yaml';
      if (asking) {
        terminal.out.print(stack([text`${file} will have:`, quoted(modelText(chosen, model))]));
        if (!(await asking.confirm('Write it'))) return err.print('nothing was written');
      }
      const { writeModel } = await import('../../setup/models/write-model.ts');
      await writeModel(file, chosen, model);
      const keyIsSet = model.apiKeyEnv === undefined ? undefined : Boolean(env[model.apiKeyEnv]);
      if (options.json) terminal.out.json({ file, name: chosen, model, keyIsSet });
      else terminal.out.print(addedText(file, chosen, model, keyIsSet));
    });
}

function addedText(file: string, name: string, model: NewModel, keyIsSet: boolean | undefined) {
  return stack([
    text`wrote the model ${name} into ${file}: ${model.wire.join(', ')} at ${model.baseUrl}`,
    ...(keyIsSet === false ? [text`set ${model.apiKeyEnv ?? ''} to its key before you use it`] : []),
    text`its costs are not known until you set its prices there`,
    text`try it with: offsite models check ${name}`,
  ]);
}

function refuseKnown(name: string, models: Readonly<Record<string, unknown>>): void {
  if (!Object.hasOwn(models, name)) return;
  throw inputError('MODEL_EXISTS', `there is already a model ${name} in the configuration`, {
    hint: 'Give another name, or replace it with --force.',
  });
}

/** Commander would repeat a refused argument, which may hold a key. */
function refuse(option: string, problem: string | undefined): void {
  if (problem !== undefined) throw inputError('OPTION_INVALID', `${option}: ${problem}`);
}

function all(given: string, before: string[] | undefined): string[] {
  return [...(before ?? []), given];
}

function pairs(option: string, separator: ':' | '=', given: readonly string[] = []): Record<string, string> {
  const read = given.map((one) => {
    const pair = readPair(one, separator);
    if (!pair) refuse(option, `expected a name, ${separator} and a value`);
    if (pair && isSecret(...pair))
      refuse(option, 'that may be a key, which belongs into the variable of --api-key-env; see --auth');
    return pair ?? ['', ''];
  });
  return Object.fromEntries(read);
}

function wireList(given: string): Wire[] {
  return given.split(',').map((name) => {
    const wire = wires.find((one) => one === name.trim());
    if (!wire) throw new InvalidArgumentError(`expected some of ${wires.join(', ')}.`);
    return wire;
  });
}

function portList(given: string): number[] {
  return given.split(',').map(port);
}

/**
 * Asks line by line, so that it works with any terminal and any screen reader. Undefined if nobody sits at a
 * terminal. Dispose of it, or the process waits for keys.
 */
function openAsking(out: Output): Asking | undefined {
  const person = personsTerminal();
  if (!person) return undefined;
  const lines = createInterface({ input: person.keys, output: person.screen });
  const stopped = new AbortController();
  lines.on('SIGINT', () => stopped.abort(new Interrupted('SIGINT')));
  const noAnswer = inputError('NO_ANSWER', 'the terminal was closed before all questions were answered', {
    hint: 'Answer by options instead; --help shows them.',
  });
  lines.on('close', () => stopped.abort(noAnswer));

  const line = async (prompt: Printable): Promise<string> => {
    try {
      return (await lines.question(`${out.shown(prompt)} `, { signal: stopped.signal })).trim();
    } catch (error) {
      // The prompt's own line is not complete.
      out.print('');
      throw stopped.signal.aborted ? stopped.signal.reason : error;
    }
  };
  const asked: Asking['text'] = async (question, { preset, problem } = {}) => {
    while (true) {
      const given = await line(preset === undefined ? text`${question}:` : text`${question} [${preset}]:`);
      const answer = given === '' ? preset : given;
      const wrong = answer === undefined ? 'please answer' : problem?.(answer);
      if (answer !== undefined && wrong === undefined) return answer;
      out.print(text`  ${wrong ?? ''}`);
    }
  };
  return {
    text: asked,
    async choose(question, choices, typed = () => undefined) {
      const [first] = choices;
      if (!first) throw new Error('there is nothing to choose');
      out.print(stack(choices.map(({ title }, index) => text`  ${index + 1}) ${title}`)));
      const other = `please answer with a number from 1 to ${choices.length}`;
      const meant = (answer: string) => choices[Number(answer) - 1]?.chosen ?? typed(answer);
      const problem = (answer: string) => (meant(answer) === undefined ? other : undefined);
      return meant(await asked(question, { preset: '1', problem })) ?? first.chosen;
    },
    async confirm(question) {
      const problem = (given: string) => (/^(y|yes|n|no)$/i.test(given) ? undefined : 'please answer y or n');
      return /^y/i.test(await asked(text`${question} (y/n)`, { preset: 'y', problem }));
    },
    [Symbol.dispose]: () => lines.close(),
  };
}
