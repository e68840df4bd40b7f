import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { removeContainer } from '../container/remove.ts';
import type { Engine } from '../engine.ts';
import { ownershipLabels } from '../owned-objects.ts';
import type { ContainerRequest, ExecCommand } from '../port/containers.ts';
import { type Capabilities, type EnginePort, plainRuntimes } from '../port/engine-port.ts';
import { type EngineFailureKind, isEngineFailure } from '../port/failure.ts';

/** What a check works with: an engine, and an image for its containers. */
export interface Testbed {
  readonly port: EnginePort;
  readonly clock: Clock;
  readonly facts: Capabilities;
  readonly imageId: string;
  /** The runtime of its containers, as a container names it; undefined for the engine's default. */
  readonly runtime: string | undefined;
  /**
   * Whether containers run directly on the machine's kernel. A kernel of the container's own needs memory and
   * threads within the container's limits, and shows things in its own way: a check asks what it holds.
   */
  readonly isPlain: boolean;
  /** For objects other than containers that a check creates: a sweep finds them if this process is killed. */
  readonly labels: Readonly<Record<string, string>>;
  readonly openNetwork: Engine['openNetwork'];
  /** Creates a small container without a network, whose init only waits. Disposing removes it. */
  create(changes?: Partial<ContainerRequest>): Promise<Probe>;
  /** The same, and starts it. */
  start(changes?: Partial<ContainerRequest>): Promise<Probe>;
}

export interface Ran {
  stdout: string;
  stderr: string;
  exitCode: number | null;
  neverStarted: boolean;
}

export interface Probe extends AsyncDisposable {
  readonly id: string;
  /** Runs a line of shell for at most a minute; after that its exit code is `null`. */
  shell(script: string, more?: Partial<ExecCommand>): Promise<Ran>;
  /** The same for one that must succeed. Throws an `Unmet` with its message if it fails. */
  prepare(script: string, more?: Partial<ExecCommand>): Promise<Ran>;
}

/** Milliseconds that a command of a check may take on a very busy machine. */
const commandMs = 60_000;
const pollMs = 20;

interface TestbedParts {
  imageId: string;
  clock: Clock;
  runtime?: string | undefined;
}

export function testbedOn(engine: Engine, { imageId, clock, runtime }: TestbedParts): Testbed {
  const { port, instance } = engine;
  const isPlain = plainRuntimes.includes(runtime ?? engine.capabilities.defaultRuntime);
  const labels = ownershipLabels({ instance, role: 'container', createdAt: clock.now() });
  const create: Testbed['create'] = async (changes) => {
    const { id } = await port.containers.create({
      imageId,
      command: ['/bin/sleep', 'infinity'],
      stdin: false,
      workingDir: '/',
      labels,
      network: 'none',
      // Without it, such a container has not even a loopback.
      networkByEngine: !isPlain,
      memoryBytes: (isPlain ? 128 : 256) * 2 ** 20,
      pids: isPlain ? 64 : 256,
      capabilities: [],
      readOnlyRoot: false,
      // As for sandboxes: such a runtime may ignore a list of read-only paths.
      devicesByMount: !isPlain,
      runtime,
      ...changes,
    });
    const shell: Probe['shell'] = (script, more) =>
      run(port, clock, id, { argv: ['/bin/sh', '-c', script], ...more });
    return {
      id,
      shell,
      async prepare(script, more) {
        const ran = await shell(script, more);
        holds(ran.exitCode === 0, `\`${script}\` ends with ${ran.exitCode}: ${ran.stderr.trim()}`);
        return ran;
      },
      [Symbol.asyncDispose]: () => removeContainer(port, id),
    };
  };
  return {
    port,
    clock,
    facts: engine.capabilities,
    imageId,
    runtime,
    isPlain,
    labels,
    openNetwork: (request, signal) => engine.openNetwork(request, signal),
    create,
    async start(changes) {
      const probe = await create(changes);
      try {
        await port.containers.start(probe.id);
        return probe;
      } catch (error) {
        await probe[Symbol.asyncDispose]();
        throw error;
      }
    },
  };
}

