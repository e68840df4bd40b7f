import picomatch from 'picomatch';
import type { Validation } from '../contract/validation.ts';

/** A check of the trial's own, beside those of its case. */
export interface IntegrityFinding {
  kind: 'protected' | 'tampering';
  name: string;
  /** Paths that are not what they have to be. */
  changed: readonly string[];
}

/** The changed files that the case protects. @param filesChanged paths in the workspace; `.` where all of it went */
export function protectedChanges(globs: readonly string[], filesChanged: readonly string[]): string[] {
  // With `s`, `**` spans line breaks too.
  const matches = picomatch([...globs], { dot: true, flags: 's' });
  // A folder that was replaced or removed as a whole is named alone.
  const below = (path: string) => globs.some((glob) => glob.startsWith(`${path}/`) || path === '.');
  return filesChanged.filter((path) => matches(path) || below(path));
}

/** The finding as a validation, so that every reader of the record sees it among the others. */
export function integrityValidation(
  { kind, name, changed }: IntegrityFinding,
  { index, at }: { index: number; at: number },
): Validation {
  const passed = changed.length === 0;
  return {
    id: `validation-${index}`,
    index,
    name,
    kind,
    status: passed ? 'passed' : 'failed',
    startedAt: at,
    durationMs: 0,
    exitCode: passed ? 0 : 1,
    truncated: false,
    ...(!passed && { message: messageOf({ kind, changed }) }),
  };
}

/** Names may hold line breaks and what terminals obey: they are told as JSON texts. */
export function messageOf({ kind, changed }: Pick<IntegrityFinding, 'kind' | 'changed'>): string {
  const shown = changed.slice(0, 20).map((path) => JSON.stringify(path));
  const more = changed.length > shown.length ? ` and ${changed.length - shown.length} more` : '';
  const what =
    kind === 'protected'
      ? 'files that the case protects were changed'
      : 'what verify runs with and in was changed in the sandbox';
  return `${what}: ${shown.join(', ')}${more}`;
}
