import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from '@commander-js/extra-typings';
import { documentsFolder, versionOf } from '../base/version.ts';
import { yamlFiles } from '../bounds/suite.ts';
import { nearest } from '../text/nearest.ts';
import type { Content } from '../text/output.ts';
import { lines, ours, type Printable, stack, text } from '../text/printable.ts';
import { internal, needed, nouns } from './command-list.ts';
import { exitCodes } from './exit-codes.ts';
import { printFailure } from './failure.ts';
import { newName } from './old-names.ts';
import { rareOptions } from './options.ts';
import { openTerminal } from './terminal.ts';

/** Runs the command line and returns the exit code. */
export async function runProgram(given: readonly string[]): Promise<number> {
  const { out, err } = openTerminal();
  if (given.length === 0 || asksForAll(given)) {
    out.print(ours(frontDoor(documentsFolder())));
    const folder = workingFolder();
    if (given.length === 0 && folder !== undefined) out.print(text`\n${nextStep(folder)}`);
    return exitCodes.done;
  }
  const argv = withNewName(given, (line) => err.print(line));
  const program = new Command('offsite')
    .description(
      'Runs evaluation trials of coding agents in sealed local sandboxes and reports every result.',
    )
    .version(versionOf())
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (help) => out.print(ours(help.trimEnd())),
      // The message repeats the arguments, which a script may have got from anywhere.
      writeErr: (message) => err.print(stack(message.trimEnd().split('\n').map(lines))),
    })
    .configureHelp({ groupItems: usualFirst })
    .showHelpAfterError('Run it with --help to see commands and options.');
  program.addHelpText('after', () => {
    const folder = documentsFolder();
    return folder === undefined ? '' : `\nDocuments: ${folder}docs\nExamples:  ${folder}examples`;
  });
  for (const command of await needed(argv)) {
    program.addCommand(command, { hidden: internal.has(command.name()) });
  }
  program.hook('preAction', (_, command) => {
    refuseNoFolder(command);
    refuseNoName(command);
  });
  // Commander throws instead of ending the process, so that the caller can finish its work.
  program.exitOverride();
  inheritSettings(program);
  try {
    refuseEarlyOption(program, argv);
    refuseUnknown(program, argv);
    refuseOtherOption(program, argv);
    refuseOptionAsValue(program, argv);
    refuseValueOfFlag(program, argv);
    refuseExtraWord(program, argv);
    await program.parseAsync(argv, { from: 'user' });
    return Number(process.exitCode ?? exitCodes.done);
  } catch (error) {
    // Commander has already printed its message; 0 is --help and --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.badInput;
    const said: Printable[] = [];
    const print = (content: Content) => {
      said.push(typeof content === 'string' ? lines(content) : content);
      err.print(content);
    };
    const code = printFailure(error, { print });
    // Whoever interrupted a job knows why it ended.
    if (process.env.GITHUB_ACTIONS === 'true' && code !== exitCodes.interrupted)
      err.annotation({ kind: 'error', title: text`Offsite: exit code ${code}`, message: stack(said) });
    return code;
  }
}

/** Relative paths, and all that is looked for beside the command, need a working folder that still exists. */
function refuseNoFolder(command: Pick<Command, 'error'>): void {
  if (workingFolder() === undefined)
    command.error('error: the folder in which this command was started no longer exists: change to another');
}

