import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import {
  engineClock,
  engineLimits,
  engineRuntime,
  sandboxes,
  snapshots,
  usedRuntimes,
} from '../../src/doctor/checks/engine-content.ts';
import { sealedSandbox } from '../../src/doctor/checks/sealed-sandbox.ts';
import { lookDeep } from '../../src/doctor/deep/look-deep.ts';
import type { Check, Finding } from '../../src/doctor/examine.ts';
import { type DoctorReport, doctorReport, printedReport } from '../../src/doctor/report.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { plainText } from '../../src/text/output.ts';
import { testEngine } from '../engine/engine-fixture.ts';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const nowhere = { DOCKER_HOST: 'unix:///nonexistent/docker.sock' };

/** The report and the exit code. */
async function doctor(place: Place, env: Record<string, string> = {}) {
  const { exitCode, stdout, stderr } = await offsite(place, ['doctor', '--json'], { env });
  expect(stderr).toBe('');
  const report = JSON.parse(stdout) as DoctorReport;
  const check = (name: string) => report.checks.find((examined) => examined.name === name);
  return { exitCode, report, check };
}

describe.concurrent('offsite doctor', () => {
  test('looks at no engine and no service if the configuration cannot be read, which may name others', async () => {
    using place = openPlace();
    writeFileSync(join(place.folder, 'offsite.yaml'), 'engines: [gpu-1]\n');
    const { exitCode, report, check } = await doctor(place);
    expect(exitCode).toBe(2);
    expect(check('configuration')).toMatchObject({
      state: 'fail',
      found: expect.stringContaining(':1:11: engines[0]'),
    });
    expect(report.engine).toBeUndefined();
    const unread = { state: 'skipped', found: 'the configuration cannot be read' };
    for (const name of ['service', "models' keys", 'engine', 'sandboxes', 'sealed sandbox'])
      expect(check(name)).toMatchObject(unread);
  });

  test('finds a machine that can run trials ready, and says what its engine is', async () => {
    using place = openPlace();
    const { exitCode, report } = await doctor(place);
    expect(report.checks.filter(({ state }) => state === 'fail')).toEqual([]);
    expect([exitCode, report.ready]).toEqual([0, true]);
    expect(report.engine).toMatchObject({
      address: expect.stringContaining('://'),
      capabilities: {
        os: 'linux',
        runtimes: expect.arrayContaining(['runc']),
        diskQuota: expect.any(String),
      },
    });
    expect(report.checks).toContainEqual(expect.objectContaining({ name: 'sealed sandbox', state: 'ok' }));
  });

  test('prints it for people, every check on a line of its own', async () => {
    using place = openPlace();
    const { exitCode, stdout } = await offsite(place, ['doctor']);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^engine +\S+:\/\/.*\n(.*\n)+control groups +version [12]\n/);
    expect(stdout).toMatch(/^ok +service +the embedded service, which the first run makes$/m);
    expect(stdout).toMatch(/\nReady to run trials.*\.\n$/);
  });

  test('says where it looked for an engine and why none answered, looks at all else, and exits with 3', async () => {
    using place = openPlace();
    const { exitCode, report, check } = await doctor(place, nowhere);
    expect([exitCode, report.ready]).toEqual([3, false]);
    expect(report.tried).toEqual([
      {
        host: 'unix:///nonexistent/docker.sock',
        source: 'DOCKER_HOST',
        failure: expect.stringContaining('ENOENT'),
      },
    ]);
    expect(check('engine')).toMatchObject({
      state: 'fail',
      fix: expect.stringContaining('DOCKER_HOST names this engine'),
    });
    expect(check('sealed sandbox')).toMatchObject({ state: 'skipped' });
    expect(check('service')).toMatchObject({ state: 'ok' });
  });

  test("names the variables of models' keys that are not set, never what is in one, and models without prices for a limit in USD", async () => {
    using place = openPlace();
    const model = (apiKeyEnv: string) => ({
      wire: 'openai-chat',
      baseUrl: 'https://model.example/v1',
      apiKeyEnv,
    });
    const models = { one: model('KEY_ONE'), two: model('KEY_TWO') };
    place.suite({ cases: [], config: { models, budgets: { trial: { usd: 5 } } } });
    const env = {
      ...nowhere,
      OFFSITE_CONFIG: join(place.folder, 'project/offsite.yaml'),
      KEY_ONE: 'hush-7c1',
    };
    const { report, check } = await doctor(place, env);
    expect(check("models' keys")).toMatchObject({ state: 'warn', found: 'not set: KEY_TWO (two)' });
    expect(check('configuration')).toMatchObject({
      state: 'warn',
      found: expect.stringMatching(/: budgets.trial.usd: the model one has no prices.*\n.*the model two has/),
    });
    expect(JSON.stringify(report)).not.toContain('hush-7c1');
  });

  test('says that a service is configured without a key, and which variable is to hold it', async () => {
    using place = openPlace();
    const { exitCode, check } = await doctor(place, { ...nowhere, OFFSITE_URL: 'http://127.0.0.1:9' });
    expect(exitCode).toBe(2);
    expect(check('service')).toMatchObject({
      state: 'fail',
      fix: expect.stringContaining('OFFSITE_API_KEY'),
    });
  });

  test('tells a data folder that cannot be one, and a CA bundle that is none', async () => {
    using place = openPlace();
    writeFileSync(place.dataFolder, 'a file');
    const pem = place.write('no.pem', 'no certificate');
    const { exitCode, check } = await doctor(place, { ...nowhere, SSL_CERT_FILE: pem });
    expect(exitCode).toBe(3);
    expect(check('data folder')).toMatchObject({
      state: 'fail',
      found: expect.stringContaining(place.dataFolder),
    });
    expect(check('certificates')).toMatchObject({
      state: 'warn',
      found: expect.stringContaining('SSL_CERT_FILE'),
    });
  });
});

