import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterEach } from 'vitest';
import { hostCertificates } from '../../src/api/host-certificates.ts';
import { type Ended, runHere, runsHere } from './in-this-process.ts';
import { TerminalScreen } from './output/terminal-screen.ts';
import type { Place } from './place.ts';

const sources = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
/** The command line: the bundle of this test run, or the sources where no test run made one. */
export const main = process.env.OFFSITE_TEST_PROGRAM ?? sources;
/** MB. Saves a short command a quarter of its time, which it spends on garbage collection otherwise. */
const youngSpace = ['--min-semi-space-size=64', '--max-semi-space-size=64'];
/** Shared by all tests, or each start would compile anew. */
const cache = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));

/** Each says of a command that runs now how far it came. */
const runningNow = new Set<() => string>();

// If a test runs out of time, this shows where its commands hang, and those of tests beside it.
afterEach(({ task }) => {
  if (task.result?.state === 'fail') for (const progressText of runningNow) console.error(progressText());
});

/** Has a failed test print how far a command came, unless it has ended. */
function printIfItHangs(args: string[], ended: Promise<unknown>, progress: () => string): void {
  const startedAt = Date.now();
  const progressText = () => {
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    return `\`offsite ${args.join(' ')}\` still runs after ${seconds} s. ${progress()}`;
  };
  runningNow.add(progressText);
  void ended.finally(() => runningNow.delete(progressText));
}

export type { Ended };

/** A command that runs. */
export interface Running {
  pid: number | undefined;
  ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves with the first match in what it prints, on either stream; rejects where it ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
}

interface RunOptions {
  env?: Record<string, string>;
  /** Null for a command that knows none. */
  dataFolder?: string | null;
  /** Another Offsite's `main.ts`. */
  program?: string;
}

/** Starts the command line as a process of its own, which sees nothing of this one's home and settings. */
export function start(place: Place, args: string[], options: RunOptions = {}): Running {
  const { program = main } = options;
  const child = execa(process.execPath, [...youngSpace, program, ...args, ...folderOf(place, options)], {
    cwd: place.folder,
    extendEnv: false,
    env: variablesOf(place, options),
    reject: false,
    all: true,
    stdin: 'ignore',
    stripFinalNewline: false,
    forceKillAfterDelay: false,
  });
  let printed = '';
  child.all.on('data', (chunk) => {
    printed += chunk;
  });
  const awaited = new Set<RegExp>();
  const waits = () => (awaited.size === 0 ? '' : `The test waits for ${[...awaited].join(' and ')}. `);
  printIfItHangs(args, child, () => `${waits()}It has printed:\n${printed.slice(-20_000)}`);
  return {
    pid: child.pid,
    ended: child.then(({ exitCode, signal, stdout, stderr }) => ({ exitCode, signal, stdout, stderr })),
    kill: (signal) => void child.kill(signal),
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(printed);
          if (!match) return;
          child.all.off('data', look);
          awaited.delete(pattern);
          resolve(match);
        };
        awaited.add(pattern);
        child.all.on('data', look);
        child.all.on('end', () => reject(new Error(`never printed ${pattern}:\n${printed}`)));
        look();
      }),
  };
}

/** The variables with which a command trusts what this machine trusts, to install from registries. */
export async function trustOfThisMachine(): Promise<Record<string, string>> {
  const found = await hostCertificates({}, process.env);
  return found === undefined ? {} : { NODE_EXTRA_CA_CERTS: found.path };
}

/** A command that runs in a terminal. */
export interface InTerminal {
  screen: TerminalScreen;
  /** Resolves with the exit code. */
  ended: Promise<number | undefined>;
  /** Sends what somebody types. */
  type(keys: string): void;
  /** Closes the terminal, as a window is closed. */
  close(): void;
}

/** Starts the command line in a pseudo-terminal of the given size. Set LC_ALL for anything but UTF-8. */
export function startInTerminal(
  place: Place,
  args: string[],
  {
    columns = 80,
    rows = 24,
    env = {},
    dataFolder = place.dataFolder,
  }: { columns?: number; rows?: number; env?: Record<string, string>; dataFolder?: string | null } = {},
): InTerminal {
  const screen = new TerminalScreen({ columns, rows });
  const folder = dataFolder === null ? [] : ['--data-folder', dataFolder];
  const command = [process.execPath, main, ...args, ...folder];
  const quoted = command.map((word) => `'${word}'`).join(' ');
  const child = execa('script', ['-qefc', `stty cols ${columns} rows ${rows}; exec ${quoted}`, '/dev/null'], {
    cwd: place.folder,
    extendEnv: false,
    env: {
      ...ofThisMachine(),
      HOME: place.folder,
      NODE_COMPILE_CACHE: cache,
      TERM: 'xterm-256color',
      LC_ALL: 'C.UTF-8',
      ...env,
    },
    reject: false,
    buffer: false,
  });
  child.stdout.pipe(screen);
  printIfItHangs(args, child, () => `It has printed: ${JSON.stringify(screen.sent.slice(-5_000))}`);
  return {
    screen,
    ended: child.then(({ exitCode }) => exitCode),
    type: (keys) => void child.stdin.write(keys),
    close: () => void child.kill('SIGKILL'),
  };
}

const isShort = process.env.OFFSITE_TESTS === 'short';

/** Runs a command until it ends: in this process if that makes no difference to the command. */
export function offsite(place: Place, args: string[], options: RunOptions = {}): Promise<Ended> {
  const isHere = options.program === undefined && runsHere(args, options.env);
  return isHere ? inThisProcess(place, args, options) : start(place, args, options).ended;
}

/**
 * Runs a command in this process, where it needs less than half of the processor's time. For tests in which
 * no other command runs beside it, and which are not about how its process starts and ends. Where all tests
 * run, it is the same as {@link offsite}.
 */
export function offsiteHere(place: Place, args: string[], options: RunOptions = {}): Promise<Ended> {
  return isShort ? inThisProcess(place, args, options) : offsite(place, args, options);
}

function inThisProcess(place: Place, args: string[], options: RunOptions): Promise<Ended> {
  return runHere(place.folder, [...args, ...folderOf(place, options)], variablesOf(place, options));
}

function folderOf(place: Place, { dataFolder = place.dataFolder }: RunOptions): string[] {
  return dataFolder === null ? [] : ['--data-folder', dataFolder];
}

function variablesOf(place: Place, { env }: RunOptions): Record<string, string> {
  return { ...ofThisMachine(), HOME: place.folder, NODE_COMPILE_CACHE: cache, NO_COLOR: '1', ...env };
}

/** What programs need to be found, and where the engine is. */
function ofThisMachine(): Record<string, string> {
  const wanted = (name: string) => name === 'PATH' || name === 'TMPDIR' || name.startsWith('DOCKER_');
  return Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => wanted(entry[0])),
  );
}
