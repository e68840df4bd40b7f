import { createWriteStream } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { sentEvidence } from '../../bounds/callers.ts';
import type { Trial } from '../../contract/record.ts';
import type { AuditedTrial, EvidenceRequest, EvidenceResponse } from '../../contract/report.ts';
import { cut } from '../../text/printable.ts';
import { recordPath } from '../../trial/collect/artifacts.ts';
import { refuse, refusePart } from '../json-response.ts';
import type { AuditedEvidence, Auditor } from '../platform.ts';
import { isoTime } from '../record/run-record.ts';
import { setupOf } from '../record/setup.ts';
import { digestOfKept, digestOfSetup, type StoredTrial } from '../record/stored-trial.ts';
import { bodyPieces, endedEarly, type ServiceRequest } from '../request/read-body.ts';
import { jsonIn, type Run } from '../store/runs.ts';
import type { Stores, Writer } from '../store/stores.ts';
import type { Call } from './call.ts';

/** The marks of a run's trials. */
export function readMarks(
  { stores, principal }: Pick<Call, 'stores' | 'principal'>,
  { id }: EvidenceRequest,
): EvidenceResponse {
  const run = stores.runs.find(principal.organizationKey, id);
  if (!run) throw refuse(404, `There is no run ${id}.`);
  return {
    trials: [...stores.trials.marks(run.key)].map(([ordinal, { level, auditedAt }]) => {
      return { id, ordinal, level, auditedAt: isoTime(auditedAt) };
    }),
  };
}

/** Takes evidence from requests, one at a time. */
export type TakeEvidence = (
  call: Pick<Call, 'stores' | 'principal' | 'now'>,
  request: ServiceRequest,
) => Promise<EvidenceResponse>;

/**
 * A trial is marked if the audit follows it, and its evidence is about what the service has: the same report,
 * which names the sha256 of the record, and the setup and the model of the run. A mark is never taken back,
 * because none of these can change.
 *
 * @param auditor without it, evidence is refused
 */
export function takesEvidence(auditor: Auditor | undefined, writer: Writer): TakeEvidence {
  let audits = 0;
  return async ({ stores, principal, now }, request) => {
    if (!auditor) throw refuse(409, 'Nothing audits evidence here: send it to a service of `offsite serve`.');
    if (audits >= sentEvidence.count.audits)
      throw refuse(429, 'Other evidence is being audited.', { 'retry-after': '5' });
    audits += 1;
    try {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-evidence-'));
      const file = join(folder.path, 'evidence.tar.zst');
      const pieces = bodyPieces(request, sentEvidence.bytes.file, 'evidence');
      const written = createWriteStream(file, { mode: 0o600, flags: 'wx' });
      await pipeline(pieces, written);
      if (written.bytesWritten === 0) throw endedEarly('evidence');
      const ended = AbortSignal.timeout(sentEvidence.time.audit);
      const found = await auditor
        .audit(file, AbortSignal.any([request.signal, ended]))
        .catch((error) => Promise.reject(ended.aborted ? tooSlow() : error));
      return await marked(found, stores, { organization: principal.organizationKey, now, writer });
    } finally {
      audits -= 1;
    }
  };
}

function tooSlow() {
  return refusePart(`its audit takes longer than ${sentEvidence.time.audit / 1_000} s`, 'Refinement');
}

/** Marks the trials whose evidence is about what the service has, and says why the others are not. */
async function marked(
  { contradiction, trials: found }: AuditedEvidence,
  { runs, trials }: Stores,
  { organization, now, writer }: { organization: number; now: number; writer: Writer },
): Promise<EvidenceResponse> {
  const { suite, case: caseOf } = runs.definitions;
  const setups = new Map<number, string>();
  const setupOfRun = ({ key, batch, batchCase }: Run) => {
    const setup = setups.get(key) ?? digestOfSetup(setupOf(suite(batch), caseOf(batchCase)));
    setups.set(key, setup);
    return setup;
  };
  const marks: (() => void)[] = [];
  const reasonAgainst = ({ runId, ordinal, ...of }: AuditedEvidence['trials'][number]) => {
    const run = runs.find(organization, runId);
    if (!run) return 'the service has no such run';
    if (!run.local) return 'the service ran it itself';
    const texts = ordinal < run.trials ? trials.read(run.key, ordinal) : undefined;
    if (!texts) return 'it was not reported';
    const { artifacts = [] }: Pick<Trial, 'artifacts'> = jsonIn(texts.record);
    const record = artifacts.find(({ path }) => path === recordPath)?.sha256;
    if (record === undefined) return 'its report names no record: an older Offsite made it';
    if (record !== of.record) return `the report that the service has names another record, ${record}`;
    if (digestOfKept(texts) !== of.report)
      return 'the report that the service has is not the one in the evidence';
    if (of.setup !== setupOfRun(run)) return 'what it was to do is not what the service asked for';
    const { events }: StoredTrial['leftovers'] = jsonIn(texts.leftovers);
    const [reported] = events.flatMap((event) => ('model' in event ? String(event.model) : []));
    const asked = run.variant.model;
    if (reported !== asked) return `the report names the model ${reported}, and the run is for ${asked}`;
    if (contradiction !== undefined) return contradiction;
    const { level, reason = 'it was not audited' } = of;
    if (level === undefined) return reason;
    marks.push(() => trials.mark(run.key, ordinal, { level, auditedAt: now }));
    return undefined;
  };
  const answered = found.map((trial): AuditedTrial => {
    const { runId: id, ordinal, level } = trial;
    const against = reasonAgainst(trial);
    const reason = against ?? trial.reason;
    return {
      id,
      ordinal,
      ...(against === undefined && { level, auditedAt: isoTime(now) }),
      ...(reason !== undefined && { reason: cut(reason, sentEvidence.bytes.reason) }),
    };
  });
  await writer.write(() => {
    for (const mark of marks) mark();
  });
  return { trials: answered };
}