type Spec = Parameters<Engine['createContainer']>[0];

const ofDefault = { runtime: undefined, mayLackFilter: false };

describe('a check', () => {
  const now = 1_000_000_000;
  /** Runs it on an engine of which only the given parts are looked at. */
  const on = (check: Check, engine: object, sandboxes = {}): Promise<Finding> =>
    check.run({
      engine: { got: true, value: engine },
      clock: { now: () => now },
      config: { sandboxes, snapshots: { budget: 20 * 1024 ** 3 } },
      signal: AbortSignal.timeout(60_000),
    } as never);

  test('of limits fails for an engine that cannot enforce one, and says which', async () => {
    const limits = { memory: true, swap: false, pids: true, cpu: true };
    const finding = await on(engineLimits, { capabilities: { limits, security: { seccomp: false } } });
    expect(finding).toMatchObject({
      state: 'fail',
      found: 'the engine cannot limit swap, system calls (seccomp)',
      fix: expect.stringContaining('swapaccount'),
    });
    const security = { seccomp: true, rootless: true };
    expect(await on(engineLimits, { capabilities: { limits, security } })).toMatchObject({
      found: 'the engine cannot limit swap',
      fix: expect.stringContaining('delegates'),
    });
  });

  test('of the runtime says that crun is cheaper where it is there, and what a foreign kernel lacks', async () => {
    const runtime = async (defaultRuntime: string, ...runtimes: string[]) =>
      await on(engineRuntime, { capabilities: { defaultRuntime, runtimes } });
    const withLocal = (local: object) =>
      on(
        engineRuntime,
        { capabilities: { defaultRuntime: 'nvidia', runtimes: ['nvidia', 'runc'] } },
        { local },
      );
    expect(await runtime('runc', 'runc')).toEqual({ state: 'ok', found: 'runc' });
    expect(await runtime('crun', 'crun', 'runc')).toEqual({ state: 'ok', found: 'crun' });
    const { found } = await runtime('runc', 'crun', 'runc');
    expect(found).toContain('"default-runtime": "crun"');
    expect(await runtime('nvidia', 'runc', 'nvidia')).toMatchObject({
      state: 'warn',
      fix: expect.stringMatching(/^Sandboxes need runtime: runc, .* or seccomp: if-available\./),
    });
    expect(await runtime('runsc', 'runsc')).toMatchObject({
      fix: expect.stringMatching(/^Sandboxes need seccomp: if-available\./),
    });
    const unused = { state: 'ok', found: 'nvidia, which no sandbox uses' };
    expect(await withLocal({ runtime: 'runc' })).toEqual(unused);
    expect(await withLocal({ seccomp: 'if-available' })).toMatchObject({ state: 'ok' });
  });

  test("of the engine's clock warns of one that is minutes off", async () => {
    const finding = await on(engineClock, { capabilities: { clockAheadMs: -130_000 } });
    expect(finding).toMatchObject({ state: 'warn', found: "2 m 10 s behind this machine's" });
    expect(await on(engineClock, { capabilities: { clockAheadMs: 40 } })).toMatchObject({ state: 'ok' });
  });

  test('of snapshots counts them, and warns of more than are kept', async () => {
    const images = Array.from({ length: 1_001 }, (_, n) => ({
      id: `sha256:${n}`,
      names: [`offsite/snapshot:${n}`],
      parentId: '',
      bytes: 1024 ** 2,
      createdAt: 1,
      labels: { 'offsite.role': 'snapshot' },
    }));
    const engineWith = (count: number) => ({
      port: { list: async () => [], images: { list: async () => images.slice(0, count) } },
    });
    expect(await on(snapshots, engineWith(2))).toEqual({
      state: 'ok',
      found: '2 snapshots of 2 MiB; at most 1000 of 20.0 GiB are kept',
    });
    expect(await on(snapshots, engineWith(1_001))).toMatchObject({
      state: 'warn',
      fix: expect.stringContaining('offsite engine images prune'),
    });
  });

  test('of the sealed sandbox fails where a sandbox is not what was asked for', async () => {
    await using engine = await testEngine();
    const loose = {
      capabilities: engine.capabilities,
      findImage: engine.findImage,
      createContainer: (spec: Spec) =>
        engine.createContainer({ ...spec, pids: 1000, security: 'strict', user: '1000' }),
    };
    expect(await on(sealedSandbox(ofDefault), loose)).toMatchObject({
      state: 'fail',
      found: 'from inside: CapBnd is 0000000000000000, not 00000000000000cb; pids is 1000, not 48',
    });
  });

  test('of the sealed sandbox sees an engine that drops the filter of system calls, and one that has none', async () => {
    await using engine = await testEngine();
    const original = { ...engine.capabilities };
    engine.capabilities.security = { ...original.security, seccomp: false };
    const { findImage, capabilities } = engine;
    const createContainer = (spec: Spec) => engine.createContainer({ ...spec, filter: 'if-available' });
    // What an engine's own filter lets through differs: from Docker 28 on, it is only 32-bit calls.
    const seen =
      /32-bit calls is answered, not none|socket families is unix inet .*, not unix inet inet6 netlink/;
    const dropping = { capabilities: original, findImage, createContainer };
    expect(await on(sealedSandbox(ofDefault), dropping)).toMatchObject({
      state: 'fail',
      found: expect.stringMatching(seen),
    });
    const lenient = { runtime: undefined, mayLackFilter: true };
    const without = { capabilities, findImage, createContainer: engine.createContainer };
    expect(await on(sealedSandbox(lenient), without)).toMatchObject({
      state: 'warn',
      found: expect.stringContaining('without a filter of system calls: its kernel has no seccomp'),
    });
    await expect(on(sealedSandbox(ofDefault), without)).rejects.toMatchObject({
      code: 'ENGINE_CANNOT_ENFORCE',
    });
  });

  test('of the sealed sandbox is about one runtime, and gives a kernel of its own more room', async () => {
    await using engine = await testEngine();
    const { findImage } = engine;
    const capabilities = {
      ...engine.capabilities,
      runtimes: [...engine.capabilities.runtimes, 'own-kernel'],
    };
    const asked: Spec[] = [];
    const createContainer = (spec: Spec) => {
      asked.push(spec);
      return engine.createContainer({ ...spec, runtime: undefined });
    };
    const check = sealedSandbox({ runtime: 'own-kernel', mayLackFilter: true });
    expect(check.name).toBe('sealed sandbox (own-kernel)');
    expect(await on(check, { capabilities, findImage, createContainer })).toMatchObject({
      state: 'warn',
      found: expect.stringContaining('the runtime own-kernel may ignore one'),
    });
    expect(asked).toMatchObject([
      { runtime: 'own-kernel', filter: 'if-available', memoryBytes: 2 ** 28, pids: 128 },
    ]);
    expect(await on(check, { capabilities: engine.capabilities, findImage })).toEqual({
      state: 'skipped',
      found: 'the engine does not know this runtime',
    });
  });

  test('of sandboxes names one that the engine cannot run before a missing image', async () => {
    await using engine = await testEngine();
    const { capabilities } = engine;
    const configured = ConfigFile.parse({
      sandboxes: { first: { image: 'offsite/no-such' }, second: { runtime: 'no-such' } },
    }).sandboxes;
    const asked = { capabilities, findImage: engine.findImage };
    expect(await on(sandboxes, asked, configured)).toMatchObject({
      state: 'fail',
      found: expect.stringMatching(/the sandbox "second" requires: the runtime no-such \(it knows [^;]*\)$/),
      fix: expect.stringContaining('remove `runtime`'),
    });
    const { first } = configured;
    expect(await on(sandboxes, asked, { first })).toMatchObject({ state: 'warn' });
  });
});