/** Undefined if it was removed. */
function workingFolder(): string | undefined {
  try {
    return process.cwd();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Refuses an empty value, as of a shell's variable that is not set. Where an option does not say that `-` is
 * standard output, a file with this name would appear.
 */
function refuseNoName(
  command: Pick<Command, 'options' | 'getOptionValue' | 'registeredArguments' | 'args' | 'error'>,
): void {
  for (const [index, argument] of command.registeredArguments.entries())
    if (!argument.variadic && command.args[index] === '')
      command.error(`error: the argument '${argument.name()}' is empty`);
  for (const option of command.options) {
    const given = [command.getOptionValue(option.attributeName())].flat();
    if (given.includes('')) command.error(`error: the value of option '${option.flags}' is empty`);
    const takesDash = option.flags.includes('|-') || !/<(file|folder|path)/.test(option.flags);
    if (!takesDash && given.includes('-'))
      command.error(`error: option '${option.flags}' needs a name in place of -`);
  }
}

/**
 * A command line with the new name of its command. `help X` asks for the help of X, and so does a word that
 * only has commands below it.
 */
function withNewName(given: readonly string[], note: (message: Printable) => void): readonly string[] {
  if (given.join(' ') === 'help --all') return ['--help'];
  const [first = '', ...rest] = given;
  if (first === 'help') return withNewName([...rest, '--help'], note);
  if (given.length === 1 && Object.hasOwn(nouns, first)) return [first, '--help'];
  const name = newName(given);
  if (name === undefined) return given;
  note(text`\`offsite ${first}\` is now \`offsite ${name}\`; the next release has only the new name`);
  return withNewName([...name.split(' '), ...rest], note);
}

/** Groups the items of a help text: those without a heading of their own come first, rare ones last. */
function usualFirst<Item>(
  _all: readonly Item[],
  shown: readonly Item[],
  headingOf: (item: Item) => string,
): Map<string, Item[]> {
  const place = (heading: string) => {
    if (heading === 'Options:' || heading === 'Commands:') return 0;
    return heading === rareOptions ? 2 : 1;
  };
  const groups = [...Map.groupBy(shown, headingOf)];
  return new Map(groups.toSorted(([one], [other]) => place(one) - place(other)));
}

/** Refuses a command line, with what was probably meant. */
function refuse(command: Command, code: string, problem: string, meant?: string): never {
  const hint = meant === undefined ? '' : `\n(${meant})`;
  command.error(`error: ${problem}${hint}`, { code: `commander.${code}` });
}

/** What other programs call what a command does here. */
const otherWords: Readonly<Record<string, string>> = {
  'offsite eval': 'run',
  'offsite test': 'run',
  'offsite report': 'show, or export --html report.html',
  'offsite logs': 'show TRIAL --transcript',
  'offsite ls': 'data batches, tasks list, or models list',
  'offsite list': 'data batches, tasks list, or models list',
  'offsite history': 'data batches',
  'offsite results': 'show, or data batches',
  'offsite stop': 'daemon drain',
  'offsite version': '--version',
  'offsite docs': 'help --all, which names the folder of the documents',
  'data list': 'data batches',
  'data restore': 'the copy that `offsite data backup` made as the data folder: --data-folder FOLDER',
  'daemon list': 'daemon status',
  'daemon run': 'daemon enqueue',
  'daemon logs': 'journalctl --unit offsite, for a daemon of `offsite daemon install`',
  'daemon restart': 'offsite daemon drain, and offsite daemon',
  'daemon start': 'offsite daemon, without a further word',
  'daemon stop': 'offsite daemon drain',
};

/**
 * Refuses an unknown command. If the command above it has an action of its own, commander would only say that
 * there are too many arguments.
 */
function refuseUnknown(program: Command, argv: readonly string[]): void {
  let above = program;
  for (const word of argv) {
    if (above.commands.length === 0 || word.startsWith('-') || word === 'help') return;
    const below = above.commands.find((command) => command.name() === word);
    if (!below) {
      const near = nearest(
        word,
        above.commands.map((command) => command.name()),
      );
      // Many know a command by its last word.
      const inside = above.commands.flatMap((command) =>
        command.commands.flatMap((one) => (one.name() === word ? `${command.name()} ${word}` : [])),
      );
      const like = otherWords[`${above.name()} ${word}`] ?? (inside.length > 0 ? inside.join(', or ') : near);
      refuse(above, 'unknownCommand', `unknown command '${word}'`, like && `Did you mean ${like}?`);
    }
    above = below as Command;
  }
}

/** Says where an option belongs that stands before the command, where commander does not know it. */
function refuseEarlyOption(program: Command, argv: readonly string[]): void {
  const [option = ''] = argv;
  const isKnown = program.options.some(({ long, short }) => option === long || option === short);
  const command = argv.find((word) => program.commands.some((one) => one.name() === word));
  if (!option.startsWith('-') || isKnown || command === undefined) return;
  refuse(
    program,
    'unknownOption',
    `unknown option '${option}'`,
    `Write it after the command: offsite ${command} ${option}`,
  );
}

/**
 * Refuses an option without a value, and one in the place of another one's value, which commander would take:
 * `--data-folder --json` would make a folder of that name.
 */
function refuseOptionAsValue(program: Command, argv: readonly string[]): void {
  let command = program;
  for (const [index, word] of argv.entries()) {
    if (word === '--') return;
    const below = command.commands.find((one) => one.name() === word);
    if (below) command = below as Command;
    const option = command.options.find(({ long, short }) => word === long || word === short);
    const next = argv[index + 1];
    if (!option?.required) continue;
    if (next === undefined)
      refuse(
        command,
        'optionMissingArgument',
        `option '${option.flags}' argument missing`,
        option.description,
      );
    const [name = ''] = next.split('=');
    const isOption = command.options.some(({ long, short }) => name === long || name === short);
    if (!isOption && !/^--[a-z][\w-]*$/i.test(name) && !['-h', '-V'].includes(name)) continue;
    const place = `word ${index + 2} after offsite, "${next}", stands where ${word} has its value`;
    refuse(command, 'optionMissingArgument', place, `If it is the value: ${word}=${next}`);
  }
}

/** What other programs call the number of trials at a time. */
const concurrencyWords = [
  '-j',
  '--parallel',
  '--max-concurrency',
  '--max-parallel',
  '--max-samples',
  '--max-tasks',
  '--n-concurrent',
];

/** What options of other programs are here. */
const otherOptions: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['run', 'resume', 'check'].flatMap((command) =>
      concurrencyWords.map((word) => [`${command} ${word}`, '--concurrency']),
    ),
  ),
  'run --baseline': '--compare-to last, or --compare-to baseline',
  'resume --baseline': '--compare-to last, or --compare-to baseline',
  'run --fail-below': '--fail-under',
  'resume --fail-below': '--fail-under',
  'run --repeat': '--trials',
  'run --epochs': '--trials',
  'run -n': '--concurrency, or --trials',
  'run --model': '--variant: a model of offsite.yaml in a variant of the suite',
  'run --n-attempts': '--trials',
  'run --n-tasks': '--limit',
  'run --filter-first-n': '--limit',
  'run --filter-pattern': '--include',
  'run --sample-id': '--include',
  'run --agent': '--variant: a harness in a variant of the suite',
  'run -t': '--trials',
  'run --case': '--include',
  'run --filter': '--include',
  'run --grep': '--include',
  'run --output': '--html, --junit or --json',
  'run -o': '--html, --junit or --json',
  'run --report': '--html, --junit or --json',
  'run --timeout': '`timeouts` of a sandbox in offsite.yaml',
  'export --junit': '--junit of run or resume',
  'serve --listen': '--host and --port',
  'daemon enqueue --trials': 'trials in the suite',
  'daemon enqueue --for-daemons': 'offsite service start --for-daemons',
};

