import { readFileSync } from 'node:fs';
import { hostCertificates } from '../../src/api/host-certificates.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { clientVariables } from '../../src/gateway/wires/wire-table.ts';
import type { HarnessContext, HarnessSession, Runner, TurnLimits } from '../../src/harness/runner.ts';
import type { Wire } from '../../src/suite/model-config.ts';
import { profileOf } from '../../src/suite/plan.ts';
import { harnessEnvironment, sandboxPaths } from '../../src/trial/prepare/environment.ts';
import { prepareContainer } from '../../src/trial/prepare/image-parts.ts';
import { testEngine, testSpec } from '../engine/engine-fixture.ts';
import type { ModelTurn } from './model-server.ts';

const benchFolder = '/bench';
/** A tool server that every sandbox has. */
export const toolServer = `${benchFolder}/tool-server.mjs`;
const modelPort = 8977;
/**
 * Only a hang reaches it: a turn of a second takes half a minute where thirty programs share two cores.
 * Milliseconds.
 */
export const turnPatience = 200_000;
/** Only a hang reaches it: installing five CLIs at once takes minutes on a small machine. Milliseconds. */
export const installPatience = 900_000;
/** A time limit that ends when the test says so. Milliseconds; no other limit is this odd number. */
const heldMs = 1_234_567;

/**
 * Stands in for bash, which then notes each simple command before it runs. Nothing of the harness's has a
 * part in that. Without the SHLVL, a bash whose stdin is a socket, as Claude Code's is, takes itself for a
 * remote login and does not look at BASH_ENV.
 */
const witnessedBash = `#!/usr/bin/dash\nSHLVL=5 BASH_ENV=${benchFolder}/witness.sh exec /usr/bin/bash-itself "$@"\n`;
/**
 * A command is noted with its shell's process id, also in a subshell. While a shell runs a trap of its own,
 * as Gemini CLI has one, it names the last command again: such a line is the same as the one before.
 */
const witnessScript = `set -o functrace\ntrap 'printf "%s %s\\n" "$BASHPID" "$BASH_COMMAND" >> ${benchFolder}/witness' DEBUG\n`;

/** The shell that a CLI runs commands with: a new bash or sh for each, or one bash at a terminal for all. */
export type Shell = 'bash' | 'sh' | 'terminal';

/** What CLIs put around a command: it is noted again, by itself, when it runs. */
const wrappingCommand = /^(exec|eval) /;

/** Drives one runner's real CLI in sealed sandboxes, against a scripted model. */
export interface RunnerBench extends AsyncDisposable {
  sandbox(turns: ModelTurn[], options?: SandboxOptions): Promise<RunnerSandbox>;
}

interface SandboxOptions {
  wire?: Wire | undefined;
  profile?: Partial<HarnessContext['profile']>;
  /** Sees each piece of stdout. */
  onStdout?(bytes: Buffer): void;
}

export interface RunnerSandbox extends AsyncDisposable {
  container: Container;
  session: HarnessSession;
  /** The bodies of the requests for an answer of the model, in order. */
  requests(): Promise<Record<string, unknown>[]>;
  /** What a shell noted of the commands that it ran, if they contain `mark`. */
  witnessed(mark: string): Promise<string[]>;
  /** Resolves once a shell runs a command that contains `text`. */
  untilWitnessed(text: string): Promise<void>;
  /** Resolves once the model has been asked that many times, or as often by a harness without tools. */
  untilAsked(times: number, how?: 'with tools' | 'without tools'): Promise<void>;
  /** The limits of a turn that may take as long as it needs. */
  unhurried: TurnLimits;
  /** Limits whose time is up when `expire` is called. */
  held: TurnLimits;
  expire(): void;
}

