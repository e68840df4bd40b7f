import { randomBytes } from 'node:crypto';
import { matchManifest } from './manifest.ts';
import { captured } from './texts.ts';
import { processTrouble } from './trouble.ts';
import type { ValidatorRequest, ValidatorRun } from './validator.ts';

/**
 * Starts the program $0 if there is its interpreter $1, and else says $2: what a kernel or `env` answers for a missing one looks the
 * same as a program that found nothing to be well.
 */
const start = 'command -v "$1" > /dev/null || { printf %s "$2"; exit; }; exec "$0"';

/** A validator with a shebang: one validation, passed when the program exits 0. */
export async function runProgram(request: ValidatorRequest): Promise<ValidatorRun> {
  const { container, folder, source, files, manifest, timeoutMs, signal } = request;
  const program = `${folder}/validator`;
  await container.put(
    [
      ...files.map(({ path, content }) => ({ path: `${folder}/${path}`, content })),
      { path: program, content: source, mode: 0o755 },
    ],
    '/',
    signal,
  );
  const interpreter = interpreterOf(source);
  const nonce = randomBytes(16).toString('hex');
  const result = await container.exec({
    argv: ['/bin/sh', '-c', start, program, interpreter, nonce],
    cwd: request.workspace,
    env: request.env,
    timeoutMs,
    signal,
  });
  signal.throwIfAborted();
  const output = `${result.stdout.text}${result.stderr.text}`;
  const trouble = processTrouble(result, timeoutMs);
  if (trouble || result.ended !== 'exited')
    return { validations: [], trouble: trouble && { ...trouble, output } };
  const { exitCode, stdout, stderr, startedAt, finishedAt } = result;
  if (stdout.text === nonce) {
    const message = `the validator could not be started: the sandbox has no ${interpreter}`;
    return { validations: [], trouble: { kind: 'not-started', message } };
  }
  const { found, missing } = matchManifest(
    [
      {
        name: manifest[0]?.name ?? 'validator',
        startedAt,
        durationMs: Math.round(finishedAt - startedAt),
        exitCode,
        truncated: stdout.truncated || stderr.truncated,
        output: captured(stdout.text),
        error: captured(stderr.text),
        ...(exitCode !== 0 && { message: `the validator exited with ${exitCode}` }),
      },
    ],
    manifest,
  );
  if (missing.length === 0) return { validations: found };
  const message = `a validator with a shebang is one validation, but its manifest also names ${missing.join(', ')}`;
  return { validations: found, trouble: { kind: 'broken', message, output } };
}

/** The program that a shebang names; with `env`, the one that is to be looked up. */
function interpreterOf(source: string): string {
  const words = source.slice(2).split('\n', 1)[0]?.trim().split(/\s+/) ?? [];
  const [program = '', ...rest] = words;
  if (!program.endsWith('/env')) return program;
  return rest.find((word) => !word.startsWith('-') && !word.includes('=')) ?? program;
}
