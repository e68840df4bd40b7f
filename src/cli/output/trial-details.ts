import { printedText } from '../../bounds/anyone.ts';
import { type ListedTrial, listAttempts } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { ListedAttempt } from '../../record/attempt.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { cut } from '../../text/cut.ts';

/** A blob of the data folder. */
export interface StoredBlob {
  sha256: string;
  /** On this machine. */
  path: string;
}

/** What the JSON document of a batch says about a trial in addition to its numbers. */
export interface TrialDetails {
  verifySteps: {
    command: string;
    exitCode: number;
    durationMs?: number | undefined;
    /** The beginning, if it is long. The record has all that was kept. */
    output: string;
    outputTruncated: boolean;
  }[];
  artifacts: ShownArtifact[];
  attempts: ShownAttempt[];
  /** The whole record. */
  record: StoredBlob;
}

export interface ShownArtifact {
  /** In the workspace. */
  path: string;
  byteSize: number;
  sha256: string;
  /** The path of the blob with the content. */
  blob: string;
}

/** An attempt. If it does not count, `record` has what it found. */
export type ShownAttempt = Omit<ListedAttempt, 'result'> & { record?: StoredBlob };

export function detailsOf(
  ledger: Ledger,
  { key, result = '' }: Pick<ListedTrial, 'key' | 'result'>,
  record: TrialRecord,
): TrialDetails {
  const { listed } = printedText.count;
  return {
    verifySteps: (record.verifySteps ?? []).slice(0, listed).map((step) => {
      const output = cut(step.output, printedText.bytes.logLine);
      const outputTruncated = step.outputTruncated || output !== step.output;
      const { command, exitCode, durationMs } = step;
      return { command, exitCode, durationMs, output, outputTruncated };
    }),
    artifacts: artifactsOf(ledger, record).slice(0, listed),
    attempts: attemptsOf(ledger, key),
    record: storedBlob(ledger, result),
  };
}

export function artifactsOf(
  { blobs }: Ledger,
  { artifacts = [] }: Pick<TrialRecord, 'artifacts'>,
): ShownArtifact[] {
  return artifacts.map((artifact) => ({ ...artifact, blob: blobs.pathOf(artifact.sha256) }));
}

export function attemptsOf(ledger: Ledger, trial: number): ShownAttempt[] {
  return listAttempts(ledger.records, trial).map(({ result, ...attempt }) => ({
    ...attempt,
    ...(result !== undefined && { record: storedBlob(ledger, result) }),
  }));
}

export function storedBlob({ blobs }: Ledger, sha256: string): StoredBlob {
  return { sha256, path: blobs.pathOf(sha256) };
}
