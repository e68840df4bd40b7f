import type { Clock } from '../../base/clock.ts';
import { commandOutput, startUps } from '../../bounds/sandbox.ts';
import type { Kit } from '../../engine/changes/kit.ts';
import type { Container } from '../../engine/container.ts';
import { howItEnded, isSuccess, printedBy } from '../../engine/exec/exec-request.ts';
import type { EnvironmentStep, UsedImage } from '../../record/environment.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { TrialFailure, taskFailure } from '../blame.ts';
import type { WorkspaceState } from '../collect/read-workspace.ts';
import type { TrialSpec } from '../spec.ts';
import { gradingEnvironment, sandboxPaths } from './environment.ts';
import type { ModelPort } from './model-port.ts';
import type { ServiceAccess, TrialServices } from './trial-services.ts';

/** How a container gets the place of a sandbox on the network of its services. */
export type JoinedNetwork = Pick<ServiceAccess, 'network' | 'hosts'>;

/** A workspace in which no harness has worked. */
export interface PreparedWorkspace {
  state: WorkspaceState;
  /** Total bytes of its files, at most. */
  bytes: number;
}

export interface StartedSandbox {
  container: Container;
  /**
   * The image that it was made from. If prepare leaves processes running, prepare ran in the sandbox itself.
   */
  imageId: string;
  /** The user of its commands. Undefined for root. */
  user: string | undefined;
  /** The images that its image is based on. */
  images: UsedImage[];
  /** Install and prepare, in order. */
  environment: EnvironmentStep[];
  /** The workspace as prepare left it. The harness may work before this resolves. */
  prepared: () => Promise<PreparedWorkspace>;
  /**
   * Lists what changed in the container. Undefined if the container's layer can be read directly, or if file
   * times do not show changes.
   */
  kit: Kit | undefined;
  /** The sandbox's way to models and named hosts. Undefined if it may reach none. */
  port: ModelPort | undefined;
  /** Limits that the engine could not apply, and other protections that are missing, one line each. */
  lacks: string[];
  /** What a validator gets in place of variables that name folders in the workspace. */
  closedEnv: Record<string, string>;
  /** The program that its environment starts, which runs in it. Undefined for none. */
  startUp: readonly string[] | undefined;
  /** The absolute path of the Node that runs a validator in it. Undefined for the one on its PATH. */
  validatorNode: string | undefined;
  /** Whether an image of it has all that is in it: no processes of prepare, and no volumes. */
  isCommittable: boolean;
  /** The containers beside it. Undefined if the case has none. */
  services: TrialServices | undefined;
  /** Its place on the network of the services. Undefined if the case has none. */
  joined: JoinedNetwork | undefined;
  /** What is removed with it. */
  besides: AsyncDisposable;
}

/** Removes a sandbox with all that belongs to it. */
export async function removeSandbox({
  container,
  port,
  besides,
}: Pick<StartedSandbox, 'container' | 'port' | 'besides'>): Promise<void> {
  await Promise.all([port?.[Symbol.asyncDispose](), container.remove()]);
  await besides[Symbol.asyncDispose]();
}

/** What a result says about a sandbox, wherever it is used. */
export function sandboxFacts({
  container,
  imageId,
  user,
  environment,
  startUp,
  lacks,
}: StartedSandbox): Partial<TrialRecord> {
  return {
    sandboxId: container.id,
    imageId,
    workspace: container.workingDir,
    user,
    environment,
    ...(startUp && { startUp: [...startUp] }),
    ...(lacks.length > 0 && { sandboxLacks: lacks }),
  };
}

/** A user of a sandbox. */
interface SandboxUser {
  uid: number;
  gid: number;
  /** Absolute. */
  home: string;
}

/** The users that a trial's harness runs as, besides that of its sandbox, by their names in the case. */
export type AgentUsers = ReadonlyMap<string, SandboxUser>;

/**
 * Looks up the users of all steps of a trial. Call it before any harness runs: an agent may change the
 * sandbox's users. Throws a {@link TrialFailure} of kind `task` for a user that the sandbox does not have.
 */
export async function agentUsers(
  container: Container,
  { agent, steps }: TrialSpec,
  signal: AbortSignal,
): Promise<AgentUsers> {
  const names = [agent?.user, ...(steps?.list ?? []).map((step) => step.agent.user)];
  const users = new Map<string, SandboxUser>();
  for (const name of new Set(names))
    if (name !== undefined) users.set(name, await userOf(container, name, signal));
  return users;
}

