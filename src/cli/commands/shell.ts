import { once } from 'node:events';
import { StringDecoder } from 'node:string_decoder';
import { Command } from '@commander-js/extra-typings';
import { readPlan } from '../../agent/batch-run.ts';
import { listenTo } from '../../base/foreign-traffic.ts';
import { inputError } from '../../base/offsite-error.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine } from '../../engine/engine.ts';
import type { ContainerTerminal, TerminalEnd } from '../../engine/exec/terminal.ts';
import type { TerminalSize } from '../../engine/port/containers.ts';
import type { Image } from '../../engine/port/images.ts';
import { refuseLog } from '../../ledger/foreign-batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { KeptWorkspace } from '../../ledger/workspaces.ts';
import { noEnvironment, sandboxIn } from '../../suite/environment.ts';
import { SandboxConfig } from '../../suite/sandbox-config.ts';
import { shellWord } from '../../text/escape.ts';
import type { Output } from '../../text/output.ts';
import { ours, type Printable, present, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import {
  obstacleOf,
  restoreArchive,
  restoreWorkspace,
  type Unrestored,
} from '../../trial/grade/regrade-trial.ts';
import { containerSpec, defaultContext } from '../../trial/prepare/environment.ts';
import { type StartSpec, startOf } from '../../trial/prepare/start-image.ts';
import { CommandContext } from '../context.ts';
import { withConfigAndData } from '../options.ts';
import type { CommonOptions } from '../settings.ts';
import { firstOf, trialName } from '../show/layout.ts';
import { announcedTarget, trialOf } from '../show/open-trial.ts';
import type { ShownTrial } from '../show/story.ts';
import { type PersonsTerminal, personsTerminal } from '../terminal.ts';

export function shellCommand() {
  return withConfigAndData(new Command('shell'))
    .description(
      "look around in a new sandbox of a trial's image, without a network, with its workspace as the agent " +
        'left it; the sandbox is removed at the end',
    )
    .argument('<trial>', 'the trial, as `offsite show` takes it: case/variant#ordinal')
    .argument('[command...]', 'a command to run instead of a shell, after --')
    .action(async (trial, command, options) => {
      process.exitCode = await shell(trial, command, options);
    });
}

async function shell(reference: string, command: readonly string[], options: CommonOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const person = personsTerminal();
  if (!person && command.length === 0) {
    throw inputError('NO_TERMINAL', 'a shell needs a terminal, and this is none', {
      hint: 'Name a command: offsite trial shell TRIAL -- ls -la',
    });
  }
  const { signal } = context.interruption({ doing: () => 'removing the sandbox' });
  const ledger = context.ledger();
  const target = announcedTarget(context, reference);
  refuseLog(target.batch, 'opened in a sandbox');
  const shown = trialOf(ledger, target);
  const engine = await context.engines.first(signal);
  const { container, notes } = await openSandbox({ ledger, engine, signal }, shown);
  await using _container = container;
  const name = trialName(shown.trial);
  context.err.print(
    stack([text`a new sandbox with the workspace of ${name} as the agent left it`, ...notes]),
  );
  const argv = command.length > 0 ? command : shellArgv;
  // The sandbox is removed when this function returns.
  return await (person
    ? onTerminal(person, container, argv, signal)
    : printed(container, argv, context, signal));
}

/** Bash, or another shell if the image has none. */
const shellArgv = ['/bin/sh', '-c', 'command -v bash > /dev/null && exec bash; exec sh'];

/** Runs a command on the person's terminal. Resolves with its exit code. */
async function onTerminal(
  person: PersonsTerminal,
  container: Container,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const env = { TERM: person.type };
  using terminal = await container.terminal({ argv, env, size: sizeOf(person), signal });
  const end = await attachPerson(person, terminal, signal);
  return end.ended === 'exited' ? end.exitCode : outOfDisk();
}

/** Milliseconds. Effectively no limit, because the user ends the command. */
const day = 24 * 60 * 60_000;

/** Runs a command and prints what it writes, made safe for the terminal or log that shows it. */
async function printed(
  container: Container,
  argv: readonly string[],
  { out, err }: CommandContext,
  signal: AbortSignal,
): Promise<number> {
  using stdout = linePrinter(out);
  using stderr = linePrinter(err);
  const result = await container.exec({
    argv,
    stdin: process.stdin.isTTY ? '' : process.stdin,
    timeoutMs: day,
    // Only for the reason why it could not be started.
    capBytes: 4096,
    onOutput: (stream, bytes) => (stream === 'stdout' ? stdout : stderr).add(bytes),
    signal,
  });
  signal.throwIfAborted();
  if (result.ended === 'exited') return result.exitCode;
  if (result.ended === 'out-of-disk') return outOfDisk();
  const why = result.ended === 'not-started' ? result.message : result.ended;
  throw inputError('COMMAND_NOT_RUN', `the command did not run: ${why}`, {
    hint: 'The sandbox has the programs of its image only.',
  });
}

function outOfDisk(): never {
  throw inputError('OUT_OF_DISK', 'the command wrote more than the sandbox may hold', {
    hint: 'The limit is that of the trial: `disk` of its sandbox.',
  });
}

/**
 * Escape sequences that undo what a program may have left: the other screen, mouse reports, bracketed paste,
 * a hidden cursor, colours.
 */
const restored =
  '\u001b[?1049l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?2004l\u001b[!p\u001b[?25h\u001b[0m';

function sizeOf({ screen }: PersonsTerminal): TerminalSize {
  return { columns: screen.columns, rows: screen.rows };
}

/**
 * Connects a person's terminal to one in a container until the command there ends. All keys go to the
 * command, Ctrl-C too. Rejects when `signal` aborts, or when the person's terminal is gone.
 */
async function attachPerson(
  person: PersonsTerminal,
  terminal: ContainerTerminal,
  signal: AbortSignal,
): Promise<TerminalEnd> {
  const { keys, screen } = person;
  const { stream } = terminal;
  const resize = () => void terminal.resize(sizeOf(person));
  const onKey = (key: Buffer) => void stream.write(key);
  const left = new AbortController();
  const over = AbortSignal.any([left.signal, signal]);
  const gone = once(keys, 'end', { signal: over }).then(() => {
    throw new Error('the terminal is gone');
  });
  gone.catch(() => undefined);
  listenTo(
    stream,
    {
      data: (chunk: Buffer) => {
        if (screen.write(chunk)) return;
        stream.pause();
        screen.once('drain', () => stream.resume());
      },
    },
    () => stream.destroy(),
  );
  keys.setRawMode(true);
  screen.on('resize', resize);
  keys.on('data', onKey);
  try {
    return await Promise.race([terminal.ended, gone]);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    left.abort();
    keys.off('data', onKey);
    screen.off('resize', resize);
    keys.setRawMode(false);
    keys.pause();
    screen.write(restored);
  }
}

interface LinePrinter extends Disposable {
  add(bytes: Buffer): void;
}

/** Prints what a program writes line by line, as it comes. Disposing prints the rest. */
function linePrinter(output: Output): LinePrinter {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  return {
    add(bytes) {
      const lines = `${rest}${decoder.write(bytes)}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) output.print(line.replace(/\r$/, ''));
      if (rest.length > commandOutput.bytes.unendedLine) {
        output.print(rest);
        rest = '';
      }
    },
    [Symbol.dispose]() {
      rest += decoder.end();
      if (rest !== '') output.print(rest);
      rest = '';
    },
  };
}

interface OpenedSandbox {
  container: Container;
  /** What differs from the sandbox in which the agent worked. */
  notes: Printable[];
}

/** How many paths that were not restored are named. */
const named = 10;

/**
 * Makes a sandbox from the image of a trial, without a network, and puts the workspace into it as the agent
 * left it. Dispose of the container. Throws `IMAGE_GONE`.
 */
async function openSandbox(
  { ledger, engine, signal }: { ledger: Ledger; engine: Engine; signal: AbortSignal },
  shown: ShownTrial,
): Promise<OpenedSandbox> {
  const { record } = shown;
  const kept = await keptOf({ ledger, engine, signal }, shown);
  const image = await imageOf(engine, shown, signal);
  // A kept image has the whole sandbox as the agent left it.
  const imageId = kept?.kind === 'image' && kept.name !== undefined ? kept.name : image.id;
  const planned = plannedSandbox(ledger, shown);
  const environment = planned?.environment ?? noEnvironment;
  const sandbox = planned?.sandbox ?? { ...SandboxConfig.parse({}), name: 'local' };
  const { workspace = defaultContext.workspace, user } = record;
  const start = { ...startOf({ ...image, user: user ?? '' }, { sandbox, environment }), workspace };
  const labels = { 'offsite.run': shown.run.id };
  const env = { ...environment.env, ...start.env };
  const spec = containerSpec(sandbox, { ...start, env }, { network: 'none', labels });
  const container = await engine.createContainer({ ...spec, imageId }, signal);
  try {
    await container.start(signal);
    const isWithin = record.environment?.some(({ phase, image }) => phase === 'prepare' && !image);
    const notes = present([
      !planned && 'its limits are the default ones: the ledger does not have those of the trial',
      isWithin &&
        'prepare ran in the sandbox itself, so what it left outside of the changed files is missing',
    ]);
    if (kept?.kind === 'archive') await restoreArchive(container, kept, ledger.workspaces, signal);
    const restored = kept ? [] : await restoreFromRecord(container, shown, ledger, signal);
    return { container, notes: [...notes.map(ours), ...restored] };
  } catch (error) {
    await container[Symbol.asyncDispose]();
    throw error;
  }
}

/** Restores what the record has of the workspace. Resolves with what is missing. */
async function restoreFromRecord(
  container: Container,
  { record }: ShownTrial,
  ledger: Ledger,
  signal: AbortSignal,
): Promise<Printable[]> {
  const read = (sha256: string) => ledger.blobs.tryRead(sha256);
  const unrestored = await restoreWorkspace(container, record, { read, signal });
  const count = record.filesChangedCount ?? 0;
  const described = record.changes?.length ?? record.filesChanged?.length ?? 0;
  const notes = present([
    !record.changes && 'the ledger has no contents of its changed files, except artifacts',
    count > described && `${count - described} further changed files are not known`,
  ]).map(ours);
  const isGit = ({ path }: Unrestored) => /(^|\/)\.git\//.test(path);
  const ofGit = unrestored.filter(isGit).length;
  const others = unrestored.filter((one) => !isGit(one));
  const missing = present([
    ...firstOf(others, named, ({ path, why }) => text`not restored: ${path}: ${why}`),
    ofGit > 0 && ours(`not restored: ${plural(ofGit, 'file')} of git, which may miss commits`),
  ]);
  return [...notes, ...missing.map((line) => text`${line}`)];
}

/** What was kept of a trial, if it is still there. */
async function keptOf(
  { ledger, engine, signal }: { ledger: Ledger; engine: Engine; signal: AbortSignal },
  { trial }: ShownTrial,
): Promise<KeptWorkspace | undefined> {
  const kept = ledger.workspaces.of(trial.key);
  if (kept === undefined || obstacleOf(kept, ledger.workspaces) !== undefined) return undefined;
  if (kept.kind === 'image' && !(await engine.findImage(kept.name ?? '', signal))) return undefined;
  return kept;
}

async function imageOf(
  engine: Engine,
  { record, batch, words }: ShownTrial,
  signal: AbortSignal,
): Promise<Image> {
  const { imageId } = record;
  if (imageId === undefined) {
    throw inputError('IMAGE_GONE', `${words} has no sandbox to look into: the trial never had one`, {
      hint: `\`offsite show ${words}\` says why.`,
    });
  }
  const image = await engine.findImage(imageId, signal);
  if (image) return image;
  const again = batch.file === undefined ? 'its suite' : `\`offsite run ${shellWord(batch.file)}\``;
  throw inputError('IMAGE_GONE', `the engine no longer has ${imageId}, the image of ${words}`, {
    hint: `Run ${again} again: that makes the image again, for the shells of its new trials.`,
  });
}

/** The sandbox and the environment that were planned; undefined if the ledger does not have the plan. */
function plannedSandbox({ blobs }: Ledger, { batch, run }: ShownTrial): StartSpec | undefined {
  const content = batch.plan === undefined ? undefined : blobs.tryRead(batch.plan);
  if (!content || run.variantIndex === undefined) return undefined;
  const plan = readPlan(JSON.parse(content.toString('utf8')));
  const variant = plan.variants[run.variantIndex];
  const planned = plan.cases.find(({ request }) => request.id === run.caseId);
  // A plan that an older Offsite stored has no environments.
  const environment = planned?.local.environment ?? noEnvironment;
  return variant && { sandbox: sandboxIn(variant.sandbox, environment), environment };
}
