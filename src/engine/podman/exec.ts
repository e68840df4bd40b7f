import type { DockerClient } from '../docker/client.ts';
import { openExec as openAsDocker } from '../docker/exec.ts';
import { engineMessage, engineStatus } from '../docker/failure.ts';
import type { ExecCommand, OpenedExec, OutputPiece } from '../port/exec.ts';

/** What Podman answers if the container has no such user. */
const noUser = /unable to find (?:user|group) /;

/**
 * Runs a command, reads the input that the command does not read, and ends after both. If a command ends
 * while some of its input is on the way, Podman's connection to it is reset: the end of the output is lost,
 * and Podman's error is in its place. A missing program ends with 127, as in a shell. The shell says nothing
 * of its own, and neither it nor its `cat` ends by a signal to the command's process group, other than KILL.
 * `command -p` takes no program of the workspace.
 */
const readInput = [
  '/bin/sh',
  '-c',
  `exec 3>&2 2> /dev/null
trap : HUP INT QUIT USR1 USR2 ALRM TERM
{ trap '' HUP INT QUIT USR1 USR2 ALRM TERM; command -p cat; command -p cat > /dev/null; } | "$@" 2>&3 3>&-`,
  'sh',
];

/** A stream may stay open until the command has ended. */
function argvOf({ argv, stdin, readsInput }: ExecCommand): readonly string[] {
  const isWhole = typeof stdin === 'string' || Buffer.isBuffer(stdin);
  return isWhole && !readsInput ? [...readInput, ...argv] : argv;
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
