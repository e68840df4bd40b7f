import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runners } from '../../runners/index.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { unmetWishes } from '../../src/engine/capabilities.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Network } from '../../src/gateway/hosts/proxy.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { scriptedUpstream } from '../../src/gateway/scripted/scripted-upstream.ts';
import { BlobStore } from '../../src/ledger/blobs.ts';
import type { BuildLogs } from '../../src/ledger/build-logs.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { noEnvironment, sandboxIn } from '../../src/suite/environment.ts';
import type { ModelConfig } from '../../src/suite/model-config.ts';
import { freshVerify, profileOf } from '../../src/suite/plan.ts';
import { SandboxConfig } from '../../src/suite/sandbox-config.ts';
import type { TrialParts } from '../../src/trial/phase.ts';
import type { HostEnvironment } from '../../src/trial/prepare/environment.ts';
import type { ObserveBuild } from '../../src/trial/prepare/obtain-image.ts';
import { Sandboxes } from '../../src/trial/prepare/sandboxes.ts';
import { runTrial } from '../../src/trial/run-trial.ts';
import type { TrialSpec, ValidatorSpec } from '../../src/trial/spec.ts';

/** Runs single trials on the real engine. */
export interface TrialBench extends AsyncDisposable {
  engine: Engine;
  blobs: BlobStore;
  /** Runs a trial whose harness is the bash script `run`. */
  trial(
    run: string,
    change?: Partial<TrialSpec>,
    sandbox?: Partial<TrialSpec['sandbox']>,
  ): Promise<TrialRecord>;
}

export interface BenchParts {
  engine?: Engine;
  extraCertificates?: Buffer;
  /** Of the configuration, which trials may name. */
  models?: Record<string, ModelConfig>;
  budgets?: TrialParts['budgets'];
  buildLogs?: BuildLogs;
  host?: HostEnvironment;
  observeBuild?: ObserveBuild;
  /** Of the trials; default: the machine's. */
  clock?: Clock;
  /** How named hosts are reached; default: this machine's network. */
  network?: Network;
  /** Besides those that Offsite has. */
  runners?: TrialParts['runners'];
}

export async function openTrialBench(given: BenchParts = {}): Promise<TrialBench> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-trial-'));
  const engine = await connectEngine({ instance: `test-${folder.split('-').pop()}` });
  const blobs = new BlobStore(join(folder, 'blobs'));
  const allRunners = [...runners, ...(given.runners ?? [])];
  const sandboxes = new Sandboxes(given.engine ?? engine, given.extraCertificates, {
    runners: allRunners,
    ...(given.buildLogs && { buildLogs: given.buildLogs }),
    ...(given.host && { host: given.host }),
    ...(given.observeBuild && { observeBuild: given.observeBuild }),
  });
  const gateway = openGateway({
    models: given.models ?? {},
    env: {},
    clock: systemClock,
    scripted: (file) => scriptedUpstream(file, systemClock),
    ...(given.network && { network: given.network }),
  });
  const budgets = given.budgets ?? { trial: {}, batch: undefined };
  const { clock = systemClock } = given;
  const parts: TrialParts = { sandboxes, runners: allRunners, blobs, clock, gateway, budgets };
  const never = new AbortController().signal;
  // As gVisor is used: its own kernel takes the place of a filter of system calls.
  const takesFilter = unmetWishes({}, engine.capabilities).length === 0;
  const available = takesFilter ? {} : { seccomp: 'if-available' as const };
  return {
    engine,
    blobs,
    trial: (run, change, sandbox) =>
      runTrial(specOf(run, change, { ...available, ...sandbox }), parts, never, () => undefined),
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await sandboxes[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Milliseconds. They only end what hangs. */
export const timeouts = {
  install: 200_000,
  build: 200_000,
  prepare: 200_000,
  harness: 200_000,
  verify: 200_000,
  validator: 200_000,
};

export function specOf(
  run: string,
  change: Partial<TrialSpec> = {},
  sandbox: Partial<TrialSpec['sandbox']> = {},
): TrialSpec {
  const own = { ...SandboxConfig.parse({}), name: 'local', memory: 256 * 1024 ** 2, timeouts, ...sandbox };
  const { environment = noEnvironment } = change;
  return {
    batchId: 'batch',
    runId: 'run',
    ordinal: 0,
    caseName: 'case',
    taskIndex: 0,
    prompt: 'Do it.',
    prepare: undefined,
    verify: undefined,
    verifyPlace: freshVerify,
    validator: undefined,
    variables: {},
    artifacts: [],
    protected: [],
    user: undefined,
    judges: [],
    model: 'none',
    modelConfig: undefined,
    harness: 'command',
    variant: 'command',
    profile: profileOf({ name: 'test', run }),
    ...change,
    environment,
    sandbox: sandboxIn(change.sandbox ?? own, environment),
  };
}

export function validator(source: string, change: Partial<ValidatorSpec> = {}): ValidatorSpec {
  return { source, files: [], manifest: [], capture: true, runsIn: 'fresh', onError: 'void', ...change };
}