test('an engine that does not do what trials rely on is not ready, and the report says what that costs', () => {
  const checks = [
    { name: 'reports the exit code of each command', cost: 'Failed checks count as passed.', state: 'held' },
    {
      name: 'measures what a container wrote',
      cost: 'Nothing stops a full disk.',
      state: 'failed',
      found: 'it is 0',
    },
  ] as const;
  const conformance = [{ runtime: 'runc', held: false, checks: [...checks] }];
  const examined = { name: 'Node', state: 'ok', found: '24' } as const;
  const report = doctorReport({ got: false, error: undefined }, [examined], { conformance, hostile: [] });
  expect(report).toMatchObject({ ready: false, conformance });
  const printed = plainText(printedReport(report));
  expect(printed).toContain('ok    reports the exit code of each command\n');
  expect(printed).toContain(
    'FAIL  measures what a container wrote\n      it is 0\n      Nothing stops a full disk.\n',
  );
  expect(printed).toContain('Not ready: the engine does not do all that trials rely on.');
});

describe('the runtimes to examine', () => {
  const required = { runtime: undefined, seccomp: 'required' } as const;
  const lenient = { ...required, seccomp: 'if-available' } as const;

  test("are the engine's default and each other that a sandbox names, with what their sandboxes may lack", () => {
    const configured = {
      first: { ...lenient, runtime: 'runsc' },
      second: { ...required, runtime: 'runsc' },
      third: { ...required, runtime: 'kata' },
      fourth: { ...required, runtime: 'runc' },
    };
    expect(usedRuntimes(configured, 'runc')).toEqual([
      { runtime: undefined, name: 'runc', mayLackFilter: false },
      { runtime: 'runsc', name: 'runsc', mayLackFilter: true },
      { runtime: 'kata', name: 'kata', mayLackFilter: false },
    ]);
    expect(usedRuntimes({}, 'runsc')).toEqual([{ runtime: undefined, name: 'runsc', mayLackFilter: false }]);
    expect(usedRuntimes({ first: lenient }, 'runc')).toMatchObject([{ name: 'runc', mayLackFilter: true }]);
  });

  test('are without the default if no sandbox has it', () => {
    const local = { ...lenient, runtime: 'runsc' };
    expect(usedRuntimes({ local }, 'runc')).toEqual([
      { runtime: 'runsc', name: 'runsc', mayLackFilter: true },
    ]);
    expect(usedRuntimes({ local, other: required }, 'runc')).toMatchObject([
      { name: 'runc' },
      { name: 'runsc' },
    ]);
  });
});

