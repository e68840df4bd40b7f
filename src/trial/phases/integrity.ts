import type { IntegrityFinding } from '../../validate/integrity.ts';
import { shownPaths } from '../workspace/system-changes.ts';
import type { PhaseInput } from './phase.ts';

/** Checks that nothing changed the files and the system that the case or its grading rely on. */
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
        ? `the work changed the system that grades it: ${shownPaths(paths)}; if a change is allowed, add ` +
          'it to "keep" or "ignore" of verify'
        : `the work changed the system while verify ran it: ${shownPaths(paths)}; if a change is allowed, ` +
          'add it to "keep" of verify';
    findings.push({ kind: 'tampering', name: 'the system under verify', problem });
  }
  return findings;
}
