import type { CaseEnvironment } from '../suite/environment.ts';
import { environmentContent } from '../suite/environment-content.ts';

/**
 * Whether two environments are the same for a trial. One of them may come from a stored plan, which has no
 * members without a value.
 */
export function isSameEnvironment(one: CaseEnvironment, other: CaseEnvironment): boolean {
  return JSON.stringify(environmentContent(one)) === JSON.stringify(environmentContent(other));
}