function refuseOtherOption(program: Command, argv: readonly string[]): void {
  const [first = '', second = ''] = argv;
  for (const word of argv) {
    const [option = ''] = word.split('=');
    const meant = otherOptions[`${first} ${option}`] ?? otherOptions[`${first} ${second} ${option}`];
    if (meant !== undefined)
      refuse(program, 'unknownOption', `unknown option '${option}'`, `Did you mean ${meant}?`);
  }
}

/** For `--json results.json`, commander would only say that there are too many arguments. */
function refuseValueOfFlag(program: Command, argv: readonly string[]): void {
  const [command = program] = program.commands;
  if (command.options.some(({ long, required }) => long === '--json' && required)) return;
  const file = argv.flatMap((word, at) =>
    word === '--json' && argv[at + 1]?.endsWith('.json')
      ? (argv[at + 1] ?? [])
      : word.split(/^--json=/).slice(1),
  )[0];
  if (file !== undefined) refuse(program, 'excessArguments', `--json takes no file: write --json > ${file}`);
}

/** What somebody means who writes a word after a command that takes none. */
const extraWords: Readonly<Record<string, (word: string) => string>> = {
  'daemon resume': (word) => (existsSync(word) ? `--data-folder ${word}` : `offsite resume ${word}`),
  'daemon pause': (folder) => `--data-folder ${folder}`,
  'daemon drain': (folder) => `--data-folder ${folder}`,
  'daemon status': (folder) => `--data-folder ${folder}`,
  'service keys create': (word) => `--name ${word}`,
  serve: (word) => `--port ${word}`,
};

