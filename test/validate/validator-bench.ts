import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { unmetWishes } from '../../src/engine/capabilities.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { runValidator } from '../../src/validate/validator.ts';
import type { ValidatorRequest, ValidatorRun } from '../../src/validate/validator-request.ts';

/** Runs validators in one sandbox of the real engine. */
export interface ValidatorBench extends AsyncDisposable {
  engine: Engine;
  container: Container;
  /** Another started sandbox of the same image. */
  another(): Promise<Container>;
  /** A module gets `validate`, `assert` and `fs` imported. */
  run(source: string, change?: Partial<ValidatorRequest>): Promise<ValidatorRun>;
}

export async function openValidatorBench(clock: Clock = systemClock): Promise<ValidatorBench> {
  const engine = await connectEngine({ instance: `test-${randomBytes(6).toString('hex')}`, clock });
  const image = await engine.findImage('offsite/base');
  if (!image)
    throw new Error('this test needs the image offsite/base: npm run -s offsite -- engine base-image');
  const another = async () => {
    const container = await engine.createContainer({
      imageId: image.id,
      network: 'none',
      security: 'compatible',
      // gVisor has no filter, and a kernel of its own.
      ...(unmetWishes({}, engine.capabilities).length > 0 && { filter: 'if-available' }),
      memoryBytes: 256 * 1024 ** 2,
      cpus: 1,
      pids: 128,
      workingDir: '/workspace',
    });
    await container.start();
    return container;
  };
  const container = await another();
  await container.put([{ path: '/workspace/answer.txt', content: '42\n' }]);
  let folders = 0;
  return {
    engine,
    container,
    another,
    run(source, change = {}) {
      const imports = `import { validate } from 'offsite/validator'; import assert from 'node:assert/strict'; import fs from 'node:fs';\n`;
      return runValidator({
        container,
        source: source.startsWith('#!') ? source : `${imports}${source}`,
        files: [],
        manifest: [],
        capture: true,
        folder: `/offsite/validators/${++folders}`,
        workspace: '/workspace',
        env: { PATH: '/usr/local/bin:/usr/bin:/bin', animal: 'cat' },
        variables: { animal: 'cat' },
        trajectory: [{ _tag: 'command', command: 'ls', exitCode: 0 }],
        work: { kind: 'beside', container: change.container ?? container, user: 'nobody' },
        clock: systemClock,
        timeoutMs: 200_000,
        signal: new AbortController().signal,
        ...change,
      });
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

/**
 * The system's clock, on which waits of `ms` milliseconds also end when `pass` is called: a deadline without
 * the waiting.
 */
export function clockWith(ms: number): Clock & { pass(): void } {
  const passed = Promise.withResolvers<void>();
  return {
    ...systemClock,
    sleep: (wait, signal) => {
      const slept = systemClock.sleep(wait, signal);
      if (wait !== ms) return slept;
      slept.catch(() => undefined);
      return Promise.race([passed.promise, slept]);
    },
    pass: () => passed.resolve(),
  };
}

/** Resolves once there is the file; the test's own time limit ends the waiting. */
export async function untilThere(container: Container, path: string): Promise<void> {
  const script = 'until [ -e "$1" ]; do sleep 0.05; done';
  // Whoever ends all that runs in the sandbox ends this too.
  for (let found = false; !found; ) {
    const { exitCode } = await container.exec({ argv: ['sh', '-c', script, 'sh', path], timeoutMs: 55_000 });
    found = exitCode === 0;
  }
}
