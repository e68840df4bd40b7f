import { spawn } from 'node:child_process';

/**
 * Runs `ssh` as a child of a shell, which ends `ssh` when this process closes descriptor 3. The descriptor
 * closes even if this process is killed. The shell removes the folder of the socket before it ends `ssh`,
 * because the shell ends together with `ssh`.
 */
const script = `
folder=$1
shift
ssh "$@" 3<&- &
ssh=$!
{ read -r line <&3; rm -rf "$folder"; kill "$ssh"; } 2>/dev/null &
reader=$!
trap 'kill "$ssh" "$reader" 2>/dev/null' TERM
wait "$ssh"
code=$?
kill "$reader" 2>/dev/null
exit "$code"
`;

/** How `ssh` ended: what it complained about, or its exit code. */
export interface SshEnd {
  complaint: string;
  cause?: Error;
}

/** A running `ssh`. */
export interface SshProcess {
  /** What it has printed so far. */
  readonly said: string;
  /** Never rejects. */
  readonly ended: Promise<SshEnd>;
  end(): void;
}

/**
 * Starts the system's `ssh`. `ssh` ends with this process, however this process ends.
 *
 * @param folder removed if this process ends first
 */
export function startSsh(args: readonly string[], folder: string, env: NodeJS.ProcessEnv): SshProcess {
  const child =
    process.platform === 'win32'
      ? spawn('ssh', args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
      : spawn('/bin/sh', ['-c', script, 'sh', folder, ...args], {
          env,
          stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
        });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-2_000);
  });
  const { promise: ended, resolve } = Promise.withResolvers<SshEnd>();
  child.once('error', (cause) => resolve({ complaint: cause.message, cause }));
  child.once('close', (code) => resolve({ complaint: complaint.trim() || `exit code ${code}` }));
  return {
    get said() {
      return complaint;
    },
    ended,
    end: () => void child.kill(),
  };
}
