import { canonicalJson, sha256 } from '../../base/canonical-json.ts';
import type { ReportedTrial } from '../../contract/report.ts';
import { trialIdentifier } from '../identifiers.ts';
import { storedTrial } from './stored-trial.ts';

/** Digests by which evidence of a trial is compared with what a service has of it, in hexadecimal. */

/** Of a report, by the JSON texts that are kept of it, which have all of its content. */
export function digestOfKept({ record, leftovers }: { record: string; leftovers: string }): string {
  return sha256(`${record}\n${leftovers}`).toString('hex');
}

/** The same of a report that is elsewhere. */
export function digestOfReport(runId: string, report: ReportedTrial): string {
  const { record, leftovers } = storedTrial(trialIdentifier(runId, report.ordinal), report, 0);
  return digestOfKept({ record: JSON.stringify(record), leftovers: canonicalJson(leftovers) });
}

/** Of the setup of a run, whatever the order of its members. */
export function digestOfSetup(setup: unknown): string {
  return sha256(canonicalJson(setup)).toString('hex');
}
