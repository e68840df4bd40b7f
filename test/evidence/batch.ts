import { randomBytes } from 'node:crypto';
import { storedPlan } from '../../src/agent/batch-run.ts';
import { type Signing, unsigned } from '../../src/evidence/envelope.ts';
import { writeEvidence } from '../../src/evidence/write-evidence.ts';
import { writeExport } from '../../src/export/write-export.ts';
import type { BatchKey } from '../../src/ledger/batches.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { noExtras, profileOf, type SuitePlan } from '../../src/suite/plan.ts';
import { reportOf } from '../../src/trial/report.ts';

const variants = ['one', 'two'];
const cases = ['adds', 'sorts'];
const repeats = 2;

/** A plan of two cases on two variants, each two times. */
const plan: SuitePlan = {
  file: '/home/someone/suite.yaml',
  suite: { id: 's', name: 'Suite', prompt: { kind: 'text', text: 'Do it.' } },
  trials: repeats,
  judges: [],
  cases: cases.map((id) => ({
    request: { id, name: `Case ${id}`, verify: 'true' },
    local: {
      ...noExtras,
      environment: {
        ...noExtras.environment,
        build: {
          name: 'Dockerfile',
          file: '/home/someone/Dockerfile',
          dockerfile: 'FROM x\n',
          args: {},
          images: {},
          place: 's:1:1',
          context: { folder: '/home/someone', ignore: '', hash: 'a'.repeat(64) },
        },
      },
    },
  })),
  variants: variants.map((name) => ({
    name,
    model: 'm',
    harness: 'command',
    userModel: undefined,
    profile: profileOf({}),
    modelConfig: { name: 'm', baseUrl: 'http://127.0.0.1:1' } as never,
    sandbox: { name: 'local', passEnv: ['HOME'], timeouts: {} } as never,
    credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'local' },
  })),
};

/** Fills a ledger with a batch of eight trials: one has no result, one was tried twice, one was graded again. */
export async function fillBatch(ledger: Ledger, { kilobytes = 1 } = {}): Promise<BatchKey> {
  const { blobs, queue, trials } = ledger;
  const pairs = cases.flatMap((caseId) =>
    variants.map((variant, variantIndex) => ({ caseId, variant, variantIndex })),
  );
  const { key, runs } = ledger.batches.add({
    service: 'embedded',
    id: 'batch_1',
    suite: 'Suite',
    file: plan.file,
    answers: 'live',
    plan: await blobs.putJson(storedPlan(plan)),
    runs: pairs.map((pair, taskIndex) => ({
      ...pair,
      id: `run_${taskIndex}`,
      taskIndex,
      caseName: `Case ${pair.caseId}`,
      details: { taskIndex },
    })),
  });
  for (const run of runs.values()) {
    const setup = await blobs.putJson({ prompt: 'Do it.', verify: 'true', run });
    queue.add([{ key: run, setup, variantId: `variant-${run}`, ordinals: [0, 1] }]);
  }
  const queued = queue.ofBatch(key);
  for (const [index, { key: trial, run, ordinal }] of queued.entries()) {
    if (index === 7) break;
    const pair = pairs[[...runs.values()].indexOf(run)];
    const caseName = `Case ${pair?.caseId}`;
    if (index === 1) {
      const cause = { kind: 'infrastructure', phase: 'sandbox', message: 'the engine went away' } as const;
      const first = trials.beginAttempt(trial);
      await trials.abandonAttempt(first, 'void', cause, { ...base, verdict: 'void', cause });
    }
    const attempt = trials.beginAttempt(trial);
    const artifact = await blobs.put(randomBytes(kilobytes * 1024));
    const answer = await blobs.put(Buffer.from(`answer ${index}\n`.repeat(kilobytes)));
    const archive = await ledger.workspaces.store(stream([randomBytes(kilobytes * 1024)]));
    const left = {
      kind: 'archive',
      sha256: archive.sha256,
      byteSize: 10,
      storedSize: archive.byteSize,
    } as const;
    const result: TrialRecord = {
      version: recordVersion,
      ...base,
      verdict: index % 2 === 0 ? 'passed' : 'failed',
      startedAt: 1_000_000 + index,
      subject: {
        caseName,
        ordinal,
        model: 'm',
        harness: 'command',
        image: 'offsite/base',
        network: 'none',
        prompt: 'Do it.',
      },
      fingerprint: { prompt: 'p', model: 'm' },
      artifacts: [{ path: 'out.bin', ...artifact }],
      changes: [
        { path: 'a.txt', kind: 'added', after: { type: 'file', mode: 0o644, content: answer.sha256 } },
      ],
      left,
    };
    const subject = { caseName, ordinal, taskIndex: 0, model: 'm', sessionId: `${run}/${ordinal}` };
    await trials.finish(attempt, {
      verdict: result.verdict,
      result,
      fingerprint: result.fingerprint,
      left,
      report: (record) => reportOf(result, { ...subject, record }),
    });
    if (index === 2)
      await ledger.gradings.add(trial, {
        verdict: 'failed',
        record: { ...result, verdict: 'failed' },
        basis: 'b',
      });
  }
  return key;
}

/** Writes the evidence of a batch to a file. */
export async function exportEvidence(
  ledger: Ledger,
  key: BatchKey,
  file: string,
  { signing = unsigned, secrets = [] }: { signing?: Signing; secrets?: string[] } = {},
) {
  const { signal } = new AbortController();
  const source = { ledger, redactor: new Redactor(secrets), signing, now: 5, env: process.env, signal };
  const batch = ledger.batches.byKey(key);
  let written: Awaited<ReturnType<typeof writeEvidence>> | undefined;
  await writeExport(file, async (write) => {
    written = await writeEvidence(batch, source, write);
  });
  if (!written) throw new Error('it was written');
  return { file, ...written };
}

const base = { startedAt: 1_000_000, finishedAt: 1_060_000, phases: [], modelUnmeasured: false };

async function* stream(pieces: Buffer[]): AsyncGenerator<Buffer> {
  yield* pieces;
}