async function run(
  { containers }: EnginePort,
  clock: Clock,
  id: string,
  command: Omit<ExecCommand, 'onPiece'>,
): Promise<Ran> {
  const pieces = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const opened = await containers.exec(id, {
    ...command,
    onPiece: ({ stream, bytes }) => pieces[stream].push(Buffer.from(bytes)),
  });
  if (!opened.started) return { stdout: '', stderr: opened.message, exitCode: null, neverStarted: true };
  using exec = opened.exec;
  using deadline = startDeadline(clock, commandMs);
  await Promise.race([exec.streamEnded, deadline.reached]);
  let state = await exec.inspect();
  while (state.running && !deadline.signal.aborted) {
    await clock.sleep(pollMs);
    state = await exec.inspect();
  }
  const { exitCode, neverStarted } = state;
  const [stdout, stderr] = [pieces.stdout, pieces.stderr].map((all) => Buffer.concat(all).toString());
  return { stdout: stdout ?? '', stderr: stderr ?? '', exitCode, neverStarted };
}

/** The exit code of a command that was killed with SIGKILL. */
export const killed = 137;

/** The engine does something else. The message says what. */
export class Unmet extends Error {}

/** This cannot be checked on this engine, and Offsite works without it. The message says why. */
export class NotChecked extends Error {}

/** Throws an `Unmet` unless both are the same as JSON. `what` names the value: `the exit code`. */
export function same(what: string, seen: unknown, expected: unknown): void {
  const [is, should] = [JSON.stringify(seen), JSON.stringify(expected)];
  if (is !== should) throw new Unmet(`${what} is ${short(is)}, not ${short(should)}`);
}

/** Throws an `Unmet` with what was seen unless the condition holds. */
export function holds(condition: boolean, seen: string): void {
  if (!condition) throw new Unmet(seen);
}

/** Throws an `Unmet` unless the request fails in this way. */
export async function failsAs(
  what: string,
  kind: EngineFailureKind,
  request: Promise<unknown>,
): Promise<void> {
  let thrown: unknown;
  try {
    await request;
  } catch (error) {
    thrown = error;
  }
  if (thrown === undefined) throw new Unmet(`${what} succeeds`);
  if (!isEngineFailure(thrown, kind)) throw new Unmet(`${what} fails as something else: ${thrown}`);
}

function short(json = 'nothing'): string {
  return json.length > 300 ? `${json.slice(0, 300)}…` : json;
}

/** One thing that an engine must do for Offsite. */
export interface ConformanceCheck {
  /** What the engine must do, in plain words: continues "The engine". */
  name: string;
  /** What goes wrong in trials if it does not. */
  cost: string;
  /** Checks a real container. Throws {@link Unmet} or {@link NotChecked}; leaves nothing behind. */
  run(testbed: Testbed): Promise<void>;
}

export type Conformance = Pick<ConformanceCheck, 'name' | 'cost'> &
  ({ state: 'held' } | { state: 'failed' | 'skipped'; found: string });

interface ConformanceOptions {
  /** The image of the containers: `offsite/base`, or one with the same programs. */
  imageId: string;
  clock: Clock;
  /** The runtime of the containers, which the engine knows; default: the engine's. */
  runtime?: string | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Runs the checks one after the other, with containers of one runtime. Rejects if the caller aborts, or for a
 * defect in Offsite.
 */
export async function examineConformance(
  checks: readonly ConformanceCheck[],
  engine: Engine,
  options: ConformanceOptions,
): Promise<Conformance[]> {
  const seen: Conformance[] = [];
  for (const { name, cost, run } of checks) {
    options.signal?.throwIfAborted();
    seen.push({ name, cost, ...(await outcomeOf(run(testbedOn(engine, options)))) });
  }
  return seen;
}

async function outcomeOf(run: Promise<void>) {
  try {
    await run;
    return { state: 'held' } as const;
  } catch (error) {
    if (error instanceof NotChecked) return { state: 'skipped', found: error.message } as const;
    if (error instanceof Unmet || error instanceof OffsiteError) {
      return { state: 'failed', found: messageOf(error) } as const;
    }
    throw error;
  }
}
