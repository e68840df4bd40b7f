import { profileOf } from '../../suite/plan.ts';
import type { TrialSpec } from '../spec.ts';

/**
 * A trial as its fresh tests see it. In an environment of their own there is no harness and no profile, and
 * the prepare of the case is not run.
 */
export function testsSpec(spec: TrialSpec): TrialSpec {
  if (!spec.testsIn) return spec;
  return {
    ...spec,
    ...spec.testsIn,
    harness: 'command',
    profile: profileOf({}),
    prepare: undefined,
    prompt: '',
    modelConfig: undefined,
  };
}
