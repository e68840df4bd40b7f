import { createWriteStream } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { sentEvidence } from '../../bounds/callers.ts';
import type { AuditedTrial, EvidenceRequest, EvidenceResponse } from '../../contract/report.ts';
import { cut } from '../../text/printable.ts';
import { ApiError, refuse, refuseBody } from '../json-response.ts';
import type { AuditedEvidence, Auditor } from '../platform.ts';
import { isoTime } from '../record/run-record.ts';
import { setupOf } from '../record/setup.ts';
import { digestOfSetup } from '../record/stored-trial.ts';
import type { ServiceRequest } from '../request/read-body.ts';
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
    trials: [...stores.audits.marks(run.key)].map(([ordinal, { level, auditedAt }]) => {
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
      await save(request, file);
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

/** Writes the body to a file, piece by piece. */
async function save({ headers, body }: ServiceRequest, file: string): Promise<void> {
  const most = sentEvidence.bytes.file;
  const tooLarge = () => refuse(413, `The evidence has more than ${most} bytes.`, { connection: 'close' });
  const announced = headers.get('content-length');
  if (announced !== null && Number(announced) > most) throw tooLarge();
  let size = 0;
  async function* pieces(source: Readable): AsyncGenerator<Buffer> {
    try {
      for await (const piece of source) {
        size += piece.length;
        if (size > most) throw tooLarge();
        yield piece;
      }
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw endedEarly();
    }
  }
  if (body) {
    const source = Readable.fromWeb(body as ReadableStream<Uint8Array>);
    await pipeline(source, pieces, createWriteStream(file, { mode: 0o600, flags: 'wx' }));
  }
  if (size === 0 || (announced !== null && size < Number(announced))) throw endedEarly();
}

function endedEarly() {
  return refuseBody([{ _tag: 'Type', path: [], message: 'the evidence ended before its announced length' }]);
}

function tooSlow() {
  const message = `its audit takes longer than ${sentEvidence.time.audit / 1_000} s`;
  return refuseBody([{ _tag: 'Refinement', path: [], message }]);
}

/** Marks the trials whose evidence is about what the service has, and says why the others are not. */
async function marked(
  { contradiction, trials }: AuditedEvidence,
  { runs, audits }: Stores,
  { organization, now, writer }: { organization: number; now: number; writer: Writer },
): Promise<EvidenceResponse> {
  const setups = new Map<number, string>();
  const setupIn = (key: number) => {
    const known = setups.get(key);
    if (known !== undefined) return known;
    const { batch, batchCase } = runs.read(key);
    const { definitions } = runs;
    const setup = digestOfSetup(setupOf(definitions.suite(batch), definitions.case(batchCase)));
    setups.set(key, setup);
    return setup;
  };
  const marks: (() => void)[] = [];
  const reasonAgainst = ({ runId, ordinal, ...found }: AuditedEvidence['trials'][number]) => {
    const run = runs.find(organization, runId);
    if (!run) return 'the service has no such run';
    if (!run.local) return 'the service ran it itself';
    const committed = ordinal < run.trials ? audits.committed(run.key, ordinal) : undefined;
    if (!committed) return 'it was not reported';
    if (committed.record === undefined) return 'its report names no record: an older Offsite made it';
    if (committed.record !== found.record)
      return `the report that the service has names another record, ${committed.record}`;
    if (committed.report !== found.report)
      return 'the report that the service has is not the one in the evidence';
    if (found.setup !== setupIn(run.key)) return 'what it was to do is not what the service asked for';
    const { asked, reported } = committed.model;
    if (reported !== asked) return `the report names the model ${reported}, and the run is for ${asked}`;
    if (contradiction !== undefined) return contradiction;
    const { level, reason = 'it was not audited' } = found;
    if (level === undefined) return reason;
    marks.push(() => audits.mark(run.key, ordinal, { level, auditedAt: now }));
    return undefined;
  };
  const answered = trials.map((trial): AuditedTrial => {
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
