import { startUps } from '../bounds/sandbox.ts';
import type { Container } from '../engine/container.ts';
import { howItEnded, isSuccess } from '../engine/exec/exec-request.ts';
import { gradingEnvironment } from './environment.ts';
import { TrialFailure } from './failure.ts';
import { sandboxPaths } from './sandbox-paths.ts';
import type { TrialSpec } from './spec.ts';

/**
 * Starts the program of an environment in a sandbox. Waits until the program has reached a command that only
 * waits, for at most {@link startUps}. The program then runs beside everything else in the sandbox, until all
 * processes there are ended. Throws a {@link TrialFailure} of kind `task` if the program ends before that.
 */
export async function startProgram(
  container: Container,
  program: readonly string[] | undefined,
  { variables, environment }: Pick<TrialSpec, 'variables' | 'environment'>,
  signal: AbortSignal,
): Promise<void> {
  if (!program) return;
  const { startUp: path } = sandboxPaths;
  // A file replaces what an agent left there, whatever it is.
  const folder = [
    { path, content: '' },
    { path, folder: true as const, mode: 0o777 },
  ];
  await container.put(folder, '/', signal);
  const waits = /sleep infinity|tail -f \/dev\/null/.test(program.join(' '));
  const looks = Math.ceil((waits ? startUps.time.settle : startUps.time.look) / 100);
  const result = await container.exec({
    argv: ['/bin/sh', '-c', start, path, String(looks), ...program],
    env: gradingEnvironment(variables, container),
    timeoutMs: startUps.time.starting,
    capBytes: startUps.bytes.output,
    signal,
  });
  signal.throwIfAborted();
  if (isSuccess(result)) return;
  const { place = '' } = environment.image ?? environment.build ?? {};
  const how = result.ended === 'exited' ? 'ended' : howItEnded(result, startUps.time.starting);
  const message = `${place}: the program that the environment starts ${how}: ${program.join(' ').slice(0, 200)}`;
  throw new TrialFailure({ kind: 'task', phase: 'sandbox', message, output: result.stdout.text });
}

/**
 * Starts the program in the background. Exits with 3 and prints the program's output if the program ends.
 * Exits with 0 once a process only waits, or after the given number of tenths of a second.
 */
const start = `looks=$1; shift
( "$@"; echo "it ended with $?" > "$0/ended" ) > "$0/output" 2>&1 < /dev/null &
while [ "$looks" -gt 0 ]; do
  if [ -e "$0/ended" ]; then tail -c ${startUps.bytes.output} "$0/output"; cat "$0/ended"; exit 3; fi
  for process in /proc/[0-9]*; do
    [ "$process" = /proc/1 ] && continue
    case "$(tr '\\0' ' ' 2> /dev/null < "$process/cmdline")" in
      'sleep infinity '* | 'sh -c sleep infinity '* | 'bash -c sleep infinity '*) exit 0 ;;
      'tail -f /dev/null '*) exit 0 ;;
    esac
  done 2> /dev/null
  looks=$((looks - 1))
  sleep 0.1
done`;
