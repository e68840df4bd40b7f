import type { Clock } from '../../clock.ts';
import { startDeadline } from '../../deadline.ts';
import { removeContainer } from '../container/remove.ts';
import type { Engine } from '../engine.ts';
import { ownershipLabels } from '../labels.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type { ContainerRequest } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { ExecCommand } from '../port/exec.ts';
import { holds } from './expect.ts';

/** What a check works with: an engine, and an image for its containers. */
export interface Testbed {
  readonly port: EnginePort;
  readonly clock: Clock;
  readonly facts: Capabilities;
  readonly imageId: string;
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
  /** Runs a line of shell that must succeed. Throws an `Unmet` with its message if it fails. */
  prepare(script: string): Promise<void>;
}

/** Milliseconds that a command of a check may take on a very busy machine. */
const commandMs = 60_000;
const pollMs = 20;

export function testbedOn(engine: Engine, { imageId, clock }: { imageId: string; clock: Clock }): Testbed {
  const { port, instance } = engine;
  const labels = ownershipLabels({ instance, role: 'container', createdAt: clock.now() });
  const create: Testbed['create'] = async (changes) => {
    const { id } = await port.containers.create({
      imageId,
      command: ['/bin/sleep', 'infinity'],
      stdin: false,
      workingDir: '/',
      labels,
      network: 'none',
      memoryBytes: 128 * 2 ** 20,
      pids: 64,
      capabilities: [],
      readOnlyRoot: false,
      ...changes,
    });
    const shell: Probe['shell'] = (script, more) =>
      run(port, clock, id, { argv: ['/bin/sh', '-c', script], ...more });
    return {
      id,
      shell,
      async prepare(script) {
        const { exitCode, stderr } = await shell(script);
        holds(exitCode === 0, `\`${script}\` ends with ${exitCode}: ${stderr.trim()}`);
      },
      [Symbol.asyncDispose]: () => removeContainer(port, id),
    };
  };
  return {
    port,
    clock,
    facts: engine.capabilities,
    imageId,
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
