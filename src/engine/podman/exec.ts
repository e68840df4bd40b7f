import type { DockerClient } from '../docker/client.ts';
import { openExec as openAsDocker } from '../docker/exec.ts';
import { engineMessage, engineStatus } from '../docker/failure.ts';
import type { ExecCommand, OpenedExec, OutputPiece } from '../port/exec.ts';

/** What Podman answers if the container has no such user. */
const noUser = /unable to find (?:user|group) /;

/** Bytes of input that fit into the command's pipe, whether it reads them or not. */
const pipeBytes = 2 ** 15;

/**
 * Runs a command, and reads the input that the command does not read. Otherwise Podman stops reading the
 * output when the command ends, and the end of the output is lost. A missing program ends with 127, as in a
 * shell.
 */
const readInput = ['/bin/sh', '-c', '{ cat; cat > /dev/null; } 2> /dev/null | exec "$@"', 'sh'];

function argvOf({ argv, stdin }: ExecCommand): readonly string[] {
  const isLarge =
    (typeof stdin === 'string' || Buffer.isBuffer(stdin)) && Buffer.byteLength(stdin) > pipeBytes;
  return isLarge ? [...readInput, ...argv] : argv;
}

/**
 * Starts a command. If Podman cannot start a command, it reports the reason in the command's standard error.
 * It drops the id of a process that has ended, so nothing else distinguishes such a command from one that
 * ran.
 */
export async function openExec(
  client: DockerClient,
  containerId: string,
  command: ExecCommand,
): Promise<OpenedExec> {
  const beginning = new Beginning();
  const onPiece = (piece: OutputPiece) => {
    beginning.take(piece);
    command.onPiece(piece);
  };
  try {
    const opened = await openAsDocker(client, containerId, { ...command, argv: argvOf(command), onPiece });
    if (!opened.started) return opened;
    const { exec } = opened;
    const inspect = async () => {
      const state = await exec.inspect();
      const neverStarted = !state.running && beginning.tellsFailure(state.exitCode);
      return { ...state, neverStarted };
    };
    return { started: true, exec: { ...exec, inspect } };
  } catch (thrown) {
    const message = engineMessage(thrown);
    if (engineStatus(thrown) !== 500 || !noUser.test(message)) throw thrown;
    return { started: false, message };
  }
}

/** Characters of what a command printed first. */
const kept = 4096;

/** What a command printed first to its standard error, if it printed nothing to its standard output. */
class Beginning {
  #stderr = '';
  #isPlain = true;

  take({ stream, bytes }: OutputPiece): void {
    if (stream === 'stdout') this.#isPlain = false;
    else if (this.#stderr.length < kept) this.#stderr += bytes.toString('latin1', 0, kept);
  }

  tellsFailure(exitCode: number | null): boolean {
    return this.#isPlain && [125, 126, 127].includes(exitCode ?? 0) && failure.test(this.#stderr);
  }
}

/** `Error: ` and what the runtime said, then one of Podman's causes. */
const failure =
  /^Error: .*: (?:OCI runtime attempted to invoke a command that was not found|OCI permission denied|OCI runtime error)\n/;