export async function openRunnerBench(runner: Runner, shell: Shell = 'bash'): Promise<RunnerBench> {
  const clock = heldClock();
  const engine = await testEngine({ clock });
  const imageId = await installedImage(engine, runner);
  return {
    async sandbox(turns, options = {}) {
      const container = await engine.createContainer({
        ...(await testSpec(engine)),
        imageId,
        memoryBytes: 2 * 2 ** 30,
        pids: 512,
        env: { HOME: '/root' },
      });
      try {
        await container.start();
        await startModel(container, turns, shell);
      } catch (error) {
        await container.remove();
        throw error;
      }
      return sandboxOf(runner, container, clock, options);
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

/** Built by the product's own way; found again by the next run of the tests. */
async function installedImage(engine: Engine, runner: Runner): Promise<string> {
  const certificates = await hostCertificates({}, process.env);
  const profile = profileOf({});
  const script = runner.install?.(profile) ?? '';
  const { imageId, ...container } = await testSpec(engine, {
    network: 'open',
    memoryBytes: 2 * 2 ** 30,
    pids: 512,
    env: { HOME: '/root' },
  });
  const result = await engine.snapshot({
    parentImageId: imageId,
    container,
    key: JSON.stringify([script, certificates?.pem.toString('latin1')]),
    build: (building) =>
      prepareContainer(
        building,
        {
          phase: 'install',
          files: [],
          script,
          variables: {},
          user: undefined,
          timeoutMs: installPatience,
          extraCertificates: certificates?.pem,
        },
        AbortSignal.timeout(installPatience),
      ),
  });
  if (result.kind !== 'snapshot') throw new Error(`install leaves processes: ${result.processes}`);
  return result.imageId;
}

async function startModel(container: Container, turns: ModelTurn[], shell: Shell): Promise<void> {
  const ownFiles = ['model-server.ts', 'model-wires.ts', 'tool-server.mjs'].map((name) => ({
    path: `${benchFolder}/${name}`,
    content: readFileSync(new URL(name, import.meta.url)),
  }));
  await container.put([
    ...ownFiles,
    { path: `${benchFolder}/script.json`, content: JSON.stringify(turns) },
    { path: `${benchFolder}/bash`, content: witnessedBash, mode: 0o755 },
    { path: `${benchFolder}/witness.sh`, content: witnessScript },
    ...(shell === 'terminal' ? [{ path: '/root/.bashrc', content: witnessScript }] : []),
    { path: `${benchFolder}/witness`, content: '' },
    { path: `${benchFolder}/requests`, content: '' },
  ]);
  const start = `setsid -f node model-server.ts ${modelPort} script.json requests > server.log 2>&1 < /dev/null
until (exec 3<> /dev/tcp/127.0.0.1/${modelPort}) 2> /dev/null; do sleep 0.05; done
mv /usr/bin/bash /usr/bin/bash-itself && mv bash /usr/bin/bash
${shell === 'sh' ? 'ln -sf bash /usr/bin/sh' : ''}`;
  const started = await container.exec({
    argv: ['bash', '-c', start],
    cwd: benchFolder,
    timeoutMs: turnPatience,
  });
  if (started.ended !== 'exited' || started.exitCode !== 0)
    throw new Error(`the scripted model does not start: ${started.ended}`);
}

function sandboxOf(
  runner: Runner,
  container: Container,
  clock: HeldClock,
  { wire, profile, onStdout }: SandboxOptions,
): RunnerSandbox {
  const file = async (name: string): Promise<string[]> => {
    const argv = ['cat', `${benchFolder}/${name}`];
    const { stdout } = await container.exec({ argv, timeoutMs: turnPatience, capBytes: 64 * 2 ** 20 });
    return stdout.text.split('\n').filter((line) => line !== '');
  };
  const until = async (condition: string): Promise<void> => {
    // Not with a shell whose commands are noted.
    const argv = ['dash', '-c', `until ${condition}; do sleep 0.05; done`];
    const { ended } = await container.exec({ argv, timeoutMs: turnPatience });
    if (ended !== 'exited') throw new Error(`it never came to this: ${condition}`);
  };
  const place: HarnessContext = {
    container: {
      ...container,
      exec: (request) =>
        container.exec({
          ...request,
          onOutput: (stream, bytes) => {
            if (stream === 'stdout') onStdout?.(bytes);
            request.onOutput?.(stream, bytes);
          },
        }),
    },
    profile: profileOf(profile ?? {}),
    env: harnessEnvironment({ prompt: '', variables: {}, profile: profileOf({}) }, container),
    workspace: sandboxPaths.workspace,
    home: sandboxPaths.harness,
    model: {
      name: 'scripted',
      wire: wire ?? (runner.wires === 'any' ? 'openai-chat' : (runner.wires[0] ?? 'openai-chat')),
      origin: `http://127.0.0.1:${modelPort}`,
      token: 'token-of-this-trial',
      variables: clientVariables(`http://127.0.0.1:${modelPort}`, 'token-of-this-trial'),
      contextWindow: 100_000,
      maxOutputTokens: 8_000,
      chat: () => Promise.reject(new Error('this test has no model on the host')),
    },
    clock,
  };
  const never = new AbortController().signal;
  return {
    container,
    session: runner.open(place),
    requests: async () => {
      const logged = (await file('requests')).map((line) => JSON.parse(line));
      return logged.filter(({ wire }) => wire !== undefined).map(({ body }) => body);
    },
    witnessed: async (mark) =>
      (await file('witness'))
        .filter((line, at, lines) => line.includes(mark) && line !== lines[at - 1])
        .map((line) => line.replace(/^\d+ /, ''))
        .filter((command) => !wrappingCommand.test(command)),
    untilWitnessed: (text) => until(`grep -qF '${text}' ${benchFolder}/witness`),
    // One that asks for nothing with tools in it, such as a title, is not counted.
    untilAsked: (times, how = 'with tools') => {
      const sign = how === 'with tools' ? '"tools":\\[{' : '"messages":\\[{';
      return until(`[ $(grep -c '${sign}' ${benchFolder}/requests) -ge ${times} ]`);
    },
    unhurried: { timeoutMs: turnPatience, signal: never, stop: never },
    held: { timeoutMs: heldMs, signal: never, stop: never },
    expire: clock.expire,
    [Symbol.asyncDispose]: () => container.remove(),
  };
}

type HeldClock = Clock & { expire(): void };

/** The system's clock, but for sleeps of `heldMs` milliseconds, which last until `expire` is called. */
function heldClock(): HeldClock {
  const held = new Set<() => void>();
  return {
    ...systemClock,
    async sleep(ms, signal) {
      if (ms !== heldMs) return systemClock.sleep(ms, signal);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const abort = () => reject(signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      held.add(resolve);
      try {
        await promise;
      } finally {
        held.delete(resolve);
        signal?.removeEventListener('abort', abort);
      }
    },
    expire() {
      for (const resolve of held) resolve();
    },
  };
}