function refuseExtraWord(program: Command, argv: readonly string[]): void {
  for (const [command, meant] of Object.entries(extraWords)) {
    const words = command.split(' ');
    const extra = argv[words.length];
    if (extra === undefined || extra.startsWith('-') || words.some((word, at) => argv[at] !== word)) continue;
    const problem = `offsite ${command} takes no '${extra}'`;
    refuse(program, 'excessArguments', problem, `Did you mean ${meant(extra)}?`);
  }
}

/**
 * Gives a command's settings to its subcommands: how errors are printed, and that they are thrown. A
 * subcommand does not see the options of the command above it, so they must not stand before its name.
 */
function inheritSettings(command: Command): void {
  command.hook('preSubcommand', (above, below) => {
    const early = above.options.find((one) => above.getOptionValueSource(one.attributeName()) === 'cli');
    if (early) below.error(`error: '${early.long}' must stand after '${below.name()}'`);
  });
  for (const child of command.commands) inheritSettings(child.copyInheritedSettings(command) as Command);
}

/** The commands that most people need, in groups, each with one line. `help --all` lists all of them. */
const groups: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Start: {
    quickstart: 'run an example suite; it needs no model and no key',
    init: 'write a first suite and configuration into this folder',
    check: 'check a suite without an agent: is its grading sound?',
    run: 'run a suite: every case on every variant, in sandboxes',
    resume: 'continue what was stopped',
  },
  Look: {
    show: 'show a batch, a run or a trial, and why it failed',
    view: 'show batches and trials in the browser',
    compare: 'compare two batches: better, worse, or noise?',
    export: 'write a batch for others: records, a page, spans',
    audit: 'check that results are what they are said to be',
  },
  'Run unattended': {
    daemon: 'run trials that others have queued, until stopped',
    fleet: 'run batches on many machines at once',
    serve: 'serve the embedded Eval Service over HTTP',
  },
  'Set up': {
    models: 'list, add and try the models of offsite.yaml',
    doctor: 'say what this machine lacks to run trials',
  },
};

/**
 * The help of the whole program, for a screen of 80 x 24.
 *
 * @param documents the folder of the documents; undefined if it is not known
 */
function frontDoor(documents: string | undefined): string {
  const width = Math.max(
    ...Object.values(groups).flatMap((all) => Object.keys(all).map((name) => name.length)),
  );
  const lines = Object.entries(groups).flatMap(([title, all]) => [
    `${title}:`,
    ...Object.entries(all).map(([name, what]) => `  ${name.padEnd(width)}  ${what}`),
  ]);
  return [
    'offsite COMMAND runs evaluation trials of coding agents in sealed sandboxes.',
    ...lines,
    'One command: offsite COMMAND --help. All: offsite help --all',
    ...(documents === undefined ? [] : [`Documents: ${documents}docs`]),
  ].join('\n');
}

/** Whether a command line asks for the help of the whole program. */
function asksForAll(argv: readonly string[]): boolean {
  return ['help', '--help', '-h'].includes(argv.join(' '));
}

/** Folders in which a suite is looked for, and how many files of each. */
const places = ['.', 'evals'];
const filesRead = 50;

/** What a person would do next in a folder, by what is in it. */
export function nextStep(folder: string): string {
  const suite = places.flatMap((place) => suitesIn(folder, place))[0];
  if (suite === undefined) return 'Next: offsite quickstart, or offsite init for a first suite of your own';
  return `Next: offsite check ${suite}, then offsite run ${suite}`;
}

function suitesIn(folder: string, place: string): string[] {
  try {
    const names = readdirSync(join(folder, place)).filter((name) => /\.ya?ml$/.test(name));
    return names
      .slice(0, filesRead)
      .map((name) => join(place, name))
      .filter((path) => isSuite(join(folder, path)));
  } catch {
    return [];
  }
}

function isSuite(path: string): boolean {
  if (!statSync(path).isFile() || statSync(path).size > yamlFiles.bytes.file) return false;
  const text = readFileSync(path, 'utf8');
  return /^suite:/m.test(text) && /^cases:|^tasks:/m.test(text);
}
