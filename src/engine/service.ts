import { startDeadline } from '../base/deadline.ts';
import { type CapturedOutput, OutputCapture } from '../base/output-capture.ts';
import { serviceOutput } from '../bounds/sandbox.ts';
import type { ContainerSpec, ServiceProgram } from './container/container-spec.ts';
import type { Container } from './container.ts';
import type { EnginePort } from './port/engine-port.ts';

/** A container that runs a server that is not part of Offsite. */
export type ServiceSpec = ContainerSpec & { service: ServiceProgram };

/** How a health check ended. */
export interface Checked {
  /** Undefined if it took too long, or could not be started. */
  exitCode: number | undefined;
  /** The end of what it printed, or why it has no exit code. */
  detail: string;
}

/**
 * A container with a server that Offsite starts and watches, and never restarts. Disposing removes it. All
 * methods throw infrastructure errors if the engine fails.
 */
export interface Service
  extends Pick<Container, 'id' | 'put' | 'kindOf' | 'archive' | 'watchDisk' | typeof Symbol.asyncDispose> {
  start(signal: AbortSignal): Promise<void>;
  /** Both of its streams, as they arrived. */
  log(): CapturedOutput;
  /**
   * Runs a command. One that takes too long is left running, so that nothing else in the container is ended.
   */
  check(argv: readonly string[], timeoutMs: number, signal: AbortSignal): Promise<Checked>;
  /** How its server ended; undefined while it runs. One round trip. */
  exitCode(signal?: AbortSignal): Promise<number | undefined>;
  /** Ends its server for good. Its log stays. */
  kill(): Promise<void>;
}

/** The service in a container that was created from its spec. */
export function serviceOf(port: EnginePort, spec: ServiceSpec, container: Container): Service {
  const { containers } = port;
  const { id } = container;
  const log = new OutputCapture(serviceOutput.bytes.log);
  return {
    ...container,
    async start(signal) {
      const stdout = await container.attach({ onStderr: (bytes) => log.push(bytes), signal });
      stdout.on('data', (bytes: Buffer) => log.push(bytes));
      // If the stream fails, the log keeps what has arrived so far.
      stdout.on('error', () => undefined);
      await container.start(signal);
    },
    log: () => log.result(),
    async check(argv, timeoutMs, signal) {
      try {
        return await check(port, spec, id, { argv, timeoutMs, signal });
      } catch (error) {
        signal.throwIfAborted();
        // Engines answer in different ways if the server ends meanwhile.
        if ((await containers.state(id, signal)).isRunning) throw error;
        return { exitCode: undefined, detail: 'the server does not run' };
      }
    },
    async exitCode(signal) {
      const { isRunning, exitCode } = await containers.state(id, signal);
      return isRunning ? undefined : exitCode;
    },
    kill: () => containers.kill(id),
  };
}

interface Check {
  argv: readonly string[];
  timeoutMs: number;
  signal: AbortSignal;
}

async function check(
  { clock, containers }: EnginePort,
  { user, workingDir }: ServiceSpec,
  id: string,
  { argv, timeoutMs, signal }: Check,
): Promise<Checked> {
  const output = new OutputCapture(serviceOutput.bytes.check);
  using deadline = startDeadline(clock, timeoutMs, signal);
  const opened = await containers.exec(id, {
    argv,
    user,
    cwd: workingDir,
    onPiece: ({ bytes }) => output.push(bytes),
  });
  if (!opened.started) return { exitCode: undefined, detail: opened.message };
  using exec = opened.exec;
  const printed = () => output.result().text.trim();
  const ended = exec.streamEnded.then(() => 'ended' as const);
  if ((await Promise.race([ended, deadline.reached])) !== 'ended') {
    signal.throwIfAborted();
    return { exitCode: undefined, detail: `it took more than ${timeoutMs / 1000} s` };
  }
  // The process may outlive the stream, and the engine may record the end of the process a moment later.
  for (;;) {
    const { running, exitCode, neverStarted } = await exec.inspect();
    if (neverStarted) return { exitCode: undefined, detail: printed() };
    if (!running) return { exitCode: exitCode ?? undefined, detail: printed() };
    if (deadline.signal.aborted) return { exitCode: undefined, detail: 'it did not end in time' };
    await clock.sleep(50, signal);
  }
}
