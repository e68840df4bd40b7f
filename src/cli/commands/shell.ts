import { Command } from '@commander-js/extra-typings';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Container } from '../../engine/container.ts';
import { refuseLog } from '../../ledger/foreign-batches.ts';
import { stack, text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { withConfigAndData } from '../options.ts';
import type { CommonOptions } from '../settings.ts';
import { attachPerson, linePrinter, sizeOf } from '../shell/attach-person.ts';
import { openSandbox } from '../shell/open-sandbox.ts';
import { announcedTarget, trialOf } from '../show/open-trial.ts';
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
    throw new OffsiteError('a shell needs a terminal, and this is none', {
      code: 'NO_TERMINAL',
      kind: 'input',
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
  const { run, trial } = shown;
  const name = text`${run.caseId} · ${run.variant} #${trial.ordinal}`;
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
  throw new OffsiteError(`the command did not run: ${why}`, {
    code: 'COMMAND_NOT_RUN',
    kind: 'input',
    hint: 'The sandbox has the programs of its image only.',
  });
}

function outOfDisk(): never {
  throw new OffsiteError('the command wrote more than the sandbox may hold', {
    code: 'OUT_OF_DISK',
    kind: 'input',
    hint: 'The limit is that of the trial: `disk` of its sandbox.',
  });
}