async function userOf(container: Container, name: string, signal: AbortSignal): Promise<SandboxUser> {
  const result = await container.exec({
    argv: ['/bin/sh', '-c', userScript],
    cwd: '/',
    user: name,
    timeoutMs: commandOutput.time.userNames,
    signal,
  });
  signal.throwIfAborted();
  const [uid = '', gid = '', home = ''] = result.stdout.text.split('\n');
  if (result.ended === 'exited' && /^\d+$/.test(uid) && /^\d+$/.test(gid))
    return { uid: Number(uid), gid: Number(gid), home: home.startsWith('/') ? home : '/tmp' };
  const message = `the sandbox has no user ${JSON.stringify(name)}, as which the agent is to run`;
  throw taskFailure('sandbox', message, printedBy(result, 'stderr'));
}

/** Prints ids and home of the user. Needs nothing but a shell and `id`. */
const userScript = `
me=$(id -u) && echo "$me" && id -g
while IFS=: read -r _ _ uid _ _ home _; do [ "$uid" = "$me" ] && echo "$home" && break; done < /etc/passwd`;

/**
 * The same container, in which commands run as a user, with its home in `HOME`, unless they say otherwise.
 */
export function asUser(container: Container, { uid, home }: SandboxUser): Container {
  const own = <Request extends { env?: Readonly<Record<string, string>> }>(request: Request) => ({
    user: String(uid),
    ...request,
    env: { HOME: home, ...request.env },
  });
  return {
    ...container,
    exec: (request) => container.exec(own(request)),
    runScript: (request) => container.runScript(own(request)),
  };
}

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
  throw taskFailure('sandbox', message, result.stdout.text);
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

/**
 * Waits until the healthcheck of a trial's environment succeeds in a started sandbox. Throws a
 * {@link TrialFailure} of kind `task` after its last failure.
 */
export async function requireHealth(
  container: Container,
  { environment: { healthcheck }, variables }: TrialSpec,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  if (!healthcheck) return;
  const { command, interval, timeout, startPeriod, retries } = healthcheck;
  const begun = clock.now();
  for (let failures = 0; ; ) {
    const result = await container.exec({
      argv: ['bash', '-c', `{ ${command}\n} 2>&1`],
      env: gradingEnvironment(variables, container),
      timeoutMs: timeout,
      signal,
    });
    signal.throwIfAborted();
    if (isSuccess(result)) return;
    if (clock.now() - begun >= startPeriod) failures += 1;
    if (failures >= retries) {
      const message = `the healthcheck failed ${failures} times, and ${howItEnded(result, timeout)} the last time`;
      const output = result.stdout.text;
      throw taskFailure('sandbox', message, output);
    }
    await clock.sleep(interval, signal);
  }
}

interface Learning<Learned> {
  result: Promise<Learned>;
  /** The signal of the caller that learns. */
  signal: AbortSignal;
}

/**
 * Keeps what the first container of an image showed, because it holds for all containers of that image.
 * Callers that ask in the meantime wait for the same result.
 */
export class OncePerImage<Learned> {
  /** A batch works on few images at a time. A kept result takes up to a few megabytes. */
  static readonly #kept = 16;
  readonly #learned = new Map<string, Learning<Learned>>();

  /**
   * @param signal ends `learn`. If it aborts, a caller that waits for the result learns itself.
   * @param learn reads a started container of the image in which no harness has run yet
   */
  async of(image: string, signal: AbortSignal, learn: () => Promise<Learned>): Promise<Learned> {
    for (;;) {
      const known = this.#learned.get(image);
      if (!known) return this.#learn(image, signal, learn);
      try {
        return await known.result;
      } catch (error) {
        if (!known.signal.aborted) throw error;
        signal.throwIfAborted();
      }
    }
  }

  #learn(image: string, signal: AbortSignal, learn: () => Promise<Learned>): Promise<Learned> {
    const result = learn().catch((error) => {
      this.#learned.delete(image);
      throw error;
    });
    this.#learned.set(image, { result, signal });
    const oldest = this.#learned.keys().next().value;
    if (this.#learned.size > OncePerImage.#kept && oldest !== undefined) this.#learned.delete(oldest);
    return result;
  }
}
