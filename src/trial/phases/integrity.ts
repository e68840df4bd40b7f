import type { IntegrityFinding } from '../../validate/integrity.ts';
import { shownPaths } from '../system-changes.ts';
import type { PhaseInput } from './phase.ts';

/** Whether what the case or the grading relies on is as it was left. */
export function integrityOf({ spec, found }: Pick<PhaseInput, 'spec' | 'found'>): IntegrityFinding[] {
  const findings: IntegrityFinding[] = [];
  if (spec.protected.length > 0) {
    const changed = found.protectedChanged ?? [];
    const problem =
      changed.length === 0 ? undefined : `files that the case protects were changed: ${shownPaths(changed)}`;
    findings.push({ kind: 'protected', name: 'protected files', problem });
  }
  if (found.verifyTampered) {
    const { paths } = found.systemChanges?.unexpected ?? { paths: [] };
    const problem =
      found.verifiedIn === 'same'
        ? `the work changed the system that it is graded with: ${shownPaths(paths)}; name what may change ` +
          'under "keep" or "ignore" of verify'
        : `what verify ran of the work changed the system that verify runs on: ${shownPaths(paths)}; where ` +
          'that is meant, name it under "keep" of verify';
    findings.push({ kind: 'tampering', name: 'the system under verify', problem });
  }
  return findings;
}
