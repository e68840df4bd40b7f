import { runners } from '../../runners/index.ts';
import { ConfigRevisions } from '../../src/agent/config-revision.ts';
import { runBatch } from '../../src/agent/run-batch.ts';
import { ServiceSender } from '../../src/agent/sender.ts';
import { accessService } from '../../src/api/service-access.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { scriptedUpstream } from '../../src/gateway/scripted/scripted-upstream.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { readRecord } from '../../src/record/read-record.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import type { ModelConfig } from '../../src/suite/model-config.ts';
import { noExtras, profileOf, type SuitePlan } from '../../src/suite/plan.ts';
import { SandboxConfig } from '../../src/suite/sandbox-config.ts';
import { noHostEnvironment } from '../../src/trial/prepare/environment.ts';

/** A whole Offsite, including the embedded service, with one data folder. */
export interface Agent extends AsyncDisposable {
  /** Runs a batch. Resolves when every trial is recorded and reported. Throws if one did not pass. */
  run(plan: SuitePlan, concurrency: number): Promise<void>;
}

/** @param models those that its trials may ask */
export async function openAgent(
  engine: Engine,
  dataFolder: string,
  models: Record<string, ModelConfig>,
): Promise<Agent> {
  const clock = systemClock;
  const config = { ...ConfigFile.parse({}), file: undefined };
  const access = { config, dataFolder, env: {}, clock, caBundle: undefined, insecureHttp: undefined };
  const service = await accessService({ ...access, integrations: [] });
  const { client } = service;
  const ledger = new Ledger(dataFolder, clock);
  const sender = new ServiceSender({ client, ledger, warn: console.error });
  const parts = {
    engine,
    client,
    ledger,
    sender,
    runners,
    clock,
    service: service.name,
    extraCertificates: undefined,
  };
  const revision = {
    config,
    host: noHostEnvironment,
    gateway: openGateway({ models, env: {}, clock, scripted: (file) => scriptedUpstream(file, clock) }),
  };
  return {
    async run(plan, concurrency) {
      const { key } = await runBatch(
        plan,
        { ...parts, revisions: new ConfigRevisions({ ...revision, concurrency }) },
        AbortSignal.timeout(600_000),
        () => undefined,
      );
      for (const { result } of ledger.queue.ofBatch(key)) {
        const { verdict, cause } = readRecord(ledger.blobs.readJson(result ?? ''));
        if (verdict === 'passed') continue;
        throw new Error(`a trial is ${verdict}: ${cause?.message} ${cause?.output ?? ''}`);
      }
      if (ledger.outbox.pending().length > 0) throw new Error('a trial was not reported');
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      ledger[Symbol.dispose]();
    },
  };
}

/**
 * A suite of no-op trials: `true` as the run script, one verify step, no validator.
 *
 * @param options `prepare` if there is one to share, `run` for another run script
 */
export function noopPlan(
  image: string,
  cases: number,
  trials: number,
  { prepare, run = 'true' }: { prepare?: string; run?: string } = {},
): SuitePlan {
  return {
    file: 'bench',
    suite: { id: 'bench', name: 'Bench', prompt: { kind: 'text', text: 'nothing' } },
    trials,
    cases: Array.from({ length: cases }, (_, index) => ({
      request: {
        id: `case-${index}`,
        name: `Case ${index}`,
        verify: 'true',
        ...(prepare !== undefined && { prepare: { name: 'prepare', source: prepare } }),
      },
      local: noExtras,
    })),
    judges: [],
    variants: [
      {
        name: 'noop',
        model: 'none',
        modelConfig: undefined,
        userModel: undefined,
        harness: 'command',
        profile: profileOf({ name: 'noop', run }),
        sandbox: { name: 'local', ...SandboxConfig.parse({ image, memory: '256m' }) },
        credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'local' },
      },
    ],
  };
}
