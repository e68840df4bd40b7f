import { Writable } from 'node:stream';
import { runProgram } from '../../src/cli/program.ts';

/** How a command ended. */
export interface Ended {
  exitCode: number | undefined;
  signal: string | undefined;
  stdout: string;
  stderr: string;
}

/**
 * Commands that end by themselves and leave nothing behind in their process. They run in the tests' process,
 * since a process of its own takes a quarter of a second of a processor, most of it to start.
 */
const commands: readonly (readonly string[])[] = [
  ['audit'],
  ['compare'],
  ['data'],
  ['doctor'],
  ['export'],
  ['init'],
  ['models'],
  ['service'],
  ['show'],
  ['tasks'],
  ['daemon', 'cancel'],
  ['daemon', 'concurrency'],
  ['daemon', 'enqueue'],
  ['daemon', 'pause'],
  ['daemon', 'resume'],
  ['daemon', 'status'],
];

/** Node reads its own variables when it starts. */
export function runsHere(args: readonly string[], env: Record<string, string> = {}): boolean {
  if (Object.keys(env).some((name) => name.startsWith('NODE_'))) return false;
  return commands.some((command) => command.every((word, at) => args[at] === word));
}

/** The command before, since each has the working folder and the variables for itself. */
let before: Promise<unknown> = Promise.resolve();

/** Runs a command in this process as if it had one of its own, in a folder and with these variables alone. */
export function runHere(folder: string, args: string[], env: Record<string, string>): Promise<Ended> {
  const ended = before.then(() => runNow(folder, args, env));
  before = ended.catch(() => undefined);
  return ended;
}

async function runNow(folder: string, args: string[], env: Record<string, string>): Promise<Ended> {
  const printed = { stdout: '', stderr: '' };
  using ours = new DisposableStack();
  for (const name of ['stdout', 'stderr'] as const) {
    const original = Object.getOwnPropertyDescriptor(process, name) ?? {};
    ours.defer(() => Object.defineProperty(process, name, original));
    const write: Writable['_write'] = (chunk, _encoding, done) => {
      printed[name] += chunk;
      done();
    };
    Object.defineProperty(process, name, { value: new Writable({ write }), configurable: true });
  }
  const { exitCode } = process;
  const variables = { ...process.env };
  const cwd = process.cwd();
  ours.defer(() => {
    process.exitCode = exitCode;
    setVariables(variables);
    process.chdir(cwd);
  });
  process.exitCode = undefined;
  setVariables(env);
  process.chdir(folder);
  return { exitCode: await runProgram(args), signal: undefined, ...printed };
}

/** Another object in place of `process.env` would not be what Node looks for the home in. */
function setVariables(variables: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, variables);
}