test('hostile agents are not run where all of them would be refused, and the report says so once', async () => {
  await using engine = await testEngine();
  const capabilities = {
    ...engine.capabilities,
    defaultRuntime: 'runsc',
    runtimes: ['runsc', 'also-own'],
  };
  const notes: string[] = [];
  const deep = await lookDeep(
    { ...engine, capabilities, findImage: async () => undefined },
    {
      runtimes: [
        { runtime: undefined, name: 'runsc', mayLackFilter: false },
        { runtime: 'also-own', name: 'also-own', mayLackFilter: false },
        { runtime: 'no-such', name: 'no-such', mayLackFilter: false },
      ],
      configured: undefined,
      clock: systemClock,
      signal: AbortSignal.timeout(60_000),
      note: (what) => notes.push(what),
    },
  );
  expect(notes).toEqual([
    expect.stringMatching(/^runsc: what the engine must do: \d+ checks$/),
    expect.stringMatching(/^also-own: what the engine must do/),
  ]);
  expect(deep.conformance).toEqual([]);
  expect(deep.hostile).toEqual([
    {
      runtime: 'runsc',
      held: false,
      notRun: expect.stringContaining('a filter of system calls: the runtime runsc may ignore one'),
      fix: expect.stringContaining('seccomp: if-available'),
    },
    expect.objectContaining({
      runtime: 'also-own',
      fix: expect.stringContaining('{ runtime: also-own, seccomp: if-available }'),
    }),
  ]);
  const node = { name: 'Node', state: 'ok', found: '24' } as const;
  const report = doctorReport({ got: false, error: undefined }, [node], deep);
  expect(report.ready).toBe(false);
  const printed = plainText(printedReport(report));
  expect(printed).toContain('Hostile agents, with the runtime also-own:\nFAIL  hostile agents were not run');
  expect(printed).toContain('Not ready: hostile agents were not run.');
});
